"""A sheet: what a value shows, as a line and a few blocks. One renderer turns it into HTML, another into text.

So a notebook and a terminal cannot disagree, and no value writes its own HTML. Everything in a sheet is plain,
untrusted text; the renderers make it harmless.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Cell: TypeAlias = str | int | float | None
"""A cell of a table. Numbers are right-aligned, and `None` is a dash."""

COLOURS = {
    "system": "#8a8a8a", "goal": "#d55e00", "pinned": "#cc79a7", "history": "#0072b2", "facts": "#56b4e9",
    "parts": "#009e73", "files": "#8c9f2f", "recent": "#e69f00", "parent": "#b07aa1", "recall": "#e8d33f",
    "safe": "#009e73", "warning": "#e69f00", "danger": "#d55e00", "critical": "#c2277c",
    "hot": "#d55e00", "warm": "#e69f00", "cold": "#0072b2",
}  # fmt: skip
"""Colours by section, zone and tier: Okabe and Ito's palette, which colour-blind people can tell apart, on light and
dark."""
SPARE_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c9f2f", "#8a8a8a")

_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""What controls a terminal or reverses a text: escape sequences, direction marks, halves of surrogate pairs."""
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a bar."""

    name: str
    amount: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Amounts side by side, in order."""

    caption: str
    parts: tuple[Part, ...]
    total: float = 0.0
    """The amount that the whole width stands for, or the sum of the parts if that is more."""
    unit: str = "tokens"
    is_named_below: bool = False
    """Whether a table with the same colours follows and names the parts."""

    @property
    def width(self) -> float:
        """What the whole width stands for."""
        return max(self.total, sum(part.amount for part in self.parts)) or 1.0

    def sums(self) -> dict[str, float]:
        """The total of each name over its parts."""
        found: dict[str, float] = {}
        for part in self.parts:
            found[part.name] = found.get(part.name, 0) + part.amount
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headings."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: int = 0
    """How many further rows are not shown."""
    colours: tuple[str, ...] = ()
    """Colours of the rows, if a bar has them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One line of a tree, and the lines below it."""

    label: str
    detail: str = ""
    text: str = ""
    children: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Lines that can be opened to show what is below them."""

    caption: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A text exactly as somebody said it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Two texts, line against line."""

    caption: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks that open on request. A terminal leaves them out."""

    caption: str
    blocks: tuple[Block, ...]


def shallow(tree: Tree, most: int) -> Tree:
    """As many levels from the top as fit into `most` lines. What is below them is counted."""
    row, depth, lines = list(tree.nodes), 0, 0
    while row and lines + len(row) <= most:
        depth, lines, row = depth + 1, lines + len(row), [child for node in row for child in node.children]
    nodes = tuple(_cut(node, max(depth, 1)) for node in tree.nodes[:most])
    rest = (Node(label=f"... and {len(tree.nodes) - most:,} more"),) if len(tree.nodes) > most else ()
    return Tree(caption=tree.caption, nodes=(*nodes, *rest))


def _cut(node: Node, depth: int) -> Node:
    if depth > 1 or not node.children:
        return replace(node, children=tuple(_cut(child, depth - 1) for child in node.children))
    return replace(node, detail=f"{node.detail} ({len(node.children):,} below)", children=())


Block: TypeAlias = Bar | Table | Tree | Words | Changes | Fold


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What a value shows."""

    about: str
    """The rest of its line."""
    kind: str = ""
    """The value's class, such as `Context`."""
    notes: tuple[str, ...] = ()
    """One sentence each."""
    blocks: tuple[Block, ...] = ()

    @property
    def line(self) -> str:
        """The value on one short line."""
        return f"<{self.kind} {brief(self.about, 100)}>"


def harmless(text: str) -> str:
    """`text` without what controls a terminal or cannot be written."""
    return _UNSHOWN.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def brief(text: str, characters: int) -> str:
    """`text` on one line, cut to a number of characters."""
    flat = _SPACES.sub(" ", harmless(text[: 4 * characters])).strip()
    is_cut = len(flat) > characters or len(text) > 4 * characters
    return f"{flat[: characters - 1].rstrip()}\u2026" if is_cut else flat


def number(amount: float) -> str:
    """An amount in a readable form."""
    return f"{amount:,.0f}" if float(amount).is_integer() or abs(amount) >= 100 else f"{amount:,.3g}"  # noqa: PLR2004


def percent(share: float) -> str:
    """A share of one."""
    return f"{share:.0%}".replace("%", " %")


def plural(count: int, noun: str) -> str:
    """`count` and its noun."""
    if count == 1:
        return f"1 {noun}"
    ending = "ies" if noun.endswith("y") else "s"
    return f"{count:,} {noun[:-1] if ending == 'ies' else noun}{ending}"


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[tuple[Cell, ...]],
    *,
    most: int = 50,
    of: int | None = None,
    colours: Sequence[str] = (),
) -> Table:
    """A table of at most `most` rows. If `rows` has only the first ones, `of` says how many there are."""
    kept = tuple(rows)
    return Table(
        caption=caption,
        columns=tuple(columns),
        rows=kept[:most],
        more=(of if of is not None else len(kept)) - min(len(kept), most),
        colours=tuple(colours[:most]),
    )


def moment(seconds: float) -> str:
    """A time of ours in UTC, in a readable form."""
    import datetime as dt  # noqa: PLC0415 - only where it is shown

    return f"{dt.datetime.fromtimestamp(seconds, tz=dt.UTC):%Y-%m-%d %H:%M}"
