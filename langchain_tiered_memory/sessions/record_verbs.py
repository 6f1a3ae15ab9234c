"""The verbs of a session that read its record, and what all its verbs stand on: what a scope leaves of the session.

With a scope that is its own track, and a capped sight of its parent's in searches.
"""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - annotations are read at the border, as are the next
from collections.abc import Sequence  # noqa: TC003
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage  # noqa: TC002

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.driver import off_loop_twin
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError, UnknownMessageError, warn_caller
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.recall.detail import detail_of
from langchain_tiered_memory.recall.search import expand, search
from langchain_tiered_memory.types.arguments import Amount, Count, Name  # noqa: TC001
from langchain_tiered_memory.types.contexts import Detail
from langchain_tiered_memory.types.drafts import SearchFilters
from langchain_tiered_memory.types.records import DEFAULT_TRACK, Entry, Expanded, Hit, Hits, Summary, seconds_of
from langchain_tiered_memory.types.trees import SummaryTree

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.session_engine import SessionEngine


def refuse_whole_session(core: SessionEngine, what: str) -> None:
    """Refuse what concerns the whole session where the handle is for one track of it."""
    if core.scope is not None:
        msg = (
            f"{what} concerns the whole session {core.session_id!r}, and this handle is for the track {core.track!r} "
            "alone: use one that was made without a scope"
        )
        raise InvalidInputError(msg)


def require_own(core: SessionEngine, message_ids: Sequence[str]) -> None:
    """Where the handle has a scope: that each of these messages is on its own track."""
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
    """As `expand`, of what the handle may see: an id of another track is one that is not there."""

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
    """Whether the session has messages of no other track: then all that was ever derived from it is the track's own.

    To be asked after what it is to answer for was read, for a session only gains tracks.
    """
    store, ref = core.found()
    return ref is None or set(store.transcript.tracks(ref)) <= {core.track}


def _decoded(entry: Entry) -> BaseMessage:
    """The stored message."""
    try:
        return decode(entry.payload)
    except UnknownMessageError as error:
        msg = f"the message {entry.id!r}: {error}; forget it by its id, or restore the database, to read the others"
        raise UnknownMessageError(msg) from error


def _within(hits: Sequence[Hit], *, max_tokens: int, count: Callable[[str], int]) -> list[Hit]:
    """The best of these in `max_tokens`, each whole or by its best passage; the text of a hit is what is counted."""
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


_MOST_NAMED = 10
"""Tracks that are named in a warning."""


class SessionCore:
    """Base of the public method sets."""

    def __init__(self, core: SessionEngine) -> None:
        self.core = core
        """The session behind the verbs, for integrations: its names may change with any version."""
        self.session_id = core.session_id
        self.track = core.track


@checked_verbs
class RecordVerbs(SessionCore):
    """What stands in a session: word for word, found, taken apart, and seen from above."""

    def messages(self) -> list[BaseMessage]:
        """Return the whole transcript of this track, as it was.

        If `main` has no messages but other tracks have, a Python warning and the event `messages_elsewhere` name them.
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
            max_tokens: The most tokens of the quotes with their frame.

        Raises:
            NotFoundError: if the session has no such summary or message, or the scope of this handle does not show it.
            InvalidInputError: if the beginning fits several ids, or an argument cannot be used.
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
            since: Only what was said from this time on. A time without a zone is UTC.
            until: Only what was said up to this time.

        Returns:
            Hits, best first.

        Raises:
            InvalidInputError: if an argument cannot be used, or a track is outside the scope of this handle.
        """
        filters = SearchFilters(
            tracks=tuple(tracks) if tracks is not None else None, since=seconds_of(since), until=seconds_of(until)
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
            summary_id: The id of a summary, a unique beginning of it, or the span of its messages, as contexts show it
                (`"451-600"`). The id of a message returns that message.
            depth: How many levels to go down. `None` goes down to the messages.

        Raises:
            NotFoundError: if the session has no such summary or message.
            InvalidInputError: if the beginning fits several ids, or `depth` is below 1.
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

    def _tell_of_tracks(self, tracks: Sequence[str]) -> None:
        """Say where the messages are of a session whose main track has none: an empty list alone would mislead."""
        if not tracks:
            return
        named = ", ".join(map(repr, tracks[:_MOST_NAMED])) + (", ..." if len(tracks) > _MOST_NAMED else "")
        told = (
            f"the session {self.session_id!r} has no message on its main track, but on {named}: "
            f"read one with memory.session({self.session_id!r}, track={tracks[0]!r})"
        )
        self.core.runtime.report(EventName.MESSAGES_ELSEWHERE, told, session_id=self.session_id, tracks=tracks)
        warn_caller(told, UserWarning)
