"""The terminal: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, is_dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.rule import Rule
from rich.text import Text

from langchain_tiered_memory.display.as_text import as_text, blocks_as_text
from langchain_tiered_memory.display.sheet import harmless
from langchain_tiered_memory.sql.private_files import PRIVATE, create_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_tiered_memory.display.sheet import Block
    from langchain_tiered_memory.display.shown import Shown
    from langchain_tiered_memory.reports import Progress as How

_WHOLE_ID = 12
_SHORT_ID = 8
"""Ids longer than the first number of characters are cut to the second, as contexts name summaries."""
_COMMANDS = {"rebuild_index": "reindex", "verify": "verify", "doctor": "doctor", "facts": "facts"}
_VERB = re.compile(rf"`?\b({'|'.join(_COMMANDS)})\(\)`?")
_SLOW = 10
"""Steps per second below which a decimal is shown."""
_UNITS = ((1e-3, "µs", 1e6), (1.0, "ms", 1e3), (120.0, "s", 1.0))
"""The seconds below which a unit is used, and how many of the unit make a second."""


def out() -> Console:
    """Where results go."""
    return Console(file=sys.stdout, highlight=False)


def err() -> Console:
    """Where progress, hints and errors go."""
    return Console(file=sys.stderr, highlight=False)


def say(line: str, *, style: str = "", where: Console | None = None) -> None:
    """One note: wrapped between words on a terminal, otherwise on one line."""
    console = where if where is not None else err()
    console.print(Text(harmless(line), style=style), soft_wrap=not console.is_terminal)


def heading(title: str) -> None:
    """A line with the name of what follows."""
    out().print(Rule(Text(harmless(title), style="bold"), align="left", style="dim"))


def quote(said: str, *, by: str = "", style: str = "") -> None:
    """What somebody said, indented: wrapped between words on a terminal, otherwise in its own lines."""
    console, text = out(), Text.assemble((harmless(by), "bold"), (harmless(said), style))
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, 2)))
    else:
        console.print(Text(textwrap.indent(text.plain, "  ")), soft_wrap=True)


def short(name: str) -> str:
    """An id for display. A long one is cut to a prefix, which every command understands."""
    return name if len(name) <= _WHOLE_ID else name[:_SHORT_ID]


def print_json(value: object) -> None:
    """`value` as indented JSON on standard output: dataclasses as objects, messages in OpenAI's style."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=_plain) + "\n")


def show(value: Shown, *, as_json: bool = False) -> None:
    """Print a value as it shows itself in a terminal, without the name of its class, or as JSON."""
    if as_json:
        print_json(value)
    else:
        sheet = replace(value._sheet(), kind="")  # noqa: SLF001 - as it shows itself, but for its class
        out().print(Text(for_a_shell(as_text(sheet))), soft_wrap=True)


def for_a_shell(told: str) -> str:
    """A text with commands instead of a memory's verbs."""
    return _VERB.sub(lambda found: f"`tiered-memory {_COMMANDS[found[1]]}`", told)


def tell(*blocks: Block) -> None:
    """Print tables and other blocks as values show them."""
    out().print(Text(f"\n{blocks_as_text(blocks)}"), soft_wrap=True)


def _plain(value: object) -> Any:  # noqa: ANN401 - anything that JSON has
    from langchain_core.messages import BaseMessage, convert_to_openai_messages  # noqa: PLC0415 - slow to import

    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, BaseMessage):
        return {"id": value.id, **convert_to_openai_messages([value])[0]}
    if isinstance(value, set | frozenset):
        return sorted(value)
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)


@contextmanager
def progress(description: str, total: int, *, is_drawn: bool = True) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error while the block runs. Call the value once per step.

    On a terminal, the bar disappears when it is done. Elsewhere, nothing is drawn.
    """
    with _bar(description, total, is_drawn=is_drawn) as (bar, task):
        yield lambda: bar.advance(task)


@contextmanager
def far(description: str) -> Iterator[Callable[[How], None]]:
    """As `progress`, for a check or repair that reports its progress."""
    with _bar(description, None) as (bar, task):
        yield lambda how: bar.update(task, description=f"{description}: {how.step}", completed=how.done, total=how.of)


@contextmanager
def waiting(description: str) -> Iterator[None]:
    """As `progress`, for work that cannot report its progress."""
    console = err()
    with console.status(description) if console.is_terminal else nullcontext():
        yield


class _Rate(ProgressColumn):
    """Steps per second, or seconds per step."""

    def render(self, task: Task) -> Text:
        speed = task.speed
        if not speed:
            return Text("")
        return Text(
            f"{speed:,.0f}/s" if speed >= _SLOW else f"{speed:.1f}/s" if speed >= 1 else f"{1 / speed:.1f} s each"
        )


@contextmanager
def _bar(description: str, total: int | None, *, is_drawn: bool = True) -> Iterator[tuple[Progress, TaskID]]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(compact=True),
    )
    console = err()
    with Progress(*columns, console=console, transient=True, disable=not (is_drawn and console.is_terminal)) as bar:
        yield bar, bar.add_task(description, total=total)


def duration(seconds: float) -> str:
    """`seconds` in a readable form."""
    for limit, unit, factor in _UNITS:
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds / 60:.1f} min"


@contextmanager
def written(path: Path | None) -> Iterator[IO[str]]:
    """The file to write to, for its owner only. It gets its name only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    part = path.with_name(f"{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        create_file(part, PRIVATE)
        with part.open("w", encoding="utf-8") as file:
            yield file
        part.replace(path)
    except OSError as error:
        if error.filename == str(part):
            error.filename = str(path)  # the name that was asked for
        raise
    finally:
        part.unlink(missing_ok=True)
