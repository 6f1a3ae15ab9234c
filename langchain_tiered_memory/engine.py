"""An opened memory behind its public verbs: parts, worker, what waits for an answer; and one session on one track.

Methods are public to this package and no part of the public interface: memory, sessions, integrations and the command
line call them, not each other's private parts. The owner is checked in a `SessionEngine`: `checked` gives the memory's
parts only to a handle of the session's owner.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable

from langchain_tiered_memory import telemetry
from langchain_tiered_memory.context.assemble import assemble, preview
from langchain_tiered_memory.context.request import Request
from langchain_tiered_memory.driver import Flow, each_step, pause
from langchain_tiered_memory.errors import ArgumentError, ClosedError, MixedOwnersError, StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.forgetting.forget import forget_sessions, resume_removals
from langchain_tiered_memory.maintenance.worker import Greeted, Worker, flush
from langchain_tiered_memory.models.chat_models import profile_of
from langchain_tiered_memory.models.surroundings import announce
from langchain_tiered_memory.models.traces import traced
from langchain_tiered_memory.models.window_budget import learn_window
from langchain_tiered_memory.runs.files.monitor import SAMPLES, SESSIONS, Monitors
from langchain_tiered_memory.sessions.last_request import bound, epoch_of, handed_out, keep
from langchain_tiered_memory.sessions.opening import close_runtime, open_runtime
from langchain_tiered_memory.sql.remembered import Remembered
from langchain_tiered_memory.transcript.outbox import confirm, tell_left_over
from langchain_tiered_memory.transcript.remember import When, as_turn, remember
from langchain_tiered_memory.types.files import ContextSize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from langchain_tiered_memory.models.chat_models import CalledModel
    from langchain_tiered_memory.models.window_budget import ModelProfile
    from langchain_tiered_memory.reports import FlushReport, Receipt
    from langchain_tiered_memory.runtime import Runtime, SqlStore
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.types.arguments import Scope
    from langchain_tiered_memory.types.contexts import Context
    from langchain_tiered_memory.types.drafts import Appended, Follows
    from langchain_tiered_memory.types.outcomes import ViewDiff
    from langchain_tiered_memory.types.records import SessionRef

_POLL_SECONDS = 0.01


class Engine:
    """One opened memory: its parts, its worker, and what is known of requests that wait for their answers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        works = runtime.settings.tree.background and not runtime.store.database.read_only
        self._worker = Worker(runtime) if works else None
        self._closed = False
        self.sent = Remembered[tuple[str, str], int]()
        """Raw tokens of the last context given out for a (session, track): what the next answer's usage calibrates."""
        self.contexts = Remembered[str, deque[ContextSize]](SESSIONS)
        """Sizes of the last contexts, for the reports of runs."""
        self.monitors = Monitors(runtime.monotonic)
        """Times and alerts of runs, whichever object takes their steps."""
        runtime.listeners.watch(self.monitors.hear)
        self._greeted = Greeted()

    @classmethod
    def opened(cls, where: str | Path | None, **chosen: Any) -> Self:  # noqa: ANN401 - as `open_runtime` takes them
        """A memory that is opened, with what others left unfinished or untold there taken up."""
        runtime = open_runtime(where, **chosen)
        if not runtime.store.database.read_only:
            resume_removals(runtime)
        announce(runtime.surroundings.gaps)
        tell_left_over(runtime)
        return cls(runtime)

    @property
    def runtime(self) -> Runtime:
        """The parts of the memory."""
        if self._closed:
            msg = "this memory was closed: open it again"
            raise ClosedError(msg)
        return self._runtime

    @property
    def settings(self) -> Settings:
        """As it was opened with."""
        return self._runtime.settings

    @property
    def label(self) -> str:
        """The database's file, or its URL without its password; of a closed memory, too."""
        return self._runtime.store.database.label

    def writable_runtime(self) -> Runtime:
        """The parts, for a verb that writes.

        Raises:
            ReadOnlyError: where this memory only reads.
        """
        runtime = self.runtime
        runtime.store.database.require_writable()
        return runtime

    def session(self, session_id: str, **chosen: Any) -> SessionEngine:  # noqa: ANN401 - as `SessionEngine` takes them
        """One session of it."""
        return SessionEngine(self, session_id, **chosen)

    def learn_window(self, model: str | Runnable[Any, Any], tokens: int) -> None:
        """As `TieredMemory.learn_window` says."""
        name = profile_of(model).name
        learn_window(self.runtime, name, tokens)
        self.runtime.store.windows.confirm(str(name), tokens)  # whatever was learnt

    def forget(self, **what: Any) -> Flow[Receipt]:  # noqa: ANN401 - as `forget_sessions` takes it
        """As `TieredMemory.forget` says."""
        return forget_sessions(self.writable_runtime(), **what)

    def report(self, name: EventName, reason: str, **about: Any) -> None:  # noqa: ANN401 - as `Runtime.event` takes it
        """Send an event; a memory that was closed still can, for what failed because of that."""
        self._runtime.report(name, reason, **about)

    def wake(self, session_id: str) -> None:
        """Have the background worker look at a session."""
        if self._worker is not None:
            self._worker.wake(session_id)

    def greet(self, session_id: str) -> None:
        """Take up, at the first use of a session here, what another process left undone."""
        if self._greeted.is_new(session_id):
            self.wake(session_id)

    def note_context(self, session_id: str, track: str, context: Context) -> None:
        """Remember what a request counted, and how large it was beside its window."""
        self.sent.put((session_id, track), context.raw_tokens)
        guard = context.guard
        size = ContextSize(
            at=self._runtime.now(),
            track=track,
            tokens=context.tokens,
            limit=guard.window.limit,
            zone=guard.zone.value,
            needed_tokens=guard.used_tokens,
            sections={section.name: section.tokens for section in context.sections},
        )
        self.contexts.of(session_id, partial(deque, maxlen=SAMPLES)).append(size)

    def flush(self, session_id: str | None, timeout: float | None = None) -> Flow[FlushReport]:
        """Let the background finish what it has in hand, so that no passage is embedded twice; then do the rest.

        Of one session, or of all; `timeout` is in seconds, and `None` waits for as long as it takes.
        """
        runtime = self.writable_runtime()
        deadline = None if timeout is None else runtime.monotonic() + timeout
        while self._worker is not None and not self._worker.is_idle():
            if deadline is not None and runtime.monotonic() >= deadline:
                break
            yield from pause(_POLL_SECONDS)
        left = None if deadline is None else max(deadline - runtime.monotonic(), 0.0)
        return (yield from flush(runtime, session_id, timeout=left))

    def close(self) -> None:
        """Stop the background work after the step in hand, and let go of files and connections. Again: nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._worker is not None:
                self._worker.stop()
            confirm(self._runtime)
            self._release_leases()
        finally:
            close_runtime(self._runtime)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: a session that is copied along, as a chain's config may be, goes on with the same memory."""
        return self

    def _release_leases(self) -> None:
        """Let others go on at once with what is in hand here; where that cannot be written, the leases run out."""
        if self._runtime.store.database.read_only:
            return
        try:
            self._runtime.store.tree.release(owner=self._runtime.worker, now=self._runtime.now())
        except StorageError as error:
            self._runtime.report(EventName.BACKGROUND_FAILED, f"leases could not be given back: {error}")


