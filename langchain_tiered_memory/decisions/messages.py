"""Messages to rows and back: a codec that gives any LangChain message back equal, and the readers of what it says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages

from langchain_tiered_memory.decisions.message_moulds import CLASSES, VERSION, decode, defaults_of
from langchain_tiered_memory.decisions.message_text import answers_of, calls_of, role_of, safe_text, text_of
from langchain_tiered_memory.decisions.tagged_json import to_plain
from langchain_tiered_memory.errors import UnknownMessageError

__all__ = [
    "Encoded",
    "answers_of",
    "calls_of",
    "coerce",
    "decode",
    "encode",
    "role_of",
    "safe_text",
    "text_of",
]

_NOT_SAID = frozenset({"id", "type", "usage_metadata", "response_metadata", "tool_call_chunks", "chunk_position"})
"""Fields that may change without the message saying anything else: they stay out of the digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A message as the transcript keeps it."""

    payload: str
    """JSON in pure ASCII; `decode` gives an equal message back."""
    digest: str
    """SHA-256 over what it says: kind, content, calls, name, status, artifact and additional fields. A chunk has the
    digest of the whole message with the same content; ids, usage and response metadata do not count."""
    problems: tuple[str, ...] = ()
    """What could not be kept as it was; the rest of the message is."""


def encode(message: BaseMessage) -> Encoded:
    """`message` as JSON, its identity, and what could not be kept.

    A subclass of one of LangChain's messages that declares no fields of its own is kept as that message.

    Raises:
        UnknownMessageError: when `message` is none of LangChain's message types, or a command such as `RemoveMessage`.
    """
    cls = _known_class(message)
    problems: list[str] = []
    if type(message) is not cls:
        problems.append(f"class: a {type(message).__qualname__} was kept as {cls.__name__}")
    defaults = defaults_of(cls)
    fields = {
        name: to_plain(value, name, problems)
        for name, value in message.__dict__.items()
        if name == "content" or not _is_default(value, getattr(defaults, name, None))
    }
    extra = {name: to_plain(value, name, problems) for name, value in (message.__pydantic_extra__ or {}).items()}
    payload: dict[str, Any] = {"v": VERSION, "class": cls.__name__, "fields": fields}
    if extra:
        payload["extra"] = extra
    said = {name: value for name, value in (fields | extra).items() if name not in _NOT_SAID}
    identity = json.dumps([_kind(cls), said], sort_keys=True, separators=(",", ":"))
    return Encoded(
        payload=json.dumps(payload, separators=(",", ":")),
        digest=hashlib.sha256(identity.encode("ascii")).hexdigest(),
        problems=tuple(dict.fromkeys(problems)),
    )


def coerce(value: object) -> BaseMessage:
    """A message from what LangChain accepts as one: a message, a string, a (role, text) pair or an OpenAI-style dict.

    Calls whose arguments are no JSON object become invalid calls of the message.

    Raises:
        UnknownMessageError: for anything else.
    """
    if isinstance(value, BaseMessage):
        _known_class(value)
        return value
    invalid: list[dict[str, Any]] = []
    if isinstance(value, Mapping):
        value = dict(value)
        if value.get("tool_calls"):
            value["tool_calls"], invalid = _sorted_calls(value["tool_calls"])
    try:
        (message,) = convert_to_messages([value])  # type: ignore[list-item] # it answers for other types itself
    except (ValueError, NotImplementedError, TypeError, KeyError, AttributeError) as error:
        why = f"it has no {error.args[0]!r}" if isinstance(error, KeyError) and error.args else str(error)[:300]
        msg = f"this cannot be taken for a message: {why}"
        raise UnknownMessageError(msg) from error
    if invalid and isinstance(message, AIMessage):
        message = message.model_copy(update={"invalid_tool_calls": [*message.invalid_tool_calls, *invalid]})
    _known_class(message)
    return message


def _known_class(message: object) -> type[BaseMessage]:
    for cls in type(message).__mro__:
        known = CLASSES.get(cls.__name__)
        if known is cls:
            added = set(type(message).model_fields) - set(known.model_fields)  # type: ignore[attr-defined]
            if not added:
                return known
            msg = (
                f"{type(message).__qualname__} adds the fields {', '.join(sorted(added))} to {known.__name__};"
                f" put them into additional_kwargs or the artifact of a {known.__name__}"
            )
            raise UnknownMessageError(msg)
    msg = f"a {type(message).__qualname__} is no message that can be remembered; use LangChain's message classes"
    raise UnknownMessageError(msg)


def _is_default(value: object, default: object) -> bool:
    """Whether a field can be left out. Only plain values are compared: an artifact may answer `==` with anything."""
    return value is default or (
        type(value) is type(default) and isinstance(value, str | list | dict) and value == default
    )


def _kind(cls: type[BaseMessage]) -> str:
    return cls.__name__.removesuffix("Chunk")


def _sorted_calls(calls: object) -> tuple[list[Any], list[dict[str, Any]]]:
    """OpenAI-style calls as LangChain's, parsed and unparsable apart; anything else is left for LangChain to judge."""
    valid: list[Any] = []
    invalid: list[dict[str, Any]] = []
    for call in calls if isinstance(calls, list | tuple) else [calls]:
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            valid.append(call)
            continue
        arguments = function.get("arguments")
        identity = call.get("id") if isinstance(call, Mapping) else None
        named = {"name": str(function.get("name") or ""), "id": identity}
        try:
            args = json.loads(arguments or "{}", strict=False) if isinstance(arguments, str | None) else arguments
        except (ValueError, RecursionError) as error:
            invalid.append({**named, "args": arguments, "error": str(error), "type": "invalid_tool_call"})
            continue
        if isinstance(args, Mapping):
            valid.append({**named, "args": dict(args), "type": "tool_call"})
        else:
            wrong = {"args": str(arguments), "error": "the arguments are no JSON object", "type": "invalid_tool_call"}
            invalid.append({**named, **wrong})
    return valid, invalid
