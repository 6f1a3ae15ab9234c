"""Python values as JSON that gives equal values back.

JSON knows seven types; messages carry more (bytes, dates, tuples, `Document`s in artifacts). What JSON lacks becomes an
object `{"$t": tag, "v": value}`. Reading never imports a module and never runs a constructor of somebody else's class,
so a stored payload cannot execute anything: a class is used only if the process has it loaded already.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import re
import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel

TAG = "$t"
MAX_LEVELS = 102
"""Levels of lists and mappings that are kept: a list of calls, a call, and a hundred levels of its arguments. Values
nested deeper (or holding themselves) cannot be kept as they are: no real message comes near, and whoever reads them
later (a provider's client, a counter) would run out of stack at a few hundred more."""

_LARGEST_PLAIN_INT = 2**53  # every JSON reader agrees up to here; far larger ones Python refuses to print in decimal
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # differs from process to process, so it must not reach a digest
_SURROGATE_PAIR = re.compile(
    "[\ud800-\udbff][\udc00-\udfff]"
)  # two lone halves, which JSON would read as one character
_DESCRIPTION_CHARS = 200

_TO_TEXT: dict[type, tuple[str, Callable[[Any], Any]]] = {
    bytes: ("bytes", lambda value: base64.b64encode(value).decode("ascii")),
    bytearray: ("bytearray", lambda value: base64.b64encode(value).decode("ascii")),
    dt.datetime: ("datetime", lambda value: value.isoformat()),
    dt.date: ("date", lambda value: value.isoformat()),
    dt.time: ("time", lambda value: value.isoformat()),
    dt.timedelta: ("timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    decimal.Decimal: ("decimal", str),
    uuid.UUID: ("uuid", str),
    complex: ("complex", repr),
}
_FROM_TEXT: dict[str, Callable[[Any], Any]] = {
    "bytes": base64.b64decode,
    "bytearray": lambda value: bytearray(base64.b64decode(value)),
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "time": dt.time.fromisoformat,
    "timedelta": lambda value: dt.timedelta(*value),
    "decimal": decimal.Decimal,
    "uuid": uuid.UUID,
    "complex": complex,
    "int": lambda value: int(value, 16),
    "float": float,
    "str": lambda value: base64.b64decode(value).decode("utf-8", "surrogatepass"),
}
_COLLECTIONS: dict[str, Callable[[list[Any]], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset, "dict": dict}


class NotStored(dict[str, Any]):
    """What stands in the place of a part that could not be kept: its class (`not_stored`) and a `description`.

    Written again, it is the same JSON: a message that came back without the part still says what it said.
    """


@dataclasses.dataclass(frozen=True, slots=True)
class Losses:
    """What could not be kept as it was."""

    sentences: list[str] = dataclasses.field(default_factory=list)
    """One for each such part."""
    too_deep: list[str] = dataclasses.field(default_factory=list)
    """The names of values with parts that are nested too deeply."""


def to_plain(value: object, where: str, losses: Losses) -> Any:  # noqa: ANN401 - JSON has no narrower type
    """`value` as something that `json.dumps` takes; `from_plain` gives an equal value back.

    What is nested deeper than `MAX_LEVELS` becomes its JSON as a text, what cannot be stored a `NotStored`. `where` is
    what to call it where it is named, such as `artifact`; `losses` gets what could not be kept as it was.
    """
    return _plain(value, where, losses, 0)


def from_plain(value: Any) -> Any:  # noqa: ANN401 - the value that was stored, of whatever type
    """The value that `to_plain` was given.

    An object of a class that this process has not loaded comes back as a dict of its fields, and what was described
    instead of kept as a dict with the keys `not_stored` and `description`.
    """
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(TAG)
    if tag is None:
        return {key: from_plain(item) for key, item in value.items()}
    return _untagged(tag, value)


def with_tagged_texts(
    value: dict[str, Any], change: Callable[[str], str], within: Callable[[Any], Any]
) -> dict[str, Any]:
    """A value that stands for what JSON lacks, with each of its texts changed. `within` changes its parts."""
    tag = value[TAG]
    if tag == "str":
        changed: dict[str, Any] = to_plain(change(from_plain(value)), "", Losses())
        return changed
    return value if tag in _FROM_TEXT else {**value, "v": within(value["v"])}


def _untagged(tag: str, value: dict[str, Any]) -> Any:  # noqa: ANN401
    if tag in _FROM_TEXT:
        return _FROM_TEXT[tag](value["v"])
    if tag in _COLLECTIONS:
        return _COLLECTIONS[tag]([from_plain(item) for item in value["v"]])
    if tag == "object":
        return _restored(value)
    if tag == "described":
        return NotStored(not_stored=value["class"], description=value["v"])
    msg = f"no tag of ours is {tag!r}"
    raise ValueError(msg)


def _plain(value: Any, where: str, losses: Losses, depth: int) -> Any:  # noqa: ANN401, PLR0911 - a line per type
    if value is None or isinstance(value, bool | str | int | float):
        return _scalar(value)
    if depth >= MAX_LEVELS:
        return _flattened(value, where, losses)
    if type(value) in _TO_TEXT:
        tag, text = _TO_TEXT[type(value)]
        return {TAG: tag, "v": text(value)}
    if isinstance(value, list):
        return [_plain(item, where, losses, depth + 1) for item in value]
    if isinstance(value, NotStored):
        return {TAG: "described", "class": value.get("not_stored"), "v": value.get("description")}
    if isinstance(value, Mapping):
        return _mapping(value, where, losses, depth)
    if isinstance(value, tuple | set | frozenset):
        return _collection(value, where, losses, depth)
    state = _state(value)
    if state is None:
        return _described(value, where, losses, "cannot be stored")
    fields = {name: _plain(item, where, losses, depth + 1) for name, item in state.items()}
    return _object(value, where, losses, fields)


def _scalar(value: str | float | None) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        if not value.isascii() and _SURROGATE_PAIR.search(value):
            return {TAG: "str", "v": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")}
        return str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) <= _LARGEST_PLAIN_INT else {TAG: "int", "v": hex(value)}
    return float(value) if math.isfinite(value) else {TAG: "float", "v": repr(float(value))}


def _mapping(value: Mapping[Any, Any], where: str, losses: Losses, depth: int) -> dict[str, Any]:
    if TAG not in value and all(isinstance(key, str) and isinstance(_scalar(key), str) for key in value):
        return {str(key): _plain(item, where, losses, depth + 1) for key, item in value.items()}
    pairs = [[_plain(item, where, losses, depth + 1) for item in pair] for pair in value.items()]
    return {TAG: "dict", "v": pairs}


def _collection(value: Any, where: str, losses: Losses, depth: int) -> dict[str, Any]:  # noqa: ANN401
    items = [_plain(item, where, losses, depth + 1) for item in value]
    if isinstance(value, tuple):
        return {TAG: "tuple", "v": items}
    # Sorted, so that equal sets are equal text.
    return {TAG: "frozenset" if isinstance(value, frozenset) else "set", "v": sorted(items, key=repr)}


def _state(value: object) -> dict[str, Any] | None:
    """The fields of a pydantic object, a dataclass instance, an enum member or a path; `None` for anything else."""
    if isinstance(value, enum.Enum):
        return {"value": value.value}
    if isinstance(value, BaseModel):
        private = {name: item for name, item in (value.__pydantic_private__ or {}).items() if not callable(item)}
        return {
            "fields": value.__dict__,
            "extra": value.__pydantic_extra__,
            "fields_set": value.__pydantic_fields_set__,
            "private": private or None,
        }
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: getattr(value, name) for name in names if hasattr(value, name)}
    if isinstance(value, PurePath):
        return {"path": str(value)}
    return None


def _object(value: object, where: str, losses: Losses, fields: dict[str, Any]) -> dict[str, Any]:
    cls = type(value)
    if _loaded(cls.__module__, cls.__qualname__) is not cls:
        losses.sentences.append(
            f"{where}: a {cls.__qualname__} was kept as plain values, because its class has no importable name"
        )
        kept: dict[str, Any] = fields["fields"] if isinstance(value, BaseModel) else fields
        return kept
    return {TAG: "object", "module": cls.__module__, "class": cls.__qualname__, "v": fields}


def _restored(stored: dict[str, Any]) -> Any:  # noqa: ANN401
    fields = {name: from_plain(item) for name, item in stored["v"].items()}
    cls = _loaded(stored["module"], stored["class"])
    if not isinstance(cls, type):
        return fields.get("fields", fields)
    if issubclass(cls, BaseModel):
        instance = cls.__new__(cls)
        object.__setattr__(instance, "__dict__", fields["fields"])
        object.__setattr__(instance, "__pydantic_extra__", fields["extra"])
        object.__setattr__(instance, "__pydantic_fields_set__", fields["fields_set"])
        object.__setattr__(instance, "__pydantic_private__", fields["private"])
        return instance
    if issubclass(cls, enum.Enum):
        return next((member for member in cls if member.value == fields["value"]), fields["value"])
    if issubclass(cls, PurePath):
        return cls(fields["path"])
    if dataclasses.is_dataclass(cls):
        made = object.__new__(cls)
        for name, item in fields.items():
            object.__setattr__(made, name, item)
        return made
    return fields


def _loaded(module: str, qualified_name: str) -> object:
    """A class by name, only where its module is loaded already."""
    found: object = sys.modules.get(module)
    for part in qualified_name.split("."):
        found = getattr(found, part, None)
    return found


def _flattened(value: object, where: str, losses: Losses) -> Any:  # noqa: ANN401
    """The JSON of what is nested too deeply, as a text: its words are kept, its shape is not."""
    losses.too_deep.append(where)
    try:
        said = json.dumps(value, ensure_ascii=False, default=_description_of)
    except (ValueError, TypeError, RecursionError):  # it holds itself, or is deeper than Python's stack
        return _described(value, where, losses, "is nested too deeply")
    losses.sentences.append(f"{where}: what is nested deeper than {MAX_LEVELS} levels was kept as JSON text")
    return _scalar(said)


def _described(value: object, where: str, losses: Losses, why: str) -> dict[str, Any]:
    cls = f"{type(value).__module__}.{type(value).__qualname__}"
    losses.sentences.append(f"{where}: a {cls} {why}; a description of it was kept instead")
    return {TAG: "described", "class": cls, "v": _description_of(value)}


def _description_of(value: object) -> str:
    try:
        return _ADDRESS.sub("", repr(value))[:_DESCRIPTION_CHARS]
    except Exception as error:  # noqa: BLE001 - `repr` of a stranger's class may raise anything; it is reported
        return f"(its repr raised {type(error).__name__})"
