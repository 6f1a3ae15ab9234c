"""A session's public verbs, each in a sync and an async form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence  # noqa: TC003
from functools import partial
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage  # noqa: TC002

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.context.ledgers import measure
from langchain_tiered_memory.driver import Flow, flow_twin, off_loop_twin, run
from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.forgetting.forget import forget_messages, forget_sessions
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.pages.page import content_of, document
from langchain_tiered_memory.sessions.record_verbs import RecordVerbs, refuse_whole_session, require_own
from langchain_tiered_memory.sessions.shown_handle import ShownHandle
from langchain_tiered_memory.sessions.view_verbs import ViewVerbs
from langchain_tiered_memory.transcript.remember import When  # noqa: TC001
from langchain_tiered_memory.types.arguments import (  # noqa: TC001
    Checkpointer,
    MessageLike,
    Name,
    Seconds,
)
from langchain_tiered_memory.types.contexts import Context  # noqa: TC001

if TYPE_CHECKING:
    from langchain_tiered_memory.reports import FlushReport, Receipt, SessionMetrics


@checked_verbs
class Session(RecordVerbs, ViewVerbs, ShownHandle, sheet="sessions.session"):
    """One conversation or one agent run, seen from one of its tracks. `TieredMemory.session` returns it."""

    def add_messages(
        self,
        messages: Iterable[MessageLike],
        *,
        at: When | Sequence[When] | None = None,
        kind: Name | None = None,
        task: Name | None = None,
        wait: bool = False,
    ) -> list[str]:
        """Store messages. They are on disk when it returns.

        Args:
            messages: LangChain messages, or anything that `convert_to_messages` takes. If a message's id is already
                stored, the same content changes nothing, and other content is stored as a new revision.
            at: When they were said: one time for all, or one for each. Now by default. Times without a zone are UTC.
            kind: The kind of message, such as `acceptance_criteria`. If the priority matrix (docs/condensing.md) lists
                the kind, it decides how long a view shows the messages. Any other kind is stored without effect.
            task: The task that they belong to.
            wait: Finish the summaries and vectors that are due before returning.

        Returns:
            The ids of the messages, in order. A message without an id gets one. A forgotten message that comes back
            with the same id and words is not stored: its id is missing here, and the event `forgotten_not_stored` names
            it.

        Raises:
            InvalidInputError: if a message, time or id cannot be used. Nothing was written.
            StorageError: if the database cannot store them. Nothing was written.
        """
        return run(self.core.adding(messages, at=at, kind=kind, task=task, wait=wait))

    aadd_messages = flow_twin(add_messages, lambda self: self.core.adding)

    def revisions(self, message_id: str) -> list[BaseMessage]:
        """Return earlier revisions of an edited message, oldest first.

        Args:
            message_id: Id of a message on this track, or on the only other track that has it.

        Raises:
            InvalidInputError: if this track has no message with that id, but several others do.
        """
        store, ref = self.core.found()
        if ref is None:
            return []
        require_own(self.core, [message_id])
        return [decode(one) for one in store.transcript.revisions(ref, message_id, track=self.track)]

    arevisions = off_loop_twin(revisions)

    def pin(self, message_id: str) -> None:
        """Show a message in every context from now on.

        Args:
            message_id: Id of a message on this track, or on the only other track that has it.

        Raises:
            NotFoundError: if the session has no such message.
            InvalidInputError: if this track has no message with that id, but several others do.
        """
        self._set_pin(message_id, pinned=True)

    apin = off_loop_twin(pin)

    def unpin(self, message_id: str) -> None:
        """Unpin a message.

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
        """Remove messages from this track, or the whole session, with everything derived from them.

        Forgotten messages do not come back under their ids, whoever sends them again: keyed digests remain. If an id is
        not on this track, it means the message on the only other track that has it. Messages with the same id on
        further tracks stay, and the receipt names them.

        Args:
            message_ids: The messages to remove. With `None`, the whole session.
            checkpointer: A LangGraph checkpointer, to delete the thread of the same name too. For single messages, the
                receipt only says that the thread still has them.

        Raises:
            NotFoundError: if one of the messages was never in the session. Nothing was removed.
            InvalidInputError: if several other tracks, but not this one, have a message with an id. Nothing was
                removed.
            StorageError: if the database cannot remove them now. The next call, `doctor`, or the next open finishes the
                removal.
        """
        return run(self._forget(message_ids=message_ids, checkpointer=checkpointer))

    aforget = flow_twin(forget, lambda self: self._forget)

    def metrics(self) -> SessionMetrics:
        """Return figures for the session: sizes, costs, ratios. With a scope, only those of this track."""
        return measure(self.core.checked, self.session_id, track=self.core.only_track)

    ametrics = off_loop_twin(metrics)

    def flush(self, timeout: Seconds | None = None) -> FlushReport:
        """Finish all summaries and vectors of this session that are due.

        Args:
            timeout: The most seconds to take. With `None`, until all is done.
        """
        return run(self.core.engine.flush(self.session_id, timeout))

    aflush = flow_twin(flush, lambda self: partial(self.core.engine.flush, self.session_id))

    def page(self, *, contexts: Sequence[Context] = ()) -> str:
        """Return the session as one HTML page: messages, summaries, facts, decisions, checkpoints, files and cost.

        The page makes no requests and shows messages as plain text. Making it writes nothing. It shows what past calls
        saw, as far as decisions about views are stored.

        Args:
            contexts: Results of `context` on this track, to show word for word with their accounts.

        Raises:
            NotFoundError: if the session has no message.
            InvalidInputError: if the handle has a scope.
        """
        refuse_whole_session(self.core, "page")
        return document(content_of(self, contexts=contexts))

    apage = off_loop_twin(page)

    def end(self) -> None:
        """Close the session and archive its highest summaries. The next message opens it again."""
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
        self.core.engine.wake(self.session_id)
        return receipt
