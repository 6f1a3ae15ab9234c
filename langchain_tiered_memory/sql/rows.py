"""What all rows share, names and JSON in columns; sessions as rows, and the one rule about locks.

Whoever writes anything of a session locks the session's row first; whoever writes for several locks them in the order
of their keys. So on PostgreSQL, as on SQLite by its nature, the writers of one session stand in line: an append never
meets a removal half-way, an edit never slips between a claim and its commit, and nobody waits in a circle.
"""

from __future__ import annotations

import json
import time
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Insert,
    RowMapping,
    Table,
    and_,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from langchain_tiered_memory.errors import DamagedRowError, MixedOwnersError, StorageBusyError
from langchain_tiered_memory.sql.column_forms import Columns, check, damage_in, key_of, read_json
from langchain_tiered_memory.sql.damage import damage_of
from langchain_tiered_memory.sql.schema import digest_of, packed, passages, sessions, summaries, unpacked
from langchain_tiered_memory.types.records import UNKNOWN_EPOCH, SessionRef, SummaryState

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def unpacked_or_none(value: str | None) -> str | None:
    """`unpacked`, of a column that may be empty."""
    return None if value is None else unpacked(value)


def packed_or_none(value: str | None) -> str | None:
    """`packed`, for a column that may be empty."""
    return None if value is None else packed(value)


def names_to_json(names: Sequence[str]) -> str:
    """Ids that came from outside, as a list in one column. Packed first: JSON would join halves of a surrogate pair."""
    return json.dumps([packed(name) for name in names])


def from_json(table: Table, row: Columns, column: str, kind: Any) -> Any:  # noqa: ANN401 - a value of `kind`
    """The JSON in a column of a row, read as `kind`. Every parse of stored JSON goes through here."""
    try:
        return read_json(row[column], kind)
    except ValueError as error:
        raise DamagedRowError(table.name, key_of(table, row), column, str(error)) from error


def names_in(table: Table, row: Columns, column: str) -> tuple[str, ...]:
    """The names that `names_to_json` was given, in a column of a row; none for an empty column."""
    if row[column] is None:
        return ()
    return tuple(unpacked(name) for name in from_json(table, row, column, list[str]))


def of_track(table: FromClause, ref: SessionRef, track: str | None) -> tuple[ColumnElement[bool], ...]:
    """The rows of a session, or of one track of it alone: none that are of several."""
    mine = table.c.session_key == ref.key
    return (mine,) if track is None else (mine, table.c.track == packed(track))


