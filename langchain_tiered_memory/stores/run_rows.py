"""Rows of `ltm_runs` and `ltm_tasks`, and what a restore writes to them: in the caller's transaction."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, delete, insert, or_, select, update

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.runs import Task
from langchain_tiered_memory.stores import rows
from langchain_tiered_memory.stores.appending import chunks
from langchain_tiered_memory.stores.plans import write_plan
from langchain_tiered_memory.stores.schema import digest_of, entries, packed, runs, sessions, tasks, unpacked
from langchain_tiered_memory.stores.session_rows import insert_if_absent, lock_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.records import SessionRef
    from langchain_tiered_memory.runs import RunState

_MAX_NAME_CHARS = 1000
"""Of a track's or task's name as stored: tasks are looked up through an index with the track in it, and PostgreSQL
indexes no row of more than 2,704 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A session as a run."""

    started_at: float
    """When its session was made."""
    phase: str | None = None
    finished_tasks: int = 0
    """How often a task was finished; one that was opened and finished again counts twice."""
    zones: dict[str, str] = field(default_factory=dict)
    """What `set_zone` was last given, by view; of the views that changed theirs last."""
    checkpoint_at: float | None = None
    """When the newest checkpoint was made."""
    checkpoint_seq: int | None = None
    """The newest message at that time."""


def none_or(change: Callable[[str], str], value: str | None) -> str | None:
    """`change(value)`, or `None` for none."""
    return None if value is None else change(value)


def short_name(value: str, what: str) -> str:
    """A track's or task's name as stored.

    Raises:
        InvalidInputError: when it is too long.
    """
    found = packed(value)
    if len(found) > _MAX_NAME_CHARS:
        msg = (
            f"the {what}'s name takes {len(found)} characters, at most {_MAX_NAME_CHARS} are kept (one outside ASCII "
            f"takes up to 10): give the {what} a short name"
        )
        raise InvalidInputError(msg)
    return found


def locked_session(connection: Connection, ref: SessionRef) -> RowMapping:
    """The session's row, ours until the transaction ends.

    Raises:
        NotFoundError: when it was removed.
    """
    row = lock_session(connection, ref.key)
    if row is None:
        msg = f"the session {ref.session_id!r} was removed meanwhile"
        raise NotFoundError(msg)
    return row


def locked_run(connection: Connection, ref: SessionRef, now: float) -> RowMapping:
    """The run's row, made where there is none; the session is locked by it.

    Raises:
        NotFoundError: when the session was removed.
    """
    session = locked_session(connection, ref)
    # A clock that was set back must not put the start into the future.
    start = {"session_key": ref.key, "started_at": min(session["created_at"], now)}
    connection.execute(insert_if_absent(connection, runs).values(start))
    return connection.execute(select(runs).where(runs.c.session_key == ref.key)).mappings().one()


def read_run(connection: Connection, ref: SessionRef) -> RunRow:
    """How the run stands; as at its start where nothing was written yet."""
    row = connection.execute(select(runs).where(runs.c.session_key == ref.key)).mappings().one_or_none()
    if row is None:
        made = connection.scalar(select(sessions.c.created_at).where(sessions.c.key == ref.key))
        return RunRow(started_at=made or 0.0)
    return RunRow(
        started_at=row["started_at"],
        phase=none_or(unpacked, row["phase"]),
        finished_tasks=row["finished_tasks"],
        zones={unpacked(view): zone for view, zone in json.loads(row["zones"]).items()},
        checkpoint_at=row["checkpoint_at"],
        checkpoint_seq=row["checkpoint_seq"],
    )


def task_of(row: Mapping[str, Any]) -> Task:
    """A row of `ltm_tasks`."""
    return Task(
        id=unpacked(row["task_id"]),
        track=unpacked(row["track"]),
        state=row["state"],
        depends_on=tuple(rows.names_from_json(row["depends_on"])),
        started_at=row["started_at"],
        first_seq=row["first_seq"],
        finished_at=row["finished_at"],
        last_seq=row["last_seq"],
        number=row["number"],
    )


def read_task(connection: Connection, ref: SessionRef, task_id: str) -> RowMapping | None:
    """The row of a task, if it was started."""
    mine = and_(tasks.c.session_key == ref.key, tasks.c.task_digest == digest_of(task_id))
    return connection.execute(select(tasks).where(mine)).mappings().one_or_none()


def read_tasks(connection: Connection, ref: SessionRef, *, newest_finished: int) -> list[Task]:
    """Active tasks in the order they were started, then the last finished, newest first."""
    mine = select(tasks).where(tasks.c.session_key == ref.key)
    active = mine.where(tasks.c.state == "active").order_by(tasks.c.started_at)
    finished = mine.where(tasks.c.state == "finished").order_by(tasks.c.number.desc()).limit(newest_finished)
    return [task_of(dict(row)) for query in (active, finished) for row in connection.execute(query).mappings()]


def restore_tasks(connection: Connection, ref: SessionRef, state: RunState) -> None:
    """Tasks as the state has them. What was started or finished since is taken out, what the state is silent of stays.

    A state names every active task, and of the finished ones the last: an unnamed one with a low number is older.
    """
    named = {digest_of(task.id): task for task in state.tasks}
    mine = tasks.c.session_key == ref.key
    since = or_(
        tasks.c.number > state.finished_tasks, and_(tasks.c.state == "active", tasks.c.first_seq > state.last_seq)
    )
    connection.execute(delete(tasks).where(mine, since))
    for part in chunks(list(named)):
        connection.execute(delete(tasks).where(mine, tasks.c.task_digest.in_(part)))
    values = [
        {
            "session_key": ref.key,
            "task_digest": digest,
            "task_id": packed(task.id),
            "track": packed(task.track),
            "state": task.state,
            "depends_on": rows.names_to_json(task.depends_on),
            "started_at": task.started_at,
            "first_seq": task.first_seq,
            "finished_at": task.finished_at,
            "last_seq": task.last_seq,
            "number": task.number,
        }
        for digest, task in named.items()
    ]
    if values:
        connection.execute(insert(tasks), values)


def restore_pins(connection: Connection, ref: SessionRef, pinned_ids: Sequence[str]) -> tuple[tuple[str, ...], bool]:
    """Pins as they were. Returns the pinned messages that are gone, and whether any pin changed."""
    wanted = {digest_of(one): one for one in pinned_ids}
    mine = entries.c.session_key == ref.key
    present = set(connection.scalars(select(entries.c.id_digest).where(mine, entries.c.pinned.is_(True))))
    there: set[str] = set()
    for part in chunks(list(wanted)):
        there |= set(connection.scalars(select(entries.c.id_digest).where(mine, entries.c.id_digest.in_(part))))
    for digests, pinned in ((present - there, False), (there - present, True)):
        for part in chunks(sorted(digests)):
            connection.execute(update(entries).where(mine, entries.c.id_digest.in_(part)).values(pinned=pinned))
    return tuple(name for digest, name in wanted.items() if digest not in there), present != there


def restore_plans(connection: Connection, ref: SessionRef, kept: Sequence[Mapping[str, Any]]) -> None:
    """The plans of views as they were, under the epoch of `ref`, which must be the session's own."""
    for plan in kept:
        write_plan(connection, ref, plan["name"], plan["payload"], now=plan["written_at"], border=plan["border"])
