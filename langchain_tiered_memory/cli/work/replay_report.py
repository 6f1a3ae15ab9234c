"""Shows what a replay took and sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape

from langchain_tiered_memory.cli.context_view import account, content
from langchain_tiered_memory.cli.screen import duration, grid, out, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType
    from rich.table import Table

    from langchain_tiered_memory.evaluation.replay import Durations, ReplayReport
    from langchain_tiered_memory.reports import SessionMetrics


def show_replay(report: ReplayReport, *, show_context: bool, price_in: float | None) -> None:
    """Print `report` for a person."""
    console = out()
    console.print(
        f"[bold]{escape(report.conversation)}[/bold]: {plural(report.messages, 'message')} in "
        f"{plural(report.sittings, 'sitting')}, {report.metrics.tokens:,} tokens\n"
    )
    for part in (*level_lines(report.metrics), _sent_table(report, price_in), _time_table(report)):
        console.print(part)
    if show_context and report.last_context is not None:
        console.print(account(report.last_context))
        for part in content(report.last_context, brief=True):
            console.print(part)


def level_lines(metrics: SessionMetrics) -> Iterator[RenderableType]:
    """The levels of a session's tree, and what making them took."""
    table = grid("summaries", "level", numbers=("summaries", "of tokens", "in tokens", "saved", "time"))
    for level in metrics.levels:
        table.add_row(
            str(level.level),
            f"{level.summaries:,}",
            f"{level.source_tokens:,}",
            f"{level.tokens:,}",
            f"{level.ratio:.0%}",
            duration(level.seconds) if level.seconds else "-",
        )
    yield table
    spent = metrics.spent
    money = f", cost {metrics.cost:,.4f}" if metrics.cost is not None else ""
    yield (
        f"The cover of summaries saves {metrics.overall_ratio:.0%} of the history: {metrics.tokens_saved:,} tokens.\n"
        f"Making it took {plural(spent.calls, 'model call')}: {spent.input_tokens:,} tokens read, "
        f"{spent.output_tokens:,} written{money}.\n"
    )


def _sent_table(report: ReplayReport, price_in: float | None) -> Table:
    numbers = ("per call", "largest", "together", *(("money",) if price_in is not None else ()))
    table = grid(f"tokens sent in {plural(report.calls, 'model call')}", "", numbers=numbers)
    rows = (
        (f"contexts of at most {report.budget:,}", report.sent_per_call, report.largest_context, report.sent_tokens),
        ("the whole history", report.full_per_call, report.largest_history, report.full_tokens),
    )
    for name, mean, largest, together in rows:
        money = [f"{together * price_in / 1e6:,.4f}"] if price_in is not None else []
        table.add_row(name, f"{mean:,.0f}", f"{largest:,}", f"{together:,}", *money)
    return table


def _time_table(report: ReplayReport) -> Table:
    table = grid("time", "", numbers=("median", "95 %", "together"))
    steps: tuple[tuple[str, Durations], ...] = (
        ("adding a message", report.adding),
        ("assembling a context", report.assembling),
    )
    for name, took in steps:
        table.add_row(name, duration(took.median_seconds), duration(took.p95_seconds), duration(took.total_seconds))
    table.add_row("finishing what waited", "", "", duration(report.finishing_seconds))
    return table
