"""How a run stands: its phase, its tasks, the zone of each view; and how all of that is put back at once."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, func, insert, select, update

from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.runs.run_rows import (
    RunRow,
    locked_run,
    locked_session,
    read_run,
    read_task,
    read_tasks,
    restore_pins,
    restore_plans,
    restore_tasks,
    task_of,
    task_values,
    zones_in,
)
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import advance_epoch
from langchain_tiered_memory.sql.schema import (
    entries,
    packed,
    runs,
    tasks,
    unpacked,
)
from langchain_tiered_memory.transcript.append import CURRENT_TASK
from langchain_tiered_memory.types.records import DEFAULT_TRACK
from langchain_tiered_memory.types.runs import RunState, Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement, RowMapping

    from langchain_tiered_memory.types.records import SessionRef

_KEPT_ZONES = 64
"""Views whose zone is remembered: twice as many as have a plan."""


class Runs(Room):
    """Reads and writes a run's state. Each method is one transaction."""

    def read(self, ref: SessionRef) -> RunRow:
        """How the run stands; as at its start where nothing was written yet."""
        with self.database.read() as connection:
            return read_run(connection, ref)

    def state(self, ref: SessionRef, *, newest_finished: int, track: str | None = None) -> RunState:
        """Everything that `restore` puts back, and where the conversation is; of one track alone, or of the session."""
        with self.database.read() as connection:
            run = read_run(connection, ref)
            found = read_tasks(connection, ref, newest_finished=newest_finished, track=track)
            if track is not None:
                run = RunRow(started_at=run.started_at, finished_tasks=max((one.number for one in found), default=0))
            mine = select(entries.c.seq, entries.c.message_id).where(*rows.of_track(entries, ref, track))
            pinned = connection.execute(mine.where(entries.c.pinned.is_(True)).order_by(entries.c.seq)).all()
            last = connection.execute(mine.order_by(entries.c.seq.desc()).limit(1)).one_or_none()
            return RunState(
                phase=run.phase,
                tasks=tuple(found),
                finished_tasks=run.finished_tasks,
                pinned_ids=tuple(unpacked(row.message_id) for row in pinned),
                last_seq=last.seq if last is not None else 0,
                last_message_id=unpacked(last.message_id) if last is not None else None,
                pinned_seqs=tuple(row.seq for row in pinned),
            )

    def set_phase(self, ref: SessionRef, phase: str | None, now: float) -> str | None:
        """Enter a phase, or with `None` leave it. Returns the phase before."""
        with self.database.write() as connection:
            row = locked_run(connection, ref, now)
            connection.execute(
                update(runs).where(runs.c.session_key == ref.key).values(phase=rows.packed_or_none(phase))
            )
        return rows.unpacked_or_none(row["phase"])

    def set_zone(self, ref: SessionRef, view: str, zone: str, now: float) -> None:
        """Remember the zone of a view. Nothing happens when the session was removed meanwhile."""
        with self.database.write() as connection:
            try:
                row = locked_run(connection, ref, now)
            except NotFoundError:
                return
            name = packed(view)
            known = zones_in(connection, row)
            zones = {key: value.value for key, value in known.items() if key != name} | {name: zone}
            kept = dict(list(zones.items())[-_KEPT_ZONES:])
            connection.execute(update(runs).where(runs.c.session_key == ref.key).values(zones=json.dumps(kept)))

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
            locked_run(connection, ref, now)
            known = read_task(connection, ref, task_id, track=track, alone=alone)
            if known is not None and (waits or known["state"] == "active"):
                return task_of(dict(known))
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
            connection.execute(insert(tasks).values(task_values(ref, task)))
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
            known = read_task(connection, ref, task_id, track=track, alone=alone)
            if known is None:
                msg = f"no task {task_id!r} was started in the session {ref.session_id!r}"
                raise NotFoundError(msg)
            if known["state"] == "finished":
                return task_of(dict(known)), False
            run = locked_run(connection, ref, now)
            check(runs, {"finished_tasks": run["finished_tasks"]})
            changed = {
                "state": "finished",
                "finished_at": now,
                "last_seq": session["next_seq"] - 1,
                "number": run["finished_tasks"] + 1,
            }
            connection.execute(update(tasks).where(_this(known)).values(changed))
            connection.execute(
                update(runs).where(runs.c.session_key == ref.key).values(finished_tasks=changed["number"])
            )
            return task_of(dict(known) | changed), True

    def tasks(self, ref: SessionRef, *, newest_finished: int, track: str | None = None) -> list[Task]:
        """Active tasks in the order they were started, those that wait as queued, the last finished, newest first."""
        with self.database.read() as connection:
            return read_tasks(connection, ref, newest_finished=newest_finished, track=track)

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
            locked_run(connection, ref, now)
            if track is None:
                values = {"phase": rows.packed_or_none(state.phase), "finished_tasks": state.finished_tasks}
                connection.execute(update(runs).where(runs.c.session_key == ref.key).values(values))
            restore_tasks(connection, ref, state, track=track)
            gone, changed = restore_pins(connection, ref, state, track=track)
            holds = not changed and session["epoch"] == epoch
            if changed:
                advance_epoch(connection, ref.key)
            if holds:
                restore_plans(connection, replace(ref, epoch=epoch), plans)
            return gone, holds and bool(plans)


def _this(task: RowMapping) -> ColumnElement[bool]:
    return and_(tasks.c.session_key == task["session_key"], tasks.c.task_digest == task["task_digest"])
