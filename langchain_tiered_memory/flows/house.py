"""What every flow needs: the stores, the settings and the judges that were chosen when the memory was opened."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.records import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.protocols import Clock, Condenser, TokenCounter, VectorIndex
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.stores.sql import SqlStore

logger = logging.getLogger("langchain_tiered_memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """One opened memory, as the flows see it."""

    store: SqlStore
    settings: Settings
    counter: TokenCounter
    now: Clock
    condenser: Condenser
    """Writes summaries."""
    fallback: Condenser
    """Writes degraded ones when `condenser` fails for good: the extractive condenser."""
    open_index: Callable[[], VectorIndex | None]
    """The vector index, opened on first use; `None` where search is lexical only."""
    worker: str
    """Who signs leases: unique to this opened memory."""
    monotonic: Callable[[], float]
    """Seconds of a clock that never goes back, for deadlines."""

    def report(self, name: str, reason: str, *, session_id: str | None = None, **details: Any) -> None:  # noqa: ANN401
        """Say that something happened which a person may want to know; `details` must be plain JSON values."""
        event = Event(
            id=uuid.uuid4().hex, name=name, session_id=session_id, at=self.now(), reason=reason, details=details
        )
        level = logging.WARNING if name in WARNINGS else logging.INFO
        logger.log(level, "%s: %s", name, reason, extra={"tiered_memory_event": event})


WARNINGS = frozenset(
    {
        "condensation_failed",
        "condensation_fell_back",
        "vectors_unavailable",
        "vectors_of_another_embedder",
        "artifact_not_kept",
        "history_repaired",
        "background_failed",
    }
)
"""Events that are logged as warnings; all others as information."""
