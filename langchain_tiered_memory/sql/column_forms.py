"""What each column can hold, for readers, for `verify()` and for its tests; stored JSON is read as the type it was.

SQLite keeps a text in a column of numbers when it is told to, and no database knows our JSON or our states. The form of
a column follows from its kind in the schema; a kind that has none is an error at import.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from pydantic import TypeAdapter

from langchain_tiered_memory.errors import DamagedRowError
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.types.files import FILE_KINDS, Tier
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, Zone
from langchain_tiered_memory.types.records import (
    EARLIEST,
    LATEST,
    FactKind,
    FactStatus,
    Role,
    SummaryState,
    Verdict,
)
from langchain_tiered_memory.types.runs import FileOperation, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    from sqlalchemy import RowMapping, Table

Columns: TypeAlias = "Mapping[str, Any] | RowMapping"


_SURROGATE = "\\ud"
"""How the escape of half a character begins."""
_DAMAGED = "is not the JSON that belongs there"


def read_json(value: object, kind: Any) -> Any:  # noqa: ANN401 - a value of the type `kind`
    """`value` read as `kind`, such as `dict[str, int]` or `tuple[Fact, ...]`."""
    if not isinstance(value, str):
        msg = "is not text"
        raise ValueError(msg)  # noqa: TRY004 - one error for whatever damage did
    try:
        return _adapter(kind).validate_json(value, strict=True)
    except ValueError as error:
        if _SURROGATE not in value:
            raise ValueError(_DAMAGED) from error
    try:  # half a character, as odd texts have it, is JSON to Python's parser and none to pydantic's
        return _adapter(kind).validate_python(json.loads(value))
    except ValueError as error:
        raise ValueError(_DAMAGED) from error


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:  # noqa: ANN401
    return TypeAdapter(kind)


@dataclass(frozen=True, slots=True)
class Form:
    """A check of one value."""

    holds: Callable[[Any], bool]
    says: str
    """What is wrong with a value for which `holds` is false, as `its column ...`."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_amount(value: object) -> bool:
    return _is_number(value) and value >= 0  # type: ignore[operator] # a number


_HEXADECIMAL = frozenset("0123456789abcdef")


def _whole(least: int | None = None) -> Form:
    said = "is not a whole number" if least is None else f"is not a whole number of at least {least}"
    return Form(lambda value: type(value) is int and (least is None or value >= least), said)


def _one_of(values: Container[str]) -> Form:
    return Form(lambda value: isinstance(value, str) and value in values, "is not one of its allowed words")


def _hexadecimal(digits: int, *, empty: bool = False) -> Form:
    def holds(value: object) -> bool:
        if not isinstance(value, str) or (not value and not empty):
            return False
        return len(value) in {digits, 0} and _HEXADECIMAL.issuperset(value)

    return Form(holds, f"is not a number of {digits} hexadecimal digits")


def _json(kind: Any) -> Form:  # noqa: ANN401 - any type
    def holds(value: object) -> bool:
        try:
            read_json(value, kind)
        except ValueError:
            return False
        return True

    return Form(holds, _DAMAGED)


def _is_packed(value: object) -> bool:
    if not isinstance(value, str) or not value.isascii():
        return False
    try:
        return schema.packed(schema.unpacked(value)) == value
    except UnicodeError:
        return False


def _are_packed(value: object) -> bool:
    try:
        return all(_is_packed(one) for one in read_json(value, list[str]))
    except ValueError:
        return False


_WORDS = Form(lambda value: isinstance(value, str), "is not text")
_MOMENT = Form(lambda value: _is_amount(value) and value <= LATEST, "is not a time since 1970")
"""Of this program's clock; a message may have been said before."""
_SAID = Form(lambda value: _is_number(value) and EARLIEST <= value <= LATEST, "is not a time that has a date")
_PLACE = _whole(1)
_FORMS: Mapping[str, Form] = {
    **dict.fromkeys(("auto", "key", "place", "serial"), _PLACE),
    "order": _whole(),
    "whole": _whole(),
    "signed": _whole(-(2**63)),
    "count": _whole(0),
    "moment": _MOMENT,
    "said": _SAID,
    "number": Form(_is_number, "is not a number"),
    "amount": Form(_is_amount, "is not a number of at least 0"),
    "share": Form(lambda value: _is_number(value) and 0 <= value <= 1, "is not a share between 0 and 1"),
    "flag": Form(lambda value: value in (0, 1) and not isinstance(value, float), "is neither true nor false"),
    "words": _WORDS,
    "namespace": _WORDS,
    "name": Form(_is_packed, "is not a name in its stored form"),
    "names": Form(_are_packed, "is not a list of names"),
    "bytes": Form(lambda value: isinstance(value, bytes | memoryview), "is not bytes"),
    "keyed_digest": Form(
        lambda value: isinstance(value, bytes | memoryview) and len(value) == schema.KEYED_DIGEST_BYTES,
        f"is not a digest of {schema.KEYED_DIGEST_BYTES} bytes",
    ),
    "id": _hexadecimal(32),
    "fact_id": _hexadecimal(16),
    "sha256": _hexadecimal(64),
    "sha256_or_empty": _hexadecimal(64, empty=True),
    "json": _json(dict[str, Any]),
    "zones": _json(dict[str, Zone]),
    "counts": _json(dict[str, int]),
    "numbers": _json(tuple[int, ...]),
    "role": _one_of(get_args(Role)),
    "forgotten_role": _one_of((*get_args(Role), schema.WORKS, "")),
    "waits": _one_of((schema.WAITS,)),
    "summary_state": _one_of(tuple(SummaryState)),
    "failure": _one_of(tuple(FailureReason)),
    "verdict": _one_of(get_args(Verdict)),
    "fact_kind": _one_of(get_args(FactKind)),
    "fact_status": _one_of(get_args(FactStatus)),
    "task_state": _one_of(get_args(TaskState)),
    "outcome_kind": _one_of(tuple(OutcomeKind)),
    "operation": _one_of(get_args(FileOperation)),
    "tier": _one_of(get_args(Tier)),
    "file_kind": _one_of(FILE_KINDS),
    "content_form": _one_of(("raw", "zstd", "dense")),
}
"""By the kinds that columns have in the schema."""
FORMS: Mapping[str, Mapping[str, Form]] = {
    table.name: {column.name: _FORMS[column.info["kind"]] for column in table.columns}
    for table in schema.metadata.sorted_tables
}
"""By table and column. A column that may be empty may be so whatever its form."""


@cache
def _may_be_empty(table: Table) -> frozenset[str]:
    return frozenset(column.name for column in table.c if column.nullable)


def damage_in(table: Table, row: Columns) -> Iterator[DamagedRowError]:
    """What cannot be in these columns of a row of `table`, one error for each."""
    forms, may_be_empty = FORMS[table.name], _may_be_empty(table)
    for name, value in row.items():
        form = forms.get(name)
        if form is None or (value is None and name in may_be_empty):
            continue
        if not form.holds(value):
            yield DamagedRowError(table.name, key_of(table, row), name, form.says)


def check(table: Table, row: Columns) -> None:
    """Refuse a row that has in these columns what cannot be there.

    Raises:
        DamagedRowError: for the first such column.
    """
    for error in damage_in(table, row):
        raise error


def key_of(table: Table, row: Columns) -> str:
    """The key of a row as text, as far as these columns hold it."""
    return "/".join(str(row.get(column.name, "?")) for column in table.primary_key)
