"""The cost curve as a picture, where matplotlib is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.billing import RATES
from benchmarks.curve_play import MEASURES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.curve_play import Measure
    from benchmarks.curve_report import Point

_ROOM_FOR_NAMES = 0.3
_INCHES_EACH = (5.0, 3.6)
_OURS, _FITS, _OVER = ("tab:blue", "o"), ("tab:orange", "s"), ("tab:gray", "x")


def draw(points: Sequence[Point], to: Path) -> str | None:
    """Write the picture: a row for each thing in view, a column for each window; else say why there is none."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - it may not be installed
    except ImportError:
        return "no picture: matplotlib is not installed (pip install matplotlib)"
    kinds = dict.fromkeys(point.kind for point in points)
    rows = [
        (kind, measure)
        for kind in kinds
        for measure in MEASURES[kind]
        if any(measure in point.shown for point in points)
    ]
    windows = sorted({point.window for point in points})
    width, height = _INCHES_EACH
    figure = Figure(figsize=(width * len(windows), height * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), len(windows), squeeze=False)
    for row, (kind, measure) in enumerate(rows):
        for column, window in enumerate(windows):
            here = [
                point for point in points if (point.kind, point.window) == (kind, window) and measure in point.shown
            ]
            axes: Any = grid[row][column]
            axes.set_title(f"{kind}s, {window:,}: {measure}", fontsize=9)
            axes.set_xlabel(f"billed, thousands of tokens ({RATES[0].label})", fontsize=7)
            axes.set_ylabel("in view, %", fontsize=7)
            axes.set_xscale("log")
            axes.tick_params(labelsize=7, which="both")
            axes.step(*_best(here, measure), where="post", color="lightgray", linewidth=1)
            for interface in dict.fromkeys(_interface(point) for point in here if point.ours):
                joined = [_place(point, measure) for point in here if point.ours and _interface(point) == interface]
                axes.plot(*zip(*joined, strict=True), color=_OURS[0], linewidth=0.6)
            for point in here:
                colour, marker = _OURS if point.ours else _FITS if point.fits else _OVER
                at = _place(point, measure)
                axes.plot(*at, marker=marker, color=colour, linestyle="none", markersize=5)
                axes.annotate(point.entry, at, fontsize=5, xytext=(3, 3), textcoords="offset points")
            axes.margins(x=_ROOM_FOR_NAMES)
            axes.set_ylim(-5, 105)
    figure.suptitle(
        "blue: this memory, a line for each interface; orange: peers; cross: over its window; "
        "grey line: the most in view for so much",
        fontsize=9,
    )
    figure.savefig(to, dpi=120)
    return None


def _place(point: Point, measure: Measure) -> tuple[float, float]:
    return point.bill.billed(RATES[0]) / 1000, 100 * point.shown[measure]


def _interface(point: Point) -> str:
    """What all of one line have alike: the name without that of its settings."""
    return point.entry.removeprefix(f"{point.settings}: ")


def _best(points: Sequence[Point], measure: Measure) -> tuple[list[float], list[float]]:
    """The most that anybody within the window shows, for each price; the points come in the order of their prices."""
    billed: list[float] = []
    most: list[float] = []
    for point in points:
        if point.fits:
            price, share = _place(point, measure)
            billed.append(price)
            most.append(max(share, most[-1] if most else share))
    return billed, most
