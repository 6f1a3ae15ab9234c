"""Shows on a terminal a context (its account, then what it says, section by section), and what a replay took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from langchain_tiered_memory.cli.screen import duration, out, show, tell
from langchain_tiered_memory.display.sheet import plural, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_core.messages import BaseMessage
    from rich.console import RenderableType

    from langchain_tiered_memory.evaluation.replay import ReplayReport
    from langchain_tiered_memory.types.contexts import Context


_BRIEF_LINES = 8
"""Lines that a brief view shows of one text."""
_BRIEF_MESSAGES = 4
"""Messages that a brief view shows of one section: the first, and the last three."""


def show_context_of(context: Context, *, brief: bool) -> None:
    """Print what is in a context and what is not, then what it says."""
    show(context)
    for part in _content(context, brief=brief):
        out().print(part)


def _content(context: Context, *, brief: bool) -> Iterator[RenderableType]:
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


def _clipped(text: str, *, brief: bool) -> str:
    lines = text.split("\n")
    if not brief or len(lines) <= _BRIEF_LINES:
        return text
    return "\n".join([*lines[:_BRIEF_LINES], f"... {plural(len(lines) - _BRIEF_LINES, 'line')} more"])


def show_replay(report: ReplayReport, *, show_context: bool, price_in: float | None) -> None:
    """Print `report` for a person."""
    of_money = ("money",) if price_in is not None else ()
    sent = (
        (f"contexts of at most {report.budget:,}", report.sent_per_call, report.largest_context, report.sent_tokens),
        ("the whole history", report.full_per_call, report.largest_history, report.full_tokens),
    )
    steps = (("adding a message", report.adding), ("assembling a context", report.assembling))
    times = [(name, *map(duration, (one.p50, one.p95, one.mean * one.count))) for name, one in steps]
    show(report.metrics)
    tell(
        table(
            f"tokens sent in {plural(report.calls, 'model call')}",
            ("", "per call", "largest", "together", *of_money),
            [(*row, *(f"{row[-1] * price / 1e6:,.4f}" for price in [price_in] if price is not None)) for row in sent],
        ),
        table(
            "time",
            ("", "median", "95 %", "together"),
            [*times, ("finishing what waited", None, None, duration(report.finishing_seconds))],
        ),
    )
    if show_context and report.last_context is not None:
        show_context_of(report.last_context, brief=True)
