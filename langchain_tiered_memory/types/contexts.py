"""What a context is made of: the nouns of the view that a model is shown. Frozen values, as in `records`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.display.shown import Shown

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.types.outcomes import GuardReport
    from langchain_tiered_memory.types.policies import ViewPolicy
    from langchain_tiered_memory.types.records import LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a line of a context rests on that stands in another session of the same user."""

    session_id: str
    message_ids: tuple[str, ...]
    fact_id: str | None = None
    """The fact that the line tells; `None` where it quotes a message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Section(Shown, sheet="contexts.section"):
    """One part of a context, and its account."""

    name: str
    tokens: int
    cap: int
    """The most it was allowed."""
    entry_ids: tuple[str, ...] = ()
    passage_ids: tuple[str, ...] = ()
    summary_ids: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    text: str = ""
    """What the section says, where it is a text of ours; empty for messages shown in their own place."""
    sources: tuple[Source, ...] = ()
    """Of a section that tells of the user's other sessions: what each of its lines rests on."""
    not_shown: int = 0
    """Of the section `history`: messages that a line names and nothing tells of. Few: those that are not condensed yet
    and have no room, or whose summary also stands for another branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What a summary stands for, read again within a budget."""

    text: str = ""
    """Fenced quotes with their dates; empty where not even the beginning of a message fits."""
    tokens: int = 0
    """Of `text`."""
    message_ids: tuple[str, ...] = ()
    """Messages that are quoted whole."""
    passage_ids: tuple[str, ...] = ()
    """Messages that are quoted head and tail."""
    left_out: tuple[LeftOut, ...] = ()
    """Messages that found no room."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Context(Shown, sheet="contexts.context"):
    """What one model call gets."""

    messages: list[BaseMessage]
    """Valid for any provider."""
    tokens: int
    """Of the whole request: system prompt, tool schemas and messages; calibrated for the model, if it is known."""
    raw_tokens: int
    """The same before calibration."""
    max_tokens: int
    sections: tuple[Section, ...]
    entry_ids: tuple[str, ...]
    """Messages whose whole text stands in it, in their place or quoted."""
    passage_ids: tuple[str, ...]
    """Messages of which only a passage stands in it."""
    summary_ids: tuple[str, ...]
    repairs: tuple[str, ...]
    """What had to be mended to make the sequence valid for a provider; empty on a healthy history."""
    stable_messages: int
    """How many of `messages`, from the front, stay byte for byte until the next condensation."""
    guard: GuardReport
    """The window, its zone, and what was done to make the request fit."""
    policy: ViewPolicy
    """What the request is, and how much room each section has: `print(context.policy)`."""

    def section(self, name: str) -> Section | None:
        """The section of that name, or `None` where the context has none."""
        return next((section for section in self.sections if section.name == name), None)
