"""`status()`: what a memory is made of on this machine, and what it lacks there. Loads no model and opens no index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.models.surroundings import versions
from langchain_tiered_memory.reports import MemoryStatus

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import Runtime


def read_status(runtime: Runtime) -> MemoryStatus:
    """Count what there is and name what is missing."""
    passages = runtime.store.inspection.passage_count()
    waiting = runtime.store.vector_queue.count()
    around = runtime.surroundings
    return MemoryStatus(
        versions=versions(),
        database=runtime.store.database.label,
        sessions=len(runtime.store.transcript.sessions()),
        embedder=around.embedder,
        counter=runtime.counter.fingerprint,
        counts_are_estimates=isinstance(runtime.counter.counter, EstimatingCounter),
        chroma=around.chroma,
        vectors=passages - waiting,
        passages=passages,
        gaps=tuple(str(gap) for gap in around.gaps),
    )
