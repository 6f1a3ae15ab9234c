"""Shows what a replay took and sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from langchain_tiered_memory.cli.context_view import account, content
from langchain_tiered_memory.cli.screen import duration, out, plural

if TYPE_CHECKING:
    from langchain_tiered_memory.evaluation.replay import Durations, ReplayReport
    from langchain_tiered_memory.records import SessionMetrics


def show_replay(report: ReplayReport, *, show_context: bool, price_in: float | None) -> None:
    """Print `report` for a person."""
    console = out()
    console.print(
        f"[bold]{report.conversation}[/bold]: {plural(report.messages, 'message')} in "
        f"{plural(report.sittings, 'sitting')}, {report.metrics.tokens:,} tokens"
    )
    console.print(level_table(report.metrics))
    console.print(_sent_table(report, price_in))
    console.print(_time_table(report))
    if show_context and report.last_context is not None:
        console.print(account(report.last_context))
        for part in content(report.last_context, whole=False):
            console.print(part)


def level_table(metrics: SessionMetrics) -> Table:
    """The levels of a session's tree, with what making them took."""
    table = Table(title="summaries", title_justify="left", pad_edge=False)
    for name in ("level", "summaries", "source tokens", "tokens", "saved", "time"):
        table.add_column(name, justify="right")
    for level in metrics.levels:
        table.add_row(
            str(level.level),
            f"{level.summaries:,}",
            f"{level.source_tokens:,}",
            f"{level.tokens:,}",
            f"{level.ratio:.0%}",
            duration(level.seconds),
        )
    spent = metrics.spent
    money = f", cost {metrics.cost:,.4f}" if metrics.cost is not None else ""
    table.caption = (
        f"the cover saves {metrics.overall_ratio:.0%} of the history ({metrics.tokens_saved:,} tokens); "
        f"{plural(spent.calls, 'model call')}, "
        f"{spent.input_tokens:,} tokens read, {spent.output_tokens:,} written{money}"
    )
    table.caption_justify = "left"
    return table


def _sent_table(report: ReplayReport, price_in: float | None) -> Table:
    table = Table(title=f"sent to the model, {plural(report.calls, 'call')}", title_justify="left", pad_edge=False)
    names = ["", "per call", "largest", "together"] + (["money"] if price_in is not None else [])
    for name in names:
        table.add_column(name, justify="right" if name else "left")
    rows = (
        (f"contexts of at most {report.budget:,}", report.sent_per_call, report.largest_context, report.sent_tokens),
        ("the whole history", report.full_per_call, report.metrics.tokens, report.full_tokens),
    )
    for name, mean, largest, together in rows:
        money = [f"{together * price_in / 1e6:,.4f}"] if price_in is not None else []
        table.add_row(name, f"{mean:,.0f}", f"{largest:,}", f"{together:,}", *money)
    return table


def _time_table(report: ReplayReport) -> Table:
    table = Table(title="time", title_justify="left", pad_edge=False)
    for name in ("", "median", "95 %", "together"):
        table.add_column(name, justify="right" if name else "left")
    steps: tuple[tuple[str, Durations], ...] = (
        ("adding a message", report.adding),
        ("assembling a context", report.assembling),
    )
    for name, took in steps:
        table.add_row(name, duration(took.median_seconds), duration(took.p95_seconds), duration(took.total_seconds))
    table.add_row("finishing what waited", "", "", duration(report.finishing_seconds))
    return table
