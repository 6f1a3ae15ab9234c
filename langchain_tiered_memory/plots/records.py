"""Pictures of what a session holds, of what it costs, and of how well questions are answered from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.display.sheet import COLOURS, SPARE_COLOURS
from langchain_tiered_memory.plots.drawing import INKS, MARKERS, drawn, legend, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from langchain_tiered_memory.types.outcomes import CostLedger
    from langchain_tiered_memory.types.trees import SummaryTree

_LABELLED = 0.035
"""Of the width: a summary that is narrower has no label."""


def tree(summaries: SummaryTree, *, dark: bool = False) -> Figure:
    """The summaries as an icicle: messages from left to right, levels from bottom to top.

    A label says how many tokens stand for how many; what is hatched is not finished.

    Args:
        summaries: As `session.tree()` gives it.
        dark: For a dark page.

    Raises:
        InvalidInputError: when there is no summary.
    """
    require(summaries.summaries, "summaries", "session.flush()")
    last = max(one.last_seq for one in summaries.summaries)
    shades = [COLOURS["facts"], COLOURS["recent"], COLOURS["parts"], COLOURS["pinned"], COLOURS["system"]]
    page = INKS[dark][0]
    with drawn("The summary tree", "message", "", dark=dark) as (figure, axes):
        for one in summaries.summaries:
            left, width = one.first_seq - 0.5, one.last_seq - one.first_seq + 1
            hatch = "" if one.state.finished else "///"
            shade = shades[min(one.level, len(shades)) - 1]
            axes.barh(one.level, width, left=left, height=0.92, color=shade, edgecolor=page, linewidth=1, hatch=hatch)
            if width > _LABELLED * last:
                said = f"{one.tokens:,}" if width < 3 * _LABELLED * last else f"{one.tokens:,} of {one.source_tokens:,}"
                axes.text(left + width / 2, one.level, said, ha="center", va="center", fontsize=8, color="#101418")
        levels = range(1, summaries.height + 1)
        axes.set_yticks(levels, [f"level {one}\n{len(summaries.level(one))} made" for one in levels])
        axes.set(xlim=(0.5, max(last, summaries.messages) + 0.5))
        axes.grid(visible=False)
    return figure


def recall(curves: Mapping[str, Mapping[int, float]], *, dark: bool = False) -> Figure:
    """How often what answers a question was in view, by token budget.

    Args:
        curves: By name (a view, a method, a way of asking) the shares (0 to 1) by budget in tokens.
        dark: For a dark page.

    Raises:
        InvalidInputError: when there is no curve.
    """
    require(curves, "curves", "the shares by budget of at least one")
    budgets = sorted({budget for curve in curves.values() for budget in curve})
    with drawn("Recall by budget", "token budget", "answers in view, %", dark=dark) as (figure, axes):
        _draw(axes, {name: curve.items() for name, curve in curves.items()})
        axes.set_xscale("log", base=2)
        axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
        axes.minorticks_off()
        axes.set(ylim=(0, 105))
        legend(axes, loc="best")
    return figure


def costs(ledger: CostLedger, *, dark: bool = False) -> Figure:
    """What condensing spent and saved, call by call, and where it had paid: the tokens of both, summed up.

    Args:
        ledger: As `session.costs()` gives it.
        dark: For a dark page.

    Raises:
        InvalidInputError: when nothing was condensed yet.
    """
    require(ledger.rows, "condensations", "a session whose view was condensed")
    calls = max(row.calls_since for row in ledger.rows)
    begun = [(calls - row.calls_since, row) for row in ledger.rows]
    spent = [
        sum(row.spent.input_tokens + row.spent.output_tokens for at, row in begun if at <= call)
        for call in range(calls + 1)
    ]
    saved = [sum(row.saved_tokens_per_call * max(call - at, 0) for at, row in begun) for call in range(calls + 1)]
    paid = _paid_after(saved, spent)
    label = "model calls since the first condensation"
    with drawn("What condensing cost and saved", label, "tokens in all", dark=dark) as (figure, axes):
        axes.plot(range(calls + 1), saved, color=COLOURS["parts"], label="saved by smaller requests")
        axes.plot(range(calls + 1), spent, color=COLOURS["danger"], linestyle="--", label="spent on summaries")
        if paid is not None:
            ink = INKS[dark][1]
            axes.axvline(paid, color=ink, linewidth=1, linestyle=":")
            axes.annotate(f" paid after {paid}", (paid, 0.62), xycoords=("data", "axes fraction"), color=ink)
        axes.set(xlim=(0, max(calls, 1)), ylim=(0, None))
        legend(axes, loc="best")
    return figure


def in_view_against_billed(points: Mapping[str, Sequence[tuple[float, float]]], *, dark: bool = False) -> Figure:
    """How much of what was needed stood in view, against the tokens that were billed for it; up and left is better.

    Args:
        points: By name the points of a curve: billed tokens, and the share (0 to 1) in view.
        dark: For a dark page.

    Raises:
        InvalidInputError: when there is no curve.
    """
    require(points, "curves", "points of billed tokens and shares")
    with drawn("In view against billed", "billed tokens", "needed and in view, %", dark=dark) as (figure, axes):
        _draw(axes, points)
        axes.set(xlim=(0, None), ylim=(0, 105))
        legend(axes, loc="best")
    return figure


def _draw(axes: Axes, curves: Mapping[str, Iterable[tuple[float, float]]]) -> None:
    """Curves of shares (0 to 1), each with a marker and a colour of its own."""
    for place, (name, curve) in enumerate(curves.items()):
        marker, colour = MARKERS[place % len(MARKERS)], SPARE_COLOURS[place % len(SPARE_COLOURS)]
        ordered = sorted(curve)
        shares = [100 * share for _, share in ordered]
        axes.plot([at for at, _ in ordered], shares, marker=marker, color=colour, label=name)


def _paid_after(saved: Sequence[int], spent: Sequence[int]) -> int | None:
    """The first call from which on as much was saved as was spent; `None` where that is not so by now."""
    call = len(saved)
    while call and saved[call - 1] >= max(spent[call - 1], 1):
        call -= 1
    return call if call < len(saved) else None
