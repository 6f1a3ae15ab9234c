"""Removes what is left without messages: emptied tasks, and everything of an emptied session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, and_, delete, func, select, update

from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.schema import (
    checkpoints,
    digest_of_task,
    entries,
    file_contents,
    file_dictionaries,
    file_tiers,
    kept_files,
    outcomes,
    runs,
    sessions,
    tasks,
    unpacked,
)
from langchain_tiered_memory.transcript.append import chunks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_HIGHEST = 2**63 - 1
"""Of the numbers that a database can keep; a damaged number, a text, is beyond it on SQLite."""


_OF_A_RUN = (runs, checkpoints, outcomes, file_tiers, kept_files, file_contents, file_dictionaries)


def drop_emptied_tasks(connection: Connection, key: int, belonged: Collection[tuple[str, str]]) -> list[int]:
    """Remove tasks of a session that have no message left; nothing of their track waits for them any more.

    The messages are gone already; `belonged` names their tasks and the tracks of those, as they are stored. Gives,
    for each task that had one, since which message its name may stand in checkpoints.
    """
    left: set[tuple[str, str]] = set()
    for part in chunks(list({name for name, _ in belonged})):
        named = select(entries.c.task, entries.c.track).where(entries.c.session_key == key, entries.c.task.in_(part))
        left |= {(row.task, row.track) for row in connection.execute(named.distinct())}
    gone: dict[str, set[str]] = {}
    for name, track in set(belonged) - left:
        gone.setdefault(track, set()).add(unpacked(name))
    if not gone:
        return []
    since: list[int] = []
    mine = tasks.c.session_key == key
    for row in connection.execute(select(tasks).where(mine)).mappings().all():
        waits_for = rows.names_from_json(row["depends_on"])
        names = gone.get(row["track"], set())
        is_gone = unpacked(row["task_id"]) in names
        if not is_gone and names.isdisjoint(waits_for):
            continue
        # A task may stand in a checkpoint that was made before the first message behind its start.
        since.append(row["first_seq"] - 1)
        this = and_(mine, tasks.c.task_digest == row["task_digest"])
        if is_gone:
            connection.execute(delete(tasks).where(this))
        else:
            left_names = rows.names_to_json([one for one in waits_for if one not in names])
            connection.execute(update(tasks).where(this).values(depends_on=left_names))
    return since


def ends_of(connection: Connection, keys: Sequence[int]) -> dict[int, int]:
    """Above which number each of these sessions has no message, by its key; they are locked, and may be gone."""
    found: dict[int, int] = {}
    for part in chunks(list(keys)):
        locked = select(sessions.c.key).where(sessions.c.key.in_(part)).order_by(sessions.c.key).with_for_update()
        found |= dict.fromkeys(connection.scalars(locked), 1)
        mine = and_(entries.c.session_key.in_(part), entries.c.seq.between(1, _HIGHEST))
        newest = select(entries.c.session_key, func.max(entries.c.seq)).where(mine).group_by(entries.c.session_key)
        found |= {key: seq + 1 for key, seq in connection.execute(newest) if key in found}
    return found


def has_messages_since(connection: Connection, key: int, end: int) -> bool:
    """Whether a session has a message of this number or a higher one."""
    mine = and_(entries.c.session_key == key, entries.c.seq.between(end, _HIGHEST))
    return connection.scalar(select(entries.c.seq).where(mine).limit(1)) is not None


def numbers_before(connection: Connection, key: int, end: int) -> list[int]:
    """The numbers of a session's other messages; damaged ones are among them."""
    mine = and_(entries.c.session_key == key, ~entries.c.seq.between(end, _HIGHEST))
    return list(connection.scalars(select(entries.c.seq).where(mine).order_by(entries.c.seq)))


def blank_what_is_older(connection: Connection, key: int) -> None:
    """Take what was said of a session whose earlier messages, or all, are gone: all but the tasks of those it has.

    Events stay, for nobody may have been told of them.
    """
    named = select(entries.c.task, entries.c.track).where(entries.c.session_key == key, entries.c.task.is_not(None))
    left = [digest_of_task(unpacked(row.track), unpacked(row.task)) for row in connection.execute(named.distinct())]
    for table in _OF_A_RUN:
        connection.execute(delete(table).where(table.c.session_key == key))
    mine = tasks.c.session_key == key
    there = list(connection.scalars(select(tasks.c.task_digest).where(mine)))
    for part in chunks([one for one in there if one not in left]):
        connection.execute(delete(tasks).where(mine, tasks.c.task_digest.in_(part)))
    connection.execute(update(sessions).where(sessions.c.key == key).values(title=None))
