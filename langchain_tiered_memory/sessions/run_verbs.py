"""The verbs of a session that is an agent's run: tasks, phases, checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - annotations are read at the border, as are the next
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.driver import off_loop_twin
from langchain_tiered_memory.runs.checkpoints import checkpoint, checkpoint_infos, read_checkpoint
from langchain_tiered_memory.runs.file_list import accessed_files
from langchain_tiered_memory.runs.restore import restore
from langchain_tiered_memory.runs.tasks import before_operation, enter_phase, finish_task, list_tasks, start_task
from langchain_tiered_memory.sessions.scoped_verbs import SessionCore, refuse_whole_session
from langchain_tiered_memory.types.arguments import Count, Name, Words  # noqa: TC001

if TYPE_CHECKING:
    from langchain_tiered_memory.types.runs import CheckpointInfo, FileAccess, MemoryCheckpoint, RestoreReport, Task


@checked_verbs
class RunVerbs(SessionCore):
    """Tasks, phases and checkpoints."""

    def start_task(self, task_id: Name, *, depends_on: Sequence[Name] | None = None) -> Task:
        """Start a task: messages that come without one belong to it, and its own count most when a view is pruned.

        Args:
            task_id: Your name for it. Starting an active one again changes nothing; a finished one is opened again.
            depends_on: Tasks whose messages matter to this one; `None`: none, or those that it was queued with.
        """
        return self._begin_task(task_id, depends_on, waits=False)

    def queue_task(self, task_id: Name, *, depends_on: Sequence[Name] | None = None) -> Task:
        """Put a task behind those that wait: `start_task` starts it. Checkpoints have the queue, and restore it.

        Args:
            task_id: Your name for it. One that is there already stays as it is.
            depends_on: Tasks whose messages matter to this one.
        """
        return self._begin_task(task_id, depends_on, waits=True)

    aqueue_task = off_loop_twin(queue_task)

    def tasks(self) -> list[Task]:
        """Active tasks, those that wait in the order in which they were queued, and the last 50 finished.

        A name is one task's on its track. With a scope they are its track's.
        """
        return list_tasks(self.core.checked, self.session_id, track=self.core.only_track)

    atasks = off_loop_twin(tasks)

    def accessed_files(self, *, limit: Count = 50) -> list[FileAccess]:
        """The files that the track's tool calls touched lately, the latest first: path, tool, operation, turn and time.

        Each once, by its latest access, under its longest name; `write` where it was ever written.

        Args:
            limit: How many at most.
        """
        runtime, ref = self.core.checked, self.core.ref
        return accessed_files(runtime, ref, track=self.track, limit=limit) if ref is not None else []

    aaccessed_files = off_loop_twin(accessed_files)

    def _begin_task(self, task_id: Name, depends_on: Sequence[Name] | None, *, waits: bool) -> Task:
        return start_task(
            self.core.checked,
            self.session_id,
            task_id,
            user=self.core.user,
            title=self.core.title,
            track=self.track,
            depends_on=depends_on,
            waits=waits,
            alone=self.core.scope is not None,
        )

    astart_task = off_loop_twin(start_task)

    def finish_task(self, task_id: Name) -> Task:
        """Finish a task; what was said of it may be condensed from now on. Every fifth one is a checkpoint.

        Args:
            task_id: As for `start_task`.

        Raises:
            NotFoundError: when no such task was started.
        """
        alone = self.core.scope is not None
        task, _ = finish_task(self.core.checked, self.session_id, task_id, track=self.track, alone=alone)
        self.core.wake()
        return task

    afinish_task = off_loop_twin(finish_task)

    def phase(self, name: Name | None, *, project: Mapping[str, Any] | None = None) -> MemoryCheckpoint | None:
        """Enter a phase of the run (`None`: leave the present one). A change is saved as a checkpoint.

        Args:
            name: Yours for it.
            project: As for `checkpoint`.
        """
        core = self.core
        refuse_whole_session(core, "phase")
        return enter_phase(
            core.checked,
            self.session_id,
            name,
            user=core.user,
            title=core.title,
            track=self.track,
            project=_plain(project),
        )

    aphase = off_loop_twin(phase)

    def before(self, operation: Name, *, project: Mapping[str, Any] | None = None) -> MemoryCheckpoint | None:
        """Say what is about to be done; what `settings.checkpoints.operations` calls risky is saved first.

        Args:
            operation: What it is.
            project: As for `checkpoint`.

        Raises:
            StorageError: when the checkpoint cannot be written: the operation had better wait.
        """
        return before_operation(
            self.core.checked,
            self.session_id,
            operation,
            track=self.track,
            project=_plain(project),
            alone=self.core.scope is not None,
        )

    abefore = off_loop_twin(before)

    def checkpoint(
        self,
        reason: Words = "manual",
        *,
        project: Mapping[str, Any] | None = None,
        langgraph_checkpoint_id: Name | None = None,
    ) -> MemoryCheckpoint:
        """Save how the run stands: tasks, phase, pins, views, the messages of the last view, checksums of files.

        A handle with a scope saves its own track: `restore` of a handle without one takes that only by its id.

        Args:
            reason: Why, in a word of yours.
            project: Whatever you want back with it, in plain JSON. Those that are made by themselves later have it too,
                until you give another.
            langgraph_checkpoint_id: The LangGraph checkpoint that belongs to it.

        Raises:
            InvalidInputError: when `project` is no JSON.
            NotFoundError: when the session has nothing to save yet.
            StorageError: when it cannot be written; nothing was.
        """
        return checkpoint(
            self.core.checked,
            self.session_id,
            track=self.track,
            reasons=(reason,),
            project=_plain(project),
            langgraph_checkpoint_id=langgraph_checkpoint_id,
            alone=self.core.scope is not None,
        )

    acheckpoint = off_loop_twin(checkpoint)

    def checkpoints(self) -> list[CheckpointInfo]:
        """The session's checkpoints without their contents, newest first; with a scope those of its track alone."""
        return checkpoint_infos(self.core.checked, self.core.ref, track=self.core.only_track)

    acheckpoints = off_loop_twin(checkpoints)

    def read_checkpoint(self, checkpoint_id: Name | None = None) -> MemoryCheckpoint:
        """What a checkpoint holds: context and project state, task queue, metrics, conversation, checksums of files.

        Its `conversation` is in LangChain's message dicts: `messages_from_dict` makes messages of them.

        Args:
            checkpoint_id: Which one; `None` for the newest that is whole.

        Raises:
            CheckpointError: when there is none, or the named one is damaged.
        """
        return read_checkpoint(self.core.checked, self.session_id, checkpoint_id, track=self.core.only_track)

    aread_checkpoint = off_loop_twin(read_checkpoint)

    def restore(self, checkpoint_id: Name | None = None) -> RestoreReport:
        """Put tasks, phase, pins and views back as a checkpoint has them.

        No message is removed: those that were said since are named in the report, as are files that changed.

        Args:
            checkpoint_id: Which one; `None`: the newest sound one.

        Raises:
            CheckpointError: when there is none, or the named one is damaged.
        """
        refuse_whole_session(self.core, "restore")
        return restore(self.core.checked, self.session_id, checkpoint_id)

    arestore = off_loop_twin(restore)


def _plain(project: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return dict(project) if project is not None else None
