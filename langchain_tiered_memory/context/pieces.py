"""The messages of a request, each with the part it belongs to and what it shows: whole, shortened, or written by us."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_tiered_memory.messages.content_blocks import with_told_blocks
from langchain_tiered_memory.messages.message_repairs import with_words_beside, without_reasoning
from langchain_tiered_memory.messages.showing import (
    message_or_stand_in,
    pointer_to,
    with_joined_texts,
    with_shorter_calls,
    with_told_calls,
)
from langchain_tiered_memory.text.truncation import shorten_message

if TYPE_CHECKING:
    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.types.records import Entry

MARK = "tiered_memory"
"""Key in `additional_kwargs` of messages that this package wrote."""
OVERHEAD_TOKENS = 40
"""Of a masked output, besides what is kept of its text: the pointer, and the framing of the message."""


Part: TypeAlias = Literal[
    "system", "goal", "pinned", "history", "facts", "parts", "files", "recent", "parent", "recall"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One message of the request, the part it belongs to, and what it shows."""

    part: Part
    message: BaseMessage
    tokens: int
    entry: Entry | None = None
    """The entry that stands in it as itself."""
    quoted: tuple[Entry, ...] = ()
    """Entries quoted in it whole."""
    passages: tuple[Entry, ...] = ()
    """Entries of which a part is quoted in it, or shown."""
    left_out: tuple[Entry, ...] = ()
    """Entries that there was no room to quote in it."""
    summary_ids: tuple[str, ...] = ()
    text: str = ""
    """What it says, where the text is ours."""
    damaged: str | None = None
    """Why its entry cannot be read, where another message stands in for it."""
    stands_in: Entry | None = None
    """The entry above that says what its own says, where only a line stands here that leads there."""

    @property
    def whole_entries(self) -> tuple[Entry, ...]:
        """Entries whose whole text is in it."""
        return self.quoted if self.entry is None or self.entry in self.passages else (self.entry, *self.quoted)


def system_message(system: str | BaseMessage | None) -> BaseMessage | None:
    """The request's own system prompt as a message."""
    if system is None or (isinstance(system, str) and not system):
        return None
    return SystemMessage(system) if isinstance(system, str) else system


def shown(entry: Entry, *, part: Part = "recent") -> Piece:
    """An entry as it was; where it cannot be read, a message that says so."""
    message, damaged = message_or_stand_in(entry)
    if damaged is None:
        return Piece(part=part, message=message, tokens=entry.tokens, entry=entry)
    # Nobody counts here: bytes are never fewer than tokens.
    most = len(str(message.content).encode("utf-8", "replace"))
    return Piece(part=part, message=message, tokens=most, entry=entry, passages=(entry,), damaged=damaged)


def shortened(
    entry: Entry, *, max_tokens: int, counter: TokenCounter, expands: bool = False, part: Part = "recent"
) -> Piece:
    """An entry within `max_tokens`: whole where it fits, else head and tail around a line that says what is left out.

    Where who reads it has a tool that `expands`, the line says how to get at it.

    Media that there is no room for are described in a line, blocks with words that cannot be cut become texts, and
    arguments of calls are shortened. Reasoning, of which nobody takes a part, leaves before the words do.
    """
    if entry.tokens <= max_tokens:
        return shown(entry, part=part)
    message, damaged = message_or_stand_in(entry)
    message, count = with_words_beside(message), counter.count_text
    pointer = pointer_to(entry, expands=expands)

    def framing(of: BaseMessage) -> int:
        return counter.count_message(shorten_message(of, max_tokens=0, count=count))

    if framing(message) > max_tokens and entry.calls:
        excess = framing(message) - max_tokens
        message = with_shorter_calls(message, excess_tokens=excess, count=count, pointer=pointer)
    if framing(message) > max_tokens:
        message = without_reasoning(message)
    message = with_told_blocks(message, fits=lambda one: framing(one) <= max_tokens)
    if framing(message) > max_tokens and entry.calls:
        excess = framing(message) - max_tokens
        message = with_told_calls(message, excess_tokens=excess, count=count, pointer=pointer)
    room = max(0, max_tokens - framing(message))
    cut = shorten_message(with_joined_texts(message, room=room), max_tokens=room, count=count, pointer=pointer)
    return Piece(
        part=part, message=cut, tokens=counter.count_message(cut), entry=entry, passages=(entry,), damaged=damaged
    )


def ours(text: str, *, part: Part, counter: TokenCounter, **shows: Any) -> Piece:  # noqa: ANN401 - fields of `Piece`
    """A message of ours, told from the user's by a mark that no provider is sent."""
    message = HumanMessage(text, additional_kwargs={MARK: {"part": part}})
    return Piece(part=part, message=message, tokens=counter.count_message(message), text=text, **shows)
