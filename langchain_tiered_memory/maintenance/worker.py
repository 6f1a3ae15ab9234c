"""Does the work that is due, facts and summaries first, then vectors: in the background, and for `flush()`.

The background worker is one thread for one opened memory.

A session is looked at when somebody spoke in it, once more when the pause after that is long enough to end a chunk
(`tree.idle_seconds`), and from time to time while attempts in it failed.

It starts with the first message and ends with `close()`; a forked child starts one of its own. Its flows run in a
context of their own, so that nothing of a user's callbacks or tracing reaches into them.

The files of a run are tended by a thread of the run's own. What is due there is decided by the memory's clock and by
what the database says was done last, so two processes with a run each of one session do not collect twice. A forked
child starts none: the run is its parent's.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import Flow, FlowStopped, pause, run
from langchain_tiered_memory.errors import DamagedRowError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.recall.indexing import index_all, queue_lost
from langchain_tiered_memory.reports import FlushReport
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.sql.remembered import Remembered
from langchain_tiered_memory.summaries.tree.condense import condense, is_due
from langchain_tiered_memory.summaries.tree.fact_reading import read_what_waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef


_LOOK_AGAIN_SECONDS = 5.0
"""How often sessions whose work failed are looked at again."""
_CLOCK_SLACK_SECONDS = 0.05
"""A pause is measured by the messages' own times: the monotonic clock may be a little ahead of them."""
_STOP_SECONDS = 10.0
"""How long `close()` waits for the step in hand; what is left is picked up by the next process."""


class Greeted(forks.AtFork):
    """The sessions that were used in this process; in a forked child each is new again, for the parent may be gone."""

    def __init__(self) -> None:
        self._known = Remembered[str, None]()
        forks.tell(self)

    def after_fork_in_child(self) -> None:
        """Begin with none."""
        self._known.clear()

    def is_new(self, session_id: str) -> bool:
        """Whether it was not used lately; it is from now on."""
        return self._known.put(session_id, None)


class Worker(forks.AtFork):
    """Tends sessions in the background."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._stopped = False
        self._start_afresh()
        forks.tell(self)

    def _start_afresh(self) -> None:
        self._wanted: dict[str, None] = {}
        self._unfinished: dict[str, None] = {}
        """Sessions with failed attempts: looked at again from time to time."""
        self._quiet_at: dict[str, float] = {}
        """Sessions somebody spoke in, and when on the monotonic clock the pause after it is long enough to count."""
        self._changed = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None

    def after_fork_in_child(self) -> None:
        """Leave what was in hand to the parent, whose thread it is; the next wish starts a thread here."""
        self._start_afresh()

    def wake(self, session_id: str) -> None:
        """Say that a session may have work."""
        with self._changed:
            if self._stopped:
                return
            self._wanted[session_id] = None
            self._expect_pause(session_id)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=_tend_forever, args=(weakref.ref(self),), name="tiered-memory", daemon=True
                )
                self._thread.start()
                atexit.register(_stop_at_exit, weakref.ref(self))
            self._changed.notify_all()

    def is_idle(self) -> bool:
        """Whether nothing is wanted and nothing in hand."""
        with self._changed:
            return self._stopped or not (self._wanted or self._busy)

    def stop(self) -> None:
        """End after the step in hand."""
        with self._changed:
            self._stopped = True
            self._wanted.clear()
            self._quiet_at.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_STOP_SECONDS)

    def _expect_pause(self, session_id: str) -> None:
        tree = self._runtime.settings.tree
        if tree.enabled and tree.idle_seconds is not None:
            self._quiet_at.pop(session_id, None)  # to the end: who spoke last falls silent last
            self._quiet_at[session_id] = self._runtime.monotonic() + tree.idle_seconds + _CLOCK_SLACK_SECONDS

    def step(self) -> bool:
        """Wait a while for a session that may have work, and tend it. Returns whether there will be another step."""
        with self._changed:
            if not self._wanted and not self._stopped:
                self._changed.wait(self._patience())
            if self._stopped:
                return False
            session_id = self._next()
            if session_id is None:
                return True
            self._busy = True
        try:
            self._tend(session_id)
        finally:
            with self._changed:
                self._busy = False
        return True

    def _patience(self) -> float:
        """Seconds until somebody falls silent, or failed work is looked at again."""
        first = next(iter(self._quiet_at.values()), None)
        if first is None:
            return _LOOK_AGAIN_SECONDS
        return min(max(first - self._runtime.monotonic(), 0.0), _LOOK_AGAIN_SECONDS)

    def _next(self) -> str | None:
        """Take the session to tend: one that asked, then one that fell silent, then one with failed attempts."""
        first = next(iter(self._quiet_at), None)
        if first is not None and self._quiet_at[first] <= self._runtime.monotonic():
            del self._quiet_at[first]
            self._wanted[first] = None
        wanted = self._wanted or self._unfinished
        session_id = next(iter(wanted), None)
        if session_id is not None:
            del wanted[session_id]
        return session_id

    def _tend(self, session_id: str) -> None:
        runtime = self._runtime
        try:
            run(tend(runtime, session_id), stopped=lambda: self._stopped)
            ref = runtime.store.transcript.find(session_id)
            if ref is not None and runtime.store.tree.due_later(
                ref, remake_stale=runtime.settings.tree.regenerate_on_edit, by_model=runtime.condenser.writes_later
            ):
                self._unfinished[session_id] = None
        except FlowStopped:
            return
        except Exception as error:  # noqa: BLE001 - the user's model, embedder or disk; reported, and tried again
            if not self._stopped:
                self._unfinished[session_id] = None
                runtime.report(EventName.BACKGROUND_FAILED, f"{type(error).__name__}: {error}", session_id=session_id)


def _stop_at_exit(reference: weakref.ref[Worker]) -> None:
    """End before the interpreter takes the modules away from under the step in hand."""
    worker = reference()
    if worker is not None:
        worker.stop()


def _tend_forever(reference: weakref.ref[Worker]) -> None:
    """The thread's own loop. It holds the worker only for one step, so that a forgotten memory can be collected."""
    while (worker := reference()) is not None and worker.step():
        del worker


