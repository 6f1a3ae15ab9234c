"""Reads what people and chains say as messages: strings, messages, lists of them, and outputs of any shape."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeGuard

from langchain_core.messages import AIMessage, BaseMessage, BaseMessageChunk, HumanMessage, message_chunk_to_message
from langchain_core.prompt_values import PromptValue
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from langchain_tiered_memory.context.pieces import MARK
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.messages.codec import coerce, encode
from langchain_tiered_memory.messages.content_blocks import kind_of

_ANYTHING = TypeAdapter(Any)
_USUAL = {
    "input": ("input", "question", "query", "human_input", "user_input", "message", "messages", "text"),
    "output": ("output", "answer", "response", "result", "output_text", "text", "messages"),
}
"""Keys that chains use for the user's words and for the answer, in order of preference."""
_MESSAGE_TYPES = frozenset(
    {"human", "user", "ai", "assistant", "system", "developer", "tool", "function", "AIMessageChunk"}
)
"""LangChain's and OpenAI's names for kinds of messages, in dicts or pairs."""


def said(value: object) -> list[BaseMessage]:
    """The messages of a user's input. A string becomes the user's message. Messages, prompt values and lists stay.

    Content blocks, such as a text and its image, make one message.
    """
    if isinstance(value, str):
        return [HumanMessage(value)]
    if isinstance(value, BaseMessage):
        return [value]
    if isinstance(value, PromptValue):
        return value.to_messages()
    if _are_blocks(value):
        return [HumanMessage(_blocks(value))]
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [coerce(one) for one in value]
    msg = f"a {type(value).__name__} cannot be read as a message: give a string, a message, or a list of messages"
    raise InvalidInputError(msg)


def can_be_said(value: object) -> bool:
    """Whether `value` can be said: a string, a message, content blocks, or a list of messages only."""
    if isinstance(value, list | tuple):
        return bool(value) and (_are_blocks(value) or all(_is_a_message(one) for one in value))
    return isinstance(value, str | BaseMessage | PromptValue)


def said_or_told(value: object) -> list[BaseMessage]:
    """As `said`. Other values, such as a number or a dict, become the text of a message: as JSON, else as `str`."""
    if can_be_said(value) or isinstance(value, list | tuple):
        return said(value)
    return [HumanMessage(_told(value))]


def answered(value: object) -> list[BaseMessage]:
    """The messages of a chain's output. What is neither text nor message is kept as JSON, else as `str`.

    Content blocks, which agents of some providers return, make one message.
    """
    if isinstance(value, BaseMessage):
        return [value]
    if isinstance(value, list | tuple) and value:
        if all(isinstance(one, BaseMessage) for one in value):
            return list(value)
        if _are_blocks(value) or all(isinstance(one, str) for one in value):
            return [AIMessage(_blocks(value))]
        if all(_is_a_message(one) for one in value):
            return [coerce(one) for one in value]
    return [AIMessage(value if isinstance(value, str) else _told(value))]


def their_own(messages: Iterable[object]) -> list[BaseMessage]:
    """`messages` without those that this package wrote into a context. Chunks become whole messages."""
    found = []
    for one in messages:
        message = coerce(one)
        if MARK in message.additional_kwargs:
            continue
        found.append(message_chunk_to_message(message) if isinstance(message, BaseMessageChunk) else message)
    return found


def part_of(message: BaseMessage) -> str | None:
    """The part of a context that a message of ours is, such as `history` or `recall`. `None` for others' messages."""
    mark = message.additional_kwargs.get(MARK)
    return str(mark.get("part")) if isinstance(mark, Mapping) else None


def with_ids(messages: Iterable[BaseMessage]) -> list[BaseMessage]:
    """`messages`, each with its own id or a new one."""
    return [one if one.id else one.model_copy(update={"id": uuid.uuid4().hex}) for one in messages]


def identity(messages: Iterable[BaseMessage]) -> tuple[str, ...]:
    """The words of `messages` without their ids. Equal if the same words are said again."""
    return tuple(encode(one).digest for one in messages)


def asked_in(messages: Sequence[BaseMessage]) -> str:
    """The text of the last user message among `messages`. Empty if there is none."""
    return next((str(one.text) for one in reversed(messages) if isinstance(one, HumanMessage)), "")


def chosen_key(what: Literal["input", "output"], key: str | None, given: Mapping[str, Any]) -> str:
    """The key of a chain's input or output that counts: `key` if it is set, else the only possible one."""
    names = ", ".join(map(repr, given)) or "none"
    if key is not None:
        if key in given:
            return key
        msg = f"{what}_key is {key!r}, but the chain's {what}s are {names}: set {what}_key to one of them"
        raise InvalidInputError(msg)
    fitting = [one for one, value in given.items() if can_be_said(value)] or list(given)
    known = usual_keys(what, given)
    for one in known:
        if one in fitting:
            return one
    if known or len(fitting) == 1:
        return (known or fitting)[0]
    msg = f"which {what} counts? The chain's {what}s are {names}: set {what}_key to one of them"
    raise InvalidInputError(msg)


def usual_keys(what: Literal["input", "output"], given: Mapping[str, Any]) -> list[str]:
    """The keys of `given` that chains use for the user's words or for the answer, the likeliest first."""
    return [one for one in _USUAL[what] if one in given]


def text_so_far(partial: object) -> str:
    """The part of an answer that had arrived when it was interrupted. Empty if that is not text."""
    if isinstance(partial, BaseMessage):
        return str(partial.text)
    if isinstance(partial, str):
        return partial
    if isinstance(partial, Mapping):
        texts = [text for value in partial.values() if (text := text_so_far(value))]
        return texts[0] if len(texts) == 1 else ""
    return ""


def _are_blocks(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether `value` is a list of content blocks: dicts with a type that are not messages, and perhaps texts."""
    if not isinstance(value, list | tuple) or not any(isinstance(one, Mapping) for one in value):
        return False
    return all(
        isinstance(one, str) or (isinstance(one, Mapping) and "type" in one and not _is_a_message(one)) for one in value
    )


def _blocks(value: Iterable[Any]) -> list[str | dict[Any, Any]]:
    return [one if isinstance(one, str) else dict(one) for one in value]


def _is_a_message(value: object) -> bool:
    """Whether `value` is a message, or a dict or pair that represents one."""
    if isinstance(value, Mapping):
        return "role" in value or ("content" in value and kind_of(value) in _MESSAGE_TYPES)
    if isinstance(value, tuple):
        return len(value) == 2 and isinstance(value[0], str) and value[0] in _MESSAGE_TYPES  # noqa: PLR2004 - a pair
    return isinstance(value, BaseMessage)


def _told(value: object) -> str:
    try:
        return _ANYTHING.dump_json(value).decode()
    except PydanticSerializationError:
        return str(value)
