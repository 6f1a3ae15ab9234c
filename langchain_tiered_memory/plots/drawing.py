"""What every picture shares: a figure in the colours of its page, and what is said where there is nothing to draw."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import InvalidInputError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MISSING = "plots need matplotlib: pip install 'matplotlib>=3.9' (the extra `plots` of langchain-tiered-memory)"
_SIZE = (8.0, 3.6)
INKS = {False: ("#ffffff", "#1d2433", "#d5d8e0"), True: ("#14161a", "#e6e8ec", "#3a3f4a")}
"""Page, ink and grid, on light and on dark."""
MARKERS = "osD^vP"


def require(values: object, what: str, source: str) -> None:
    """That there is something to draw.

    Raises:
        InvalidInputError: where there is not; it says what to give.
    """
    if not values:
        msg = f"there are no {what} to draw: give {source}"
        raise InvalidInputError(msg)


@contextmanager
def drawn(title: str, x: str, y: str, *, dark: bool) -> Iterator[tuple[Figure, Axes]]:
    """A figure with axes in the colours of the page; what is written in the block has them too."""
    try:
        from matplotlib import rc_context, ticker  # noqa: PLC0415 - an extra, and slow to import
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise SettingsError(_MISSING) from error
    page, ink, grid = INKS[dark]
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


def legend(axes: Axes, **where: Any) -> None:  # noqa: ANN401 - as `Axes.legend` takes them
    """Names what the axes show, without a frame."""
    axes.legend(frameon=False, fontsize=9, **where)
