"""Shows a context on a terminal: its account, then what it says, section by section."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from langchain_tiered_memory.cli.screen import plural
from langchain_tiered_memory.conversations.speaking import speaker_of
from langchain_tiered_memory.decisions.messages import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from langchain_tiered_memory.records import Context, Section

_MESSAGE_LINES = 6
"""Lines of one message that a summary of the context shows."""
_LEFT_OUT = 3


def account(context: Context) -> Table:
    """One line per section: tokens, what is in, what stayed out."""
    table = Table(
        title=f"context: {context.tokens:,} of {context.max_tokens:,} tokens", title_justify="left", pad_edge=False
    )
    table.add_column("section", no_wrap=True)
    table.add_column("tokens", justify="right")
    table.add_column("at most", justify="right")
    table.add_column("shows", overflow="fold")
    table.add_column("left out", overflow="fold")
    for section in context.sections:
        table.add_row(section.name, f"{section.tokens:,}", f"{section.cap:,}", _shows(section), _left_out(section))
    return table


def content(context: Context, *, whole: bool) -> Iterator[RenderableType]:
    """The messages that a model would get, in order, each under its speaker.

    Args:
        context: What to show.
        whole: Every line; else the first few of each message.
    """
    for number, message in enumerate(context.messages, start=1):
        stable = number <= context.stable_messages
        title = Text(f"{number}. {speaker_of(message)}", style="bold")
        title.append("  stays for the prompt cache" if stable else "", style="dim")
        yield Rule(title, align="left", style="dim")
        yield Padding(Text(_clipped(text_of(message), whole=whole)), (0, 0, 0, 2))
    if context.repairs:
        yield Text("repaired for the provider: " + "; ".join(context.repairs), style="yellow")


def _shows(section: Section) -> str:
    counts = (
        (len(section.entry_ids), "message"),
        (len(section.passage_ids), "passage"),
        (len(section.summary_ids), "summary"),
    )
    return ", ".join(plural(count, noun) for count, noun in counts if count) or "-"


def _left_out(section: Section) -> str:
    if not section.left_out:
        return ""
    shown = "; ".join(f"{item.what}: {item.reason}" for item in section.left_out[:_LEFT_OUT])
    more = len(section.left_out) - _LEFT_OUT
    return shown + (f"; and {more} more" if more > 0 else "")


def _clipped(text: str, *, whole: bool) -> str:
    lines = text.split("\n")
    if whole or len(lines) <= _MESSAGE_LINES:
        return text
    return "\n".join([*lines[:_MESSAGE_LINES], f"... {plural(len(lines) - _MESSAGE_LINES, 'line')} more"])
