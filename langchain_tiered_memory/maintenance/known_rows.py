"""One session's rows as the driver gives them, for comparing them with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, select

from langchain_tiered_memory.maintenance.remedies import Fault, Remedy
from langchain_tiered_memory.reports import Problem
from langchain_tiered_memory.sql.column_forms import damage_in
from langchain_tiered_memory.sql.entry_rows import seal_of_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from langchain_tiered_memory.sql.column_forms import Columns

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
        return Fault(Problem(kind=kind, what=f"{self.session_id}/{what}", detail=detail), remedy)


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
