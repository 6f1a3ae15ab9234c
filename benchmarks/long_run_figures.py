"""Figures of a long run, from what its processes wrote down: percentiles, memory, processor time by place."""

from __future__ import annotations

import itertools
import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_SETTLED = 500
"""Messages after which a process has loaded what it needs: its memory is compared from there on."""
_LEAST_ROWS = 8
"""Measurements of a process that make a slope."""
_EACH = 1000
"""Messages that processor time is told for."""


def p99(seconds: Sequence[float]) -> float | None:
    """In milliseconds, nearest rank."""
    ranked = sorted(seconds)
    return ranked[min(int(0.99 * len(ranked)), len(ranked) - 1)] * 1000 if ranked else None


def growth_of(sizes: Sequence[dict[str, Any]]) -> float | None:
    """How much larger any process was at its end than when it had settled."""
    found = []
    for own in _by_process(sizes).values():
        settled = [row["process_bytes"] for row in own if row["place"] >= own[0]["place"] + _SETTLED]
        if settled and settled[0]:
            found.append(settled[-1] / settled[0])
    return max(found, default=None)


def slope_of(sizes: Sequence[dict[str, Any]]) -> float | None:
    """Megabytes in 1,000 messages by which the processes grew, by least squares over the second half of each.

    The mean over all processes, each by its messages: a process that was restored begins anew.
    """
    found: list[tuple[float, int]] = []
    for own in _by_process(sizes).values():
        half = own[len(own) // 2 :]
        if len(half) < _LEAST_ROWS or not half[0]["process_bytes"]:
            continue
        places, megabytes = [row["place"] for row in half], [row["process_bytes"] / 1e6 for row in half]
        slope = statistics.linear_regression(places, megabytes).slope
        found.append((slope * 1000, len(half)))
    weight = sum(rows for _, rows in found)
    return sum(slope * rows for slope, rows in found) / weight if weight else None


def seconds_of(sizes: Sequence[dict[str, Any]]) -> list[float]:
    """What the processor spent on each 1,000 messages of the run, those of its last part scaled up.

    What a process spent before its first measurement, on starting and restoring, is not counted.
    """
    spent: dict[int, float] = {}
    messages: dict[int, int] = {}
    for own in _by_process(sizes).values():
        for before, after in itertools.pairwise(own):
            part = before["place"] // _EACH
            spent[part] = spent.get(part, 0.0) + after["process_seconds"] - before["process_seconds"]
            messages[part] = messages.get(part, 0) + after["place"] - before["place"]
    return [round(spent[part] * _EACH / messages[part], 1) for part in sorted(spent) if messages[part]]


def dearer_of(seconds: Sequence[float]) -> float | None:
    """What the last quarter took, in times of the first; `None` for a run too short to tell."""
    quarter = len(seconds) // 4
    first, last = sum(seconds[:quarter]), sum(seconds[len(seconds) - quarter :])
    return last / first if first else None


def _by_process(sizes: Sequence[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    by_process: dict[int, list[dict[str, Any]]] = {}
    for row in sizes:
        by_process.setdefault(row["process"], []).append(row)
    return by_process
