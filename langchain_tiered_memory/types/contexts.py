"""What a context is made of, and the policy by which it was filled. Frozen values, as in `records`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_tiered_memory.display.shown import Shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.types.outcomes import GuardReport
    from langchain_tiered_memory.types.records import LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a line of a context comes from, if that is another session of the same user."""

    session_id: str
    message_ids: tuple[str, ...]
    fact_id: str | None = None
    """The fact that the line states. `None` if the line quotes a message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Section(Shown, sheet="contexts.section"):
    """One part of a context, and its account."""

    name: str
    """Such as `goal`, `history`, `facts`, `recent` or `recall`."""
    tokens: int
    cap: int
    """The most tokens that it may take."""
    entry_ids: tuple[str, ...] = ()
    """Ids of the messages that it shows whole."""
    passage_ids: tuple[str, ...] = ()
    """Ids of the messages that it shows in part."""
    summary_ids: tuple[str, ...] = ()
    """Ids of the summaries that it shows."""
    left_out: tuple[LeftOut, ...] = ()
    """What it does not show, and why."""
    text: str = ""
    """The text that the memory wrote for it. Empty for messages that stand in their own place."""
    sources: tuple[Source, ...] = ()
    """Where each line comes from, in a section about the user's other sessions."""
    not_shown: int = 0
    """In the section `history`, how many messages a line only names. These are messages that are not condensed yet and
    have no room, and those whose summary also covers another branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """The messages under a summary, quoted within a budget."""

    text: str = ""
    """Fenced quotes with their dates. Empty if not even the beginning of a message fits."""
    tokens: int = 0
    """Tokens of `text`."""
    message_ids: tuple[str, ...] = ()
    """Ids of the messages that it quotes whole."""
    passage_ids: tuple[str, ...] = ()
    """Ids of the messages that it quotes by their beginning and end."""
    left_out: tuple[LeftOut, ...] = ()
    """Messages that did not fit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Context(Shown, sheet="contexts.context"):
    """The context of one model call: the messages to send, and an account of them."""

    messages: list[BaseMessage]
    """The messages to send, valid for any provider."""
    tokens: int
    """Tokens of the whole request: system prompt, tool schemas and messages. Calibrated if the model is known."""
    raw_tokens: int
    """The same without calibration."""
    max_tokens: int
    """The budget that it was made for, in tokens."""
    sections: tuple[Section, ...]
    entry_ids: tuple[str, ...]
    """Ids of the messages that it shows whole, in their place or quoted."""
    passage_ids: tuple[str, ...]
    """Ids of the messages that it shows in part."""
    summary_ids: tuple[str, ...]
    """Ids of the summaries that it shows."""
    repairs: tuple[str, ...]
    """What the memory repaired to make the messages valid for a provider. Empty for a healthy history."""
    stable_messages: int
    """How many of `messages`, from the front, stay the same, byte for byte, until the next condensation."""
    guard: GuardReport
    """The window, its zone, and what was done to make the request fit."""
    policy: ViewPolicy
    """The kind of request, and how much room each section has. `print(context.policy)` shows it as a table."""

    def section(self, name: str) -> Section | None:
        """The section of that name, or `None` if the context has none."""
        return next((section for section in self.sections if section.name == name), None)


ModeName: TypeAlias = Literal["recall", "minimal", "asked", "files", "loop", "question", "talk"]
"""The modes of a request. Several can apply; the first one in this order names the request."""

Share: TypeAlias = Literal["the budget", "the rest", "the view"]
"""What a share refers to: the whole budget, what system prompt and tools leave, or what recall leaves of that."""

