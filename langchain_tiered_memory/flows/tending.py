"""What is due is done: summaries first, then vectors. The background worker and `flush()` both walk this way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.flows.asking import Flow, do, pause
from langchain_tiered_memory.flows.condense import condense
from langchain_tiered_memory.flows.indexing import index_pending
from langchain_tiered_memory.reports import FlushReport

if TYPE_CHECKING:
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import SessionRef

_LOOK_AGAIN_SECONDS = 0.02


def tend(house: House, session_id: str) -> Flow[tuple[int, int]]:
    """Make a session's summaries and vectors that are due. Returns how many of each."""
    ref = yield from do(house.store.transcript.find, session_id)
    if ref is None:
        return 0, 0
    made = yield from condense(house, ref)
    embedded = yield from index_pending(house, ref=ref)
    return made, embedded


def flush(house: House, session_id: str | None, *, timeout: float | None) -> Flow[FlushReport]:
    """Do now what the background would do, for one session or all; wait for what others have in hand.

    Args:
        house: The memory.
        session_id: One session; `None` for all.
        timeout: Seconds after which to return with work still pending; `None` waits for leases to end or run out.
    """
    deadline = None if timeout is None else house.monotonic() + timeout
    made = embedded = 0
    while True:
        refs = yield from _sessions(house, session_id)
        looked_at = house.now()  # a lease that runs out behind this is looked at again
        for ref in refs:
            summaries, vectors = yield from tend(house, ref.session_id)
            made, embedded = made + summaries, embedded + vectors
            if deadline is not None and house.monotonic() >= deadline:
                break
        in_hand = 0
        for ref in refs:
            in_hand += yield from do(house.store.tree.leased_by_others, ref, owner=house.worker, now=looked_at)
        if not in_hand or (deadline is not None and house.monotonic() >= deadline):
            break
        yield from pause(_LOOK_AGAIN_SECONDS)
    if session_id is None:
        embedded += yield from index_pending(house)
    pending = 0
    has_index = (yield from do(house.open_index)) is not None
    for ref in refs:
        pending += yield from do(house.store.tree.unfinished, ref)
        if has_index:
            pending += yield from do(
                house.store.vector_queue.count, levels_above_0=house.settings.tree.embed_summaries, ref=ref
            )
    return FlushReport(summaries=made, vectors=embedded, pending=pending)


def _sessions(house: House, session_id: str | None) -> Flow[list[SessionRef]]:
    if session_id is None:
        return (yield from do(house.store.transcript.sessions))
    ref = yield from do(house.store.transcript.find, session_id)
    return [ref] if ref is not None else []
