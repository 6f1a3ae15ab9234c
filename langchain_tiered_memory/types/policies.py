"""By which policy a context was filled: the mode of its request, and the room of each section."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

ModeName: TypeAlias = Literal["recall", "minimal", "asked", "files", "loop", "question", "talk"]
"""What a request can be. Several may hold; the first of them, in this order, names it."""

Share: TypeAlias = Literal["the budget", "the rest", "the view"]
"""What a share is of: all of it; what system prompt and tools leave; what recall leaves of that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """What a request is: read once, from the view, the query, the tools and the newest messages."""

    names: tuple[ModeName, ...]
    """All that hold, in their order."""
    reason: str
    """Why it is the first of them, in a sentence."""
    looks_up: bool = False
    """Whether something is looked up: the caller's query, or what the user said last."""
    shows_parts: bool = False
    """Whether parts of files may stand in the view: one of the newest messages read or wrote a file."""

    @property
    def name(self) -> ModeName:
        """The first that holds."""
        return self.names[0]

    def __contains__(self, name: ModeName) -> bool:
        """Whether it holds."""
        return name in self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """The room of one section."""

    section: str
    """As in `Context.sections`."""
    share: float
    """The most that it takes, as a share ..."""
    of: Share
    """... of this."""
    most: int | None = None
    """Tokens that bind where the share is more."""
    least: int = 0
    """Tokens that hold where the share is less."""
    stands: Literal["plan", "request"] = "plan"
    """`plan`: until the view is condensed again. `request`: chosen for this request."""
    gives_way: int = 0
    """When it gives up room where not all fits, 1 first; 0: never, it is cut head and tail at the last."""
    about: str = ""
    tokens: int = 0
    """The most that it takes here, by our own count: `Section.cap`."""

    def within(self, whole: int) -> int:
        """Tokens of the share of `whole`, within the bounds."""
        wanted = max(round(self.share * whole), self.least)
        return max(wanted if self.most is None else min(wanted, self.most), 0)

    def allowing(self, tokens: int) -> PolicyRow:
        """The row with the tokens that bind."""
        return replace(self, tokens=max(tokens, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPolicy:
    """How much room each section of a context has, and why. `print` it."""

    mode: Mode
    total: int
    """Of the request, by our own count: the budget, divided by what calibration learnt of the model."""
    fixed: int
    """System prompt and tool schemas."""
    rows: tuple[PolicyRow, ...]

    def __iter__(self) -> Iterator[PolicyRow]:
        """The rows, in the order of the sections."""
        return iter(self.rows)

    def telling(self, **tokens: int) -> ViewPolicy:
        """With what binds in the end, by section."""
        rows = tuple(row.allowing(tokens.get(row.section, row.tokens)) for row in self.rows)
        return replace(self, rows=rows)

    def row(self, section: str) -> PolicyRow:
        """The row of a section."""
        found = next((row for row in self.rows if row.section == section), None)
        if found is None:
            raise KeyError(section)
        return found

    def __str__(self) -> str:
        """The table, a line for each section."""
        named = " and ".join(self.mode.names)
        lines = [f"{named}: {self.mode.reason}. {self.total:,} tokens, {self.fixed:,} of them fixed."]
        width = max(len(row.section) for row in self.rows)
        for row in self.rows:
            way = f"gives way at step {row.gives_way}" if row.gives_way else "stays"
            share = f"{row.share:.1%} of {row.of}"
            lines.append(f"{row.section:{width}} {row.tokens:>9,}  {share:22} {row.stands:7}  {way:19}  {row.about}")
        return "\n".join(lines)
