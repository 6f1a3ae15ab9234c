"""What an agent says of its own work: tasks, phases, risky operations. Each may be a reason for a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError, StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.runs.checkpoint_triggers import due_reasons
from langchain_tiered_memory.runs.checkpoints import FINISHED_TASKS, checkpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef
    from langchain_tiered_memory.types.runs import MemoryCheckpoint, Task


def start_task(
    runtime: Runtime,
    session_id: str,
    task_id: str,
    *,
    user: str | None = None,
    title: str | None = None,
    track: str,
    depends_on: Sequence[str] | None = None,
    waits: bool = False,
    alone: bool = False,
) -> Task:
    """Start a task: messages that come without one belong to it. Starting an active one again changes nothing.

    With `waits` it is queued instead, behind those that wait already; one that is there already stays as it is. With
    `alone` its name is one of its track alone, whatever others have.
    """
    _check(task_id, "task")
    ref = _session(runtime, session_id, user=user, title=title)
    resting = tuple(depends_on) if depends_on is not None else None
    return runtime.store.runs.start_task(
        ref, track, task_id, depends_on=resting, now=runtime.now(), waits=waits, alone=alone
    )


def list_tasks(runtime: Runtime, session_id: str, *, track: str | None = None) -> list[Task]:
    """Active tasks, those that wait in the order in which they were queued, and the last finished, newest first."""
    ref = runtime.store.transcript.find(session_id)
    return runtime.store.runs.tasks(ref, newest_finished=FINISHED_TASKS, track=track) if ref is not None else []


def finish_task(
    runtime: Runtime, session_id: str, task_id: str, *, track: str, alone: bool = False
) -> tuple[Task, MemoryCheckpoint | None]:
    """Finish a task; every so many finished tasks a checkpoint is made. Finishing one twice is the same as once.

    A checkpoint that cannot be written does not unmake the finished task: it is reported as `checkpoint_failed`.
    """
    ref = runtime.store.transcript.find(session_id)
    if ref is None:
        msg = f"no task {task_id!r} was started in the session {session_id!r}"
        raise NotFoundError(msg)
    task, is_new = runtime.store.runs.finish_task(ref, task_id, runtime.now(), track=track, alone=alone)
    reasons = due_reasons(settings=runtime.settings.checkpoints, finished_task=task.number if is_new else None)
    return task, _saved_in_passing(runtime, session_id, track, reasons)


def enter_phase(
    runtime: Runtime,
    session_id: str,
    name: str | None,
    *,
    user: str | None = None,
    title: str | None = None,
    track: str,
    project: dict[str, Any] | None = None,
) -> MemoryCheckpoint | None:
    """Enter a phase, or with `None` leave the present one; a change is saved. Returns the checkpoint, if one is made.

    A checkpoint that cannot be written does not unmake the phase: it is reported as `checkpoint_failed`.
    """
    if name is not None:
        _check(name, "phase")
    ref = _session(runtime, session_id, user=user, title=title)
    before = runtime.store.runs.set_phase(ref, name, runtime.now())
    reasons = due_reasons(settings=runtime.settings.checkpoints, phase_changed=before != name)
    return _saved_in_passing(runtime, session_id, track, reasons, project=project)


def before_operation(
    runtime: Runtime,
    session_id: str,
    operation: str,
    *,
    track: str,
    project: dict[str, Any] | None = None,
    alone: bool = False,
) -> MemoryCheckpoint | None:
    """Say what is about to be done: a risky operation is saved before. Returns the checkpoint, where one is made."""
    _check(operation, "operation")
    reasons = due_reasons(settings=runtime.settings.checkpoints, operation=operation)
    if not reasons:
        return None
    return checkpoint(runtime, session_id, track=track, reasons=reasons, project=project, alone=alone)


def _session(runtime: Runtime, session_id: str, *, user: str | None, title: str | None) -> SessionRef:
    """The session, made where it does not exist: to append no message is to make it."""
    appended = runtime.store.transcript.append(session_id, (), user=user, title=title, now=runtime.now())
    return appended.ref


def _saved_in_passing(
    runtime: Runtime,
    session_id: str,
    track: str,
    reasons: Sequence[str],
    *,
    project: dict[str, Any] | None = None,
) -> MemoryCheckpoint | None:
    if not reasons:
        return None
    try:
        return checkpoint(runtime, session_id, track=track, reasons=reasons, project=project)
    except StorageError as error:
        runtime.report(EventName.CHECKPOINT_FAILED, str(error), session_id=session_id, reasons=list(reasons))
        return None


def _check(name: object, what: str) -> None:
    if not isinstance(name, str) or not name.strip():
        msg = f"a {what} needs a name, not {name!r}"
        raise InvalidInputError(msg[:500])
