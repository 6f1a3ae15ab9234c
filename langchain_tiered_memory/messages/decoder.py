"""Decoder of stored messages: parsed payloads are cached, and every caller gets a fresh copy."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_core import messages

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.text.readings import read_once
from langchain_tiered_memory.text.tagged_json import TAG, from_plain

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

VERSION = 1
"""Of the payloads that are written; others are refused."""
CLASSES: dict[str, type[BaseMessage]] = {
    name: getattr(messages, name)
    for kind in ("AI", "Chat", "Function", "Human", "System", "Tool")
    for name in (f"{kind}Message", f"{kind}MessageChunk")
}
"""LangChain's messages, by the name that a payload gives them."""
_TYPES: dict[str, Any] = {
    "content": str | list,
    "name": str | None,
    "id": str | None,
    "type": str,
    "role": str,
    "status": str,
    "tool_call_id": str,
    "tool_calls": list,
    "invalid_tool_calls": list,
    "additional_kwargs": dict,
    "response_metadata": dict,
    "usage_metadata": dict | None,
}
"""What the JSON of a field can be; of any other field, anything."""
_OF_DAMAGE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What reading a damaged payload may raise."""
_PLAIN_TAGS = frozenset({"str", "tuple", "dict", "object"})
"""Tags of values that stand where a text, a list or a mapping does."""


def decode(payload: str) -> BaseMessage:
    """The message that `encode` was given: of the same class, and equal. Nothing in it is shared with another one.

    Raises:
        UnknownMessageError: when `payload` is damaged, not one of ours, or of a later version.
    """
    try:
        return _cast(_mould(payload))
    except UnknownMessageError:
        raise
    except _OF_DAMAGE as error:
        raise _unreadable(error) from error


def read_payload(payload: str) -> tuple[type[BaseMessage], dict[str, Any]]:
    """The class of a stored message, and what it was given, as the JSON that it is kept in.

    Raises:
        UnknownMessageError: when `payload` is damaged, not one of ours, or of a later version.
    """
    try:
        stored = json.loads(payload)
        cls = CLASSES.get(stored.get("class", "")) if isinstance(stored, dict) else None
        if cls is not None and stored.get("v") == VERSION:
            given = {**stored["fields"], **stored.get("extra", {})}
            _check(given)
            return cls, given
    except _OF_DAMAGE as error:
        raise _unreadable(error) from error
    msg = "a stored message is of a kind that this version does not know; upgrade the package to read it"
    raise UnknownMessageError(msg)


def _unreadable(error: Exception) -> UnknownMessageError:
    msg = f"a stored message cannot be read ({error}): verify() names it, and what else is damaged"
    return UnknownMessageError(msg)


def _check(given: dict[str, Any]) -> None:
    """Refuse fields of another JSON type than their messages have: whoever reads those would break on them."""
    if "content" not in given:
        msg = "it has no content"
        raise ValueError(msg)
    for name, value in given.items():
        allowed = _TYPES.get(name)
        if allowed is None or isinstance(value, allowed) or (isinstance(value, dict) and value.get(TAG) in _PLAIN_TAGS):
            continue
        msg = f"its {name} is a {type(value).__name__}"
        raise ValueError(msg)
    # A text has only characters, and may have millions of them.
    if isinstance(given["content"], list) and any(not isinstance(block, str | dict) for block in given["content"]):
        msg = "its content has a block that is no block"
        raise ValueError(msg)
    for name in ("tool_calls", "invalid_tool_calls"):
        for call in given.get(name, ()):
            if not isinstance(call, dict) or not isinstance(call.get("id"), str | dict | None):
                msg = f"its {name} has one that is no call"
                raise ValueError(msg)  # noqa: TRY004 - one error for whatever damage did
            if name == "tool_calls" and not (isinstance(call["name"], str | dict) and isinstance(call["args"], dict)):
                msg = "its tool_calls has one that is no call"
                raise ValueError(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mould:
    """A payload read once. No caller sees it: what could be changed stands in it as JSON, and is built for each."""

    cls: type[BaseMessage]
    fields: dict[str, Any]
    """Every field in the order of the class, with the values that nobody can change."""
    built: tuple[tuple[str, Any], ...]
    """The other fields as JSON: lists and mappings, the empty ones too, and whatever a tag stands for."""
    extra: tuple[tuple[str, Any], ...]
    names_set: frozenset[str]
    private: dict[str, Any] | None


@read_once
def _mould(payload: str) -> _Mould:
    """A payload read: each context shows most of the messages of the one before."""
    cls, given = read_payload(payload)
    known = defaults_of(cls).__dict__ | given
    fields = {name: known[name] for name in _field_names(cls) if name in known}
    return _Mould(
        cls=cls,
        fields=fields,
        built=tuple((name, value) for name, value in fields.items() if isinstance(value, list | dict)),
        extra=tuple((name, value) for name, value in given.items() if name not in fields),
        names_set=frozenset(given),
        private=defaults_of(cls).__pydantic_private__,
    )


def _cast(mould: _Mould) -> BaseMessage:
    """As `model_construct` gives it, in a tenth of the time: a context decodes hundreds of messages.

    Validators would parse, merge and fill in again what the original already went through: constructed as it was.
    """
    values = dict(mould.fields)
    for name, plain in mould.built:
        values[name] = from_plain(plain)
    message = mould.cls.__new__(mould.cls)
    put = object.__setattr__
    put(message, "__dict__", values)
    put(message, "__pydantic_fields_set__", set(mould.names_set))
    put(message, "__pydantic_extra__", {name: from_plain(plain) for name, plain in mould.extra})
    put(message, "__pydantic_private__", copy(mould.private))
    return message


@cache
def _field_names(cls: type[BaseMessage]) -> tuple[str, ...]:
    return tuple(cls.model_fields)  # computed anew whenever it is asked


@cache
def defaults_of(cls: type[BaseMessage]) -> BaseMessage:
    """A message of that class in which nothing was set but an empty content."""
    return cls.model_construct(content="")
