"""The engine's work since it was made: counts, and its last attempts with the measures of each summary."""

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
    """Figures of one plugin."""

    name: str
    attempts: int = 0
    """How often it was asked to write a summary."""
    successes: int = 0
    """How often its summary was accepted."""
    failures: Mapping[FailureReason, int] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    """Refused answers of its model, by what was wrong with them. Each took a call, or a part of one."""
    calls: int = 0
    """Model calls that it made, as far as the engine knows: those of built-in writers, and those that a plugin
    reports."""
    open_seconds: float = 0.0
    """Seconds until its circuit breaker lets it write again. 0 if it may write now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineMetrics:
    """Figures of the engine's work since it was made."""

    attempts: int = 0
    """How many summaries it was asked for, counting every attempt."""
    successes: int = 0
    failures: Mapping[FailureReason, int] = field(default_factory=dict)
    """Attempts without a summary, by their final reason."""
    fallbacks: int = 0
    """How often the next writer took over."""
    degraded: int = 0
    """Summaries that rules wrote because the intended writer did not."""
    calls: int = 0
    """Model calls of all writers."""
    writers: tuple[WriterMetrics, ...] = ()
    """Figures by plugin, in order of priority. Unregistered plugins are left out."""


Counted: TypeAlias = Literal[
    "started", "succeeded", "degraded", "failed", "fell back", "asked", "called", "writer failed", "refused"
]
"""`asked`, `called`, `writer failed` and `refused` are about one writer. `degraded`: rules replaced other writers."""


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
    """The writer of the accepted text. `None` if no text was accepted."""
    tokens: int = 0
    """Tokens of the summary."""
    degraded: bool = False
    reason: FailureReason | None = None
    """Why there is no summary, or why it is degraded."""
    error: str | None = None
    measures: Mapping[str, float] = field(default_factory=dict)
    """Measures by the names in `condensation.validation.metrics`. What could not be measured is left out."""


class Tally:
    """Counts what happened to which writer and why, and keeps the last attempts. Thread-safe."""

    def __init__(self, *, keep: int) -> None:
        self._lock = forks.Lock()
        self._counts: Counter[tuple[Counted, str, str]] = Counter()
        self._records: deque[CondensationRecord] = deque(maxlen=keep)

    def keep(self, most: int) -> None:
        """Keep this many attempts from now on, the last ones of those present."""
        with self._lock:
            self._records = deque(self._records, maxlen=most)

    def note(self, context: CondensationContext, **became: Any) -> None:  # noqa: ANN401 - fields of the record
        """Keep one more attempt and its outcome."""
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
        """Count one event."""
        with self._lock:
            self._counts[what, writer, why] += times

    def metrics(self, writers: Iterable[tuple[str, float]]) -> EngineMetrics:
        """The figures now. `writers` has the seconds that the breakers stay open, by name."""
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
