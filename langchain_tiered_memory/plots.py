"""Plots of what public verbs return, such as `plots.window_use(session.window_use())`. Each is a matplotlib `Figure`.

They need the extra `plots`. They do not use pyplot, so no figure has to be closed. A notebook shows the figure that a
cell ends with, after `%matplotlib inline`. The colours suit colour-blind people; `dark=True` is for dark pages.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.display.sheet import COLOURS, SPARE_COLOURS, percent
from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.types.outcomes import ZONES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from langchain_tiered_memory.types.files import ContextSize
    from langchain_tiered_memory.types.outcomes import CostLedger
    from langchain_tiered_memory.types.records import SummaryTree


__all__ = ["composition", "costs", "in_view_against_billed", "recall", "sent", "tree", "window_use"]

_MISSING = "plots need matplotlib: pip install 'matplotlib>=3.9' (the extra `plots` of langchain-tiered-memory)"
_SIZE = (8.0, 3.6)
_INKS = {False: ("#ffffff", "#1d2433", "#d5d8e0"), True: ("#14161a", "#e6e8ec", "#3a3f4a")}
"""Page, ink and grid, on light and on dark."""
_MARKERS = "osD^vP"


def _require(values: object, what: str, source: str) -> None:
    """Check that there is something to draw.

    Raises:
        InvalidInputError: if there is not. The message says what to give.
    """
    if not values:
        msg = f"there are no {what} to draw: give {source}"
        raise InvalidInputError(msg)


@contextmanager
def _drawn(title: str, x: str, y: str, *, dark: bool) -> Iterator[tuple[Figure, Axes]]:
    """A figure with axes in the colours of the page. What the block draws has them too."""
    try:
        from matplotlib import rc_context, ticker  # noqa: PLC0415 - an extra, and slow to import
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise SettingsError(_MISSING) from error
    page, ink, grid = _INKS[dark]
    style: Any = {
        "figure.facecolor": page, "axes.facecolor": page, "savefig.facecolor": page, "text.color": ink,
        "axes.labelcolor": ink, "axes.edgecolor": ink, "xtick.color": ink, "ytick.color": ink, "grid.color": grid,
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
        "font.size": 10, "axes.titlesize": 11, "axes.titlelocation": "left",
        "lines.linewidth": 1.6, "hatch.color": page,
        "text.parse_math": False,
    }  # fmt: skip
    with rc_context(style):
        figure = Figure(figsize=_SIZE, dpi=110, layout="constrained")
        axes = figure.subplots()
        axes.set(title=title, xlabel=x, ylabel=y)
        thousands = ticker.StrMethodFormatter("{x:,.0f}")
        axes.xaxis.set_major_formatter(thousands)
        axes.yaxis.set_major_formatter(thousands)
        axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
        yield figure, axes


def _legend(axes: Axes, **where: Any) -> None:  # noqa: ANN401 - as `Axes.legend` takes them
    """Label the axes, without a frame."""
    axes.legend(frameon=False, fontsize=9, **where)


_SENT = {False: COLOURS["history"], True: COLOURS["facts"]}
_ROOM = 1.25
"""How far above the window a request's need is drawn, as a share of the window. The rest is cut off."""