MARGIN_TOKENS = 8
"""Tokens kept free for a message's framing and for rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """The kind of a request, judged by the view, the query, the tools and the newest messages."""

    names: tuple[ModeName, ...]
    """All modes that apply, in order."""
    reason: str
    """Why the first of them applies, in a sentence."""
    looks_up: bool = False
    """Whether recall looks something up: the caller's query, or what the user said last."""
    shows_parts: bool = False
    """Whether the view may show parts of files, because one of the newest messages read or wrote a file."""

    @property
    def name(self) -> ModeName:
        """The first mode that applies."""
        return self.names[0]

    def __contains__(self, name: ModeName) -> bool:
        """Whether a mode applies."""
        return name in self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRow:
    """The room of one section."""

    section: str
    """As in `Context.sections`."""
    share: float
    """The most that it takes, as a share of `of`."""
    of: Share
    """What `share` refers to."""
    most: int | None = None
    """The most tokens, even if the share is more."""
    least: int = 0
    """The fewest tokens, even if the share is less."""
    stands: Literal["plan", "request"] = "plan"
    """`plan`: it stays until the view is condensed again. `request`: it is chosen for this request."""
    gives_way: int = 0
    """The step at which it gives up room if not everything fits, from 1. At 0 it never does; it is cut last of all."""
    about: str = ""
    """What the section holds, in words."""
    tokens: int = 0
    """The most tokens that it takes in this request, uncalibrated: `Section.cap`."""

    def within(self, whole: int) -> int:
        """The tokens that `share` of `whole` comes to, within `least` and `most`."""
        wanted = max(round(self.share * whole), self.least)
        return max(wanted if self.most is None else min(wanted, self.most), 0)

    def allowing(self, tokens: int) -> PolicyRow:
        """The row with these tokens, at least 0."""
        return replace(self, tokens=max(tokens, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPolicy:
    """How much room each section of a context has, and why. `print` shows it as a table.

    All figures are uncalibrated tokens. The fields after `rows` break a row down.
    """

    mode: Mode
    total: int
    """Tokens of the whole request: the budget, divided by what calibration learnt about the model."""
    fixed: int
    """Tokens of system prompt and tool schemas."""
    rows: tuple[PolicyRow, ...]
    recall: int
    """Reserved for recall and the registered sections beside it."""
    sections: int = 0
    """The part of `recall` for registered sections."""
    spared: int = 0
    """The part of its share that recall does not get beside file work. The view grows into it. A condensation leaves it
    empty, because its content would be sent again, uncached, at each condensation."""
    cover: int
    """The part of `history` for summaries."""
    defended: int
    """What summaries keep if facts that must last have no room beside them, also beside file work."""
    least_facts: int
    """What facts keep if required messages do not fit beside them."""
    least_cover: int
    """The same for summaries."""
    queries: int
    """The part of `history` for earlier user messages behind the summaries."""
    record: int
    """For summaries and facts together, if a fact that must last does not fit among the facts."""
    keep: int
    """The room of recent messages without file work. It decides when a view is condensed."""
    stays: int
    """What remains of the recent messages after a condensation."""
    recent_least: int
    """What recent messages get in any case."""
    code: int
    """The part of `recall` for code and tool output."""
    summaries: int
    """The part of `recall` for summaries."""
    quotes_queries: bool = True
    """Whether earlier user messages are quoted. They are not if a registered section takes their place."""

    @property
    def hard(self) -> int:
        """The most that everything except recall may take, with system prompt and tools."""
        return self.total - self.recall

    @property
    def is_full(self) -> bool:
        """Whether system prompt and tools leave no room for a message."""
        return self.fixed > self.total - MARGIN_TOKENS

    @property
    def figures(self) -> tuple[int, ...]:
        """All figures without the mode. If they are equal, so is what the sections show."""
        return self.total, self.fixed, self.recall, self.spared, *(row.tokens for row in self)

    def of(self, section: str) -> int:
        """The most tokens that a section takes."""
        return self.row(section).tokens

    def without_recall(self) -> ViewPolicy:
        """The same with the room of recall given to the view: a history that fits is shown whole."""
        return replace(self, recall=self.sections).telling(recent=self.total - self.sections - self.fixed)

    def __iter__(self) -> Iterator[PolicyRow]:
        """The rows, in the order of the sections."""
        return iter(self.rows)

    def telling(self, **tokens: int) -> ViewPolicy:
        """The same with the tokens given here, by section."""
        if not tokens:
            return self
        rows = (row.allowing(tokens[row.section]) if row.section in tokens else row for row in self.rows)
        return replace(self, rows=tuple(rows))

    def row(self, section: str) -> PolicyRow:
        """The row of a section."""
        found = next((row for row in self.rows if row.section == section), None)
        if found is None:
            raise KeyError(section)
        return found

    def __str__(self) -> str:
        """The policy as a table with a line for each section."""
        named = " and ".join(self.mode.names)
        lines = [f"{named}: {self.mode.reason}. {self.total:,} tokens, {self.fixed:,} of them fixed."]
        width = max(len(row.section) for row in self.rows)
        for row in self.rows:
            way = f"gives way at step {row.gives_way}" if row.gives_way else "stays"
            share = f"{row.share:.1%} of {row.of}"
            lines.append(f"{row.section:{width}} {row.tokens:>9,}  {share:22} {row.stands:7}  {way:19}  {row.about}")
        return "\n".join(lines)
