"""What each column can hold, for readers, for `verify()` and for its tests; stored JSON is read as the type it was.

SQLite keeps a text in a column of numbers when it is told to, and no database knows our JSON or our states. The form of
a column follows from its name; a column of the schema that has none is an error at import.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from pydantic import TypeAdapter
from sqlalchemy import Boolean, Column, RowMapping, Table

from langchain_tiered_memory.errors import DamagedRowError
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.types.files import FILE_KINDS, Tier
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, Zone
from langchain_tiered_memory.types.records import Fact, FactKind, FactStatus, Role, SummaryState, Verdict
from langchain_tiered_memory.types.runs import FileOperation, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

Columns: TypeAlias = "Mapping[str, Any] | RowMapping"


_SURROGATE = "\\ud"
"""How the escape of half a character begins."""
_DAMAGED = "is not the JSON that is kept there"


def read_json(value: object, kind: Any) -> Any:  # noqa: ANN401 - a value of the type `kind`
    """`value` read as `kind`, such as `dict[str, int]` or `tuple[Fact, ...]`."""
    if not isinstance(value, str):
        msg = "is no text"
        raise ValueError(msg)  # noqa: TRY004 - one error for whatever damage did
    try:
        return _adapter(kind).validate_json(value, strict=True)
    except ValueError as error:
        if _SURROGATE in value:
            return _with_lone_surrogates(value, kind)
        raise ValueError(_DAMAGED) from error


def _with_lone_surrogates(value: str, kind: Any) -> Any:  # noqa: ANN401 - as above
    """Half a character, as odd texts have it, is JSON to Python's parser and none to pydantic's."""
    try:
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


_HEXADECIMAL = frozenset("0123456789abcdef")


def _whole(least: int | None = None) -> Form:
    said = "is no whole number" if least is None else f"is no whole number of at least {least}"
    return Form(lambda value: type(value) is int and (least is None or value >= least), said)


def _one_of(values: Container[str]) -> Form:
    return Form(lambda value: isinstance(value, str) and value in values, "is none of the words that stand there")


def _hexadecimal(digits: int, *, empty: bool = False) -> Form:
    def holds(value: object) -> bool:
        if not isinstance(value, str) or (not value and not empty):
            return False
        return len(value) in {digits, 0} and _HEXADECIMAL.issuperset(value)

    return Form(holds, f"is no number of {digits} hexadecimal digits")


def _json(kind: Any) -> Form:  # noqa: ANN401 - any type
    def holds(value: object) -> bool:
        try:
            read_json(value, kind)
        except ValueError:
            return False
        return True

    return Form(holds, "is not the JSON that is kept there")


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


_WORDS = Form(lambda value: isinstance(value, str), "is no text")
_BYTES = Form(lambda value: isinstance(value, bytes | memoryview), "is no bytes")
_KEYED_DIGEST = Form(
    lambda value: isinstance(value, bytes | memoryview) and len(value) == schema.KEYED_DIGEST_BYTES,
    f"is no digest of {schema.KEYED_DIGEST_BYTES} bytes",
)
_NAME = Form(_is_packed, "is no name as names are kept")
_NAMES = Form(_are_packed, "is no list of names")
_NUMBER = Form(_is_number, "is no number")
_AMOUNT = Form(lambda value: _is_number(value) and value >= 0, "is no number of at least 0")
_MOMENT = Form(_AMOUNT.holds, "is no moment since 1970")
"""Of this program's clock; a message may have been said before."""
_SHARE = Form(lambda value: _is_number(value) and 0 <= value <= 1, "is no share between 0 and 1")
_FLAG = Form(lambda value: value in (0, 1) and not isinstance(value, float), "is neither true nor false")
_COUNT = _whole(0)
_PLACE = _whole(1)
_ID = _hexadecimal(32)

