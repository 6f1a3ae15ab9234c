"""Pictures of contexts, call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.display.sheet import COLOURS, SPARE_COLOURS, percent
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.plots.drawing import drawn, legend, require
from langchain_tiered_memory.types.outcomes import ZONES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from langchain_tiered_memory.types.files import ContextSize

_SENT = {False: COLOURS["history"], True: COLOURS["facts"]}
_ROOM = 1.25
"""How far above the window a request's need is drawn, as a share of the window: more is cut off."""


def window_use(
    use: Sequence[ContextSize], *, zones: Sequence[float] = (0.70, 0.85, 0.95), dark: bool = False
) -> Figure:
    """How full the window was, call by call: what a request needed, what was sent, and the zones.

    Args:
        use: As `session.window_use()` or `run.report().contexts` gives it.
        zones: Where the zones warning, danger and critical begin, as shares of the window.
        dark: For a dark page.

    Raises:
        InvalidInputError: when there is no context among them.
        SettingsError: where matplotlib is missing; so do the others.
    """
    require(use, "contexts", "session.window_use()")
    calls = range(1, len(use) + 1)
    with drawn("Window use", "model call", "% of the window", dark=dark) as (figure, axes):
        edges = [0.0, *zones, _ROOM]
        for zone, low, high in zip(ZONES, edges, edges[1:], strict=False):
            axes.axhspan(100 * low, 100 * high, color=COLOURS[zone], alpha=0.14, linewidth=0)
            middle = 100 * (low + min(high, 1.05)) / 2
            axes.annotate(zone, (1.01, middle), xycoords=("axes fraction", "data"), va="center", fontsize=9)
        needed = [min(100 * one.needed_tokens / one.limit, 100 * _ROOM) for one in use]
        axes.plot(calls, needed, color=COLOURS["danger"], linewidth=1.2, linestyle=":", label="needed")
        axes.plot(calls, [100 * one.share for one in use], color=_SENT[dark], label="sent")
        axes.set(xlim=(1, max(len(use), 2)), ylim=(0, 100 * _ROOM))
        legend(axes, loc="lower right", ncols=2)
    return figure


def composition(use: Sequence[ContextSize], *, dark: bool = False) -> Figure:
    """What each request was made of, section by section, in tokens.

    Args:
        use: As of `window_use`.
        dark: For a dark page.

    Raises:
        InvalidInputError: when there is no context among them.
    """
    require(use, "contexts", "session.window_use()")
    there = dict.fromkeys(name for one in use for name in one.sections)
    names = [*(name for name in COLOURS if name in there), *(name for name in there if name not in COLOURS)]
    spare = iter(SPARE_COLOURS * len(names))
    colours = [COLOURS.get(name) or next(spare) for name in names]
    calls = range(1, len(use) + 1)
    with drawn("What each request was made of", "model call", "tokens", dark=dark) as (figure, axes):
        amounts = [[one.sections.get(name, 0) for one in use] for name in names]
        axes.stackplot(calls, amounts, labels=names, colors=colours, linewidth=0, step="mid")
        axes.set(xlim=(1, max(len(use), 2)), ylim=(0, None))
        legend(axes, loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)
    return figure


def sent(use: Sequence[ContextSize], history: Sequence[int], *, dark: bool = False) -> Figure:
    """The tokens of each request beside those that the whole history would have been.

    Args:
        use: As of `window_use`.
        history: Tokens of the transcript at each of these calls (`session.metrics().tokens`).
        dark: For a dark page.

    Raises:
        InvalidInputError: when there is no context, or not one figure for each.
    """
    require(use, "contexts", "session.window_use()")
    if len(history) != len(use):
        msg = f"there are {len(use)} contexts and {len(history)} figures of the history: give one for each"
        raise InvalidInputError(msg)
    calls = range(1, len(use) + 1)
    tokens = [one.tokens for one in use]
    share = f"{percent(sum(tokens) / max(sum(history), 1))} of the whole history's tokens"
    with drawn(f"Tokens sent: {share}", "model call", "tokens", dark=dark) as (figure, axes):
        axes.fill_between(calls, history, color=COLOURS["system"], alpha=0.3, linewidth=0, label="the whole history")
        axes.plot(calls, history, color=COLOURS["system"])
        axes.plot(calls, tokens, color=_SENT[dark], label="sent")
        axes.set(xlim=(1, max(len(use), 2)), ylim=(0, None))
        legend(axes, loc="upper left")
    return figure
