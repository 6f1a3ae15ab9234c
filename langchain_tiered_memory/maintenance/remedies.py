"""Faults and their remedies, and the rows of one session in which faults are looked for.

A damaged column gets a default value, or its row goes; nothing happens where only a person can tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import (
    Boolean,
    Connection,
    DefaultClause,
    Delete,
    Executable,
    Integer,
    Select,
    Table,
    Update,
    and_,
    delete,
    select,
    type_coerce,
    update,
)

from langchain_tiered_memory.reports import Problem
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.column_forms import Columns, damage_in
from langchain_tiered_memory.sql.entry_rows import seal_of_row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Discarding:
    """What mends a summary that cannot be trusted, or is lost: it goes, together with all others of which that is so.

    Each removal locks every session.
    """

    summary_id: Any


Remedy: TypeAlias = "Executable | tuple[Executable, ...] | Discarding | Callable[[], object]"
"""What mends a fault: a change of rows, several in one transaction, a summary's removal, or what makes rows anew."""


def change(table: Table, key: Mapping[str, Any], values: dict[str, Any] | None) -> Update | Delete:
    """Give the rows with this key these values; `None`: they go, for they are made again or were of no use."""
    mine = and_(*(table.c[name] == value for name, value in key.items()))
    return delete(table).where(mine) if values is None else update(table).where(mine).values(values)


def mend(table: Table, row: Columns, values: dict[str, Any] | None) -> Update | Delete:
    """`change` of one row."""
    return change(table, {column.name: row[column.name] for column in table.primary_key}, values)


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong, and what mends it, if anything does."""

    problem: Problem
    remedy: Remedy | None = None


def fault(kind: str, what: object, detail: str, remedy: Remedy | None = None, *, about: str = "") -> Fault:
    """A fault of `what`."""
    return Fault(Problem(kind=kind, what=str(what), detail=detail, about=about), remedy)


_OF_USE: dict[str, tuple[dict[str, Any], str]] = {
    "sessions": ({"created_at": 0.0}, "owner"),
    "entries": ({"role": "other", "text": "", "tokens": 0}, "kind task"),
    "summaries": (
        {"degraded": True, "stale": True, "created_at": 0.0, "retry_at": 0.0},
        "track parent_id text text_digest",
    ),
    "runs": ({"started_at": 0.0}, ""),
    "tasks": ({}, ""),
    "outcomes": ({}, ""),
    "checkpoints": ({"reasons": "[]", "at": 0.0, "last_seq": 0, "track": "main"}, "alone"),
    "file_tiers": ({}, "next_order"),
    "kept_files": ({"accessed_at": 0.0, "changed_at": 0.0, "kind": "text"}, ""),
    "migrations": ({"applied_at": 0.0}, ""),
    "passages": ({}, "summary_id kind"),
    "forgotten_sessions": ({}, ""),
    "forgotten": ({"role": "other"}, "id_digest words_digest said_digest"),
    # A removal that is said to be finished, and left something, is begun again.
    "removals": ({"begun_at": 0.0, "finished_at": 0.0}, "erased_at"),
    "items": ({"created_at": 0.0, "updated_at": 0.0}, "owner_digest owner"),
}
"""Tables whose rows stay of use where a column is damaged that may be empty or has a default: it begins anew with that.

Each with what other columns begin anew with, and with columns without which the row is of no use after all. What
follows from other rows is counted anew then.
"""


def _short(table: Table) -> str:
    return table.name.removeprefix("ltm_")


def _starting(table: Table) -> dict[str, Any]:
    """What the damaged columns of a row get; those that are not named leave the row of no use."""
    own, needed = _OF_USE[_short(table)]
    found = dict(own)
    for column in table.columns:
        if column.name in needed.split() or column.name in own or column.primary_key or column.computed is not None:
            continue
        if column.nullable:
            found[column.name] = None
        elif isinstance(column.server_default, DefaultClause):
            default = str(column.server_default.arg)
            found[column.name] = (
                default == "true" if isinstance(column.type, Boolean) else column.type.python_type(default)
            )
    return found


_DROPPED = (
    "passages removed_vectors plans tasks outcomes files facts windows calibrations runs open_calls events removals "
    "file_tiers kept_files file_contents file_dictionaries item_vectors"
)
"""Tables whose rows go where another column is damaged: they are made again, or tell nothing any more.

A damaged summary is discarded with all above it, elsewhere. Messages, revisions, the names of sessions, what is known
of the forgotten and what is still to be forgotten stay.
"""


def remedy_for(table: Table, column: str, row: Columns) -> Update | Delete | None:
    """What mends the damaged column of a row."""
    follows: Mapping[tuple[Table, str], Callable[[], Any]] = {
        (schema.entries, "group_seq"): lambda: row["seq"],
        (schema.entries, "id_digest"): lambda: schema.digest_of(schema.unpacked(row["message_id"])),
        (schema.sessions, "digest"): lambda: schema.digest_of(schema.unpacked(row["session_id"])),
        (schema.tasks, "state"): lambda: "active" if row["finished_at"] is None else "finished",
    }
    if (table, column) in follows:
        return mend(table, row, {column: follows[table, column]()})
    starting = _starting(table) if _short(table) in _OF_USE else {}
    if column in starting:
        return mend(table, row, {column: starting[column]})
    return mend(table, row, None) if _short(table) in _DROPPED.split() else None


def as_kept(table: Table) -> Select[Any]:
    """All rows, flags as the numbers that they are kept as: read as flags, any number is one."""
    return select(
        *(type_coerce(one, Integer).label(one.name) if isinstance(one.type, Boolean) else one for one in table.columns)
    )


PAGE = 500


@dataclass(frozen=True, slots=True)
class Known:
    """One session's rows, as they are asked for."""

    connection: Connection
    session: Mapping[str, Any]
    session_id: str

    def rows(self, table: Table, *without: str, sound: bool = True) -> Iterator[dict[str, Any]]:
        """Rows of a table; where they are to be `sound`, without damaged ones, which are named already."""
        columns = [column for column in table.c if column.name not in without]
        query = select(*columns).where(table.c.session_key == self.session["key"]).order_by(*table.primary_key)
        for row in self.connection.execute(query.execution_options(yield_per=PAGE)).mappings():
            if not (sound and any(damage_in(table, row))):
                yield dict(row)

    def fault(self, kind: str, what: object, detail: str, remedy: Remedy | None = None) -> Fault:
        """A fault of this session."""
        return fault(kind, f"{self.session_id}/{what}", detail, remedy)

    def differing(
        self, table: Table, row: Columns, right: Mapping[str, Any], *, kind: str, what: object, why: str
    ) -> Iterator[Fault]:
        """A fault where columns of a row are not `right`, which they get; `why` completes "its columns ..."."""
        wrong = {name: value for name, value in right.items() if row[name] != value}
        if wrong:
            yield self.fault(kind, what, f"its {', '.join(wrong)} {why}", mend(table, row, wrong))


def fits(session_digest: str, row: Columns) -> bool:
    """Whether the seal of a message is that of its columns."""
    try:
        return bool(seal_of_row(session_digest, row) == row["seal"])
    except (TypeError, ValueError):
        return False


def largest(connection: Connection, table: Table, column: str, key: object) -> int:
    """The largest whole number in a column of a session's rows; 0 where there is none."""
    query = select(table.c[column]).where(table.c.session_key == key).order_by(table.c[column].desc())
    return next((one for one in connection.scalars(query) if isinstance(one, int)), 0)
