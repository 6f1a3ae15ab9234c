"""Makes LangChain messages of what files say: a speaker and a text, an OpenAI-style dict, or our own export."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, messages_from_dict

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.messages.codec import coerce, decode

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROLES: dict[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "human": HumanMessage,
    "assistant": AIMessage,
    "ai": AIMessage,
    "system": SystemMessage,
    "developer": SystemMessage,
}
_NOT_IN_A_NAME = re.compile(r"[^\w-]+")
_LONGEST_NAME = 64
_KEPT_KEYS = ("role", "name", "id", "tool_calls", "tool_call_id", "status", "artifact")


def provider_name(speaker: str) -> str | None:
    """`speaker` as a message's `name`, which providers want without spaces and signs; `None` if nothing is left.

    Letters and digits of any script, `_` and `-`, at most 64: what the OpenAI API takes, the strictest of them.
    """
    return _NOT_IN_A_NAME.sub("_", speaker.strip()).strip("_")[:_LONGEST_NAME] or None


def spoken(speaker: str, text: str, *, message_id: str) -> BaseMessage:
    """The message of somebody who says `text`.

    A `user` or `assistant` becomes that. Anybody else is a person: a chat of two people is human messages with names.
    """
    role = _ROLES.get(speaker.strip().lower())
    if role is not None:
        return role(content=text, id=message_id)
    return HumanMessage(content=text, id=message_id, name=provider_name(speaker))


def message_of(row: Mapping[str, Any]) -> BaseMessage:
    """The message of an OpenAI-style dict, of LangChain's `{"type": ..., "data": ...}`, or of our export.

    Of an OpenAI-style dict only what makes the message is read: files keep times, models and remarks beside it.
    """
    if {"v", "class", "fields"} <= row.keys():
        return decode(json.dumps(row))
    if "role" not in row:
        try:
            return messages_from_dict([dict(row)])[0]
        except (ValueError, TypeError, KeyError) as error:
            msg = f"this cannot be taken for a message: {type(error).__name__}: {error}"
            raise InvalidInputError(msg) from error
    kept = {key: row[key] for key in _KEPT_KEYS if row.get(key) is not None} | {"content": row.get("content") or ""}
    if row.get("is_error"):
        kept["status"] = "error"
    if kept["role"] != "tool" and kept.get("name"):
        kept["name"] = provider_name(str(kept["name"]))
    return coerce(kept)


def speaker_of(message: BaseMessage) -> str:
    """Who a message is by: its name, or its role as OpenAI calls it."""
    if isinstance(message, ToolMessage):
        return message.name or "tool"
    if isinstance(message, AIMessage):
        return message.name or "assistant"
    return message.name or ("user" if isinstance(message, HumanMessage) else message.type)
