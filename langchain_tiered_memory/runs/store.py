"""How a run stands: its phase, its tasks, the zone of each view; and how all of that is put back at once."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    CompoundSelect,
    Connection,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
    update,
)

from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.runs.plans import KEPT_VIEWS, write_plan
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import check, damage_in
from langchain_tiered_memory.sql.damage import damage_of, readable, readable_or
from langchain_tiered_memory.sql.entry_rows import short_name
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import advance_epoch, lock_session
from langchain_tiered_memory.sql.schema import (
    checkpoints,
    digest_of,
    digest_of_task,
    entries,
    packed,
    runs,
    sessions,
    tasks,
    unpacked,
)
from langchain_tiered_memory.transcript.append import CURRENT_TASK, chunks
from langchain_tiered_memory.types.outcomes import Zone
from langchain_tiered_memory.types.records import DEFAULT_TRACK
from langchain_tiered_memory.types.runs import RunState, Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement, RowMapping

    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.types.records import SessionRef

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
    figures: Mapping[str, Any] = field(default_factory=dict)
    """The session's running figures, as `Transcript.totals` has them."""
    newest: str | None = None
    """Id of the newest checkpoint: of the run, or of the track that was asked for alone."""


class Runs(Room):
    """Reads and writes a run's state. Each method is one transaction."""

    def read(self, ref: SessionRef) -> RunRow:
        """How the run stands; as at its start where nothing was written yet."""
        with self.database.read() as connection:
            return _read_run(connection, ref)

    def state(self, ref: SessionRef, *, newest_finished: int, track: str | None = None) -> tuple[RunState, RunRow]:
        """Everything that `restore` puts back, and where the conversation is; of one track alone, or of the session.

        Beside it the run, whose figures and phase are those of the session in any case.
        """
        with self.database.read() as connection:
            run = _read_run(connection, ref, track=track)
            found = _read_tasks(connection, ref, newest_finished=newest_finished, track=track)
            mine = select(entries.c.seq, entries.c.message_id).where(*rows.of_track(entries, ref, track))
            pinned = mine.add_columns(literal(1).label("part")).where(entries.c.pinned.is_(True)).subquery()
            last = mine.add_columns(literal(2).label("part")).order_by(entries.c.seq.desc()).limit(1).subquery()
            there = connection.execute(union_all(select(pinned), select(last))).all()
            ids = {row.seq: unpacked(row.message_id) for row in there}
            pinned_seqs, newest = sorted(row.seq for row in there if row.part == 1), max(ids, default=0)
            alone = max((one.number for one in found), default=0)
            state = RunState(
                phase=run.phase if track is None else None,
                tasks=tuple(found),
                finished_tasks=run.finished_tasks if track is None else alone,
                pinned_ids=tuple(ids[seq] for seq in pinned_seqs),
                last_seq=newest,
                last_message_id=ids.get(newest),
                pinned_seqs=tuple(pinned_seqs),
            )
            return state, run

    def set_phase(self, ref: SessionRef, phase: str | None, now: float) -> str | None:
        """Enter a phase, or with `None` leave it. Returns the phase before."""
        with self.database.write() as connection:
            session = locked_session(connection, ref)
            before = connection.scalar(select(runs.c.phase).where(runs.c.session_key == ref.key))
            change_run(connection, session, now, phase=rows.packed_or_none(phase))
        return rows.unpacked_or_none(before)

    def set_zone(self, ref: SessionRef, view: str, zone: str, now: float) -> None:
        """Remember the zone of a view. Nothing happens when the session was removed meanwhile."""
        with self.database.write() as connection:
            session = lock_session(connection, ref.key)
            if session is None:
                return
            row = connection.execute(select(runs).where(runs.c.session_key == ref.key)).mappings().one_or_none()
            name, known = packed(view), {} if row is None else _zones_in(connection, row)
            zones = {key: value.value for key, value in known.items() if key != name} | {name: zone}
            change_run(connection, session, now, zones=json.dumps(dict(list(zones.items())[-KEPT_VIEWS:])))

    def start_task(
        self,
        ref: SessionRef,
        track: str,
        task_id: str,
        *,
        depends_on: Sequence[str] | None = None,
        now: float,
        waits: bool = False,
        alone: bool = False,
    ) -> Task:
        """Start a task: what comes now belongs to it. An active one stays as it is; a finished one is opened again.

        One that waits is started, and keeps what it depends on unless something else is said. With `waits` a task is
        queued instead; one that is there already stays as it is. One of another track comes to this one; with `alone`
        it is not looked at, and the name is this track's own.
        """
        with self.database.write() as connection:
            session = locked_session(connection, ref)
            known = _read_task(connection, ref, task_id, track=track, alone=alone)
            if known is not None and (waits or known["state"] == "active"):
                return _task_of(dict(known))
            queued = known is not None and known["state"] == "waiting"
            resting = tuple(depends_on or ())
            if known is not None and queued and depends_on is None:
                resting = rows.names_in(tasks, known, "depends_on")
            # Times of starting tell which task is the current one: they rise, even where the clock stands or goes back.
            latest = select(func.max(tasks.c.started_at)).where(tasks.c.session_key == ref.key)
            before = connection.scalar(latest)
            if not isinstance(before, float | int):
                before = None
            task = Task(
                id=task_id,
                track=track,
                state="waiting" if waits else "active",
                depends_on=resting,
                started_at=now if before is None else max(now, math.nextafter(before, math.inf)),
                first_seq=known["first_seq"] if known is not None and not queued else session["next_seq"],
            )
            if known is not None:
                connection.execute(delete(tasks).where(_this(known)))
            connection.execute(insert(tasks).values(_task_values(ref, task)))
            return task

    def finish_task(
        self, ref: SessionRef, task_id: str, now: float, *, track: str = DEFAULT_TRACK, alone: bool = False
    ) -> tuple[Task, bool]:
        """Finish a task: the track's own of that name, else, if not `alone`, another track's.

        Returns:
            It, and whether it was this call that finished it.
        """
        with self.database.write() as connection:
            session = locked_session(connection, ref)
            known = _read_task(connection, ref, task_id, track=track, alone=alone)
            if known is None:
                msg = f"no task {task_id!r} was started in the session {ref.session_id!r}"
                raise NotFoundError(msg)
            if known["state"] == "finished":
                return _task_of(dict(known)), False
            before = connection.scalar(select(runs.c.finished_tasks).where(runs.c.session_key == ref.key))
            finished = 0 if before is None else before
            check(runs, {"finished_tasks": finished})
            changed = {
                "state": "finished",
                "finished_at": now,
                "last_seq": session["next_seq"] - 1,
                "number": finished + 1,
            }
            connection.execute(update(tasks).where(_this(known)).values(changed))
            change_run(connection, session, now, finished_tasks=changed["number"])
            return _task_of(dict(known) | changed), True

    def tasks(self, ref: SessionRef, *, newest_finished: int, track: str | None = None) -> list[Task]:
        """Active tasks in the order they were started, those that wait as queued, the last finished, newest first."""
        with self.database.read() as connection:
            return _read_tasks(connection, ref, newest_finished=newest_finished, track=track)

    def current_task(self, ref: SessionRef, track: str) -> str | None:
        """The active task of a track that was started last."""
        asked = {"session": ref.key, "track": packed(track)}
        with self.database.read() as connection:
            return rows.unpacked_or_none(connection.scalar(CURRENT_TASK, asked))

    def said_since(self, ref: SessionRef, after: int) -> tuple[int, int, int]:
        """How many messages stand behind a number, and the first and the last of them; zeros for none."""
        query = select(func.count(), func.min(entries.c.seq), func.max(entries.c.seq)).where(
            entries.c.session_key == ref.key, entries.c.seq > after
        )
        with self.database.read() as connection:
            count, first, last = connection.execute(query).one()
        return int(count), int(first or 0), int(last or 0)

    def restore(
        self,
        ref: SessionRef,
        state: RunState,
        now: float,
        *,
        plans: Sequence[Mapping[str, Any]] = (),
        epoch: int = -1,
        track: str | None = None,
    ) -> tuple[tuple[str, ...], bool]:
        """Put phase, tasks and pins back as they were, and the views' plans where they still hold.

        Tasks that were started since are taken out; tasks that were finished so long before that the state does not
        name them stay as they are. Messages are not touched. `plans`, as `Plans.kept` gave them, hold while the session
        has not moved on from `epoch` and the pins are those of then. With a `track` the state is of that alone: nothing
        of another, and no phase, is touched.

        Returns:
            Pinned messages of the state that are gone, and whether the plans of the views hold, and stand again.
        """
        with self.database.write() as connection:
            session = locked_session(connection, ref)
            if track is None:
                phase = rows.packed_or_none(state.phase)
                change_run(connection, session, now, phase=phase, finished_tasks=state.finished_tasks)
            _restore_tasks(connection, ref, state, track=track)
            gone, changed = _restore_pins(connection, ref, state, track=track)
            holds = not changed and session["epoch"] == epoch
            if changed:
                advance_epoch(connection, ref.key)
            if holds:
                for plan in plans:
                    name, now_then = plan["name"], plan["written_at"]
                    present = replace(ref, epoch=epoch)
                    write_plan(connection, present, name, plan["payload"], now=now_then, border=plan["border"])
            return gone, holds and bool(plans)