def session_ref(row: Columns) -> SessionRef:
    """A row of `ltm_sessions`."""
    check(sessions, {name: row[name] for name in ("key", "ended_at")})
    return SessionRef(
        key=row["key"],
        session_id=unpacked(row["session_id"]),
        user=unpacked_or_none(row["owner"]),
        title=unpacked_or_none(row["title"]),
        epoch=row["epoch"] if _has_epoch(row) else UNKNOWN_EPOCH,
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


ROWS_AT_ONCE = 500
"""Of a page, and values in one `IN (...)`: SQLite's oldest limit on variables is 999."""
_LOCKED = select(sessions).where(sessions.c.digest == bindparam("digest")).with_for_update()
_LOCKED_BY_KEY = select(sessions).where(sessions.c.key == bindparam("key")).with_for_update()
ATTEMPTS = 8
"""Times that what was looked for may change before it is locked, until we give up: an attempt takes milliseconds."""


def lock_session(connection: Connection, key: int) -> RowMapping | None:
    """The session's row, ours until the transaction ends; `None` when the session was removed."""
    row = connection.execute(_LOCKED_BY_KEY, {"key": key}).mappings().one_or_none()
    return row if row is None else _with_epoch(connection, row)


def _has_epoch(row: Columns) -> bool:
    return not any(damage_in(sessions, {"epoch": row["epoch"]}))


def _with_epoch(connection: Connection, row: RowMapping) -> RowMapping:
    """The row of a locked session; an epoch that is damaged is made anew, which is noted."""
    if _has_epoch(row):
        return row
    for error in damage_in(sessions, {name: row[name] for name in ("key", "epoch")}):
        damage_of(connection).note(error)
    connection.execute(update(sessions).where(sessions.c.key == row["key"]).values(epoch=epoch_anew()))
    return connection.execute(_LOCKED_BY_KEY, {"key": row["key"]}).mappings().one()


def epoch_anew() -> int:
    """An epoch that a session cannot have had: one begins at 0, and sessions see less than a change per second."""
    return int(time.time())


def lock_session_of_summary(connection: Connection, summary_id: str) -> int | None:
    """As `lock_session`, for whoever only knows a summary. Returns the session's key, where there is one."""
    owner = select(summaries.c.session_key).where(summaries.c.id == summary_id).scalar_subquery()
    locked = select(sessions).where(sessions.c.key == owner).with_for_update()
    row = connection.execute(locked).mappings().one_or_none()
    return None if row is None else int(_with_epoch(connection, row)["key"])


def lock_sessions_of_passages(connection: Connection, ids: Sequence[int]) -> None:
    """As `lock_session`, for every session that one of these passages belongs to."""
    owners = select(passages.c.session_key).where(passages.c.id.in_(list(ids)))
    connection.execute(
        select(sessions.c.key).where(sessions.c.key.in_(owners)).order_by(sessions.c.key).with_for_update()
    )


def lock_every_session(connection: Connection) -> None:
    """As `lock_session`, for all of them."""
    connection.execute(select(sessions.c.key).order_by(sessions.c.key).with_for_update())


def advance_epoch(connection: Connection, key: int) -> None:
    """Say that plans made so far for a session no longer hold."""
    connection.execute(update(sessions).where(sessions.c.key == key).values(epoch=sessions.c.epoch + 1))


def _insert_of(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def insert_if_absent(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    """An insert that leaves alone a row that is there already; to be completed by its values or its select."""
    return _insert_of(connection, table).on_conflict_do_nothing()


def upsert(
    connection: Connection, table: Table, *, key: Sequence[str], values: dict[str, Any]
) -> postgresql.Insert | sqlite.Insert:
    """An insert that takes the place of the row with the same `key`."""
    changed = {name: value for name, value in values.items() if name not in key}
    return _insert_of(connection, table).values(values).on_conflict_do_update(index_elements=list(key), set_=changed)


def ensure_session(
    connection: Connection,
    session_id: str,
    *,
    user: str | None,
    title: str | None,
    now: float,
    begun_by: str | None = None,
    checkpointer: str | None = None,
    before: Callable[[], dict[str, Any]] = dict,
) -> Columns:
    """The locked row of a session, made where there is none; opened again where it was closed.

    `before` gives columns that a new row goes on with, where one of that name was there before; `begun_by` and
    `checkpointer` are as for `remember`. Raises `MixedOwnersError` when it is another user's.
    """
    given = {"title": packed_or_none(title), "begun_by": packed_or_none(begun_by), "checkpointer": checkpointer}
    for _ in range(ATTEMPTS):
        row = connection.execute(_LOCKED, {"digest": digest_of(session_id)}).mappings().one_or_none()
        if row is not None:
            return _brought_up_to_date(connection, _with_epoch(connection, row), user, given)
        values = {"digest": digest_of(session_id), "session_id": packed(session_id), "created_at": now}
        connection.execute(insert_if_absent(connection, sessions).values(values | before()))
    msg = f"the session {session_id!r} was removed while it was written to: try again"
    raise StorageBusyError(msg)


def _brought_up_to_date(
    connection: Connection, row: RowMapping, user: str | None, given: dict[str, str | None]
) -> Columns:
    """The row with what is given of its session; who began it stays."""
    if user is not None and row["owner"] is not None and row["owner"] != packed(user):
        msg = (
            f"the session {unpacked(row['session_id'])!r} belongs to another user than {user!r}: open it for its "
            "owner, or use another session id"
        )
        raise MixedOwnersError(msg)
    values: dict[str, Any] = {name: value for name, value in given.items() if value not in (None, row[name])}
    if row["begun_by"] is not None:
        values.pop("begun_by", None)
    if user is not None and row["owner"] is None:
        values |= {"owner": packed(user), "owner_digest": digest_of(user)}
    if row["ended_at"] is not None:
        values["ended_at"] = None
        # A closed session goes on: its highest summaries, archived when it was closed, are active again.
        mine = and_(summaries.c.session_key == row["key"], summaries.c.state == SummaryState.ARCHIVED)
        connection.execute(update(summaries).where(mine).values(state=SummaryState.ACTIVE))
    if values:
        connection.execute(update(sessions).where(sessions.c.key == row["key"]).values(values))
    return {**row, **values}


def insert_all(connection: Connection, table: Table, values: list[dict[str, Any]]) -> None:
    """Insert rows, of which there may be none."""
    if values:
        connection.execute(_inserting(table), values)


@cache
def _inserting(table: Table) -> Insert:
    return insert(table)
