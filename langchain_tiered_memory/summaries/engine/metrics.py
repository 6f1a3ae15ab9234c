"""What the engine did since it was made: counts, and its last attempts with what was measured of each summary."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.types.outcomes import FailureReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from langchain_tiered_memory.extensions import CondensationContext


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterMetrics:
    """One plugin's share."""

    name: str
    attempts: int = 0
    """How often it was asked for a summary."""
    successes: int = 0
    """How often its summary was taken."""
    failures: Mapping[FailureReason, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    """Answers of its model that were not taken, by what was wrong with them: each took a call, or a part of one."""
    calls: int = 0
    """Model calls it made, as far as the engine can see: those of the built-in writers, and what a plugin reports."""
    open_seconds: float = 0.0
    """How long its circuit breaker keeps it out from now on; 0 where it may write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMetrics:
    """All of it, since the engine was made."""

    attempts: int = 0
    """Summaries it was asked for, every attempt counted."""
    successes: int = 0
    failures: Mapping[FailureReason, int] = field(default_factory=dict)
    """Attempts that gave no summary, by the reason they ended with."""
    fallbacks: int = 0
    """How often the next writer took over."""
    degraded: int = 0
    """Summaries written by rules in the stead of those who should have."""
    calls: int = 0
    """Model calls of all writers."""
    writers: tuple[WriterMetrics, ...] = ()
    """By priority; those that were unregistered are left out."""


Counted: TypeAlias = Literal[
    "started", "succeeded", "degraded", "failed", "fell back", "asked", "called", "writer failed", "refused"
]
"""`asked`, `called`, `writer failed` and `refused` are a writer's own; `degraded`: rules stand in for others."""


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


class Tally:
    """Counts as the engine goes, by what happened, to which writer, and why; keeps the last attempts. For threads."""

    def __init__(self, *, keep: int) -> None:
        self._lock = forks.Lock()
        self._counts: Counter[tuple[Counted, str, str]] = Counter()
        self._records: deque[CondensationRecord] = deque(maxlen=keep)

    def keep(self, most: int) -> None:
        """Keep so many attempts from now on, of those that are there the last."""
        with self._lock:
            self._records = deque(self._records, maxlen=most)

    def note(self, context: CondensationContext, **became: Any) -> None:  # noqa: ANN401 - fields of the record
        """Keep one more attempt, and what became of it."""
        record = CondensationRecord(
            at=context.at,
            session_id=context.session_id,
            level=context.level,
            strategy=context.strategy,
            attempt=context.attempt,
            source_tokens=context.source_tokens,
            **became,
        )
        with self._lock:
            self._records.append(record)

    def records(self) -> tuple[CondensationRecord, ...]:
        """The attempts that are kept, oldest first."""
        with self._lock:
            return tuple(self._records)

    def add(self, what: Counted, writer: str = "", why: str = "", *, times: int = 1) -> None:
        """It happened."""
        with self._lock:
            self._counts[what, writer, why] += times

    def metrics(self, writers: Iterable[tuple[str, float]]) -> EngineMetrics:
        """The figures now; `writers` by name with the seconds that their breakers stay open."""
        with self._lock:
            counts = Counter(self._counts)

        def total(what: Counted) -> int:
            return sum(count for (one, _, _), count in counts.items() if one == what)

        def reasons(what: Counted, writer: str = "") -> dict[FailureReason, int]:
            return {FailureReason(why): n for (one, who, why), n in counts.items() if (one, who) == (what, writer)}

        return EngineMetrics(
            attempts=total("started"),
            successes=total("succeeded"),
            failures=reasons("failed"),
            fallbacks=total("fell back"),
            degraded=total("degraded"),
            calls=total("called"),
            writers=tuple(
                WriterMetrics(
                    name=name,
                    attempts=counts["asked", name, ""],
                    successes=counts["succeeded", name, ""],
                    failures=reasons("writer failed", name),
                    refused={why: n for (one, who, why), n in counts.items() if (one, who) == ("refused", name)},
                    calls=counts["called", name, ""],
                    open_seconds=seconds,
                )
                for name, seconds in writers
            ),
        )
