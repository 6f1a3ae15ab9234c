"""A session's public verbs, each in a sync and an async form."""

from __future__ import annotations

import datetime as dt  # noqa: TC003 - annotations are read at the border, as are the next
from collections.abc import Iterable, Sequence  # noqa: TC003
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage  # noqa: TC002

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.context.ledgers import measure
from langchain_tiered_memory.driver import Flow, flow_twin, off_loop_twin, run
from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.forgetting.forget import forget_messages, forget_sessions
from langchain_tiered_memory.forgetting.langgraph_threads import atake_out, take_out
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.pages.page import content_of, document
from langchain_tiered_memory.sessions.run_verbs import RunVerbs
from langchain_tiered_memory.sessions.scoped_verbs import (
    expand_within,
    refuse_whole_session,
    require_own,
    search_within,
    tree_within,
)
from langchain_tiered_memory.sessions.shown_handle import ShownHandle
from langchain_tiered_memory.sessions.verdicts import correct, rate
from langchain_tiered_memory.sessions.view_verbs import TrackVerbs, ViewVerbs
from langchain_tiered_memory.transcript.remember import When  # noqa: TC001
from langchain_tiered_memory.types.arguments import (  # noqa: TC001
    Amount,
    Checkpointer,
    Count,
    MessageLike,
    Name,
    Note,
    Seconds,
    Words,
)
from langchain_tiered_memory.types.contexts import Context  # noqa: TC001
from langchain_tiered_memory.types.drafts import SearchFilters
from langchain_tiered_memory.types.records import Entry, Expanded, Fact, Facts, Hit, Hits, Summary, Verdict, seconds_of

if TYPE_CHECKING:
    from langchain_tiered_memory.reports import FlushReport, Receipt, SessionMetrics
    from langchain_tiered_memory.types.trees import SummaryTree


