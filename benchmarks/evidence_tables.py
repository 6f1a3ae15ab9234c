"""Shows a measurement on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table as RichTable
from rich.text import Text

from benchmarks.asked_conversations import VIEWS
from benchmarks.evidence import FIGURES, Figure, heading, honesty
from benchmarks.evidence_summary import Summary, Table, is_rival
from benchmarks.reporting import Grid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from benchmarks.evidence_summary import Estimate

_COLOURS = {"above": "green", "equal": "yellow", "below": "red"}
_SHOWN: tuple[Figure, ...] = ("fraction", "any")
"""Besides the shares of questions whose evidence is all there, which the report has."""
_TOUCHED: dict[Figure, Figure] = {"any": "any_touched"}


def renderables(summary: Summary) -> Iterator[RenderableType]:
    """What to print for one group of conversations, from top to bottom."""
    yield Text(f"\n{heading(summary)}")
    if summary.overall is None:
        yield Text("No question has evidence that can be looked for.", style="yellow")
        return
    yield from _comparison_tables(summary)
    for figure in _SHOWN:
        yield _figure_table(summary, summary.overall, figure)
    if len(summary.categories) > 1:
        yield _category_table(summary)
    yield Text(f"{honesty(summary)}\n")


def shares_of(summary: Summary) -> Grid:
    """The shares of questions whose evidence is all in view, by method and budget, in percent."""
    rows: list[tuple[str, ...]] = []
    for method in summary.methods if summary.overall is not None else ():
        rows.append((method, *_cells(summary.overall.shares["all"][method], summary)))
        if method in VIEWS.values():
            touched = _cells(summary.overall.shares["all_touched"][method], summary)
            rows.append((f"{method}: at least by a passage", *touched))
    budgets = (f"{budget:,}" for budget in summary.budgets)
    return Grid(title=f"{summary.name}: {FIGURES['all']}, %", columns=("", *budgets), rows=tuple(rows))


def _figure_table(summary: Summary, table: Table, figure: Figure) -> RichTable:
    rich = _grid(f"{FIGURES[figure]}, %", summary)
    ours = [method for method in summary.methods if method in VIEWS.values()]
    for method in ours:
        rich.add_row(method, *_cells(table.shares[figure][method], summary), style="bold")
        if figure in _TOUCHED:
            cells = _cells(table.shares[_TOUCHED[figure]][method], summary)
            rich.add_row("  at least by a passage", *cells, style="dim")
    rich.add_section()
    for method in summary.methods:
        if method in ours:
            continue
        rich.add_row(method, *_cells(table.shares[figure][method], summary), style="" if is_rival(method) else "dim")
    return rich


def _category_table(summary: Summary) -> RichTable:
    """Per category the recall view; the share of the evidence below it, since some questions cite many turns."""
    rich = _grid("per category, recall view (strongest method), %", summary)
    recall = VIEWS["recall"]
    for table in summary.categories:
        for figure in ("all", "fraction"):
            shares = table.shares[figure]
            cells = []
            for budget in summary.budgets:
                mine, rival = shares.get(recall, {}).get(budget), summary.strongest(budget)
                other = shares.get(rival, {}).get(budget) if rival else None
                cells.append(f"{_percent(mine)} ({_percent(other)})")
            name = f"{table.name} ({table.questions})" if figure == "all" else "  share of the evidence"
            rich.add_row(name, *cells, style="" if figure == "all" else "dim")
    return rich


def _comparison_tables(summary: Summary) -> Iterator[RichTable]:
    for view in VIEWS.values():
        rows: dict[str, dict[int, Text]] = {}
        for comparison in summary.comparisons:
            if comparison.view == view:
                change = comparison.difference
                text = f"{100 * change.mean:+.1f} ±{100 * change.half_width:.1f}"
                cells = rows.setdefault(comparison.method, {})
                cells[comparison.budget] = Text(text, style=_COLOURS[comparison.verdict])
        rich = _grid(f"{view} against each method, points of all evidence", summary)
        for method, cells in rows.items():
            rich.add_row(method, *(cells.get(budget, Text("")) for budget in summary.budgets))
        if rows:
            yield rich


def _grid(title: str, summary: Summary) -> RichTable:
    rich = RichTable(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    rich.add_column("", overflow="fold")
    for budget in summary.budgets:
        rich.add_column(f"{budget:,}", justify="right", no_wrap=True)
    return rich


def _cells(shares: dict[int, Estimate], summary: Summary) -> list[str]:
    return [_cell(shares.get(budget)) for budget in summary.budgets]


def _cell(estimate: Estimate | None) -> str:
    return "-" if estimate is None else f"{100 * estimate.mean:.1f} ±{100 * estimate.half_width:.1f}"


def _percent(estimate: Estimate | None) -> str:
    return "-" if estimate is None else f"{100 * estimate.mean:.1f}"
