"""What every flow needs: the stores, the settings and the judges that were chosen when the memory was opened."""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.flows.listeners import Listeners
from langchain_tiered_memory.flows.standing import Standing
from langchain_tiered_memory.reports import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.condensers.engine import CondensationEngine
    from langchain_tiered_memory.protocols import Clock, TokenCounter, VectorIndex
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.stores.sql import SqlStore

logger = logging.getLogger("langchain_tiered_memory")
logger.addHandler(logging.NullHandler())  # where an application configured no logging, a library keeps quiet


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """One opened memory, as the flows see it."""

    store: SqlStore
    settings: Settings
    counter: TokenCounter
    now: Clock
    condenser: CondensationEngine
    """Has summaries written."""
    open_index: Callable[[], VectorIndex | None]
    """The vector index, opened on first use; `None` where search is lexical only."""
    worker: str
    """Who signs leases: unique to this opened memory."""
    monotonic: Callable[[], float]
    """Seconds of a clock that never goes back, for deadlines."""
    standing: Standing = field(default_factory=Standing)
    """What is remembered of views between requests."""
    listeners: Listeners = field(default_factory=Listeners)
    """Who is told of events."""

    def report(
        self,
        name: str,
        reason: str,
        *,
        session_id: str | None = None,
        event_id: str | None = None,
        **details: Any,  # noqa: ANN401 - plain JSON values of any kind
    ) -> None:
        """Say that something happened which a person may want to know.

        Args:
            name: What happened, such as `summary_made`.
            reason: A sentence with figures.
            session_id: Where, if it was in a session.
            event_id: A stable id, where the thing has one: a repeated delivery carries the same.
            **details: Plain JSON values.
        """
        event = Event(
            id=event_id or uuid.uuid4().hex,
            name=name,
            session_id=session_id,
            at=self.now(),
            reason=reason,
            details=details,
        )
        least = self.settings.condensation.monitoring.logging
        level = logging.WARNING if name in WARNINGS else logging.INFO
        if least != "off" and level >= logging.getLevelNamesMapping()[least.upper()]:
            logger.log(level, "%s: %s", name, reason, extra={"tiered_memory_event": event})
        self.listeners.tell(event)


WARNINGS = frozenset(
    {
        "condensation_failed",
        "condensation_fell_back",
        "vectors_unavailable",
        "vectors_of_another_embedder",
        "artifact_not_kept",
        "history_not_written",
        "history_repaired",
        "turn_interrupted",
        "background_failed",
        "checkpoint_damaged",
        "checkpoint_failed",
        "checkpoint_incomplete",
        "checkpoint_unusable",
        "context_fatal",
        "context_minimal",
        "context_overflow",
        "context_recovered",
        "circuit_opened",
        "extension_failed",
        "threshold_unusable",
        "view_failed",
        "view_truncated",
        "zone_critical",
        "zone_danger",
        "zone_warning",
    }
)
"""Events that are logged as warnings; all others as information."""