_LOOK_FOR_OTHERS_SECONDS = 0.02


def tend(
    runtime: Runtime, session_id: str, *, embeds: bool = True, is_over: Callable[[], bool] = lambda: False
) -> Flow[tuple[int, int]]:
    """Read a session's facts and make its summaries and vectors that are due. Returns how many of both.

    Without `embeds`, where the index was found down a moment ago, no vectors are made. `is_over` is asked behind
    each piece of work. One piece of each kind is done in any case, so that calls without time to spare come to an
    end together.
    """
    ref = runtime.store.transcript.find(session_id)
    if ref is None:
        return 0, 0
    made = 0
    try:
        yield from read_what_waits(runtime, ref, is_over=is_over)
        made = yield from condense(runtime, ref, is_over=is_over)
    except DamagedRowError as error:
        runtime.report(EventName.DAMAGED_ROW, str(error), session_id=session_id, table=error.table, column=error.column)
    embedded = (yield from index_all(runtime, ref=ref, is_over=is_over)) if embeds else 0
    return made, embedded


def flush(runtime: Runtime, session_id: str | None, *, timeout: float | None) -> Flow[FlushReport]:
    """Do now what the background would do, for one session or all; wait for what others have in hand.

    After `timeout` seconds it returns with work still pending, once the piece in hand is done: a summary, a batch
    of a model's, a batch of vectors. `None` waits for leases to end or run out.
    """
    deadline = None if timeout is None else runtime.monotonic() + timeout

    def is_over() -> bool:
        return deadline is not None and runtime.monotonic() >= deadline

    made = embedded = 0
    embeds = queue_lost(runtime)
    while True:
        refs = _sessions(runtime, session_id)
        looked_at = runtime.now()  # a lease that runs out behind this is looked at again
        for ref in refs:
            summaries, vectors = yield from tend(runtime, ref.session_id, embeds=embeds, is_over=is_over)
            made, embedded = made + summaries, embedded + vectors
            if is_over():
                break
        with runtime.store.database.snapshot():
            lessees = runtime.store.tree.lessees
            in_hand = any(lessees(ref, now=looked_at) - {runtime.worker} for ref in refs)
        if not in_hand or is_over():
            break
        yield from pause(_LOOK_FOR_OTHERS_SECONDS)
    stopped = is_over()
    if session_id is None and embeds and not stopped:
        embedded += yield from index_all(runtime, is_over=is_over)
    has_index = runtime.open_index() is not None
    with runtime.store.database.snapshot():
        pending = sum(_pending_in(runtime, ref, stopped=stopped, has_index=has_index) for ref in refs)
    return FlushReport(summaries=made, vectors=embedded, pending=pending)


def _sessions(runtime: Runtime, session_id: str | None) -> list[SessionRef]:
    if session_id is None:
        return runtime.store.transcript.sessions()
    ref = runtime.store.transcript.find(session_id)
    return [ref] if ref is not None else []


def _pending_in(runtime: Runtime, ref: SessionRef, *, stopped: bool, has_index: bool) -> int:
    pending = runtime.store.tree.unfinished(ref) + (stopped and _is_more_due(runtime, ref))
    if has_index:
        pending += runtime.store.vector_queue.count(ref=ref)
    return pending


def _is_more_due(runtime: Runtime, ref: SessionRef) -> bool:
    """Whether time ran out before all summaries that are due were begun; of a damaged session the next call tells."""
    try:
        return is_due(runtime, ref)
    except DamagedRowError:
        return False


_LOOK_SECONDS = 5.0
"""How often it looks whether something is due: the shortest time of the default rules is 60 times that."""


class FileCollector:
    """Calls `tend`, a bound method that it holds weakly, until it is stopped or the owner of that is gone."""

    def __init__(self, tend: Callable[[], object], *, look_seconds: float = _LOOK_SECONDS) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=_tend_until,
            args=(weakref.WeakMethod(tend), self._stopped, look_seconds),
            name="tiered-memory-files",
            daemon=True,
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the step in hand. Again: nothing."""
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)


def _tend_until(reference: weakref.WeakMethod[Callable[[], object]], stopped: threading.Event, seconds: float) -> None:
    while not stopped.wait(seconds):
        tend = reference()
        if tend is None:
            return
        tend()
        del tend
