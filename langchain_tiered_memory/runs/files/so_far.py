"""What is known of a run that goes on: it is saved, for whoever ends the run may be another process."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

from langchain_tiered_memory.runs.files.monitor import joined
from langchain_tiered_memory.types.files import RunAlert, RunReport, TierSizes, Timing

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_PROCESSES = 20
"""That a run's figures are told apart by; of more, those that saved theirs first are let go."""
_MOST_ALERTS = 100


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
            name: reduce(joined, [part.timings[name] for part in self.parts.values() if name in part.timings])
            for name in names
        }

    @property
    def alerts(self) -> tuple[RunAlert, ...]:
        """Of all of them, oldest first; what two of them heard is there once."""
        found = dict.fromkeys(alert for part in self.parts.values() for alert in part.alerts)
        return tuple(sorted(found, key=lambda one: one.at)[-_MOST_ALERTS:])

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, state: Mapping[str, Any]) -> Self | None:
        """What `as_json` gave; `None` where nothing was saved, or it cannot be read."""
        try:
            parts = {
                str(process): Measured(
                    timings={str(name): Timing(**one) for name, one in part["timings"].items()},
                    alerts=tuple(RunAlert(**one) for one in part["alerts"]),
                )
                for process, part in state["parts"].items()
            }
            return cls(
                started_at=float(state["started_at"]),
                seen_at=float(state.get("seen_at", state["started_at"])),
                not_loaded=tuple(map(str, state["not_loaded"])),
                parts=parts,
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


def report_from_json(state: Mapping[str, Any]) -> RunReport | None:
    """A report that was kept; `None` where there is none, or it cannot be read."""
    try:
        parts = {
            "sizes": TierSizes(**state["sizes"]),
            "timings": {name: Timing(**one) for name, one in state["timings"].items()},
            "alerts": tuple(RunAlert(**one) for one in state["alerts"]),
            "contexts": (),
            "not_loaded": tuple(state["not_loaded"]),
        }
        return RunReport(**(dict(state) | parts))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