@checked_verbs
class Session(TrackVerbs, ViewVerbs, RunVerbs, ShownHandle, sheet="sessions.session"):
    """One conversation or one agent run, seen from one of its tracks. Made by `TieredMemory.session`; has no state."""

    def add_messages(
        self,
        messages: Iterable[MessageLike],
        *,
        at: When | Sequence[When] | None = None,
        kind: Name | None = None,
        task: Name | None = None,
        wait: bool = False,
    ) -> list[str]:
        """Write messages; durable when it returns.

        Args:
            messages: LangChain messages, or what `convert_to_messages` takes. A message whose id is known is the same
                message again (nothing happens) or its edit (a new revision).
            at: When they were said: one moment for all, or one for each; now, if not given. Naive times are UTC.
            kind: What they are, such as `acceptance_criteria`. A name of the priority matrix decides how long a view
                shows them, and what leaves it first (docs/condensing.md); any other is kept and means nothing there.
            task: The task that they belong to.
            wait: Finish summaries and vectors that fall due before returning.

        Returns:
            The messages' ids, in order; those without one got one. A message that was forgotten under its id with the
            same words is not stored again: its id is not among them, and the event `forgotten_not_stored` names it.
            Under a new id it is a new message.

        Raises:
            InvalidInputError: for a message, a time or an id that cannot be taken; nothing was written.
            StorageError: when the database cannot take them; nothing was written.
        """
        return run(self.core.adding(messages, at=at, kind=kind, task=task, wait=wait))

    aadd_messages = flow_twin(add_messages, lambda self: self.core.adding)

    def revisions(self, message_id: str) -> list[BaseMessage]:
        """Earlier revisions of an edited message, oldest first.

        Args:
            message_id: Of this track, or of the one other track that has it.

        Raises:
            InvalidInputError: when not this track but several others have a message of that id.
        """
        store, ref = self.core.found()
        if ref is None:
            return []
        require_own(self.core, [message_id])
        return [decode(one) for one in store.transcript.revisions(ref, message_id, track=self.track)]

    arevisions = off_loop_twin(revisions)

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
        """The best hits over messages (level 0) and summaries (level 1 and up), within each level's quota.

        Args:
            query: The question, or words of what is looked for.
            k: How many at most.
            tracks: Only these; `None`: all that the handle's scope shows, of a parent's as many hits as fit its tokens.
            levels: Only these, 0 for messages; `None`: all.
            since: Only what was said at this time or later; a time without a zone is UTC.
            until: Only what was said at this time or before.

        Raises:
            InvalidInputError: when one of the arguments cannot be used, or a track is out of the handle's scope.
        """
        filters = SearchFilters(
            tracks=tuple(tracks) if tracks is not None else None, since=seconds_of(since), until=seconds_of(until)
        )
        return Hits(search_within(self.core, query, k=k, levels=levels, filters=filters))

    asearch = off_loop_twin(search)

    def facts(self, query: str | None = None, *, k: Count = 50, superseded: bool = False) -> list[Fact]:
        """What was stated on any track of this session: a short clause each.

        Of messages that are not summarised yet it is read by rules when it is asked for, of the newest thousand.

        Args:
            query: Those whose words match it best, best first; without one the weightiest, and of those the newest.
            k: The most to give.
            superseded: Whether those are among them that a correction took the place of; each names what did.

        Raises:
            InvalidInputError: when one of them is of a type that it cannot take.
        """
        return Facts(self.core.facts(query, k=k, superseded=superseded))

    afacts = off_loop_twin(facts)

    def correct(self, fact_id: Name, statement: Words) -> Fact:
        """Put a statement of a person's in the place of a fact, in views, search and `facts()`, for good.

        The statement is a message of this track, of kind `correction`: it is the new fact's source. It ends what the
        corrected messages state of this, whoever reads or summarises them later; nothing is removed. To undo it, forget
        that message; `facts(superseded=True)` has the history.

        Args:
            fact_id: The id of a fact that holds, or a beginning of it that no other shares.
            statement: What is true, as a sentence that stands alone, with some of the words of what it corrects.

        Returns:
            The new fact, with the id of its message.

        Raises:
            NotFoundError: when the session has no such fact.
            InvalidInputError: when it does not hold any more, several begin so, or the statement has no word of it.
            StorageError: when the database cannot take it.
        """
        return correct(self.core, fact_id, statement)

    acorrect = off_loop_twin(correct)

    def rate(
        self, summary_id: Name, verdict: Verdict, *, note: Note | None = None, text: Words | None = None
    ) -> Summary:
        """Say what you think of a summary. One that is wrong or incomplete is made again; all above it follows.

        Verdicts are counted in `metrics()` by who wrote what was rated. A later verdict takes the place of an earlier
        one.

        Args:
            summary_id: As for `expand`, where it names one summary.
            verdict: `good`, `wrong` or `incomplete`.
            note: What is right, or missing, in at most 600 characters and half of what the summary may take. Every text
                that is made from now on holds it: the model is told, and where it does not say so in these words,
                they are a line of the text.
            text: Your own words for the whole summary, in the place of those that stand there. Where a message below is
                edited later, it is made again; name in `note` what must stand in that too.

        Returns:
            The summary as it is now: `stale`, where it is to be made again.

        Raises:
            NotFoundError: when the session has no such summary.
            InvalidInputError: when several are named so, it is not written yet, or a good one gets a note or a text.
            StorageError: when the database cannot take it.
        """
        return rate(self.core, summary_id, verdict, note=note, text=text)

    arate = off_loop_twin(rate)

    def expand(self, summary_id: str, *, depth: Count | None = 1) -> list[Summary | Entry]:
        """What a summary stands for.

        Args:
            summary_id: Its id, or the numbers of its messages, as contexts name it (`"451-600"`). A message's id gives
                that message. The beginning of an id will do.
            depth: How many levels down; `None`: to the messages.

        Raises:
            NotFoundError: when the session has no such summary or message.
            InvalidInputError: when several ids begin so, or `depth` is below 1.
        """
        return Expanded(expand_within(self.core, summary_id, depth=depth))

    aexpand = off_loop_twin(expand)

    def tree(self) -> SummaryTree:
        """Every summary there is, from the highest down, with states, spans and sizes; with a scope, this track's.

        To look at: it reads all of them, so it costs time that grows with the session.
        """
        return tree_within(self.core)

    atree = off_loop_twin(tree)

    def pin(self, message_id: str) -> None:
        """Show a message in every context from now on.

        Args:
            message_id: Of this track, or of the one other track that has it.

        Raises:
            NotFoundError: when the session has no such message.
            InvalidInputError: when not this track but several others have a message of that id.
        """
        self._set_pin(message_id, pinned=True)

    apin = off_loop_twin(pin)

    def unpin(self, message_id: str) -> None:
        """Let a pinned message go.

        Args:
            message_id: As for `pin`.
        """
        self._set_pin(message_id, pinned=False)

    aunpin = off_loop_twin(unpin)

    def forget(
        self,
        *,
        message_ids: Sequence[str] | None = None,
        checkpointer: Checkpointer | None = None,
    ) -> Receipt:
        """Remove messages of this track, or the whole session, with everything derived from them.

        What was forgotten does not come back under its ids, from whatever place: keyed digests are kept of it. An id
        that this track does not have is that of the one other track that has it; messages of the same ids on further
        tracks stay, and the receipt names them.

        Args:
            message_ids: Which messages; `None` for the session.
            checkpointer: LangGraph's checkpointer, to have the thread of the session's name deleted there too. Of
                single messages the receipt can only say that the thread has them.

        Raises:
            NotFoundError: when one of the messages never was in the session; nothing was removed then.
            InvalidInputError: when several other tracks have a message of that id; nothing was removed then.
            StorageError: when the database cannot remove them now. What was begun is finished by the next call, by
                `doctor`, or when the memory is opened again.
        """
        return run(self._forget(message_ids=message_ids, checkpointer=checkpointer), take=take_out)

    aforget = flow_twin(forget, lambda self: self._forget, take=atake_out)

    def metrics(self) -> SessionMetrics:
        """The session in figures; with a scope, this track alone."""
        return measure(self.core.checked, self.session_id, track=self.core.only_track)

    ametrics = off_loop_twin(metrics)

    def flush(self, timeout: Seconds | None = None) -> FlushReport:
        """Finish this session's summaries and vectors that are due.

        Args:
            timeout: Seconds to work at most; `None`: until all is done.
        """
        return run(self.core.flush(timeout))

    aflush = flow_twin(flush, lambda self: self.core.flush)

    def page(self, *, contexts: Sequence[Context] = ()) -> str:
        """The session as one page of HTML: messages, summaries, facts, decisions, checkpoints, files and cost.

        It stands alone: no request leaves it, and what a message says stays text. Making it writes nothing. What a past
        call was shown is told as far as decisions about views are kept.

        Args:
            contexts: What `context` gave for calls of this track, to be shown word for word with their accounts.

        Raises:
            NotFoundError: when the session has no message.
            InvalidInputError: for a handle with a scope.
        """
        refuse_whole_session(self.core, "page")
        return document(content_of(self, contexts=contexts))

    apage = off_loop_twin(page)

    def end(self) -> None:
        """Close the session: its highest summaries are archived. A further message opens it again."""
        refuse_whole_session(self.core, "end")
        self.core.engine.writable_runtime()
        store, ref = self.core.found()
        if ref is not None:
            store.transcript.end(ref, now=self.core.runtime.now())
            store.tree.archive(ref)

    aend = off_loop_twin(end)

    def _name(self) -> str:
        return f"{self.session_id!r}, track {self.track!r}"

    def _set_pin(self, message_id: str, *, pinned: bool) -> None:
        store, ref = self.core.found()
        if ref is None:
            msg = f"the session {self.session_id!r} has no message yet: {message_id!r} cannot be pinned"
            raise NotFoundError(msg)
        require_own(self.core, [message_id])
        store.transcript.set_pin(ref, message_id, pinned=pinned, track=self.track)

    def _forget(
        self, *, message_ids: Sequence[str] | None = None, checkpointer: Checkpointer | None = None
    ) -> Flow[Receipt]:
        runtime = self.core.checked
        if message_ids is None:
            refuse_whole_session(self.core, "forget() without message_ids")
            self.core.engine.writable_runtime()
            return (yield from forget_sessions(runtime, session_id=self.session_id, checkpointer=checkpointer))
        before = runtime.store.tombstones.named(self.session_id, message_ids, tracks=[self.track])
        require_own(self.core, [one for one in message_ids if one not in before])
        receipt = forget_messages(
            runtime,
            self.session_id,
            list(message_ids),
            track=self.track,
            alone=self.core.scope is not None,
            checkpointer=checkpointer,
        )
        self.core.wake()
        return receipt