_FORM_OF_COLUMNS: tuple[tuple[Form, str], ...] = (
    (_PLACE, "session_key seq first_seq next_seq group_seq next_order access_order accesses entry_count mentions"),
    (_PLACE, "passage_id forgotten forgotten_session removal target key item passages.id summaries.level"),
    (_PLACE, "summaries.last_seq windows.tokens migrations.number"),
    (_COUNT, "epoch border entries tokens passages terms revisions summaries revision counter last_seq"),
    (_COUNT, "checkpoint_seq size finished_tasks number dictionary deliveries samples level part start stop"),
    (_COUNT, "source_tokens facts_read attempts summaries.calls input_tokens output_tokens"),
    (_COUNT, "removals.facts removals.files removals.checkpoints removals.items"),
    (_whole(), "modified_ns checkpoints.key outcomes.key"),
    (_whole(-(2**63)), "removal_targets.seq"),
    (_MOMENT, "accessed_at applied_at at begun_at changed_at checkpoint_at collected_at created_at crowded_at"),
    (_MOMENT, "ended_at erased_at finished_at learned_at lease_until optimised_at replaced_at retry_at started_at"),
    (_MOMENT, "undone_at written_at updated_at"),
    (_NUMBER, "expires_at first_at last_at entries.at facts.at files.at passages.at"),
    (_AMOUNT, "ratio seconds ttl_minutes"),
    (_SHARE, "weight kept_identifiers information_loss"),
    (_WORDS, "value attribute subject text payload checkpointer lease_owner error model strategy reason scope"),
    (_WORDS, "namespace embedder verdict_note verdict_writer"),
    (_WORDS, "vector passages.terms calibrations.counter id meta.name migrations.name events.name"),
    (_NAME, "session_id owner title begun_by message_id track name kind task answers call speaker phase task_id"),
    (_NAME, "langgraph_id path tool"),
    (_NAMES, "calls depends_on dependencies fields reasons summaries.sources"),
    (_ID, "sessions.digest owner_digest id_digest summary_id parent_id seal call_digest path_digest task_digest"),
    (_ID, "view summaries.id plans.name items.digest"),
    (_hexadecimal(16), "facts.id superseded_by"),
    (_hexadecimal(64), "digest checksum"),
    (_hexadecimal(64, empty=True), "source_digest text_digest"),
    (_KEYED_DIGEST, "forgotten_sessions.digest forgotten.id_digest track_digest words_digest said_digest"),
    (_BYTES, "item_vectors.vector checkpoints.payload file_contents.payload file_dictionaries.payload"),
    (_json(dict[str, Any]), "details report plan_before plan_after plans.payload outcomes.payload items.payload"),
    (_json(dict[str, Zone]), "zones"),
    (_json(dict[str, int]), "figures"),
    (_json(tuple[Fact, ...]), "summaries.facts"),
    (_json(tuple[int, ...]), "facts.sources instead_of"),
    (_one_of(get_args(Role)), "role by"),
    (_one_of((*get_args(Role), schema.WORKS, "")), "forgotten.role"),
    (_one_of((schema.WAITS,)), "open_calls"),
    (_one_of(tuple(SummaryState)), "summaries.state"),
    (_one_of(tuple(FailureReason)), "summaries.reason"),
    (_one_of(get_args(Verdict)), "verdict"),
    (_one_of(get_args(FactKind)), "facts.kind"),
    (_one_of(get_args(FactStatus)), "status"),
    (_one_of(get_args(TaskState)), "tasks.state"),
    (_one_of(tuple(OutcomeKind)), "outcomes.kind"),
    (_one_of(get_args(FileOperation)), "operation"),
    (_one_of(get_args(Tier)), "tier"),
    (_one_of(FILE_KINDS), "kept_files.kind"),
    (_one_of(("raw", "zstd", "dense")), "form"),
)
"""The columns of each form, by their names in any table, or in one alone: `table.column` goes before `column`."""
_BY_NAME = {name: form for form, names in _FORM_OF_COLUMNS for name in names.split()}


def _form_of(column: Column[Any]) -> Form:
    """The form of a column; a `KeyError` for one of a kind that has none yet."""
    if isinstance(column.type, Boolean):
        return _FLAG
    of_this_table = f"{column.table.name.removeprefix('ltm_')}.{column.name}"
    return _BY_NAME[of_this_table if of_this_table in _BY_NAME else column.name]


FORMS: Mapping[str, Mapping[str, Form]] = {
    table.name: {column.name: _form_of(column) for column in table.columns} for table in schema.metadata.sorted_tables
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
