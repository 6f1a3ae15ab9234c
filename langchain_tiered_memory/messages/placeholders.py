"""What stands in a view for a stored message that cannot be read: its role, its name, and what search knows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.messages.codec import decode

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Entry

_QUOTED_CHARS = 400
"""Of the text that was derived from it before it was damaged."""


def message_or_stand_in(entry: Entry) -> tuple[BaseMessage, str | None]:
    """The stored message, or one that says that it is damaged; and why, where it is."""
    try:
        return decode(entry.payload), None
    except UnknownMessageError as error:
        return _stand_in(entry), str(error)


def _stand_in(entry: Entry) -> BaseMessage:
    text = f"[message {entry.id} is damaged in the memory's database and cannot be shown as it was"
    if entry.text:
        dots = "\u2026" if len(entry.text) > _QUOTED_CHARS else ""
        text += f"; search knows of it: {entry.text[:_QUOTED_CHARS]}{dots}"
    text += "]"
    if entry.role == "tool" and entry.answers:
        return ToolMessage(text, tool_call_id=entry.answers, id=entry.id)
    if entry.role == "assistant":
        return AIMessage(text, id=entry.id)
    return SystemMessage(text, id=entry.id) if entry.role == "system" else HumanMessage(text, id=entry.id)
