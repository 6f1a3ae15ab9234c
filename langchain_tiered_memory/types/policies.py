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

_MARGIN_TOKENS = 8
"""Framing of a message and rounding, kept free."""


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
    """How much room each section of a context has, and why. `print` it.

    All figures are tokens by our own count. The fields behind `rows` say what a row is made of, or what is kept of it.
    """

    mode: Mode
    total: int
    """Of the request, by our own count: the budget, divided by what calibration learnt of the model."""
    fixed: int
    """System prompt and tool schemas."""
    rows: tuple[PolicyRow, ...]
    recall: int
    """Set aside for recall and the registered sections beside it."""
    sections: int = 0
    """Of that, for registered sections."""
    spared: int = 0
    """What recall was not given of its share beside file work: a view grows into it, and is filled as if it were taken.
    Filled too, it would be sent anew at each condensation."""
    cover: int
    """Of `history`, for summaries."""
    defended: int
    """What summaries keep where messages that must be shown do not fit, also beside work on files."""
    queries: int
    """Of `history`, for earlier user messages behind them."""
    record: int
    """For summaries and facts together, where a fact that must last has no room among the facts."""
    keep: int
    """What settles when and over what a view is condensed: of recent messages, without file work."""
    stays: int
    """What remains of the recent messages after a condensation of the view."""
    recent_least: int
    """What recent messages have in any case."""
    code: int
    """Of `recall`, for code and tool output."""
    summaries: int
    """Of `recall`, for summaries."""
    quotes_queries: bool = True
    """Whether earlier user messages are quoted: not where a registered section is in their place."""

    @property
    def hard(self) -> int:
        """The most that everything but recall may take, system prompt and tools included."""
        return self.total - self.recall

    @property
    def is_full(self) -> bool:
        """Whether system prompt and tools alone leave no room for a message."""
        return self.fixed > self.total - _MARGIN_TOKENS

    @property
    def figures(self) -> tuple[int, ...]:
        """All rooms, whatever the mode: where they are the same, so is what stands in them."""
        return self.total, self.fixed, self.recall, self.spared, *(row.tokens for row in self)

    def of(self, section: str) -> int:
        """The most that a section takes."""
        return self.row(section).tokens

    def without_recall(self) -> ViewPolicy:
        """With recall's room given to the view: a history that fits is shown whole."""
        return replace(self, recall=self.sections).telling(recent=self.total - self.sections - self.fixed)

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
