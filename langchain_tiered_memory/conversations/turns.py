"""The content of a conversation file: turns that are LangChain messages with times, and questions that cite turns.

A message is made from a speaker and a text, an OpenAI-style dict, or our own export. Each value is read together with
its place, so that an error can name it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage, messages_from_dict

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.messages.codec import coerce, decode

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Mapping

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a conversation."""

    id: str
    """Unique in its conversation, and the id of `message`."""
    speaker: str
    """As the file writes it."""
    text: str
    """The message's text, and its tool calls as `name(arguments)`."""
    message: BaseMessage
    at: dt.datetime | None
    """An aware time, never earlier than the turn before, except in our own export. `None` if the file has no times."""
    sitting: int
    """Index into the conversation's `sittings`."""
    track: str = "main"
    kind: str | None = None
    task: str | None = None
    pinned: bool = False
    is_numbered: bool = False
    """Whether the file gave it no id: its id says its place there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sitting:
    """Turns that were said without a long pause."""

    id: str
    date: str | None
    """As the file writes it. For a plain list of messages, the minute when it began."""
    at: dt.datetime | None
    """When it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about the conversation, with the turns that answer it."""

    id: str
    text: str
    answer: str | None
    evidence: tuple[str, ...]
    """Ids of the turns that an answer needs."""
    category: str
    """Number and name as in the file, such as `2 temporal`. `none` if it has neither."""
    adversarial: bool = False
    """Whether it asks about something that was never said. Finding its `evidence` then counts for nothing."""
    unresolved: tuple[str, ...] = ()
    """Cited turns that are not in the conversation."""

    @property
    def left_out(self) -> str | None:
        """Why the question cannot count in a measurement of recall, or `None` if it can."""
        if self.unresolved:
            return "unresolved evidence"
        if not self.evidence:
            return "no evidence"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation, which becomes one session of a memory."""

    id: str
    turns: tuple[Turn, ...]
    sittings: tuple[Sitting, ...]
    questions: tuple[Question, ...] = ()
    title: str | None = None
    user: str | None = None
    """Whose session it was, in our own export."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A conversation that could not be read."""

    name: str
    """Its title or id if it has one, else its place."""
    reason: str


def attempted(name: str, read: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T | Refused:
    """What `read` returns, or the reason why it cannot be read."""
    try:
        return read(*args, **kwargs)
    except InvalidInputError as error:
        return Refused(name=name, reason=str(error))
    except (AttributeError, KeyError, TypeError, ValueError) as error:  # a text where its format has an object
        return Refused(name=name, reason=f"it does not match its format: {type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did."""

    added: dict[str, int]
    """Messages that were new, by session, in the order of the file."""
    refused: tuple[Refused, ...]
    """Conversations that were refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """A JSON value and its place: `FILE:LINE`, or `FILE` with a path inside the document."""

    place: str
    value: Any

    def at(self, key: str) -> Located:
        """The member `key`, which must exist."""
        if not isinstance(self.value, dict):
            fail(self.place, f"expected an object, found {type(self.value).__name__}")
        if key not in self.value:
            fail(self.place, f"`{key}` is missing")
        return Located(place=f"{self.place} {key}", value=self.value[key])

    def items(self) -> list[Located]:
        """The items of a list."""
        if not isinstance(self.value, list):
            fail(self.place, f"expected a list, found {type(self.value).__name__}")
        return [Located(place=f"{self.place}[{index}]", value=item) for index, item in enumerate(self.value)]

    def text(self, key: str) -> str:
        """The member `key` as text. A number becomes a text."""
        found = self.at(key)
        if isinstance(found.value, bool) or not isinstance(found.value, str | int | float):
            fail(found.place, f"expected a text, found {type(found.value).__name__}")
        return str(found.value)

    def get(self, key: str) -> Any:  # noqa: ANN401 - JSON
        """The member `key`, or `None`."""
        return self.value.get(key) if isinstance(self.value, dict) else None


def fail(place: str, what: str) -> NoReturn:
    """Raise the error for `place`."""
    msg = f"{place}: {what}"
    raise InvalidInputError(msg)


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
    """`speaker` as a message's `name`, without the spaces and signs that providers refuse. `None` if nothing is left.

    It may have letters and digits of any script, `_` and `-`, at most 64: what the OpenAI API, the strictest, accepts.
    """
    return _NOT_IN_A_NAME.sub("_", speaker.strip()).strip("_")[:_LONGEST_NAME] or None


def spoken(speaker: str, text: str, *, message_id: str) -> BaseMessage:
    """The message of a speaker with this `text`.

    A `user` or `assistant` keeps that role. Everybody else is a person: a chat of two people becomes human messages
    with names.
    """
    role = _ROLES.get(speaker.strip().lower())
    if role is not None:
        return role(content=text, id=message_id)
    return HumanMessage(content=text, id=message_id, name=provider_name(speaker))


def message_of(row: Mapping[str, Any]) -> BaseMessage:
    """The message of an OpenAI-style dict, of LangChain's `{"type": ..., "data": ...}`, or of our export.

    Only the parts of an OpenAI-style dict that make the message are read, not times, models or remarks beside it.
    """
    if {"v", "class", "fields"} <= row.keys():
        return decode(json.dumps(row))
    if "role" not in row:
        try:
            return messages_from_dict([dict(row)])[0]
        except (ValueError, TypeError, KeyError) as error:
            msg = f"this cannot be read as a message: {type(error).__name__}: {error}"
            raise InvalidInputError(msg) from error
    kept = {key: row[key] for key in _KEPT_KEYS if row.get(key) is not None} | {"content": row.get("content") or ""}
    if row.get("is_error"):
        kept["status"] = "error"
    if kept["role"] != "tool" and kept.get("name"):
        kept["name"] = provider_name(str(kept["name"]))
    return coerce(kept)


def speaker_of(message: BaseMessage) -> str:
    """The speaker of a message: its name, or its role in OpenAI's words."""
    if isinstance(message, ToolMessage):
        return message.name or "tool"
    if isinstance(message, AIMessage):
        return message.name or "assistant"
    return message.name or ("user" if isinstance(message, HumanMessage) else message.type)
