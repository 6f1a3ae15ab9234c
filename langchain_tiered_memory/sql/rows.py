"""What all rows share, names and JSON in columns; and sessions as rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import DamagedRowError
from langchain_tiered_memory.sql.column_forms import Columns, check, damage_in, key_of, read_json
from langchain_tiered_memory.sql.damage import damage_of
from langchain_tiered_memory.sql.schema import packed, sessions, unpacked
from langchain_tiered_memory.types.records import SessionRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Table


def unpacked_or_none(value: str | None) -> str | None:
    """`unpacked`, of a column that may be empty."""
    return None if value is None else unpacked(value)


def packed_or_none(value: str | None) -> str | None:
    """`packed`, for a column that may be empty."""
    return None if value is None else packed(value)


def names_to_json(names: Sequence[str]) -> str:
    """Ids that came from outside, as a list in one column. Packed first: JSON would join halves of a surrogate pair."""
    return json.dumps([packed(name) for name in names])


def names_from_json(value: str | None) -> list[str]:
    """The ids that `names_to_json` was given; none for an empty column.

    Raises:
        ValueError: when it is no such list.
    """
    return [unpacked(name) for name in read_json(value, list[str])] if value is not None else []


def from_json(table: Table, row: Columns, column: str, kind: Any) -> Any:  # noqa: ANN401 - a value of `kind`
    """The JSON in a column of a row, read as `kind`. Every parse of stored JSON goes through here."""
    try:
        return read_json(row[column], kind)
    except ValueError as error:
        raise DamagedRowError(table.name, key_of(table, row), column, str(error)) from error


def names_in(table: Table, row: Columns, column: str) -> tuple[str, ...]:
    """The list of names in a column of a row; none for an empty column.

    Raises:
        DamagedRowError: when it is no such list.
    """
    if row[column] is None:
        return ()
    return tuple(unpacked(name) for name in from_json(table, row, column, list[str]))


def session_ref(row: Columns) -> SessionRef:
    """A row of `ltm_sessions`."""
    check(sessions, {name: row[name] for name in ("key", "epoch", "ended_at")})
    return SessionRef(
        key=row["key"],
        session_id=unpacked(row["session_id"]),
        user=unpacked_or_none(row["owner"]),
        title=unpacked_or_none(row["title"]),
        epoch=row["epoch"],
        ended_at=row["ended_at"],
        begun_by=unpacked_or_none(row["begun_by"]),
        checkpointer=row["checkpointer"],
        has_forgotten=row["forgotten"] is not None,
    )


def figures_of(connection: Connection, row: Columns) -> dict[str, Any]:
    """A session's running figures; one that is damaged counts as 0 until it is counted again, and is noted."""
    figures = dict(row)
    for error in damage_in(sessions, row):
        if error.column in _FIGURES:
            damage_of(connection).note(error)
            figures[error.column] = 0
    return figures


_FIGURES = frozenset({"entries", "tokens", "passages", "terms", "last_at", "next_seq"})
