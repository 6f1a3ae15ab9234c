"""A sheet as text for a terminal of 80 columns, laid out by rich. It has no colour, so it reads the same in a log."""

from __future__ import annotations

import io
import re
import textwrap
from typing import TYPE_CHECKING, assert_never

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text
from rich.tree import Tree as Lines

from langchain_tiered_memory.display.as_html import changed_lines
from langchain_tiered_memory.display.sheet import (
    Bar,
    Block,
    Cell,
    Changes,
    Fold,
    Node,
    Sheet,
    Table,
    Tree,
    Words,
    harmless,
    number,
    shallow,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


WIDTH = 80
_WORDS_SHOWN = 1200
"""Characters of one text."""
_GAP = re.compile(r"\n{3,}")
_LINES_SHOWN = 60
"""Lines of a tree and of a difference."""
_STAYS = "\u00a0"
"""A space at which no line breaks."""


def as_text(sheet: Sheet) -> str:
    """Lines of at most 80 columns, without an empty one at the end."""
    head = _printed([_said(f"{sheet.kind} {sheet.about}".lstrip()), *(_indented(note) for note in sheet.notes)])
    return "\n\n".join([head, *([blocks_as_text(sheet.blocks)] if sheet.blocks else [])]).rstrip()


def blocks_as_text(blocks: Iterable[Block]) -> str:
    """The same for blocks only."""
    return _printed(one for block in blocks for line in _block(block) for one in (line, ""))


def _printed(parts: Iterable[RenderableType]) -> str:
    to = io.StringIO()
    console = Console(
        file=to, width=WIDTH, color_system=None, force_terminal=False, force_jupyter=False, highlight=False, emoji=False
    )
    for part in parts:
        console.print(part)
    return _GAP.sub("\n\n", "\n".join(line.rstrip() for line in to.getvalue().rstrip().split("\n")))


def _indented(text: str) -> Padding:
    return Padding(_said(text), (0, 0, 0, 2))


def _said(text: str) -> Text:
    return Text(harmless(text))


def _block(block: Block) -> Iterator[RenderableType]:
    match block:
        case Bar():
            yield _bar(block)
        case Table():
            rest = (_said(f" and {block.more:,} more"),) if block.more > 0 else ()
            yield Group(_grid(block), *rest)
        case Tree():
            root = Lines(_said(block.caption))
            _hang(root, shallow(block, _LINES_SHOWN).nodes)
            yield root
        case Words():
            more = f"\n... and {len(block.text) - _WORDS_SHOWN:,} more characters"
            yield Padding(_said(block.text[:_WORDS_SHOWN] + (more if len(block.text) > _WORDS_SHOWN else "")), (0, 2))
        case Changes():
            lines = [f"{sign} {line}" for sign, line in changed_lines(block)]
            more = f"... and {len(lines) - _LINES_SHOWN:,} more lines"
            shown = [*lines[:_LINES_SHOWN], more] if len(lines) > _LINES_SHOWN else lines
            yield _said("\n".join([block.caption, *shown]))
        case Fold():
            return
        case _:
            assert_never(block)


def _bar(bar: Bar) -> Text:
    """Each part as its own letter, and the rest of the width as dots. The parts are named below."""
    room = WIDTH - 2
    drawn, used, letters = "", 0.0, _letters(bar)
    for part, letter in zip(bar.parts, letters, strict=True):
        used += part.amount
        drawn += letter * (max(round(used / bar.width * room), len(drawn) + (part.amount > 0)) - len(drawn))
    own = {part.name: letter for part, letter in zip(bar.parts, letters, strict=True)}
    named = [f"{own[name]} {name} {number(amount)}".replace(" ", _STAYS) for name, amount in bar.sums().items()]
    legend = textwrap.fill(f"{', '.join(named)} {bar.unit}", WIDTH).replace(_STAYS, " ")
    return _said(f"{bar.caption}\n[{drawn[:room].ljust(room, '.')}]\n{legend}")


def _letters(bar: Bar) -> list[str]:
    """A letter of its name for each part, unique while there are any left. The same name has the same letter."""
    known: dict[str, str] = {}
    for part in bar.parts:
        free = (letter for letter in (*part.name.lower(), *part.name.upper(), *"0123456789"))
        known.setdefault(part.name, next((one for one in free if one.isalnum() and one not in known.values()), "#"))
    return [known[part.name] for part in bar.parts]


def _grid(block: Table) -> Grid:
    grid = Grid(title=_said(block.caption), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, title_style="")
    for place, name in enumerate(block.columns):
        is_number = any(isinstance(row[place], int | float) for row in block.rows)
        grid.add_column(_said(name), overflow="fold", justify="right" if is_number else "left", no_wrap=is_number)
    for row in block.rows:
        grid.add_row(*map(_cell, row))
    return grid


def _cell(value: Cell) -> Text:
    return _said("-" if value is None or value == "" else value if isinstance(value, str) else number(value))


def _hang(above: Lines, nodes: tuple[Node, ...]) -> None:
    for node in nodes:
        _hang(above.add(_said(f"{node.label}  {node.detail}".rstrip())), node.children)
