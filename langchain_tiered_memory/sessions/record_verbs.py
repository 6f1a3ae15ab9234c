"""A session's verbs that read and judge its record, and the scope checks that all its verbs share.

A handle with a scope sees its own track, and in searches a limited part of its parent's. A person's correction of a
fact is a message and holds for good. A verdict on a summary is kept, and the next text says what was wrong or missing.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - annotations are read at the border, as are the next
from collections.abc import Sequence  # noqa: TC003
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.driver import off_loop_twin
from langchain_tiered_memory.errors import (
    InvalidInputError,
    NotFoundError,
    StorageConflictError,
    StorageError,
    UnknownMessageError,
    warn_caller,
)
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.recall.recall import detail_of
from langchain_tiered_memory.recall.search import expand, search, summary_named
from langchain_tiered_memory.summaries.facts.reading import CORRECTION, CORRECTS
from langchain_tiered_memory.summaries.facts.store import SEARCHED
from langchain_tiered_memory.summaries.facts.supersession import superseded
from langchain_tiered_memory.summaries.marks import CORRECTED, PERSON
from langchain_tiered_memory.summaries.tree.fact_reading import facts_not_kept_yet
from langchain_tiered_memory.summaries.tree.sizing import target_and_cap
from langchain_tiered_memory.summaries.tree.works import commit, read_work
from langchain_tiered_memory.summaries.writers.jobs import Condensed
from langchain_tiered_memory.types.arguments import Amount, Count, Name, Note, Words  # noqa: TC001
from langchain_tiered_memory.types.contexts import Detail
from langchain_tiered_memory.types.drafts import SearchFilters
from langchain_tiered_memory.types.records import (
    DEFAULT_TRACK,
    Entry,
    Expanded,
    Fact,
    Facts,
    Hit,
    Hits,
    Summary,
    SummaryTree,
    Verdict,
    seconds_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.engine import SessionEngine
    from langchain_tiered_memory.types.records import SessionRef


def refuse_whole_session(core: SessionEngine, what: str) -> None:
    """Refuse a call that concerns the whole session if the handle is limited to one track."""
    if core.scope is not None:
        msg = (
            f"{what} concerns the whole session {core.session_id!r}, and this handle is for the track {core.track!r} "
            "alone: use one that was made without a scope"
        )
        raise InvalidInputError(msg)


def require_own(core: SessionEngine, message_ids: Sequence[str]) -> None:
    """If the handle has a scope, check that each of these messages is on its own track."""
    if core.scope is None:
        return
    store, ref = core.found()
    there = store.transcript.by_id(ref, list(message_ids), track=core.track) if ref is not None else []
    known = {entry.id for entry in there}
    missing = [one for one in message_ids if one not in known]
    if missing:
        msg = f"the track {core.track!r} of the session {core.session_id!r} has no message {missing[0]!r}"
        raise NotFoundError(msg)


def expand_within(core: SessionEngine, wanted: str, *, depth: int | None) -> list[Summary | Entry]:
    """As `expand`, within what the handle may see: an id on another track counts as missing."""

    def found(*, alone: bool) -> list[Summary | Entry]:
        return expand(core.checked, core.session_id, wanted, depth=depth, track=core.track, alone=alone)

    if core.scope is None:
        return found(alone=False)
    if has_sole_track(core):
        with suppress(NotFoundError, InvalidInputError):
            merged = found(alone=False)
            if has_sole_track(core):
                return merged
    return found(alone=True)


def has_sole_track(core: SessionEngine) -> bool:
    """Whether no other track has messages. If so, everything derived from the session belongs to this track.

    Ask this after reading what it decides about, because a session only gains tracks.
    """
    store, ref = core.found()
    return ref is None or set(store.transcript.tracks(ref)) <= {core.track}


def _decoded(entry: Entry) -> BaseMessage:
    try:
        return decode(entry.payload)
    except UnknownMessageError as error:
        msg = f"the message {entry.id!r}: {error}; forget it by its id, or restore the database, to read the others"
        raise UnknownMessageError(msg) from error


def _within(hits: Sequence[Hit], *, max_tokens: int, count: Callable[[str], int]) -> list[Hit]:
    """The best of these within `max_tokens`, each whole or by its best passage. Only the texts of hits count."""
    chosen: list[Hit] = []
    left = max_tokens
    for hit in hits:
        for text in dict.fromkeys((hit.text, hit.passage)):
            tokens = count(text)
            if tokens <= left:
                chosen.append(hit if text == hit.text else replace(hit, text=text, tokens=tokens))
                left -= tokens
                break
    return chosen


def _reworded(core: SessionEngine, ref: SessionRef, summary: Summary, text: str) -> Summary:
    """Replace a summary's text with a person's. The summaries above it are made again."""
    runtime = core.runtime
    work = read_work(runtime, ref, summary)
    condensed = Condensed(text=text, tokens=runtime.counter.count_text(text), model=PERSON)
    if work is None:
        msg = f"the messages of the summary {summary.id!r} cannot be read, so its text was not changed: run doctor"
        raise StorageError(msg)
    if not commit(runtime, ref, work, condensed):
        msg = f"the summary {summary.id!r} was just written by another process: try again"
        raise StorageConflictError(msg)
    (now,) = runtime.store.tree.by_id(ref, [summary.id])
    return now


_MOST_NAMED = 10
"""How many tracks a warning names."""


class SessionCore:
    """Base of the public method sets."""

    def __init__(self, core: SessionEngine) -> None:
        self.core = core
        """The session behind the verbs, for integrations. Its names may change in any version."""
        self.session_id: str = core.session_id
        self.track = core.track


@checked_verbs
class RecordVerbs(SessionCore):
    """A session's content: its messages, search, summaries and facts."""

    def messages(self) -> list[BaseMessage]:
        """Return the whole transcript of this track, unshortened.

        If `main` has no messages but other tracks do, a Python warning and the event `messages_elsewhere` name them.
        """
        store, ref = self.core.found()
        if ref is None:
            return []
        found = store.transcript.entries(ref, track=self.track, skip_damaged=False)
        if not found and self.track == DEFAULT_TRACK and self.core.scope is None:
            self._tell_of_tracks(store.transcript.tracks(ref))
        return [_decoded(entry) for entry in found]

    amessages = off_loop_twin(messages)

    def entries(self, *, after: Amount = 0, limit: Count | None = None) -> list[Entry]:
        """Return the stored messages of all tracks, in order: number, time, tokens, kind, pin and text of each.

        With a scope, only those of this track. A damaged message is left out and reported as an event.

        Args:
            after: Only messages with a higher number (`Entry.seq`).
            limit: The most messages to return. With `None`, all.
        """
        store, ref = self.core.found()
        if ref is None:
            return []
        return store.transcript.entries(ref, track=self.core.only_track, after=after, limit=limit)

    aentries = off_loop_twin(entries)

    def tracks(self) -> list[str]:
        """Return the tracks of this session that have messages, in the order in which they began.

        `main` is the conversation itself. The track of a sub-graph or sub-agent is named after its nodes.
        """
        store, ref = self.core.found()
        tracks = store.transcript.tracks(ref) if ref is not None else []
        return tracks if self.core.scope is None else [track for track in tracks if track == self.track]

    atracks = off_loop_twin(tracks)

    def reread(self, summary_id: str, *, query: str = "", max_tokens: Count = 2000) -> Detail:
        """Quote the messages under a summary of any level, within `max_tokens`.

        Args:
            summary_id: A summary or a message, named as for `expand`.
            query: A question: messages that answer it come first. If empty, the first messages do.
            max_tokens: The most tokens that the quotes may take, with their frame.

        Raises:
            NotFoundError: if the session has no such summary or message, or the scope of this handle does not show it.
            InvalidInputError: if the prefix matches several ids, or an argument cannot be used.
        """
        found = expand_within(self.core, summary_id, depth=None)
        runtime, ref = self.core.checked, self.core.ref
        entries = [one for one in found if isinstance(one, Entry)]
        return detail_of(runtime, ref, entries, query=query, max_tokens=max_tokens) if ref is not None else Detail()

    areread = off_loop_twin(reread)

    def search(
        self,
        query: str,
        *,
        k: Count = 10,
        tracks: Sequence[Name] | None = None,
        levels: Sequence[Amount] | None = None,
        kinds: Sequence[Name] | None = None,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
    ) -> list[Hit]:
        """Search messages (level 0) and summaries (level 1 and higher). Each level has a quota of the hits.

        Args:
            query: The question, or words to look for.
            k: The most hits to return.
            tracks: Only these tracks. With `None`, all that the scope of this handle shows; hits from a parent's track
                are limited to `sight_tokens`.
            levels: Only these levels; 0 is messages. With `None`, all.
            kinds: Only messages that were stored with one of these kinds; summaries have none. With `None`, all.
            since: Only what was said from this time on. A time without a zone is UTC.
            until: Only what was said up to this time.

        Returns:
            Hits, best first.

        Raises:
            InvalidInputError: if an argument cannot be used, or a track is outside the scope of this handle.
        """
        filters = SearchFilters(
            tracks=None if tracks is None else tuple(tracks),
            kinds=None if kinds is None else tuple(kinds),
            since=seconds_of(since),
            until=seconds_of(until),
        )
        core, runtime, scope = self.core, self.core.checked, self.core.scope
        if scope is None:
            return Hits(search(runtime, core.session_id, query, k=k, levels=levels, filters=filters))
        parent = scope.sight_from(core.track)
        seen = [core.track, *([parent] if parent is not None else [])]
        wanted = seen if filters.tracks is None else list(dict.fromkeys(filters.tracks))
        hidden = [track for track in wanted if track not in seen]
        if hidden:
            msg = f"the track {hidden[0]!r} is out of this handle's scope: it sees {', '.join(map(repr, seen))}"
            raise InvalidInputError(msg)

        def of_track(track: str) -> list[Hit]:
            own = replace(filters, tracks=(track,))
            return search(runtime, core.session_id, query, k=k, levels=levels, filters=own)

        hits = of_track(core.track) if core.track in wanted else []
        if parent is not None and parent in wanted:
            hits += _within(of_track(parent), max_tokens=scope.sight_tokens, count=runtime.counter.count_text)
        elif core.track in wanted:
            # Summaries that merge tracks are of no single one; where there is one alone, they are its own.
            merged = search(runtime, core.session_id, query, k=k, levels=levels, filters=replace(filters, tracks=None))
            if has_sole_track(core):
                hits = merged
        return Hits(sorted(hits, key=lambda hit: (-hit.score, hit.level, hit.seq))[:k])

    asearch = off_loop_twin(search)

    def expand(self, summary_id: str, *, depth: Count | None = 1) -> list[Summary | Entry]:
        """Return what a summary was made from: messages, or the summaries one level below.

        Args:
            summary_id: The id of a summary, a unique prefix of it, or the span of its messages, as contexts show it
                (`"451-600"`). The id of a message returns that message.
            depth: How many levels to go down. `None` goes down to the messages.

        Raises:
            NotFoundError: if the session has no such summary or message.
            InvalidInputError: if the prefix matches several ids, or `depth` is below 1.
        """
        return Expanded(expand_within(self.core, summary_id, depth=depth))

    aexpand = off_loop_twin(expand)

    def tree(self) -> SummaryTree:
        """Return all summaries as a tree, with states, spans and sizes. With a scope, only those of this track.

        It reads every summary, so its time grows with the session.
        """
        core = self.core
        store, ref = core.found()
        if ref is None:
            return SummaryTree(session_id=core.session_id, summaries=(), messages=0, tokens=0)
        with store.database.snapshot():
            totals, found = store.transcript.totals(ref, track=core.only_track), store.tree.all(ref)
        sees_all = core.scope is None or has_sole_track(core)
        return SummaryTree(
            session_id=core.session_id,
            summaries=tuple(one for one in found if sees_all or one.track == core.track),
            messages=int(totals.get("entries", 0)),
            tokens=int(totals.get("tokens", 0)),
        )

    atree = off_loop_twin(tree)

    def facts(self, query: str | None = None, *, k: Count = 50, superseded: bool = False) -> list[Fact]:
        """Return the facts of this session, from all tracks: short clauses with their source messages.

        For messages that are not summarised yet, rules read the facts on each call, from the newest thousand messages.

        Args:
            query: Only facts that match these words, best first. Without it, the weightiest come first, newest first.
            k: The most facts to return.
            superseded: Also return facts that were corrected. Each names the one that took its place.

        Raises:
            InvalidInputError: if an argument has the wrong type.
        """
        core = self.core
        store, ref = core.found()
        if ref is None:
            return Facts()
        core.engine.greet(core.session_id)
        fresh = facts_not_kept_yet(core.runtime, ref)
        if query is None:
            found = store.facts.best(ref, k, superseded_too=superseded, track=core.only_track, fresh=fresh)
        else:
            found = store.facts.search(ref, query, k, superseded_too=superseded, track=core.only_track, fresh=fresh)
        seqs = sorted({seq for fact in found for seq in fact.sources})
        stated = store.transcript.by_seq(ref, seqs)
        ids = {entry.seq: entry.id for entry in stated if core.only_track in (None, entry.track)}
        return Facts(replace(one, message_ids=tuple(ids[seq] for seq in one.sources if seq in ids)) for one in found)

    afacts = off_loop_twin(facts)

    def correct(self, fact_id: Name, statement: Words) -> Fact:
        """Replace a fact by a person's statement, in views, search and `facts()`, for good.

        The statement becomes a message of this track, of kind `correction`, and the source of the new fact. It replaces
        what the corrected messages state on this point, whoever reads or summarises them later. Nothing is removed. To
        undo it, forget that message. `facts(superseded=True)` shows the history.

        Args:
            fact_id: The id of a fact that holds, or a unique prefix of it.
            statement: What is true, as a sentence that makes sense on its own. It must share a word with the fact.

        Returns:
            The new fact, with the id of its message.

        Raises:
            NotFoundError: if the session has no such fact.
            InvalidInputError: if the fact no longer holds, the prefix matches several facts, or the statement shares no
                word with it.
            StorageError: if the database cannot store it.
        """
        core = self.core
        core.engine.writable_runtime()
        known = self.facts(k=SEARCHED, superseded=True)
        begin_so = [one for one in known if one.id.startswith(fact_id)]
        meant = [one for one in begin_so if one.id == fact_id] or begin_so
        if len(meant) != 1:
            number = f"{len(meant)} facts" if meant else "no fact"
            msg = f"the session {core.session_id!r} has {number} with the id {fact_id!r}: facts() lists them"
            raise NotFoundError(msg) if not meant else InvalidInputError(msg)
        (old,) = meant
        if old.status != "active":
            msg = (
                f"the fact {old.text!r} was replaced already: correct the fact that replaced it, {old.superseded_by!r}"
            )
            raise InvalidInputError(msg)
        numbers = old.sources or (old.seq,)
        new = replace(
            old, id="new", text=statement, seq=max(numbers) + 1, by="user", by_model=False, instead_of=numbers
        )
        if old.id not in superseded([*(one for one in known if one.seq in numbers), new]):
            msg = f"{statement!r} does not say what it corrects: use some of the words of {old.text!r}"
            raise InvalidInputError(msg)
        said = HumanMessage(statement, additional_kwargs={CORRECTS: list(numbers)})
        ((message_id,), _) = core.add([said], kind=CORRECTION)
        now = self.facts(k=SEARCHED, superseded=True)
        return next(one for one in now if one.instead_of and message_id in one.message_ids)

    acorrect = off_loop_twin(correct)

    def rate(
        self, summary_id: Name, verdict: Verdict, *, note: Note | None = None, text: Words | None = None
    ) -> Summary:
        """Record a person's verdict on a summary. A wrong or incomplete one is written again, with all above it.

        `metrics()` counts the verdicts by level and writer. A later verdict replaces an earlier one.

        Args:
            summary_id: Names one summary, as for `expand`.
            verdict: `good`, `wrong` or `incomplete`.
            note: What is right or missing, in at most 600 characters and half of the summary's size. The model is told,
                and every later text of this summary says it, in the model's words or on a line of its own.
            text: Your own words for the whole summary. If one of its messages is edited later, the summary is written
                again, so put what must stay into `note` too.

        Returns:
            The summary as it is now. It is `stale` if it will be written again.

        Raises:
            NotFoundError: if the session has no such summary.
            InvalidInputError: if `summary_id` matches several, the summary is not written yet, or a good one gets a
                note or a text.
            StorageError: if the database cannot store it.
        """
        core = self.core
        runtime = core.engine.writable_runtime()
        core.check_owner()
        if verdict == "good" and (note is not None or text is not None):
            msg = "a good summary takes no note and no other text: leave them out, or call it wrong or incomplete"
            raise InvalidInputError(msg)
        alone = core.scope is not None and not has_sole_track(core)
        found = summary_named(runtime, core.session_id, summary_id, track=core.track, alone=alone)
        most = target_and_cap(runtime.settings.tree.level(found.level), found.source_tokens).max_tokens
        if text is not None and (tokens := runtime.counter.count_text(text)) > most:
            msg = f"the text has {tokens} tokens, and a summary of level {found.level} at most {most}: shorten it"
            raise InvalidInputError(msg)
        if note is not None and (tokens := runtime.counter.count_text(f"{CORRECTED}{note}")) > most // 2:
            msg = f"the note has {tokens} tokens, and the whole summary at most {most}: shorten it, or give a text"
            raise InvalidInputError(msg)
        ref = runtime.store.transcript.find(core.session_id)
        rated = None
        if ref is not None:
            rated = runtime.store.tree.judge(
                ref,
                found.id,
                verdict,
                note=" ".join(note.split()) if note is not None else None,
                by_model=runtime.condenser.writes_later,
                now=runtime.now(),
                owner=runtime.worker if text is not None else None,
                lease_seconds=runtime.settings.tree.lease_seconds,
            )
        if ref is None or rated is None:
            msg = f"the summary {summary_id!r} is not written yet: rate it when tree() has a text of it"
            raise InvalidInputError(msg)
        if text is not None:
            rated = _reworded(core, ref, rated, text.strip())
        core.engine.wake(core.session_id)
        return rated

    arate = off_loop_twin(rate)

    def _tell_of_tracks(self, tracks: Sequence[str]) -> None:
        """If the main track has no messages, say which tracks do: an empty list alone would mislead."""
        if not tracks:
            return
        named = ", ".join(map(repr, tracks[:_MOST_NAMED])) + (", ..." if len(tracks) > _MOST_NAMED else "")
        told = (
            f"the session {self.session_id!r} has no message on its main track, but on {named}: "
            f"read one with memory.session({self.session_id!r}, track={tracks[0]!r})"
        )
        self.core.runtime.report(EventName.MESSAGES_ELSEWHERE, told, session_id=self.session_id, tracks=tracks)
        warn_caller(told, UserWarning)
