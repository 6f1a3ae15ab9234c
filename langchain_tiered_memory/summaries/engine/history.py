"""What the engine wrote, attempt by attempt: the last ones, with what was measured of each summary."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_tiered_memory.extensions import CondensationContext
    from langchain_tiered_memory.summaries.writers.jobs import Condensed
    from langchain_tiered_memory.types.outcomes import FailureReason


@dataclass(frozen=True, slots=True, kw_only=True)
class CondensationRecord:
    """One attempt at a summary."""

    at: float
    session_id: str
    level: int
    strategy: str
    attempt: int
    source_tokens: int
    writer: str | None = None
    """Whose text was taken; `None` where none was."""
    tokens: int = 0
    """Of the summary."""
    degraded: bool = False
    reason: FailureReason | None = None
    """Why no summary came about, or why it is degraded."""
    error: str | None = None
    measures: Mapping[str, float] = field(default_factory=dict)
    """By the names in `condensation.validation.metrics`; what could not be measured is left out."""


def record_of(
    context: CondensationContext,
    *,
    writer: str | None = None,
    condensed: Condensed | None = None,
    reason: FailureReason | None = None,
    error: str | None = None,
    measures: Mapping[str, float] | None = None,
) -> CondensationRecord:
    """What became of one attempt: `condensed`, or the `reason` why nothing did."""
    return CondensationRecord(
        at=context.at,
        session_id=context.session_id,
        level=context.level,
        strategy=context.strategy,
        attempt=context.attempt,
        source_tokens=context.source_tokens,
        writer=writer,
        tokens=condensed.tokens if condensed is not None else 0,
        degraded=condensed is not None and condensed.degraded,
        reason=condensed.reason if condensed is not None else reason,
        error=condensed.error if condensed is not None else error,
        measures=measures or {},
    )


class History:
    """The last attempts, oldest first. Safe for threads.

    Args:
        keep: How many.
    """

    def __init__(self, keep: int) -> None:
        self._lock = forks.Lock()
        self._records: deque[CondensationRecord] = deque(maxlen=keep)

    def note(self, record: CondensationRecord) -> None:
        """Keep one more."""
        with self._lock:
            self._records.append(record)

    def records(self) -> tuple[CondensationRecord, ...]:
        """Those that are kept."""
        with self._lock:
            return tuple(self._records)

    def resize(self, keep: int) -> None:
        """Keep so many from now on, of those that are there the last."""
        with self._lock:
            self._records = deque(self._records, maxlen=keep)
