"""The rows of the table that `hops` prints, each beside what is wanted."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING, Any

from benchmarks.reporting import median, p95

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.hops_source import Source

_REQUESTS = {"add_messages": "20 / 60", "context": "35 / 150", "agent request": "45 / 200"}
_WAYS = {
    "context, no question": "4, 12",
    "context, recall": "4, 12",
    "agent, no recall": "6, -",
    "agent, recall": "6, -",
}
_TIMES = ("context, no question", "context, recall", "agent, recall")
_WANTED_TIMES = "10 / 40 / 100"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table."""

    name: str
    shown: str
    figures: Mapping[str, float | None]
    wanted: str


def rows_of(source: Source, probe: dict[str, Any] | None, documented: int, settings_used: int) -> list[Row]:
    """All rows of one checkout; without `probe` those of its source."""
    static = _source_rows(source)
    if probe is None:
        return static
    names, settings = len(probe["public_names"]), len(probe["settings"])
    return [
        *(_trace_row(request, probe["traces"][request], wanted) for request, wanted in _REQUESTS.items()),
        *(_sql_row(way, probe["ways"][way], wanted) for way, wanted in _WAYS.items()),
        *(_time_row(way, probe["ways"][way]) for way in _TIMES),
        *static,
        _row("public names / named in a document", {"names": names, "documented": documented}, "45 / all"),
        _row("settings / set by a test, benchmark, document", {"settings": settings, "set": settings_used}, "95 / all"),
    ]


def _source_rows(source: Source) -> list[Row]:
    flows = {"generators": source.flows.generators, "waiting": source.flows.waiting}
    folders = {f"folder_{place}": count for place, count in enumerate(source.largest_folders, start=1)}
    covered = {"covered": source.ordered_modules, "modules": source.modules}
    return [
        _row("flows that are generators / that may ever wait", flows, "43 / 43"),
        _row("lines that use another module's private names", {"lines": source.private_uses}, "0"),
        _row("modules in the largest folders", folders, "18"),
        _row("names of classes", {"names": source.classes}, "-"),
        _row("modules that the import-order test names / all", covered, "all"),
        _row("modules, lines of the package", {"modules": source.modules, "lines": source.lines}, "-"),
    ]


def _row(name: str, figures: Mapping[str, float | None], wanted: str) -> Row:
    shown = " / ".join("-" if figure is None else f"{figure:,}" for figure in figures.values())
    return Row(name=name, shown=shown, figures=figures, wanted=wanted)


def _trace_row(request: str, traces: Sequence[dict[str, int]], wanted: str) -> Row:
    """The request that ran the middle number of functions."""
    if not traces:
        return _row(f"files / functions / calls, {request}", dict.fromkeys(("files", "functions", "calls")), wanted)
    middle = sorted(traces, key=lambda one: one["functions"])[len(traces) // 2]
    return _row(f"files / functions / calls, {request}", middle, f"{wanted} / -")


def _sql_row(way: str, found: dict[str, Any], wanted: str) -> Row:
    figures: dict[str, float | None] = {
        name: mean(found[name]) if found[name] else None for name in ("reads", "statements")
    }
    shown = ", ".join("-" if figure is None else f"{figure:.1f}" for figure in figures.values())
    figures |= {f"most_{name}": max(found[name], default=None) for name in ("reads", "statements")}
    figures |= {"requests": len(found["reads"]), "refused": found["refused"]}
    return Row(name=f"reading transactions, statements (mean): {way}", shown=shown, figures=figures, wanted=wanted)


def _time_row(way: str, found: dict[str, Any]) -> Row:
    times = found["cpu_ms"]
    figures: dict[str, float | None] = dict.fromkeys(("median_ms", "p95_ms", "largest_ms"))
    if times:
        figures = {"median_ms": median(times), "p95_ms": p95(times), "largest_ms": max(times)}
    shown = " / ".join("-" if figure is None else f"{figure:.0f}" for figure in figures.values())
    wanted = "-" if way.startswith("agent") else _WANTED_TIMES
    return Row(name=f"processor ms, median / 95 % / largest: {way}", shown=shown, figures=figures, wanted=wanted)
