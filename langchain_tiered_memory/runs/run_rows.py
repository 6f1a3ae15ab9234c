"""Rows of `ltm_runs` and `ltm_tasks`, and what a restore writes to them: in the caller's transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import CompoundSelect, Connection, and_, bindparam, delete, func, or_, select, union_all, update

from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.runs.plans import write_plan
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import check, damage_in
from langchain_tiered_memory.sql.damage import damage_of, readable, readable_or
from langchain_tiered_memory.sql.entry_rows import short_name
from langchain_tiered_memory.sql.rows import insert_if_absent, lock_session
from langchain_tiered_memory.sql.schema import (
    digest_of,
    digest_of_task,
    entries,
    packed,
    runs,
    sessions,
    tasks,
    unpacked,
)
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.outcomes import Zone
from langchain_tiered_memory.types.runs import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.types.records import SessionRef
    from langchain_tiered_memory.types.runs import RunState

_OF_RUN = ("started_at", "finished_tasks", "checkpoint_at", "checkpoint_seq")
"""Columns of a run that `RunRow` has as they are; one that is damaged is as at the start."""
_AS_STORED = ("state", "started_at", "first_seq", "finished_at", "last_seq", "number")
"""Columns of a task that `Task` has as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A session as a run."""

    started_at: float = 0.0
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


def locked_session(connection: Connection, ref: SessionRef) -> RowMapping:
    """The session's row, ours until the transaction ends."""
    row = lock_session(connection, ref.key)
    if row is None:
        msg = f"the session {ref.session_id!r} was removed meanwhile"
        raise NotFoundError(msg)
    return row


def locked_run(connection: Connection, ref: SessionRef, now: float) -> RowMapping:
    """The run's row, made where there is none; the session is locked by it."""
    session = locked_session(connection, ref)
    known = select(runs).where(runs.c.session_key == ref.key)
    row = connection.execute(known).mappings().one_or_none()
    if row is not None:
        return row
    # A clock that was set back must not put the start into the future.
    start = {"session_key": ref.key, "started_at": min(session["created_at"], now)}
    connection.execute(insert_if_absent(connection, runs).values(start))
    return connection.execute(known).mappings().one()


def read_run(connection: Connection, ref: SessionRef) -> RunRow:
    """How the run stands; as at its start where nothing was written yet."""
    row = connection.execute(select(runs).where(runs.c.session_key == ref.key)).mappings().one_or_none()
    if row is None:
        made = connection.scalar(select(sessions.c.created_at).where(sessions.c.key == ref.key))
        return RunRow(started_at=made if isinstance(made, float | int) else 0.0)
    values: dict[str, Any] = {name: row[name] for name in _OF_RUN} | {"phase": rows.unpacked_or_none(row["phase"])}
    for error in damage_in(runs, {name: row[name] for name in (*_OF_RUN, "phase")}):
        damage_of(connection).note(error)
        del values[error.column]
    return RunRow(zones={unpacked(view): zone.value for view, zone in zones_in(connection, row).items()}, **values)


def zones_in(connection: Connection, row: RowMapping) -> dict[str, Zone]:
    """The zones of a run's views, by packed name; none where they cannot be read, which is noted."""
    found: dict[str, Zone] = readable_or(
        connection, lambda: rows.from_json(runs, row, "zones", dict[str, Zone]), otherwise={}
    )
    return found


def task_of(row: Columns) -> Task:
    """A row of `ltm_tasks`."""
    stored = {name: row[name] for name in _AS_STORED}
    check(tasks, stored)
    depends_on = rows.names_in(tasks, row, "depends_on")
    return Task(id=unpacked(row["task_id"]), track=unpacked(row["track"]), depends_on=depends_on, **stored)


def task_values(ref: SessionRef, task: Task) -> dict[str, Any]:
    """The row of a task."""
    return {
        "session_key": ref.key,
        "task_digest": digest_of_task(task.track, task.id),
        "task_id": short_name(task.id, "task"),
        "track": short_name(task.track, "track"),
        "depends_on": rows.names_to_json(task.depends_on),
        **{name: getattr(task, name) for name in _AS_STORED},
    }


def read_task(
    connection: Connection, ref: SessionRef, task_id: str, *, track: str, alone: bool = False
) -> RowMapping | None:
    """The row of a task, if it was started: the track's own of that name, else, if not `alone`, another's oldest."""
    mine = select(tasks).where(tasks.c.session_key == ref.key)
    own = mine.where(tasks.c.task_digest == digest_of_task(track, task_id))
    found = connection.execute(own).mappings().one_or_none()
    if found is not None or alone:
        return found
    anothers = mine.where(tasks.c.task_id == packed(task_id)).order_by(tasks.c.started_at).limit(1)
    return connection.execute(anothers).mappings().one_or_none()


