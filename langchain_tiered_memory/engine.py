"""An opened memory behind its public verbs: parts, worker, and what waits for an answer.

Its methods are public to this package and no part of the public interface: memory, sessions, integrations and the
command line call them, not each other's private parts. One session of it is a `SessionEngine`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from langchain_tiered_memory.across.searching import search_across
from langchain_tiered_memory.across.user_facts import facts_of_user
from langchain_tiered_memory.driver import Flow, pause
from langchain_tiered_memory.errors import ClosedError, StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.forgetting.forget import forget_sessions, resume_removals
from langchain_tiered_memory.maintenance.repair import doctor, rebuild_index
from langchain_tiered_memory.maintenance.verify import verify
from langchain_tiered_memory.maintenance.worker import Greeted, Worker, flush
from langchain_tiered_memory.models.chat_models import profile_of
from langchain_tiered_memory.models.surroundings import announce, read_status
from langchain_tiered_memory.models.window_budget import set_window
from langchain_tiered_memory.runs.files.monitor import ContextSizes, Monitors
from langchain_tiered_memory.session_engine import SessionEngine
from langchain_tiered_memory.sessions.opening import close_runtime, open_runtime
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.transcript.outbox import confirm, tell_left_over
from langchain_tiered_memory.types.bounded import keep_newest
from langchain_tiered_memory.types.files import ContextSize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from langchain_core.runnables import Runnable

    from langchain_tiered_memory.reports import DoctorReport, FlushReport, MemoryStatus, Progress, Receipt, VerifyReport
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.types.contexts import Context
    from langchain_tiered_memory.types.drafts import SearchFilters
    from langchain_tiered_memory.types.records import Fact, Hit

_POLL_SECONDS = 0.01
_LINES_REMEMBERED = 1000


class Engine:
    """One opened memory: its parts, its worker, and what is known of requests that wait for their answers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        works = runtime.settings.tree.background and not runtime.store.database.read_only
        self._worker = Worker(runtime) if works else None
        self._closed = False
        self._sent: dict[tuple[str, str], int] = {}
        """Raw tokens of the last context given out for a (session, track): what the next answer's usage calibrates."""
        self.contexts = ContextSizes()
        """Sizes of the last contexts, for the reports of runs."""
        self.monitors = Monitors(runtime.monotonic)
        """Times and alerts of runs, whichever object takes their steps."""
        runtime.listeners.watch(self.monitors.hear)
        self._greeted = Greeted()
        self._lock = forks.Lock()

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
        """As `TieredMemory.learn_window` says, as do the next."""
        set_window(self.runtime, profile_of(model).name, tokens)

    def verify(self, progress: Callable[[Progress], object] | None) -> VerifyReport:
        """See there."""
        return verify(self.runtime, progress=progress)

    def status(self) -> MemoryStatus:
        """See there."""
        return read_status(self.runtime)

    def rebuild_index(self, progress: Callable[[Progress], object] | None) -> VerifyReport:
        """See there."""
        return rebuild_index(self.writable_runtime(), progress=progress)

    def doctor(self) -> DoctorReport:
        """See there."""
        return doctor(self.writable_runtime())

    def forget(self, **what: Any) -> Flow[Receipt]:  # noqa: ANN401 - as `forget_sessions` takes it
        """See there."""
        return forget_sessions(self.writable_runtime(), **what)

    def search(self, user: str, query: str, *, k: int, filters: SearchFilters) -> list[Hit]:
        """See there."""
        return search_across(self.runtime, user, query, k=k, filters=filters)

    def facts(self, user: str, query: str | None, *, k: int, superseded_too: bool) -> list[Fact]:
        """See there."""
        return facts_of_user(self.runtime, user, query, k=k, superseded_too=superseded_too)

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

    def note_sent(self, session_id: str, track: str, raw_tokens: int) -> None:
        """Remember what a request counted before calibration, for the usage that its answer will report."""
        line = (session_id, track)
        with self._lock:
            keep_newest(self._sent, line, raw_tokens, most=_LINES_REMEMBERED)

    def note_context(self, session_id: str, track: str, context: Context) -> None:
        """Remember what a request counted, and how large it was beside its window."""
        self.note_sent(session_id, track, context.raw_tokens)
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
        self.contexts.note(session_id, size)

    def take_sent(self, session_id: str, track: str, batch: Sequence[object]) -> int | None:
        """What was sent for the answer in `batch`, once: a later answer belongs to a request that we did not make."""
        if not batch or not getattr(batch[-1], "usage_metadata", None):
            return None
        with self._lock:
            return self._sent.pop((session_id, track), None)

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
