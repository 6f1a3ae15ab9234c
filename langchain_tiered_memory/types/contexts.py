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