def window_use(
    use: Sequence[ContextSize], *, zones: Sequence[float] = (0.70, 0.85, 0.95), dark: bool = False
) -> Figure:
    """Draw how full the window was, call by call: what a request needed, what was sent, and the zones.

    Args:
        use: The result of `session.window_use()` or `run.report().contexts`.
        zones: Where the zones warning, danger and critical begin, as shares of the window.
        dark: Draws for a dark page.

    Raises:
        InvalidInputError: if `use` has no context.
        SettingsError: if matplotlib is not installed. The other functions raise it too.
    """
    _require(use, "contexts", "session.window_use()")
    calls = range(1, len(use) + 1)
    with _drawn("Window use", "model call", "% of the window", dark=dark) as (figure, axes):
        edges = [0.0, *zones, _ROOM]
        for zone, low, high in zip(ZONES, edges, edges[1:], strict=False):
            axes.axhspan(100 * low, 100 * high, color=COLOURS[zone], alpha=0.14, linewidth=0)
            middle = 100 * (low + min(high, 1.05)) / 2
            axes.annotate(zone, (1.01, middle), xycoords=("axes fraction", "data"), va="center", fontsize=9)
        needed = [min(100 * one.needed_tokens / one.limit, 100 * _ROOM) for one in use]
        axes.plot(calls, needed, color=COLOURS["danger"], linewidth=1.2, linestyle=":", label="needed")
        axes.plot(calls, [100 * one.share for one in use], color=_SENT[dark], label="sent")
        axes.set(xlim=(1, max(len(use), 2)), ylim=(0, 100 * _ROOM))
        _legend(axes, loc="lower right", ncols=2)
    return figure


def composition(use: Sequence[ContextSize], *, dark: bool = False) -> Figure:
    """Draw what each request was made of, in tokens by section.

    Args:
        use: As for `window_use`.
        dark: Draws for a dark page.

    Raises:
        InvalidInputError: if `use` has no context.
    """
    _require(use, "contexts", "session.window_use()")
    there = dict.fromkeys(name for one in use for name in one.sections)
    names = [*(name for name in COLOURS if name in there), *(name for name in there if name not in COLOURS)]
    spare = iter(SPARE_COLOURS * len(names))
    colours = [COLOURS.get(name) or next(spare) for name in names]
    calls = range(1, len(use) + 1)
    with _drawn("What each request was made of", "model call", "tokens", dark=dark) as (figure, axes):
        amounts = [[one.sections.get(name, 0) for one in use] for name in names]
        axes.stackplot(calls, amounts, labels=names, colors=colours, linewidth=0, step="mid")
        axes.set(xlim=(1, max(len(use), 2)), ylim=(0, None))
        _legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)
    return figure


def sent(use: Sequence[ContextSize], history: Sequence[int], *, dark: bool = False) -> Figure:
    """Draw the tokens of each request beside those of the whole history.

    Args:
        use: As for `window_use`.
        history: Tokens of the transcript at each of these calls (`session.metrics().tokens`).
        dark: Draws for a dark page.

    Raises:
        InvalidInputError: if `use` has no context, or `history` has another length.
    """
    _require(use, "contexts", "session.window_use()")
    if len(history) != len(use):
        msg = f"there are {len(use)} contexts and {len(history)} figures of the history: give one for each"
        raise InvalidInputError(msg)
    calls = range(1, len(use) + 1)
    tokens = [one.tokens for one in use]
    share = f"{percent(sum(tokens) / max(sum(history), 1))} of the whole history's tokens"
    with _drawn(f"Tokens sent: {share}", "model call", "tokens", dark=dark) as (figure, axes):
        axes.fill_between(calls, history, color=COLOURS["system"], alpha=0.3, linewidth=0, label="the whole history")
        axes.plot(calls, history, color=COLOURS["system"])
        axes.plot(calls, tokens, color=_SENT[dark], label="sent")
        axes.set(xlim=(1, max(len(use), 2)), ylim=(0, None))
        _legend(axes, loc="upper left")
    return figure


_LABELLED = 0.035
"""A share of the width. A narrower summary has no label."""


