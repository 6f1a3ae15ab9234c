"""Facts, and what a person says of what was read: a fact corrected, a summary rated.

The correction is a message, and stands for good. The verdict is kept, and what was wrong or missing stands in the next
text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_core.messages import HumanMessage

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.driver import off_loop_twin
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError, StorageConflictError, StorageError
from langchain_tiered_memory.recall.search import summary_named
from langchain_tiered_memory.sessions.record_verbs import SessionCore, has_sole_track
from langchain_tiered_memory.summaries.facts.reading import CORRECTION, CORRECTS
from langchain_tiered_memory.summaries.facts.supersession import superseded
from langchain_tiered_memory.summaries.marks import CORRECTED, PERSON
from langchain_tiered_memory.summaries.tree.fact_reading import facts_not_kept_yet
from langchain_tiered_memory.summaries.tree.sizing import target_and_cap
from langchain_tiered_memory.summaries.tree.works import commit, read_work
from langchain_tiered_memory.summaries.writers.jobs import Condensed
from langchain_tiered_memory.types.arguments import Count, Name, Note, Words  # noqa: TC001 - annotations are read at the border
from langchain_tiered_memory.types.drafts import Judged
from langchain_tiered_memory.types.records import Fact, Facts, Summary, Verdict

if TYPE_CHECKING:
    from langchain_tiered_memory.session_engine import SessionEngine
    from langchain_tiered_memory.types.records import SessionRef


_MOST_FACTS = 20_000
"""Of a session, among which one is looked for by its id: as many as a question looks through."""


@checked_verbs
class VerdictVerbs(SessionCore):
    """Facts, and what a person says of them and of summaries."""

    def facts(self, query: str | None = None, *, k: Count = 50, superseded: bool = False) -> list[Fact]:
        """Return the facts of this session, from all tracks: short clauses with their source messages.

        Facts of messages that are not summarised yet are read by rules on each call, from the newest thousand.

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
            found = store.facts.best(ref, k, superseded_too=superseded, track=core.only_track, fresh=fresh, once=True)
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
            fact_id: The id of a fact that holds, or a unique beginning of it.
            statement: What is true, as a sentence that stands alone. It must share a word with the fact.

        Returns:
            The new fact, with the id of its message.

        Raises:
            NotFoundError: if the session has no such fact.
            InvalidInputError: if the fact no longer holds, the beginning fits several facts, or the statement shares no
                word with it.
            StorageError: if the database cannot store it.
        """
        core = self.core
        core.engine.writable_runtime()
        known = self.facts(k=_MOST_FACTS, superseded=True)
        begin_so = [one for one in known if one.id.startswith(fact_id)]
        meant = [one for one in begin_so if one.id == fact_id] or begin_so
        if len(meant) != 1:
            number = f"{len(meant)} facts" if meant else "no fact"
            msg = f"the session {core.session_id!r} has {number} with the id {fact_id!r}: facts() lists them"
            raise NotFoundError(msg) if not meant else InvalidInputError(msg)
        (old,) = meant
        if old.status != "active":
            msg = f"the fact {old.text!r} was replaced already: correct what took its place, {old.superseded_by!r}"
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
        now = self.facts(k=_MOST_FACTS, superseded=True)
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
                and every later text of this summary says it: in the model's words, or else as a line of its own.
            text: Your own words for the whole summary. If one of its messages is edited later, the summary is written
                again, so put what must stay into `note` too.

        Returns:
            The summary as it is now. It is `stale` if it will be written again.

        Raises:
            NotFoundError: if the session has no such summary.
            InvalidInputError: if `summary_id` fits several, the summary is not written yet, or a good one gets a note
                or a text.
            StorageError: if the database cannot store it.
        """
        core = self.core
        runtime = core.engine.writable_runtime()
        core.check_owner()
        if verdict == "good" and (note is not None or text is not None):
            msg = "a good summary gets no note and no other text: leave them out, or call it wrong or incomplete"
            raise InvalidInputError(msg)
        alone = core.scope is not None and not has_sole_track(core)
        found = summary_named(runtime, core.session_id, summary_id, track=core.track, alone=alone)
        most = target_and_cap(runtime.settings.tree.level(found.level), found.source_tokens).max_tokens
        if text is not None and (tokens := runtime.counter.count_text(text)) > most:
            msg = f"the text has {tokens} tokens, and a summary of level {found.level} at most {most}: shorten it"
            raise InvalidInputError(msg)
        judged = Judged(
            verdict=verdict,
            note=" ".join(note.split()) if note is not None else None,
            by_model=runtime.condenser.writes_later,
        )
        if note is not None and (tokens := runtime.counter.count_text(f"{CORRECTED}{note}")) > most // 2:
            msg = f"the note has {tokens} tokens, and the whole summary at most {most}: shorten it, or give a text"
            raise InvalidInputError(msg)
        ref = runtime.store.transcript.find(core.session_id)
        rated = None
        if ref is not None:
            rated = runtime.store.tree.judge(
                ref,
                found.id,
                judged,
                now=runtime.now(),
                owner=runtime.worker if text is not None else None,
                lease_seconds=runtime.settings.tree.lease_seconds,
            )
        if ref is None or rated is None:
            msg = f"the summary {summary_id!r} is not written yet: rate it when tree() has a text of it"
            raise InvalidInputError(msg)
        if text is not None:
            rated = _reworded(core, ref, rated, text.strip())
        core.wake()
        return rated

    arate = off_loop_twin(rate)


def _reworded(core: SessionEngine, ref: SessionRef, summary: Summary, text: str) -> Summary:
    """Put a person's text in the place of a summary's own; what stands above is made again from it."""
    runtime = core.runtime
    work = read_work(runtime, ref, summary)
    condensed = Condensed(text=text, tokens=runtime.counter.count_text(text), model=PERSON)
    if work is None:
        msg = f"the messages of the summary {summary.id!r} cannot be read, so its text was not changed: see doctor"
        raise StorageError(msg)
    if not commit(runtime, ref, work, condensed):
        msg = f"the summary {summary.id!r} was written by somebody else at this moment: try again"
        raise StorageConflictError(msg)
    (now,) = runtime.store.tree.by_id(ref, [summary.id])
    return now
