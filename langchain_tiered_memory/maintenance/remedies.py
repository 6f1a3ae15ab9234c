"""Faults and their remedies, and the rows of one session in which faults are looked for.

A damaged column begins anew, or its row goes: what is derived is made again. Nothing happens where only a person can
tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
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
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE, epoch_anew

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


_FOLLOWING: Mapping[Column[Any], Callable[[Columns], object]] = {
    schema.entries.c.group_seq: lambda row: row["seq"],
    schema.entries.c.id_digest: lambda row: schema.digest_of(schema.unpacked(row["message_id"])),
    schema.sessions.c.digest: lambda row: schema.digest_of(schema.unpacked(row["session_id"])),
    schema.sessions.c.epoch: lambda _: epoch_anew(),
}
"""What a damaged column gets that follows from another one."""


def remedy_for(table: Table, column: Column[Any], row: Columns) -> Remedy | None:
    """What mends the damaged column of a row: it begins anew, or what is derived goes, and is made again."""
    if column in _FOLLOWING:
        return mend(table, row, {column.name: _FOLLOWING[column](row)})
    for value in column.info["begins"]:
        return mend(table, row, {column.name: value})
    if table is schema.summaries:
        return Discarding(row["id"])
    return None if table.info["is_given"] else mend(table, row, None)


def as_kept(table: Table) -> Select[Any]:
    """All rows, flags as the numbers that they are kept as: read as flags, any number is one."""
    return select(
        *(type_coerce(one, Integer).label(one.name) if isinstance(one.type, Boolean) else one for one in table.columns)
    )


@dataclass(frozen=True)
class Known:
    """One session's rows, as they are asked for."""

    connection: Connection
    session: Mapping[str, Any]
    session_id: str

    @cached_property
    def sealed_with(self) -> str:
        """The digest that its messages were sealed with: that of its id where any seal says so, else the kept one."""
        kept: str = self.session["digest"]
        named = schema.digest_of(schema.unpacked(self.session["session_id"]))
        is_named = kept != named and any(fits(named, row) for row in self.rows(schema.entries, sound=False))
        return named if is_named else kept

    def rows(self, table: Table, *without: str, sound: bool = True) -> Iterator[dict[str, Any]]:
        """Rows of a table; where they are to be `sound`, without damaged ones, which are named already."""
        columns = [column for column in table.c if column.name not in without]
        query = select(*columns).where(table.c.session_key == self.session["key"]).order_by(*table.primary_key)
        for row in self.connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE)).mappings():
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

    def compared(
        self, table: Table, right_of: Callable[[Columns], Mapping[str, Any] | None], *, kind: str, name: str, why: str
    ) -> Iterator[Fault]:
        """`differing` for each row of a table; a row of which `right_of` says nothing goes. Each is told by `name`."""
        for row in self.rows(table):
            right, what = right_of(row), schema.unpacked(str(row[name]))
            if right is None:
                detail = f"it cannot be read, or {why}"
                yield self.fault(kind, what, detail, mend(table, row, None))
            else:
                yield from self.differing(table, row, right, kind=kind, what=what, why=why)


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