def tree(summaries: SummaryTree, *, dark: bool = False) -> Figure:
    """Draw the summaries as an icicle: messages from left to right, levels from bottom to top.

    A label says how many tokens replace how many. Hatched summaries are not finished.

    Args:
        summaries: The result of `session.tree()`.
        dark: Draws for a dark page.

    Raises:
        InvalidInputError: if there is no summary.
    """
    _require(summaries.summaries, "summaries", "session.flush()")
    last = max(one.last_seq for one in summaries.summaries)
    shades = [COLOURS["facts"], COLOURS["recent"], COLOURS["parts"], COLOURS["pinned"], COLOURS["system"]]
    page = _INKS[dark][0]
    with _drawn("The summary tree", "message", "", dark=dark) as (figure, axes):
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
    """Draw how often the answer to a question was in view, by token budget.

    Args:
        curves: For each name (a view, a method, a way of asking), the shares (0 to 1) by budget in tokens.
        dark: Draws for a dark page.

    Raises:
        InvalidInputError: if there is no curve.
    """
    _require(curves, "curves", "the shares by budget of at least one")
    budgets = sorted({budget for curve in curves.values() for budget in curve})
    with _drawn("Recall by budget", "token budget", "answers in view, %", dark=dark) as (figure, axes):
        _draw(axes, {name: curve.items() for name, curve in curves.items()})
        axes.set_xscale("log", base=2)
        axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
        axes.minorticks_off()
        axes.set(ylim=(0, 105))
        _legend(axes, loc="best")
    return figure


def costs(ledger: CostLedger, *, dark: bool = False) -> Figure:
    """Draw the tokens that condensing has spent and saved by each call, and where it has paid off.

    Args:
        ledger: The result of `session.costs()`.
        dark: Draws for a dark page.

    Raises:
        InvalidInputError: if nothing was condensed yet.
    """
    _require(ledger.rows, "condensations", "a session whose view was condensed")
    calls = max(row.calls_since for row in ledger.rows)
    begun = [(calls - row.calls_since, row) for row in ledger.rows]
    spent = [
        sum(row.spent.input_tokens + row.spent.output_tokens for at, row in begun if at <= call)
        for call in range(calls + 1)
    ]
    saved = [sum(row.saved_tokens_per_call * max(call - at, 0) for at, row in begun) for call in range(calls + 1)]
    paid = _paid_after(saved, spent)
    label = "model calls since the first condensation"
    with _drawn("What condensing cost and saved", label, "tokens in all", dark=dark) as (figure, axes):
        axes.plot(range(calls + 1), saved, color=COLOURS["parts"], label="saved by smaller requests")
        axes.plot(range(calls + 1), spent, color=COLOURS["danger"], linestyle="--", label="spent on summaries")
        if paid is not None:
            ink = _INKS[dark][1]
            axes.axvline(paid, color=ink, linewidth=1, linestyle=":")
            axes.annotate(f" paid after {paid}", (paid, 0.62), xycoords=("data", "axes fraction"), color=ink)
        axes.set(xlim=(0, max(calls, 1)), ylim=(0, None))
        _legend(axes, loc="best")
    return figure


def in_view_against_billed(points: Mapping[str, Sequence[tuple[float, float]]], *, dark: bool = False) -> Figure:
    """Draw how much of what was needed was in view, against the tokens billed for it. Up and to the left is better.

    Args:
        points: For each name, the points of a curve: billed tokens, and the share (0 to 1) in view.
        dark: Draws for a dark page.

    Raises:
        InvalidInputError: if there is no curve.
    """
    _require(points, "curves", "points of billed tokens and shares")
    with _drawn("In view against billed", "billed tokens", "needed and in view, %", dark=dark) as (figure, axes):
        _draw(axes, points)
        axes.set(xlim=(0, None), ylim=(0, 105))
        _legend(axes, loc="best")
    return figure


def _draw(axes: Axes, curves: Mapping[str, Iterable[tuple[float, float]]]) -> None:
    """Curves of shares (0 to 1), each with its own marker and colour."""
    for place, (name, curve) in enumerate(curves.items()):
        marker, colour = _MARKERS[place % len(_MARKERS)], SPARE_COLOURS[place % len(SPARE_COLOURS)]
        ordered = sorted(curve)
        shares = [100 * share for _, share in ordered]
        axes.plot([at for at, _ in ordered], shares, marker=marker, color=colour, label=name)


def _paid_after(saved: Sequence[int], spent: Sequence[int]) -> int | None:
    """The first call after which the savings stay at or above the spending. `None` if there is none yet."""
    call = len(saved)
    while call and saved[call - 1] >= max(spent[call - 1], 1):
        call -= 1
    return call if call < len(saved) else None
