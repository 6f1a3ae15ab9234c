"""Does the work that is due, facts and summaries first, then vectors: for the background worker and for `flush()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import Flow, pause
from langchain_tiered_memory.errors import DamagedRowError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.recall.indexing import index_all, queue_lost
from langchain_tiered_memory.reports import FlushReport
from langchain_tiered_memory.summaries.tree.condense import condense, is_due
from langchain_tiered_memory.summaries.tree.fact_reading import read_what_waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef

_LOOK_AGAIN_SECONDS = 0.02


def tend(
    runtime: Runtime, session_id: str, *, embeds: bool = True, is_over: Callable[[], bool] = lambda: False
) -> Flow[tuple[int, int]]:
    """Read a session's facts and make its summaries and vectors that are due. Returns how many summaries and vectors.

    Args:
        runtime: The memory.
        session_id: Whose.
        embeds: Whether to make vectors: not where the index was found down a moment ago.
        is_over: Asked behind each piece of work: whether to leave the rest for later. One piece of each kind is done
            in any case, so that calls without time to spare come to an end together.
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

    Args:
        runtime: The memory.
        session_id: One session; `None` for all.
        timeout: Seconds after which to return with work still pending, once the piece in hand is done: a summary, a
            batch of a model's, a batch of vectors. `None` waits for leases to end or run out.
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
            tree = runtime.store.tree
            in_hand = sum(tree.leased_by_others(ref, owner=runtime.worker, now=looked_at) for ref in refs)
        if not in_hand or is_over():
            break
        yield from pause(_LOOK_AGAIN_SECONDS)
    stopped = is_over()
    if session_id is None and embeds and not stopped:
        embedded += yield from index_all(runtime, is_over=is_over)
    has_index = runtime.open_index() is not None
    with runtime.store.database.snapshot():
        pending = sum(_pending(runtime, ref, stopped=stopped, has_index=has_index) for ref in refs)
    return FlushReport(summaries=made, vectors=embedded, pending=pending)


def _sessions(runtime: Runtime, session_id: str | None) -> list[SessionRef]:
    if session_id is None:
        return runtime.store.transcript.sessions()
    ref = runtime.store.transcript.find(session_id)
    return [ref] if ref is not None else []


def _pending(runtime: Runtime, ref: SessionRef, *, stopped: bool, has_index: bool) -> int:
    pending = runtime.store.tree.unfinished(ref) + (stopped and _is_more_due(runtime, ref))
    if has_index:
        pending += runtime.store.vector_queue.count(levels_above_0=runtime.settings.tree.embed_summaries, ref=ref)
    return pending


def _is_more_due(runtime: Runtime, ref: SessionRef) -> bool:
    """Whether time ran out before all summaries that are due were begun; of a damaged session the next call tells."""
    try:
        return is_due(runtime, ref)
    except DamagedRowError:
        return False