class SessionEngine:
    """One session, seen from the one of its tracks that is written to and shown.

    The check of the owner is left out where no `user` is named. `scope` says what of the session it may see and
    change; `None`: all of it.
    """

    def __init__(
        self,
        engine: Engine,
        session_id: str,
        *,
        user: str | None,
        track: str,
        title: str | None,
        scope: Scope | None = None,
    ) -> None:
        self.engine: Engine = engine
        self.session_id = session_id
        self.user = user
        self.track = track
        self.title = title
        self.scope = scope
        self.checkpointer: str | None = None
        """Class of the LangGraph checkpointer that keeps the conversation too, where a graph's run has one."""
        self.begun_by: str | None = None
        """The place in a graph of the sub-agent whose first message makes the session, where that is so."""

    @property
    def runtime(self) -> Runtime:
        """The parts of the memory, without a check of the owner: for what was checked, or reads nothing of it."""
        return self.engine.runtime

    @property
    def checked(self) -> Runtime:
        """The parts of the memory, where this handle is of the session's owner; raises as `check_owner` does."""
        self.check_owner()
        return self.engine.runtime

    @property
    def ref(self) -> SessionRef | None:
        """The session as the stores know it; `None` while it has no message."""
        return self.runtime.store.transcript.find(self.session_id)

    def made(self) -> SessionRef:
        """The session, made where it does not exist: to append no message is to make it."""
        runtime = self.checked
        append = runtime.store.transcript.append
        return append(self.session_id, (), user=self.user, title=self.title, now=runtime.now()).ref

    def found(self) -> tuple[SqlStore, SessionRef | None]:
        """The stores and `ref`, for a handle of the session's owner."""
        return self.checked.store, self.ref

    def check_owner(self) -> None:
        """Refuse a handle that was made for another user than the session's own."""
        if self.user is None:
            return
        ref = self.ref
        if ref is not None and ref.user is not None and ref.user != self.user:
            msg = f"the session {self.session_id!r} does not belong to user {self.user!r}: open it for its owner"
            raise MixedOwnersError(msg)

    @property
    def only_track(self) -> str | None:
        """The one track that this handle may read; `None` without a scope, which reads all."""
        return self.track if self.scope is not None else None

    def add(
        self,
        messages: Iterable[Any],
        *,
        at: When | Sequence[When] | None = None,
        kind: str | None = None,
        task: str | None = None,
        new_ids: frozenset[str] = frozenset(),
        as_given: bool = True,
        follows: Follows | None = None,
    ) -> tuple[list[str], Appended | None]:
        """Write messages, as `Session.add_messages` says; all else, and what it gives, as of `remember`."""
        runtime, batch = self.engine.writable_runtime(), list(messages)
        sent = None
        if batch and getattr(batch[-1], "usage_metadata", None):  # once: a later answer is to a request of others
            sent = self.engine.sent.take((self.session_id, self.track))
        about = {telemetry.CONVERSATION: self.session_id, telemetry.RECORDS: len(batch)}
        with telemetry.operation("upsert_memory", about):
            ids, appended = remember(
                runtime,
                self.session_id,
                batch,
                user=self.user,
                title=self.title,
                track=self.track,
                at=at,
                kind=kind,
                task=task,
                sent_tokens=sent,
                begun_by=self.begun_by,
                new_ids=new_ids,
                checkpointer=self.checkpointer,
                as_given=as_given,
                follows=follows,
            )
        if appended is not None and appended.is_taken:  # the caller tries again
            if sent is not None:
                self.engine.sent.put((self.session_id, self.track), sent)
            return ids, appended
        if batch and isinstance(batch[-1], AIMessage):
            request = runtime.last_requests.take_answered(self.session_id, self.track)
            if request is not None:
                keep(runtime, self.session_id, request, batch[-1].usage_metadata, was_seen=False)
        if appended is not None and (appended.new or appended.revised):
            self.engine.wake(self.session_id)
        return ids, appended

    def adding(self, messages: Iterable[Any], *, wait: bool = False, **about: Any) -> Flow[list[str]]:  # noqa: ANN401 - as for `add`
        """As `add`; if to `wait`, finish what it made due. Where that cannot be done now, it stays due."""
        ids, _ = self.add(messages, **about)
        try:
            if wait:
                yield from self.engine.flush(self.session_id)
        except StorageError as error:  # the messages are written
            told = f"{type(error).__name__}: {error}"
            self.runtime.report(EventName.BACKGROUND_FAILED, told, session_id=self.session_id)
        return ids

    def add_turn(
        self, messages: Sequence[BaseMessage], *, settled: frozenset[str] = frozenset(), may_be_again: bool = True
    ) -> list[BaseMessage]:
        """Write what a turn said, its answers as new messages, as `as_turn` says; gives all under the ids they got."""
        while messages:
            said, new_ids = as_turn(
                self.runtime, self.session_id, self.track, messages, settled=settled, may_be_again=may_be_again
            )
            if self.add(said, new_ids=new_ids)[0]:
                return said
            # Somebody else wrote the same ids in between, such as another answer from the same cache.
        return []

    def context(self, query: str | None = None, **asked: Any) -> Flow[Context]:  # noqa: ANN401 - as `_request` takes them
        """Put together what one model call gets, as `Session.context` says."""
        about = {telemetry.CONVERSATION: self.session_id, "tiered_memory.track": self.track}
        wanted = {"query": query, "max_tokens": asked.get("max_tokens"), "view": asked.get("view", "default")}
        with (
            telemetry.operation("build_context", about, is_current=False) as note,
            traced("assemble", wanted, session_id=self.session_id, wanted=self.engine.settings.traces) as trace,
        ):
            traced_steps = each_step(self._context(query, **asked), trace.inside)
            context = yield from each_step(traced_steps, self.runtime.store.database.snapshot)
            figures = {"tokens": context.tokens, "max_tokens": context.max_tokens, "zone": context.guard.zone.value}
            sections = {section.name: section.tokens for section in context.sections}
            trace.outputs |= {"messages": context.messages, **figures, "sections": sections}
            shown = len(context.entry_ids) + len(context.passage_ids) + len(context.summary_ids)
            figures["window"] = context.guard.window.tokens
            note({f"tiered_memory.context.{name}": one for name, one in figures.items()} | {telemetry.RECORDS: shown})
            told = {"tiered_memory.context.zone": context.guard.zone.value}
            telemetry.record(telemetry.CONTEXT_TOKENS, context.tokens, told)
        return context

    def _context(self, query: str | None, **asked: Any) -> Flow[Context]:  # noqa: ANN401 - as `_request` takes them
        runtime, request = self.checked, self._request(query, **asked)
        self.engine.greet(self.session_id)
        model = asked.get("model")
        epoch = epoch_of(runtime, self.session_id, model) if isinstance(model, Runnable) else None
        context = yield from assemble(runtime, self.session_id, request)
        called = bound(runtime, self.session_id, model, tools=request.tools) if epoch is not None else None
        if called is not None and epoch is not None:
            sent = handed_out(called, context.messages, tokens=context.tokens, epoch=epoch)
            runtime.last_requests.await_answer(self.session_id, self.track, sent)
        self.engine.note_context(self.session_id, self.track, context)
        if runtime.view_cache.wishes.take(self.session_id):
            self.engine.wake(self.session_id)
        return context

    def preview(self, query: str | None = None, **asked: Any) -> Flow[ViewDiff]:  # noqa: ANN401 - as `_request` takes them
        """What a condensation would change, as `Session.preview` says."""
        runtime, request = self.checked, self._request(query, **asked)
        return (yield from each_step(preview(runtime, self.session_id, request), runtime.store.database.snapshot))

    def _request(
        self,
        query: str | None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Any] = (),
        model: CalledModel | ModelProfile | Runnable[Any, Any] | None = None,
        view: str = "default",
        branch: Sequence[str] | None = None,
        alone: bool = False,
        **asked: Any,  # noqa: ANN401 - as `Request` takes them
    ) -> Request:
        """What is asked of a context, checked."""
        check_view(view, self.runtime.settings)
        return Request(
            track=self.track,
            query=query,
            max_tokens=max_tokens,
            system=system,
            tools=tuple(tools),
            model=profile_of(model),
            view=view,
            branch=tuple(branch) if branch is not None else None,
            alone=alone or self.scope is not None,
            user=self.user,
            sight=self.scope,
            **asked,
        )


_OWN_VIEWS = ("default", "recall", "minimal")
"""Views that need no setting."""


def check_view(view: str, settings: Settings, *, more: tuple[str, ...] = ()) -> None:
    """That a view is known; an integration may know `more`."""
    known = (*_OWN_VIEWS, *more, *settings.context.views)
    if view not in known:
        msg = f"there is no view {view!r}: use one of {', '.join(map(repr, known))}, or add it to context.views"
        raise ArgumentError(msg)
