"""The tables of `turn_cost`."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.reporting import Grid, Report, Target, median
from benchmarks.turn_steps import BUDGET, STEPS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.reporting import Cell
    from benchmarks.sessions import Built, Resident
    from benchmarks.turn_agents import Played
    from benchmarks.turn_steps import Costs, Place

_MOST_GROWTH = 1.5
_MOST_MILLISECONDS = 10.0
_MOST_MEGABYTES = 32.0
_LARGEST_TARGET = 100_000
_SQLITE = "SQLite"
_COLUMNS = ("median", "95 %", "largest", "processor: median", "95 %", "largest")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCosts:
    """All that was measured."""

    turns: int
    built: Mapping[Place, Built]
    resident: Mapping[Place, Resident]
    steps: Mapping[Place, Mapping[str, Costs]]
    lists: Mapping[int, Mapping[str, Costs]]
    agents: Mapping[str, Played]
    agent_messages: int
    left_out: tuple[str, ...]


def report_of(found: TurnCosts) -> Report:
    """Tables, figures and what was aimed at."""
    return Report(
        benchmark="turn cost",
        about="add two messages, assemble a context; sessions take turns, words only, nothing in the background",
        settings={"turns": found.turns, "budget": BUDGET, "messages of the agent's run": found.agent_messages},
        grids=(*_step_grids(found), _space_grid(found), _list_grid(found), *_agent_grids(found)),
        figures={
            "sessions": [_session_figures(found, place) for place in found.steps],
            "lists": {
                str(size): {name: costs.spreads for name, costs in listed.items()}
                for size, listed in found.lists.items()
            },
            "agents": {name: _agent_figures(played) for name, played in found.agents.items()},
            "left_out": list(found.left_out),
        },
        targets=_targets(found),
        remarks=(
            *found.left_out,
            "a throw-away PostgreSQL does not wait for the disk (fsync is off); its processor is not counted",
            f"load average at the end of the measurement: {os.getloadavg()[0]:.1f}",
        ),
    )


def _session_figures(found: TurnCosts, place: Place) -> dict[str, object]:
    database, size = place
    steps = found.steps[place]
    return {
        "database": database,
        "messages": size,
        "built": asdict(found.built[place]),
        "resident": asdict(found.resident[place]) if place in found.resident else None,
        "steps": {
            step: {**steps[step].spreads, "ratio": _growth(steps[step], _first(found, database)[step])}
            for step in STEPS
        },
    }


def _agent_figures(played: Played) -> dict[str, object]:
    return {
        **played.costs.spreads,
        "refused": played.refused,
        "between": played.between.spreads if played.between.clock else None,
    }


def _first(found: TurnCosts, database: str) -> Mapping[str, Costs]:
    """The smallest session of a database."""
    return next(steps for (name, _), steps in found.steps.items() if name == database)


def _growth(costs: Costs, first: Costs) -> float:
    return median(costs.clock) / median(first.clock)


def _cells(costs: Costs) -> tuple[Cell, ...]:
    return tuple(spread[name] for spread in costs.spreads.values() for name in ("median", "p95", "largest"))


def _step_grids(found: TurnCosts) -> list[Grid]:
    return [
        Grid(
            title=f"{step}, ms (ratio of medians to the smallest session)",
            columns=("", *_COLUMNS, "ratio"),
            rows=tuple(
                (
                    f"{database}, {size:,} messages",
                    *_cells(steps[step]),
                    _growth(steps[step], _first(found, database)[step]),
                )
                for (database, size), steps in found.steps.items()
            ),
        )
        for step in STEPS
    ]


def _space_grid(found: TurnCosts) -> Grid:
    rows = []
    for (database, size), made in found.built.items():
        held = found.resident.get((database, size))
        rows.append(
            (
                f"{database}, {size:,} messages",
                made.adding_seconds,
                made.condensing_seconds,
                made.summaries,
                made.file_megabytes,
                made.peak_megabytes,
                held.before_megabytes if held else None,
                held.peak_megabytes if held else None,
            )
        )
    return Grid(
        title="building (in batches, then condensed), and memory of a process that holds the turns, MB",
        columns=("", "adding s", "condensing s", "summaries", "file", "peak of building", "opened", "peak of turns"),
        rows=tuple(rows),
    )


def _list_grid(found: TurnCosts) -> Grid:
    return Grid(
        title="other ways, one call over the list of messages, ms",
        columns=("", *_COLUMNS),
        rows=tuple(
            (f"{name}, {size:,} messages", *_cells(costs))
            for size, listed in found.lists.items()
            for name, costs in listed.items()
        ),
    )


def _agent_grids(found: TurnCosts) -> list[Grid]:
    between = {name: played.between for name, played in found.agents.items() if played.between.clock}
    return [
        Grid(
            title="a request of an agent, ms (with nothing: what LangGraph itself takes)",
            columns=("", "requests", "refused", *_COLUMNS),
            rows=tuple(
                (name, len(played.costs.clock), played.refused, *_cells(played.costs))
                for name, played in found.agents.items()
            ),
        ),
        Grid(
            title="condensing and embedding after a request, ms (in life in the background)",
            columns=("", *_COLUMNS),
            rows=tuple((name, *_cells(costs)) for name, costs in between.items()),
        ),
    ]


def _targets(found: TurnCosts) -> tuple[Target, ...]:
    """What SPEC asks of SQLite; judged where the sessions are large enough to tell."""
    sizes = [size for database, size in found.steps if database == _SQLITE]
    first, last = sizes[0], max((size for size in sizes if size <= _LARGEST_TARGET), default=sizes[0])
    told = last == _LARGEST_TARGET
    large, small = found.steps[_SQLITE, last]["turn"], found.steps[_SQLITE, first]["turn"]
    growth, milliseconds = _growth(large, small), median(large.clock)
    more = found.resident[_SQLITE, last].peak_megabytes - found.resident[_SQLITE, first].peak_megabytes
    return (
        Target(
            aim=f"a turn at 100,000 messages costs at most {_MOST_GROWTH} times one at 1,000",
            measured=f"{growth:.2f} at {last:,}, beside {first:,}",
            met=growth <= _MOST_GROWTH if told else None,
        ),
        Target(
            aim=f"such a turn stays under {_MOST_MILLISECONDS:.0f} ms at the median, on two quiet cores",
            measured=f"{milliseconds:.1f} ms at {last:,}, of which {median(large.processor):.1f} ms of processor",
            met=milliseconds < _MOST_MILLISECONDS if told else None,
        ),
        Target(
            aim=f"peak memory of turns does not grow with the session (within {_MOST_MEGABYTES:.0f} MB)",
            measured=f"{more:+.1f} MB from {first:,} to {last:,}",
            met=more <= _MOST_MEGABYTES if told else None,
        ),
    )