def read_tasks(
    connection: Connection, ref: SessionRef, *, newest_finished: int, track: str | None = None
) -> list[Task]:
    """Active tasks in the order they were started, those that wait as queued, the last finished, newest first."""
    asked = {"session": ref.key, "finished": newest_finished} | ({} if track is None else {"track": packed(track)})
    read = connection.execute(_tasks_of(on_track=track is not None), asked).mappings()
    found = readable(connection, read, task_of)
    finished = [one for one in found if one.state == "finished"]
    unfinished = sorted((one for one in found if one.state != "finished"), key=lambda one: (one.state, one.started_at))
    return [*unfinished, *sorted(finished, key=lambda one: -one.number)]


@cache
def _tasks_of(*, on_track: bool) -> CompoundSelect[Any]:
    mine = select(tasks).where(tasks.c.session_key == bindparam("session"))
    if on_track:
        mine = mine.where(tasks.c.track == bindparam("track"))
    finished = mine.where(tasks.c.state == "finished").order_by(tasks.c.number.desc()).limit(bindparam("finished"))
    return union_all(mine.where(tasks.c.state.in_(("active", "waiting"))), select(finished.subquery()))


def restore_tasks(connection: Connection, ref: SessionRef, state: RunState, *, track: str | None = None) -> None:
    """Tasks as the state has them, those of one track where it is of that alone. What came since is taken out.

    What the state is silent of stays: it names every active task and every one that waits, and of the finished
    ones the last: an unnamed one with a low number is older.
    """
    named = {digest_of_task(task.track, task.id): task for task in state.tasks}
    mine = and_(*rows.of_track(tasks, ref, track))
    unfinished = tasks.c.state.in_(("active", "waiting"))
    since = or_(tasks.c.number > state.finished_tasks, and_(unfinished, tasks.c.first_seq > state.last_seq))
    connection.execute(delete(tasks).where(mine, since))
    for part in chunks(list(named)):
        connection.execute(delete(tasks).where(mine, tasks.c.task_digest.in_(part)))
    rows.insert_all(connection, tasks, [task_values(ref, task) for task in named.values()])


def restore_pins(
    connection: Connection, ref: SessionRef, state: RunState, *, track: str | None = None
) -> tuple[tuple[str, ...], bool]:
    """Pins as they were, on one track or on all. Returns the pinned messages that are gone, and whether any changed."""
    mine = and_(*rows.of_track(entries, ref, track))
    present = set(connection.scalars(select(entries.c.seq).where(mine, entries.c.pinned.is_(True))))
    there: set[int] = set()
    if state.pinned_seqs:
        wanted = dict(zip(state.pinned_seqs, state.pinned_ids, strict=True))
        for part in chunks(list(wanted)):
            there |= set(connection.scalars(select(entries.c.seq).where(mine, entries.c.seq.in_(part))))
        gone = tuple(name for seq, name in wanted.items() if seq not in there)
    else:
        found = _first_of_ids(connection, ref, state.pinned_ids)
        there = set(found.values())
        gone = tuple(name for name in state.pinned_ids if name not in found)
    for seqs, pinned in ((present - there, False), (there - present, True)):
        for part in chunks(sorted(seqs)):
            connection.execute(update(entries).where(mine, entries.c.seq.in_(part)).values(pinned=pinned))
    return gone, present != there


def _first_of_ids(connection: Connection, ref: SessionRef, message_ids: Sequence[str]) -> dict[str, int]:
    """The number of the first message of each id: the only one that there was while ids were unique in a session."""
    named = {digest_of(one): one for one in message_ids}
    first: dict[str, int] = {}
    for part in chunks(list(named)):
        mine = and_(entries.c.session_key == ref.key, entries.c.id_digest.in_(part))
        query = select(entries.c.id_digest, func.min(entries.c.seq)).where(mine).group_by(entries.c.id_digest)
        first |= {named[digest]: seq for digest, seq in connection.execute(query)}
    return first


def restore_plans(connection: Connection, ref: SessionRef, kept: Sequence[Mapping[str, Any]]) -> None:
    """The plans of views as they were, under the epoch of `ref`, which must be the session's own."""
    for plan in kept:
        write_plan(connection, ref, plan["name"], plan["payload"], now=plan["written_at"], border=plan["border"])
