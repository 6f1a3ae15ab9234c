"""What the probes of agents' transcripts found, in tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.evidence_summary import Bootstrap
from benchmarks.reporting import Grid, Report, Target, median, p95
from benchmarks.transcript_windows import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.agent_transcripts import Probe
    from benchmarks.transcript_runs import Run

MEMORY = "this memory"
GAPS = ((0, "all"), (8000, "> 8k ago"), (32_000, "> 32k ago"))
"""Tokens since the needle was last seen, from which a probe counts in a class."""
_KINDS = ("edit_anchor", "file_return")
_RESAMPLES = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One transcript within one budget: the memory's run, and what the windows would need."""

    run: Run
    needed: Mapping[tuple[Probe, str], int | None]
    """Smallest budget within which a window shows a probe's needle."""
    used: Mapping[str, Sequence[int]]
    """Tokens of each window, at the places of the probes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cell:
    """One kind of probes, one class of gaps, one budget."""

    kind: str
    least_gap: int
    budget: int
    probes: int
    shares: dict[str, float]
    """Of the probes whose needle is shown (0 to 1), by method."""
    differences: dict[str, tuple[float, float, float]]
    """The memory's share less a window's, with its 95 % interval, by window."""
    parts: dict[str, int]
    """Where the memory shows them, in probes."""


def report_of(measured: Sequence[Measured], *, budgets: Sequence[int], settings: Mapping[str, Any]) -> Report:
    """The report."""
    cells = [
        cell
        for kind in _KINDS
        for least, _ in GAPS
        for budget in budgets
        if (cell := _cell(measured, kind, least, budget)) is not None
    ]
    cost = [_cost(measured, budget) for budget in budgets]
    grids = [
        _grid(cells, kind=kind, least=least, label=label, budgets=budgets)
        for kind in _KINDS
        for least, label in GAPS
        if any(cell.kind == kind and cell.least_gap == least for cell in cells)
    ]
    return Report(
        benchmark="transcript probes",
        about="what an agent needed next, in the context before its call; messages added one by one",
        settings=dict(settings),
        grids=(*grids, _cost_grid(cost)),
        figures={
            "probes": [asdict(cell) for cell in cells],
            "cost": cost,
            "faults": [
                f"{one.run.transcript}, {one.run.budget}: {fault}" for one in measured for fault in one.run.faults
            ],
            "refused": [
                f"{one.run.transcript}, {one.run.budget}: {why}" for one in measured for why in one.run.refused
            ],
        },
        targets=(*(_target(cell) for cell in cells if cell.least_gap == 0), *_sound(measured)),
        remarks=("Differences are paired by probe; the interval is a bootstrap over probes, 95 %.",),
    )


def _cell(measured: Sequence[Measured], kind: str, least: int, budget: int) -> _Cell | None:
    chosen = [
        (one, found)
        for one in measured
        if one.run.budget == budget
        for found in one.run.found
        if found.probe.kind == kind and found.probe.gap >= least
    ]
    if not chosen:
        return None
    hits = {MEMORY: [float(found.part is not None) for _, found in chosen]}
    for method in METHODS:
        needs = [one.needed[found.probe, method] for one, found in chosen]
        hits[method] = [float(need is not None and need <= budget) for need in needs]
    bootstrap = Bootstrap(len(chosen), resamples=_RESAMPLES)
    differences = {}
    for method in METHODS:
        change = bootstrap.difference(hits[MEMORY], hits[method])
        differences[method] = (change.mean, change.low, change.high)
    return _Cell(
        kind=kind,
        least_gap=least,
        budget=budget,
        probes=len(chosen),
        shares={method: sum(values) / len(values) for method, values in hits.items()},
        differences=differences,
        parts=dict(Counter(found.part for _, found in chosen if found.part is not None)),
    )


def _grid(cells: Sequence[_Cell], *, kind: str, least: int, label: str, budgets: Sequence[int]) -> Grid:
    row = {cell.budget: cell for cell in cells if cell.kind == kind and cell.least_gap == least}
    ordered = [row[budget] for budget in budgets if budget in row]
    return Grid(
        title=f"{kind}, last seen {label} (n={ordered[0].probes}): the needle is in the context, %",
        columns=("", *(f"{cell.budget:,}" for cell in ordered)),
        rows=(
            *((method, *(100 * cell.shares[method] for cell in ordered)) for method in (MEMORY, *METHODS)),
            *((f"less {method}", *(_interval(cell.differences[method]) for cell in ordered)) for method in METHODS),
        ),
    )


def _interval(difference: tuple[float, float, float]) -> str:
    mean, low, high = (100 * figure for figure in difference)
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def _cost(measured: Sequence[Measured], budget: int) -> dict[str, Any]:
    here = [one for one in measured if one.run.budget == budget]
    runs = [one.run for one in here]
    tokens = [count for run in runs for count in run.tokens]
    seconds = [took for run in runs for took in run.context_seconds]
    added = [took for run in runs for took in run.add_seconds]
    sent = sum(run.sent_bytes for run in runs)
    return {
        "budget": budget,
        "contexts": len(tokens),
        "mean_tokens": sum(tokens) / max(len(tokens), 1),
        "largest_tokens": max(tokens, default=0),
        "window_tokens": {
            method: sum(map(sum, values)) / max(sum(map(len, values)), 1)
            for method in METHODS
            for values in [[one.used[method] for one in here]]
        },
        "prefix_share": sum(run.alike_bytes for run in runs) / sent if sent else None,
        "breaks": sum(run.breaks for run in runs),
        "counted_calls": sum(run.counted_calls for run in runs),
        "pointed": sum(len(run.pointed) for run in runs),
        "pointed_tokens": sum(run.pointed_tokens for run in runs),
        "pointed_percent": 100
        * sum(run.pointed_tokens for run in runs)
        / max(sum(tokens) + sum(run.pointed_tokens for run in runs), 1),
        "refused": sum(len(run.refused) for run in runs),
        "faults": sum(len(run.faults) for run in runs),
        "context_ms": 1000 * median(seconds) if seconds else None,
        "context_p95_ms": 1000 * p95(seconds) if seconds else None,
        "add_ms": 1000 * median(added) if added else None,
        "seconds": sum(seconds) + sum(added),
    }


def _cost_grid(cost: Sequence[Mapping[str, Any]]) -> Grid:
    named = (
        ("contexts", "contexts"),
        ("tokens, mean", "mean_tokens"),
        ("tokens, largest", "largest_tokens"),
        ("prefix share of what is sent, once the history does not fit", "prefix_share"),
        ("calls of which less than half was a prefix", "breaks"),
        ("of so many calls", "counted_calls"),
        ("file readings that stand above in the same context: pointed to", "pointed"),
        ("tokens saved by that, in all contexts", "pointed_tokens"),
        ("of what would have been sent else, %", "pointed_percent"),
        ("refused with an error", "refused"),
        ("invalid or over budget", "faults"),
        ("context, ms, median", "context_ms"),
        ("context, ms, 95 %", "context_p95_ms"),
        ("adding a message, condensing included, ms, median", "add_ms"),
    )
    rows = [(label, *(one[key] for one in cost)) for label, key in named]
    rows[2:2] = [(f"tokens, {method}", *(one["window_tokens"][method] for one in cost)) for method in METHODS]
    return Grid(
        title="what the contexts are like", columns=("", *(f"{one['budget']:,}" for one in cost)), rows=tuple(rows)
    )


def _target(cell: _Cell) -> Target:
    rival = max(METHODS, key=lambda method: cell.shares[method])
    return Target(
        aim=f"{cell.kind}, {cell.budget:,} tokens: above {rival}, the best of the windows",
        measured=f"{100 * cell.shares[MEMORY]:.1f} %, {_interval(cell.differences[rival])} points",
        met=cell.shares[MEMORY] > cell.shares[rival],
    )


def _sound(measured: Sequence[Measured]) -> tuple[Target, ...]:
    faults = sum(len(one.run.faults) for one in measured)
    refused = sum(len(one.run.refused) for one in measured)
    return (
        Target(aim="every context valid and within its budget", measured=f"{faults} faults", met=not faults),
        Target(aim="no context refused", measured=str(refused), met=not refused),
    )
