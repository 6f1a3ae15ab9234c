"""What a run measures of itself in this process (times, contexts, alerts; bounded), and what is saved of it meanwhile.

It is saved because whoever ends the run may be another process.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping  # noqa: TC003 - read when a run's figures are
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Self

from pydantic import TypeAdapter, ValidationError

from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.sql.remembered import Remembered
from langchain_tiered_memory.types.files import RunAlert, RunReport, Timing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from langchain_tiered_memory.reports import Event


SAMPLES = 2000
"""Enough for a 99th percentile of 20 samples above it; a run of six hours has some thousand accesses."""
SESSIONS = 200
"""Of which something is remembered."""
ALERTS = frozenset(
    {
        "files_crowded",
        "file_deleted",
        "file_damaged",
        "file_not_loaded",
        "checkpoint_failed",
        "background_failed",
        "context_overflow",
        "context_fatal",
        "zone_danger",
        "zone_critical",
    }
)
"""Events that a run keeps as alerts."""
_MOVES = {"file_promoted": "promotion", "file_demoted": "demotion"}
"""Events that tell how long they took."""
_MOST_PROCESSES = 20
"""That a run's figures are told apart by; of more, those that saved theirs first are let go."""
_MOST_ALERTS = 100
"""The newest, of one process and of all of them."""


def timing_of(count: int, seconds: Iterable[float]) -> Timing:
    """Mean and percentiles (nearest rank) of the last times that something was done; zeros where it never was."""
    ranked = sorted(seconds) or [0.0]
    p50, p95, p99 = (ranked[min(int(share * len(ranked)), len(ranked) - 1)] for share in (0.5, 0.95, 0.99))
    mean = sum(ranked) / len(ranked)
    return Timing(count=count, mean=mean, p50=p50, p95=p95, p99=p99, largest=ranked[-1])


def _joined(one: Timing, other: Timing) -> Timing:
    """Of two processes' timings of one thing: counts together, percentiles as the slower had them."""
    count = one.count + other.count
    return Timing(
        count=count,
        mean=(one.mean * one.count + other.mean * other.count) / count,
        **{name: max(getattr(one, name), getattr(other, name)) for name in ("p50", "p95", "p99", "largest")},
    )


class Monitor:
    """Measures of the run of one session in this process, noted from any thread; `monotonic` gives seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = forks.Lock()
        self._counts = Counter[str]()
        self._last: dict[str, deque[float]] = {}
        """How long each thing took, the last times."""
        self._alerts: deque[RunAlert] = deque(maxlen=_MOST_ALERTS)
        self._begun_at: float | None = None
        self._done_at: dict[str, float] = {}

    def begin(self, now: float) -> None:
        """Let go of what an earlier run left."""
        with self._lock:
            self._counts.clear()
            self._last.clear()
            self._alerts.clear()
            self._done_at.clear()
            self._begun_at = now

    def is_time(self, what: str, now: float, *, seconds: float) -> bool:
        """Whether something is due that is done from time to time; it counts as done then, and at the begin."""
        with self._lock:
            last = self._done_at.setdefault(what, now if self._begun_at is None else self._begun_at)
            if 0 <= now - last < seconds:
                return False
            self._done_at[what] = now
            return True

    def moment(self) -> float:
        """When somebody began to wait, for `timed`: before a thread was free, say."""
        return self._monotonic()

    @contextmanager
    def timed(self, since: float | None = None) -> Iterator[Callable[[str], None]]:
        """Gives what notes the time since the block began, or since an earlier moment, under a name."""
        begun = self._monotonic() if since is None else since
        yield lambda name: self._add(name, self._monotonic() - begun)

    def _add(self, name: str, seconds: float) -> None:
        with self._lock:
            self._counts[name] += 1
            self._last.setdefault(name, deque(maxlen=SAMPLES)).append(seconds)

    def hear(self, event: Event) -> None:
        """Keep an event that is an alert, and how long a move took."""
        if event.name in _MOVES:
            self._add(_MOVES[event.name], event.details["seconds"])
        else:
            with self._lock:
                self._alerts.append(RunAlert(at=event.at, name=event.name, reason=event.reason))

    def timings(self) -> dict[str, Timing]:
        """By what was timed."""
        with self._lock:
            return {name: timing_of(self._counts[name], last) for name, last in sorted(self._last.items())}

    def alerts(self) -> tuple[RunAlert, ...]:
        """The last ones, oldest first."""
        with self._lock:
            return tuple(self._alerts)


class Monitors:
    """Monitors of the sessions that had a run here last: steps of one run may be taken by several objects."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._make = partial(Monitor, monotonic)
        self._by_session = Remembered[str, Monitor](SESSIONS)

    def of(self, session_id: str) -> Monitor:
        """The one of a session; of sessions the last 200 are remembered."""
        return self._by_session.of(session_id, self._make)

    def hear(self, event: Event) -> None:
        """Have the monitors of an event's session, or all for one of the whole memory, hear it."""
        if event.name not in ALERTS and event.name not in _MOVES:
            return
        for name, monitor in self._by_session.items():
            if event.session_id in (name, None):
                monitor.hear(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one process measured."""

    timings: Mapping[str, Timing] = field(default_factory=dict)
    alerts: tuple[RunAlert, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSoFar:
    """The part of a run's report that no table has."""

    started_at: float
    seen_at: float = 0.0
    """When somebody had a part in it last."""
    not_loaded: tuple[str, ...] = ()
    parts: Mapping[str, Measured] = field(default_factory=dict)
    """By process, as it signs."""

    def with_part(self, process: str, measured: Measured) -> Self:
        """With what a process measured by now, in the place of what it had before."""
        parts = {name: part for name, part in self.parts.items() if name != process}
        kept = dict([*parts.items(), (process, measured)][-_MOST_PROCESSES:])
        return replace(self, parts=kept)

    @property
    def timings(self) -> dict[str, Timing]:
        """Of all processes together."""
        names = sorted({name for part in self.parts.values() for name in part.timings})
        return {
            name: reduce(_joined, [part.timings[name] for part in self.parts.values() if name in part.timings])
            for name in names
        }

    @property
    def alerts(self) -> tuple[RunAlert, ...]:
        """Of all of them, oldest first; what two of them heard is there once."""
        found = dict.fromkeys(alert for part in self.parts.values() for alert in part.alerts)
        return tuple(sorted(found, key=lambda one: one.at)[-_MOST_ALERTS:])

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Self | None:
        """What was saved of it; `None` where nothing was saved, or it cannot be read."""
        with suppress(ValidationError):
            return TypeAdapter(cls).validate_python({"seen_at": state.get("started_at"), **state})
        return None


def report_from_json(state: Mapping[str, Any]) -> RunReport | None:
    """A report that was kept; `None` where there is none, or it cannot be read."""
    with suppress(ValidationError):
        return TypeAdapter(RunReport).validate_python(state)
    return None
