"""Messages to rows and back: a codec that gives any LangChain message back equal, and the readers of what it says.

Parsed payloads are cached, and every caller gets a fresh copy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_core import messages as langchain_messages
from langchain_core.messages import AIMessage, BaseMessage, convert_to_messages, message_to_dict
from pydantic import ValidationError

from langchain_tiered_memory.errors import InvalidInputError, UnknownMessageError, explain_validation
from langchain_tiered_memory.text.readings import read_once
from langchain_tiered_memory.text.tagged_json import MAX_LEVELS, TAG, Losses, from_plain, to_plain

if TYPE_CHECKING:
    from langchain_tiered_memory.types.outcomes import Window, Zone
    from langchain_tiered_memory.types.records import Entry, SessionRef

VERSION = 1
"""Of the payloads that are written; others are refused."""
CLASSES: dict[str, type[BaseMessage]] = {
    name: getattr(langchain_messages, name)
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
    msg = f"a stored message cannot be read ({error}): verify() lists it and all other damage"
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
        msg = "its content has a block that is not a block"
        raise ValueError(msg)
    for name in ("tool_calls", "invalid_tool_calls"):
        for call in given.get(name, ()):
            if not isinstance(call, dict) or not isinstance(call.get("id"), str | dict | None):
                msg = f"its {name} has an entry that is not a call"
                raise ValueError(msg)  # noqa: TRY004 - one error for whatever damage did
            if name == "tool_calls" and not (isinstance(call["name"], str | dict) and isinstance(call["args"], dict)):
                msg = "its tool_calls has an entry that is not a call"
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
    fields = {name: known[name] for name in cls.model_fields if name in known}
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
def defaults_of(cls: type[BaseMessage]) -> BaseMessage:
    """A message of that class in which nothing was set but an empty content."""
    return cls.model_construct(content="")


_NOT_SAID = frozenset({"id", "type", "usage_metadata", "response_metadata", "tool_call_chunks", "chunk_position"})
"""Fields that may change without the message saying anything else: they stay out of the digest."""
_SHOWN_CHARACTERS = 300
"""Of what LangChain says of a value that it does not take: its first sentences."""
MAX_MESSAGES = 400
"""Of one snapshot. A view of a usual window has fewer; of a larger one its first and its newest are kept."""
_FIRST = 20


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
    too_deep: tuple[str, ...] = ()
    """Fields with values nested too deeply to be kept as they are; an artifact is not among them."""


def encode(message: BaseMessage) -> Encoded:
    """`message` as JSON, its identity, and what could not be kept.

    A subclass of one of LangChain's messages that declares no fields of its own is kept as that message.

    Raises:
        UnknownMessageError: when `message` is none of LangChain's message types, or a command such as `RemoveMessage`.
    """
    cls = _known_class(message)
    losses = Losses()
    if type(message) is not cls:
        losses.sentences.append(f"class: a {type(message).__qualname__} was kept as {cls.__name__}")
    defaults = defaults_of(cls)
    fields = {
        name: to_plain(value, name, losses)
        for name, value in message.__dict__.items()
        if name == "content" or not _is_default(value, getattr(defaults, name, None))
    }
    extra = {name: to_plain(value, name, losses) for name, value in (message.__pydantic_extra__ or {}).items()}
    payload: dict[str, Any] = {"v": VERSION, "class": cls.__name__, "fields": fields}
    if extra:
        payload["extra"] = extra
    return Encoded(
        payload=json.dumps(payload, separators=(",", ":")),
        digest=_identity(cls.__name__, fields | extra),
        problems=tuple(dict.fromkeys(losses.sentences)),
        too_deep=tuple(name for name in dict.fromkeys(losses.too_deep) if name != "artifact"),
    )


def digest_of_payload(payload: str) -> str:
    """The digest of what a payload says, as `encode` gave it: read from the JSON, so that no class need be at hand.

    Raises:
        UnknownMessageError: when it cannot be read.
    """
    cls, given = read_payload(payload)
    return _identity(cls.__name__, given)


def refuse_too_deep(message: BaseMessage, too_deep: Sequence[str]) -> None:
    """Refuse a message whose fields `too_deep` cannot be kept as they are.

    Raises:
        InvalidInputError: where there is such a field; it names the limit.
    """
    for name in too_deep:
        msg = (
            f"the {name} of a {type(message).__name__} is nested too deep (at most {MAX_LEVELS} levels can be kept as"
            " they are), or holds itself: pass the inner part as a text of JSON; nothing of this call was written"
        )
        raise InvalidInputError(msg)


def _why_refused(error: Exception) -> str:
    """A refusal of LangChain's or pydantic's as one sentence."""
    if isinstance(error, ValidationError):
        return explain_validation(error)
    if isinstance(error, KeyError) and error.args:
        return f"it has no {error.args[0]!r}"
    return str(error).partition("\nFor troubleshooting")[0][:_SHOWN_CHARACTERS]


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
    except (ValueError, NotImplementedError, TypeError, KeyError, AttributeError, RecursionError) as error:
        msg = f"this cannot be read as a message: {_why_refused(error)}"
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
    msg = f"a {type(message).__qualname__} cannot be remembered as a message; use LangChain's message classes"
    raise UnknownMessageError(msg)


def _is_default(value: object, default: object) -> bool:
    """Whether a field can be left out. Only plain values are compared: an artifact may answer `==` with anything."""
    return value is default or (
        type(value) is type(default) and isinstance(value, str | list | dict) and value == default
    )


def _identity(cls_name: str, fields: Mapping[str, Any]) -> str:
    said = {name: value for name, value in fields.items() if name not in _NOT_SAID}
    identity = json.dumps([cls_name.removesuffix("Chunk"), said], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(identity.encode("ascii")).hexdigest()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSnapshot:
    """A view as a model was, or would have been, given it."""

    name: str
    """Of the view's plan."""
    ref: SessionRef
    """The session as it was looked up before the view was read: what was forgotten since is in the view."""
    messages: Sequence[BaseMessage]
    entries: Sequence[Entry]
    """What those of them are that stand in the transcript."""
    zone: Zone
    used_tokens: int
    """Of the whole request, before anything is pruned."""
    window: Window
    summary_ids: Sequence[str] = ()
    pruning: Sequence[tuple[int, str]] = ()
    """First `seq`s of the groups that would leave it next, and why: the plan of the danger zone."""


def bounded(messages: Sequence[BaseMessage]) -> tuple[list[BaseMessage], int]:
    """At most `MAX_MESSAGES`: the first few, with system prompt and goal, and the newest; and how many are not."""
    left_out = max(len(messages) - MAX_MESSAGES, 0)
    if not left_out:
        return list(messages), 0
    return [*messages[:_FIRST], *messages[_FIRST - MAX_MESSAGES :]], left_out


def conversation_of(messages: Sequence[BaseMessage]) -> tuple[dict[str, Any], ...]:
    """Messages as LangChain's dicts, in nothing but JSON: what JSON lacks is tagged, as in the transcript."""
    losses = Losses()
    return tuple(to_plain(message_to_dict(message), "checkpoint", losses) for message in messages)