def locked_session(connection: Connection, ref: SessionRef) -> RowMapping:
    """The session's row, ours until the transaction ends."""
    row = lock_session(connection, ref.key)
    if row is None:
        msg = f"the session {ref.session_id!r} was removed meanwhile"
        raise NotFoundError(msg)
    return row


def change_run(connection: Connection, session: RowMapping, now: float, **values: Any) -> None:  # noqa: ANN401 - by column
    """Change the run of a session that is locked; it is made where there is none."""
    mine = runs.c.session_key == session["key"]
    if connection.execute(update(runs).where(mine).values(values)).rowcount:
        return
    # A clock that was set back must not put the start into the future.
    start = {"session_key": session["key"], "started_at": min(session["created_at"], now)}
    connection.execute(insert(runs).values(start | values))


def _read_run(connection: Connection, ref: SessionRef, *, track: str | None = None) -> RunRow:
    """How the run and its session stand; as at its start where nothing was written of the run yet."""
    whose = [] if track is None else [checkpoints.c.track == packed(track)]
    mine = and_(checkpoints.c.session_key == ref.key, checkpoints.c.alone.is_(track is not None), *whose)
    newest = select(checkpoints.c.id).where(mine).order_by(checkpoints.c.key.desc()).limit(1).scalar_subquery()
    there = sessions.outerjoin(runs, runs.c.session_key == sessions.c.key)
    query = select(sessions, runs, newest.label("newest")).select_from(there).where(sessions.c.key == ref.key)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return RunRow()
    known = {"newest": row["newest"], "figures": rows.figures_of(connection, row)}
    if row["session_key"] is None:
        made = row["created_at"]
        return RunRow(started_at=made if isinstance(made, float | int) else 0.0, **known)
    values: dict[str, Any] = {name: row[name] for name in _OF_RUN} | {"phase": rows.unpacked_or_none(row["phase"])}
    for error in damage_in(runs, {name: row[name] for name in (*_OF_RUN, "phase")}):
        damage_of(connection).note(error)
        del values[error.column]
    zones = {unpacked(view): zone.value for view, zone in _zones_in(connection, row).items()}
    return RunRow(zones=zones, **known, **values)


