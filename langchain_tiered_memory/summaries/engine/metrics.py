"""Metrics of the engine since it was made."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from langchain_tiered_memory.extensions import CondensationContext
    from langchain_tiered_memory.summaries.writers.jobs import Condensed
    from langchain_tiered_memory.types.outcomes import FailureReason


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


class Tally:
    """Counts as the engine goes. Safe for threads."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._counts: Counter[str] = Counter()
        self._failures: Counter[FailureReason] = Counter()
        self._writers: Counter[tuple[str, str]] = Counter()
        self._writer_failures: Counter[tuple[str, FailureReason]] = Counter()
        self._refused: Counter[tuple[str, str]] = Counter()

    def started(self) -> None:
        """Somebody asks for a summary."""
        with self._lock:
            self._counts["attempts"] += 1

    def succeeded(self, writer: str, *, degraded: bool) -> None:
        """A writer's summary was taken."""
        with self._lock:
            self._counts["successes"] += 1
            self._counts["degraded"] += degraded
            self._writers[writer, "successes"] += 1

    def stands_in(self) -> None:
        """What rules wrote before stands in for a model from now on."""
        with self._lock:
            self._counts["degraded"] += 1

    def failed(self, reason: FailureReason) -> None:
        """No summary came about."""
        with self._lock:
            self._failures[reason] += 1

    def fell_back(self) -> None:
        """The next writer takes over."""
        with self._lock:
            self._counts["fallbacks"] += 1

    def asked(self, writer: str) -> None:
        """A writer begins."""
        with self._lock:
            self._writers[writer, "attempts"] += 1

    def called(self, writer: str, calls: int = 1) -> None:
        """A writer calls its model."""
        with self._lock:
            self._writers[writer, "calls"] += calls

    def writer_failed(self, writer: str, reason: FailureReason) -> None:
        """A writer gave nothing that could be taken."""
        with self._lock:
            self._writer_failures[writer, reason] += 1

    def refused(self, writer: str, fault: str) -> None:
        """An answer of a writer's model was not taken."""
        with self._lock:
            self._refused[writer, fault] += 1

    def metrics(self, writers: Iterable[tuple[str, float]]) -> EngineMetrics:
        """The figures now; `writers` by name with the seconds that their breakers stay open."""
        with self._lock:
            return EngineMetrics(
                attempts=self._counts["attempts"],
                successes=self._counts["successes"],
                failures=dict(self._failures),
                fallbacks=self._counts["fallbacks"],
                degraded=self._counts["degraded"],
                calls=sum(count for (_, what), count in self._writers.items() if what == "calls"),
                writers=tuple(
                    WriterMetrics(
                        name=name,
                        attempts=self._writers[name, "attempts"],
                        successes=self._writers[name, "successes"],
                        failures={why: n for (who, why), n in self._writer_failures.items() if who == name},
                        refused={what: n for (who, what), n in self._refused.items() if who == name},
                        calls=self._writers[name, "calls"],
                        open_seconds=seconds,
                    )
                    for name, seconds in writers
                ),
            )


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
    """The last attempts, oldest first. Safe for threads."""

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
