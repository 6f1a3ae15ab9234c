"""Shows on a terminal a context (its account, then what it says, section by section), and what a replay took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.markup import escape
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from langchain_tiered_memory.cli.screen import duration, grid, out
from langchain_tiered_memory.display.contexts import shows
from langchain_tiered_memory.display.sheet import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.messages import BaseMessage
    from rich.console import RenderableType
    from rich.table import Table

    from langchain_tiered_memory.evaluation.replay import Durations, ReplayReport
    from langchain_tiered_memory.reports import SessionMetrics
    from langchain_tiered_memory.types.contexts import Context, Section


_BRIEF_LINES = 8
"""Lines that a brief view shows of one text."""
_BRIEF_MESSAGES = 4
"""Messages that a brief view shows of one section: the first, and the last three."""
_LEFT_OUT = 3
"""Things left out that the account names; the others are counted."""


def account(context: Context) -> Table:
    """One line per section: tokens, what is in, what stayed out."""
    title = f"context: {context.tokens:,} of {context.max_tokens:,} tokens"
    table = grid(title, "section", numbers=("tokens", "at most"))
    table.add_column("shows", overflow="fold")
    table.add_column("left out", overflow="fold", style="dim")
    for section in context.sections:
        row = (section.name, f"{section.tokens:,}", f"{section.cap:,}", shows(section) or "-", _left_out(section))
        table.add_row(*(Text(cell) for cell in row))
    return table


def content(context: Context, *, brief: bool) -> Iterator[RenderableType]:
    """What a model would get, section by section; if `brief`, the first lines of each text and a few messages."""
    messages = {message.id: message for message in context.messages}
    for section in context.sections:
        own = [messages[entry_id] for entry_id in section.entry_ids if entry_id in messages]
        if not section.text and not own:
            continue
        yield Rule(Text(f"{section.name} ({section.tokens:,} tokens)", style="bold"), align="left", style="dim")
        if section.text:
            yield _indented(Text(_clipped(section.text, brief=brief)))
        else:
            yield from _messages(own, brief=brief)
    if context.repairs:
        yield Text("repaired for the provider: " + "; ".join(context.repairs), style="yellow")


def _messages(messages: Sequence[BaseMessage], *, brief: bool) -> Iterator[RenderableType]:
    from langchain_tiered_memory.conversations.turns import speaker_of  # noqa: PLC0415 - slow to import
    from langchain_tiered_memory.messages.message_text import text_of  # noqa: PLC0415 - likewise

    skipped = len(messages) - _BRIEF_MESSAGES if brief else 0
    for number, message in enumerate(messages):
        if skipped > 0 and number == 1:
            yield _indented(Text(f"... {plural(skipped, 'message')} more", style="dim"))
        if number == 0 or number > skipped:
            said = _clipped(text_of(message), brief=brief)
            yield _indented(Text.assemble((f"{speaker_of(message)}: ", "bold"), said))


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, 2))


def _left_out(section: Section) -> str:
    shown = "; ".join(f"{item.what}: {item.reason}" for item in section.left_out[:_LEFT_OUT])
    more = len(section.left_out) - _LEFT_OUT
    return f"{shown}; and {more} more" if more > 0 else shown


def _clipped(text: str, *, brief: bool) -> str:
    lines = text.split("\n")
    if not brief or len(lines) <= _BRIEF_LINES:
        return text
    return "\n".join([*lines[:_BRIEF_LINES], f"... {plural(len(lines) - _BRIEF_LINES, 'line')} more"])


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