def _zones_in(connection: Connection, row: RowMapping) -> dict[str, Zone]:
    """The zones of a run's views, by packed name; none where they cannot be read, which is noted."""
    found: dict[str, Zone] = readable_or(
        connection, lambda: rows.from_json(runs, row, "zones", dict[str, Zone]), otherwise={}
    )
    return found


def _task_of(row: Columns) -> Task:
    """A row of `ltm_tasks`."""
    stored = {name: row[name] for name in _AS_STORED}
    check(tasks, stored)
    depends_on = rows.names_in(tasks, row, "depends_on")
    return Task(id=unpacked(row["task_id"]), track=unpacked(row["track"]), depends_on=depends_on, **stored)


def _task_values(ref: SessionRef, task: Task) -> dict[str, Any]:
    """The row of a task."""
    return {
        "session_key": ref.key,
        "task_digest": digest_of_task(task.track, task.id),
        "task_id": short_name(task.id, "task"),
        "track": short_name(task.track, "track"),
        "depends_on": rows.names_to_json(task.depends_on),
        **{name: getattr(task, name) for name in _AS_STORED},
    }


def _read_task(
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


def _read_tasks(
    connection: Connection, ref: SessionRef, *, newest_finished: int, track: str | None = None
) -> list[Task]:
    """Active tasks in the order they were started, those that wait as queued, the last finished, newest first."""
    asked = {"session": ref.key, "finished": newest_finished} | ({} if track is None else {"track": packed(track)})
    read = connection.execute(_tasks_of(on_track=track is not None), asked).mappings()
    found = readable(connection, read, _task_of)
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


def _restore_tasks(connection: Connection, ref: SessionRef, state: RunState, *, track: str | None = None) -> None:
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
    rows.insert_all(connection, tasks, [_task_values(ref, task) for task in named.values()])


def _restore_pins(
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


def _this(task: RowMapping) -> ColumnElement[bool]:
    return and_(*(tasks.c[name] == task[name] for name in ("session_key", "task_digest")))
