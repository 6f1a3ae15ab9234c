"""What each column can hold: the one table that says so, for readers, for `verify()` and for its tests.

SQLite keeps a text in a column of numbers when it is told to, and no database knows our JSON or our states. A column
that is added to the schema has to be added here too: a test compares the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from langchain_tiered_memory.errors import DamagedRowError
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.stored_json import read_json
from langchain_tiered_memory.types.files import FILE_KINDS, Tier
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, Zone
from langchain_tiered_memory.types.records import Fact, FactKind, FactStatus, Role, SummaryState
from langchain_tiered_memory.types.runs import FileOperation, TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    from sqlalchemy import RowMapping, Table

    Columns: TypeAlias = Mapping[str, Any] | RowMapping


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
_MAPPING = _json(dict[str, Any])
_ID = _hexadecimal(32)
_FACT_ID = _hexadecimal(16)
_CHECKSUM = _hexadecimal(64)

FORMS: Mapping[str, Mapping[str, Form]] = {
    "ltm_meta": {"name": _WORDS, "value": _WORDS},
    "ltm_migrations": {"number": _PLACE, "name": _WORDS, "applied_at": _MOMENT},
    "ltm_sessions": {
        "key": _PLACE,
        "digest": _ID,
        "session_id": _NAME,
        "owner_digest": _ID,
        "owner": _NAME,
        "title": _NAME,
        "next_seq": _PLACE,
        "epoch": _COUNT,
        "entries": _COUNT,
        "tokens": _COUNT,
        "passages": _COUNT,
        "terms": _COUNT,
        "last_at": _NUMBER,
        "created_at": _MOMENT,
        "ended_at": _MOMENT,
        "begun_by": _NAME,
        "checkpointer": _WORDS,
        "forgotten": _PLACE,
    },
    "ltm_entries": {
        "session_key": _PLACE,
        "seq": _PLACE,
        "id_digest": _ID,
        "message_id": _NAME,
        "track": _NAME,
        "role": _one_of(get_args(Role)),
        "name": _NAME,
        "kind": _NAME,
        "task": _NAME,
        "text": _WORDS,
        "payload": _WORDS,
        "digest": _CHECKSUM,
        "tokens": _COUNT,
        "counter": _COUNT,
        "at": _NUMBER,
        "calls": _NAMES,
        "open_calls": _one_of((schema.WAITS,)),
        "waits": _FLAG,
        "answers": _NAME,
        "group_seq": _PLACE,
        "pinned": _FLAG,
        "revision": _COUNT,
        "summary_id": _ID,
        "seal": _ID,
    },
    "ltm_revisions": {
        "session_key": _PLACE,
        "seq": _PLACE,
        "revision": _COUNT,
        "payload": _WORDS,
        "digest": _CHECKSUM,
        "replaced_at": _MOMENT,
    },
    "ltm_passages": {
        "id": _PLACE,
        "session_key": _PLACE,
        "level": _COUNT,
        "seq": _PLACE,
        "summary_id": _ID,
        "part": _COUNT,
        "start": _COUNT,
        "stop": _COUNT,
        "track": _NAME,
        "kind": _NAME,
        "at": _NUMBER,
        "scope": _WORDS,
        "terms": _WORDS,
        "vector": _WORDS,
    },
    "ltm_removed_vectors": {"passage_id": _PLACE},
    "ltm_summaries": {
        "id": _ID,
        "session_key": _PLACE,
        "level": _PLACE,
        "track": _NAME,
        "state": _one_of(tuple(SummaryState)),
        "unfinished": _FLAG,
        "sources": _NAMES,
        "source_digest": _hexadecimal(64, empty=True),
        "first_seq": _PLACE,
        "last_seq": _PLACE,
        "entry_count": _PLACE,
        "first_at": _NUMBER,
        "last_at": _NUMBER,
        "source_tokens": _COUNT,
        "parent_id": _ID,
        "strategy": _WORDS,
        "text": _WORDS,
        "text_digest": _hexadecimal(64, empty=True),
        "facts": _json(tuple[Fact, ...]),
        "facts_read": _COUNT,
        "tokens": _COUNT,
        "counter": _COUNT,
        "degraded": _FLAG,
        "stale": _FLAG,
        "touched": _FLAG,
        "by_rules": _FLAG,
        "wanted": _FLAG,
        "attempts": _COUNT,
        "error": _WORDS,
        "model": _WORDS,
        "calls": _COUNT,
        "input_tokens": _COUNT,
        "output_tokens": _COUNT,
        "seconds": _AMOUNT,
        "kept_identifiers": _SHARE,
        "information_loss": _SHARE,
        "reason": _one_of(tuple(FailureReason)),
        "from_tools": _FLAG,
        "created_at": _MOMENT,
        "lease_owner": _WORDS,
        "lease_until": _MOMENT,
        "retry_at": _MOMENT,
    },
    "ltm_facts": {
        "session_key": _PLACE,
        "id": _FACT_ID,
        "summary_id": _ID,
        "track": _NAME,
        "kind": _one_of(get_args(FactKind)),
        "subject": _WORDS,
        "attribute": _WORDS,
        "value": _WORDS,
        "text": _WORDS,
        "by": _one_of(get_args(Role)),
        "speaker": _NAME,
        "seq": _PLACE,
        "at": _NUMBER,
        "sources": _json(tuple[int, ...]),
        "weight": _SHARE,
        "by_model": _FLAG,
        "instead_of": _json(tuple[int, ...]),
        "mentions": _PLACE,
        "status": _one_of(get_args(FactStatus)),
        "superseded_by": _FACT_ID,
    },
    "ltm_open_calls": {
        "session_key": _PLACE,
        "call_digest": _ID,
        "seq": _PLACE,
        "track": _NAME,
        "call": _NAME,
    },
    "ltm_events": {
        "key": _PLACE,
        "id": _WORDS,
        "session_key": _PLACE,
        "name": _WORDS,
        "at": _MOMENT,
        "reason": _WORDS,
        "details": _MAPPING,
        "deliveries": _COUNT,
    },
    "ltm_forgotten_sessions": {
        "key": _PLACE,
        "digest": _KEYED_DIGEST,
        "next_seq": _PLACE,
        "epoch": _COUNT,
        "checkpointer": _WORDS,
    },
    "ltm_forgotten": {
        "forgotten_session": _PLACE,
        "seq": _PLACE,
        "revision": _COUNT,
        "role": _one_of((*get_args(Role), schema.WORKS, "")),
        "track_digest": _KEYED_DIGEST,
        "id_digest": _KEYED_DIGEST,
        "words_digest": _KEYED_DIGEST,
        "said_digest": _KEYED_DIGEST,
    },
    "ltm_removals": {
        "key": _PLACE,
        "begun_at": _MOMENT,
        "erased_at": _MOMENT,
        "finished_at": _MOMENT,
        "entries": _COUNT,
        "revisions": _COUNT,
        "summaries": _COUNT,
        "passages": _COUNT,
    },
    "ltm_removal_targets": {"removal": _PLACE, "target": _PLACE, "seq": _whole(-(2**63))},
    "ltm_plans": {
        "session_key": _PLACE,
        "name": _ID,
        "epoch": _COUNT,
        "border": _COUNT,
        "payload": _MAPPING,
        "written_at": _MOMENT,
    },
    "ltm_runs": {
        "session_key": _PLACE,
        "phase": _NAME,
        "finished_tasks": _COUNT,
        "zones": _json(dict[str, Zone]),
        "started_at": _MOMENT,
        "checkpoint_at": _MOMENT,
        "checkpoint_seq": _COUNT,
    },
    "ltm_tasks": {
        "session_key": _PLACE,
        "task_digest": _ID,
        "task_id": _NAME,
        "track": _NAME,
        "state": _one_of(get_args(TaskState)),
        "depends_on": _NAMES,
        "started_at": _MOMENT,
        "first_seq": _PLACE,
        "finished_at": _MOMENT,
        "last_seq": _COUNT,
        "number": _COUNT,
    },
    "ltm_checkpoints": {
        "key": _whole(),
        "id": _WORDS,
        "session_key": _PLACE,
        "track": _NAME,
        "at": _MOMENT,
        "reasons": _NAMES,
        "last_seq": _COUNT,
        "langgraph_id": _NAME,
        "digest": _CHECKSUM,
        "payload": _BYTES,
        "archived": _FLAG,
        "alone": _FLAG,
    },
    "ltm_outcomes": {
        "key": _whole(),
        "id": _WORDS,
        "session_key": _PLACE,
        "view": _ID,
        "kind": _one_of(tuple(OutcomeKind)),
        "at": _MOMENT,
        "last_seq": _COUNT,
        "payload": _MAPPING,
        "plan_before": _MAPPING,
        "plan_after": _MAPPING,
        "undone_at": _MOMENT,
    },
    "ltm_files": {
        "session_key": _PLACE,
        "seq": _PLACE,
        "path_digest": _ID,
        "track": _NAME,
        "path": _NAME,
        "operation": _one_of(get_args(FileOperation)),
        "tool": _NAME,
        "at": _NUMBER,
    },
    "ltm_file_tiers": {
        "session_key": _PLACE,
        "next_order": _PLACE,
        "collected_at": _MOMENT,
        "optimised_at": _MOMENT,
        "crowded_at": _MOMENT,
        "figures": _json(dict[str, int]),
        "report": _MAPPING,
    },
    "ltm_kept_files": {
        "session_key": _PLACE,
        "path_digest": _ID,
        "path": _NAME,
        "tier": _one_of(get_args(Tier)),
        "pinned": _FLAG,
        "kind": _one_of(FILE_KINDS),
        "size": _COUNT,
        "modified_ns": _whole(),
        "checksum": _CHECKSUM,
        "dependencies": _NAMES,
        "changed_at": _MOMENT,
        "accessed_at": _MOMENT,
        "access_order": _PLACE,
        "accesses": _PLACE,
        "deleted": _FLAG,
    },
    "ltm_file_contents": {
        "session_key": _PLACE,
        "checksum": _CHECKSUM,
        "size": _COUNT,
        "form": _one_of(("raw", "zstd", "dense")),
        "dictionary": _COUNT,
        "payload": _BYTES,
    },
    "ltm_file_dictionaries": {
        "session_key": _PLACE,
        "number": _COUNT,
        "digest": _CHECKSUM,
        "payload": _BYTES,
    },
    "ltm_windows": {"model": _WORDS, "tokens": _PLACE, "learned_at": _MOMENT},
    "ltm_calibrations": {"model": _WORDS, "counter": _WORDS, "ratio": _AMOUNT, "samples": _COUNT},
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
