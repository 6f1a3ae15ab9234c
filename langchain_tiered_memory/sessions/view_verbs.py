"""A session's verbs for views (contexts, the guard's decisions) and for runs (tasks, phases, checkpoints)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - annotations are read at the border, as are the next
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage  # noqa: TC002
from langchain_core.runnables import Runnable  # noqa: TC002

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.context.compaction.thresholds import advised
from langchain_tiered_memory.context.ledgers import costs, diff, dropped, outcomes, undo
from langchain_tiered_memory.driver import flow_twin, off_loop_twin, run
from langchain_tiered_memory.errors import NotFoundError, StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.runs.checkpoints import (
    FINISHED_TASKS,
    checkpoint,
    checkpoint_infos,
    read_checkpoint,
    reasons_to_save,
    restore,
)
from langchain_tiered_memory.runs.file_list import accessed_files
from langchain_tiered_memory.sessions.record_verbs import SessionCore, refuse_whole_session
from langchain_tiered_memory.types.arguments import Count, Name, Tool, Words  # noqa: TC001
from langchain_tiered_memory.types.contexts import Context  # noqa: TC001
from langchain_tiered_memory.types.files import WindowUse
from langchain_tiered_memory.types.outcomes import (
    CostLedger,
    Ledger,
    LedgerRow,
    Outcome,
    Outcomes,
    ThresholdAdvice,
    ViewDiff,
)

if TYPE_CHECKING:
    from langchain_tiered_memory.types.runs import CheckpointInfo, FileAccess, MemoryCheckpoint, RestoreReport, Task


@checked_verbs
class ViewVerbs(SessionCore):
    """Contexts, and the decisions behind them; tasks, phases and checkpoints."""

    def context(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Tool] = (),
        model: str | Runnable[Any, Any] | None = None,
        view: str = "default",
        profile: Name | None = None,
        branch: Sequence[str] | None = None,
    ) -> Context:
        """Put together the context of one model call.

        Args:
            query: The question to recall for. By default, the last user message. `""` leaves recall out.
            max_tokens: The most tokens of the whole request, with `system` and `tools`. By default
                `settings.context.max_tokens`. It never exceeds what the model's window allows.
            system: The system prompt of the request.
            tools: The tools of the request, for their size.
            model: The model to call, or its name. Its window and calibration are used.
            view: `default` is for a running conversation. `recall` gives nearly all room to quotes that answer the
                question. `minimal` shows system prompt, current task, active file, last user message and last error.
                Other names are those of `settings.context.views`, such as `detailed` and `compact`.
            profile: The profile whose condensation threshold applies. By default, the name of the model.
            branch: Ids of the messages on this branch of a forked conversation. Other messages, and summaries that
                cover any of them, are not shown. This takes longer the longer the session is.

        Returns:
            The messages, an account of them, and in `.guard` what was done to make them fit.

        Raises:
            BudgetError: if the budget cannot hold what must be shown. `ContextOverflowError` if the window overflowed
                and recovery failed too.
            CondensationError: if condensing failed, the view does not fit, and
                `settings.condensation.strategies.fallback` is `error`.
        """
        return run(
            self.core.context(
                query,
                max_tokens=max_tokens,
                system=system,
                tools=tools,
                model=model,
                view=view,
                profile=profile,
                branch=branch,
            )
        )

    acontext = flow_twin(context, lambda self: self.core.context)

    def preview(
        self,
        query: str | None = None,
        *,
        max_tokens: int | None = None,
        system: str | BaseMessage | None = None,
        tools: Sequence[Tool] = (),
        model: str | Runnable[Any, Any] | None = None,
        view: str = "default",
    ) -> ViewDiff:
        """Show what a condensation of a view would change now, due or not, without writing or calling a model.

        Args:
            query: The question. By default, the last user message.
            max_tokens: The most tokens of the whole request. By default `settings.context.max_tokens`.
            system: The system prompt of the call, for its size.
            tools: The tools of the call, for their size.
            model: The model of the call, or its name.
            view: As for `context`.

        Raises:
            NotFoundError: if the session has no message yet.
            InvalidInputError: if the view has nothing to condense, such as `recall`.
        """
        return run(self.core.preview(query, max_tokens=max_tokens, system=system, tools=tools, model=model, view=view))

    apreview = flow_twin(preview, lambda self: self.core.preview)

    def window_use(self) -> WindowUse:
        """Return how large the contexts of this session were, by section, oldest first.

        It covers the last 2,000 contexts that this process made. The database does not keep them.
        """
        own, sizes = self.core.only_track, self.core.engine.contexts.get(self.session_id) or ()
        return WindowUse(size for size in tuple(sizes) if own is None or size.track == own)

    def outcomes(self, *, limit: Count = 50) -> list[Outcome]:
        """Return the outcomes of past condensations of this session's views, newest first.

        Args:
            limit: The most outcomes to return.
        """
        return Outcomes(outcomes(self.core.checked, self.session_id, limit=limit, track=self.core.only_track))

    aoutcomes = off_loop_twin(outcomes)

    def ledger(self) -> list[LedgerRow]:
        """Return what left the views of this session, and why, newest first. It is all still in the transcript."""
        return Ledger(dropped(self.core.checked, self.session_id, track=self.core.only_track))

    aledger = off_loop_twin(ledger)

    def diff(self, outcome_id: Name | None = None) -> ViewDiff:
        """Return what a condensation changed in its view.

        Args:
            outcome_id: The id of its outcome. With `None`, the last one.

        Raises:
            NotFoundError: if there is none.
        """
        refuse_whole_session(self.core, "diff")
        return diff(self.core.checked, self.session_id, outcome_id)

    adiff = off_loop_twin(diff)

    def undo(self, outcome_id: Name | None = None) -> Outcome:
        """Undo a condensation: the view shows again what it showed before.

        It is condensed again only if it does not fit its budget. Its summaries stay.

        Args:
            outcome_id: The id of its outcome. With `None`, the last one.

        Raises:
            NotFoundError: if there is nothing to undo.
            InvalidInputError: if the view has changed since.
        """
        refuse_whole_session(self.core, "undo")
        return undo(self.core.checked, self.session_id, outcome_id)

    aundo = off_loop_twin(undo)

    def costs(self) -> CostLedger:
        """Return what condensing this session cost and saved, and after how many calls it paid off."""
        return costs(self.core.checked, self.session_id, track=self.core.only_track)

    acosts = off_loop_twin(costs)

    def suggest_threshold(self, profile: Name | None = None) -> ThresholdAdvice | None:
        """Return the threshold that past condensations of this session suggest, or `None` if they suggest none.

        With `settings.condensation.thresholds.adaptive`, the memory follows it by itself.

        Args:
            profile: A name of `thresholds.profiles`. With `None`, the global threshold.
        """
        runtime, ref = self.core.checked, self.core.ref
        return advised(runtime, ref, profile, track=self.core.only_track) if ref is not None else None

    asuggest_threshold = off_loop_twin(suggest_threshold)

    def start_task(self, task_id: Words, *, depends_on: Sequence[Name] | None = None) -> Task:
        """Start a task. New messages without a task belong to it, and pruning spares its messages longest.

        Args:
            task_id: Your name for it. Starting an active task again changes nothing. A finished one is reopened.
            depends_on: Tasks whose messages matter to this one. With `None`, those that it was queued with.
        """
        return self._begin_task(task_id, depends_on, waits=False)

    def queue_task(self, task_id: Words, *, depends_on: Sequence[Name] | None = None) -> Task:
        """Add a task to the end of the queue; `start_task` starts it. Checkpoints save and restore the queue.

        Args:
            task_id: Your name for it. A known task stays as it is.
            depends_on: Tasks whose messages matter to this one.
        """
        return self._begin_task(task_id, depends_on, waits=True)

    aqueue_task = off_loop_twin(queue_task)

    def tasks(self) -> list[Task]:
        """Return active tasks, waiting ones in the order in which they were queued, and the 50 finished last.

        A task's name is unique on its track. With a scope, only tasks of this track are returned.
        """
        store, ref = self.core.found()
        only = self.core.only_track
        return store.runs.tasks(ref, newest_finished=FINISHED_TASKS, track=only) if ref is not None else []

    atasks = off_loop_twin(tasks)

    def accessed_files(self, *, limit: Count = 50) -> list[FileAccess]:
        """Return the files that tool calls of this track touched, latest first: path, tool, operation, turn and time.

        Each file appears once, with its latest access and under its longest name. The operation is `write` if it was
        ever written.

        Args:
            limit: The most files to return.
        """
        runtime, ref = self.core.checked, self.core.ref
        return accessed_files(runtime, ref, track=self.track, limit=limit) if ref is not None else []

    aaccessed_files = off_loop_twin(accessed_files)

    def _begin_task(self, task_id: str, depends_on: Sequence[Name] | None, *, waits: bool) -> Task:
        ref, runtime, alone = self.core.made(), self.core.runtime, self.core.scope is not None
        start, now = runtime.store.runs.start_task, runtime.now()
        return start(ref, self.track, task_id, depends_on=depends_on, now=now, waits=waits, alone=alone)

    astart_task = off_loop_twin(start_task)

    def finish_task(self, task_id: Name) -> Task:
        """Finish a task. Its messages may be condensed from now on. Every fifth finished task saves a checkpoint.

        Args:
            task_id: As for `start_task`.

        Raises:
            NotFoundError: if no such task was started.
        """
        runtime, ref = self.core.checked, self.core.ref
        if ref is None:
            msg = f"no task {task_id!r} was started in the session {self.session_id!r}"
            raise NotFoundError(msg)
        alone = self.core.scope is not None
        task, is_new = runtime.store.runs.finish_task(ref, task_id, runtime.now(), track=self.track, alone=alone)
        number = task.number if is_new else None
        self._save_in_passing(reasons_to_save(settings=runtime.settings.checkpoints, finished_task=number))
        self.core.engine.wake(self.session_id)
        return task

    afinish_task = off_loop_twin(finish_task)

    def phase(self, name: Words | None, *, project: Mapping[str, Any] | None = None) -> MemoryCheckpoint | None:
        """Enter a phase of the run, or leave it with `None`. A change saves a checkpoint.

        Args:
            name: Your name for the phase.
            project: As for `checkpoint`.
        """
        core = self.core
        refuse_whole_session(core, "phase")
        runtime = core.checked
        before = runtime.store.runs.set_phase(core.made(), name, runtime.now())
        reasons = reasons_to_save(settings=runtime.settings.checkpoints, phase_changed=before != name)
        return self._save_in_passing(reasons, project=project)

    aphase = off_loop_twin(phase)

    def before(self, operation: Words, *, project: Mapping[str, Any] | None = None) -> MemoryCheckpoint | None:
        """Announce an operation. If `settings.checkpoints.operations` calls it risky, a checkpoint is saved first.

        Args:
            operation: What is about to be done, in words.
            project: As for `checkpoint`.

        Raises:
            StorageError: if the checkpoint cannot be written. Do not start the operation then.
        """
        reasons = reasons_to_save(settings=self.core.checked.settings.checkpoints, operation=operation)
        return self._saved(reasons, project=project, alone=self.core.scope is not None) if reasons else None

    abefore = off_loop_twin(before)

    def checkpoint(
        self,
        reason: Words = "manual",
        *,
        project: Mapping[str, Any] | None = None,
        langgraph_checkpoint_id: Name | None = None,
    ) -> MemoryCheckpoint:
        """Save the state of the run: tasks, phase, pins, views, the messages of the last view, checksums of files.

        A handle with a scope saves its own track. A handle without one restores such a checkpoint only by its id.

        Args:
            reason: Your reason, in a word.
            project: Your own data to save with it, as plain JSON. Automatic checkpoints save it too, until you give
                other data.
            langgraph_checkpoint_id: The LangGraph checkpoint that belongs to it.

        Raises:
            InvalidInputError: if `project` is not JSON.
            NotFoundError: if the session has nothing to save yet.
            StorageError: if it cannot be written. Nothing was written.
        """
        alone = self.core.scope is not None
        return self._saved((reason,), project=project, alone=alone, langgraph_checkpoint_id=langgraph_checkpoint_id)

    acheckpoint = off_loop_twin(checkpoint)

    def checkpoints(self) -> list[CheckpointInfo]:
        """Return the session's checkpoints without their contents, newest first. With a scope, those of this track."""
        return checkpoint_infos(self.core.checked, self.core.ref, track=self.core.only_track)

    acheckpoints = off_loop_twin(checkpoints)

    def read_checkpoint(self, checkpoint_id: Name | None = None) -> MemoryCheckpoint:
        """Read a checkpoint: context and project state, task queue, metrics, conversation, checksums of files.

        Its `conversation` is a list of LangChain's message dicts. `messages_from_dict` turns them into messages.

        Args:
            checkpoint_id: Its id. With `None`, the newest undamaged one.

        Raises:
            CheckpointError: if there is none, or the named one is damaged.
        """
        return read_checkpoint(self.core.checked, self.session_id, checkpoint_id, track=self.core.only_track)

    aread_checkpoint = off_loop_twin(read_checkpoint)

    def restore(self, checkpoint_id: Name | None = None) -> RestoreReport:
        """Restore tasks, phase, pins and views from a checkpoint.

        No message is removed. The report names messages that came since, and files that changed.

        Args:
            checkpoint_id: Its id. With `None`, the newest undamaged one.

        Raises:
            CheckpointError: if there is none, or the named one is damaged.
        """
        refuse_whole_session(self.core, "restore")
        return restore(self.core.checked, self.session_id, checkpoint_id)

    arestore = off_loop_twin(restore)

    def _saved(self, reasons: Sequence[str], *, project: Mapping[str, Any] | None, **about: Any) -> MemoryCheckpoint:  # noqa: ANN401 - as `checkpoint` takes them
        given = dict(project) if project is not None else None
        return checkpoint(self.core.checked, self.session_id, track=self.track, reasons=reasons, project=given, **about)

    def _save_in_passing(
        self, reasons: Sequence[str], *, project: Mapping[str, Any] | None = None
    ) -> MemoryCheckpoint | None:
        """Save what is due. If that fails, nothing is undone: the event `checkpoint_failed` reports it."""
        try:
            return self._saved(reasons, project=project) if reasons else None
        except StorageError as error:
            about = {"session_id": self.session_id, "reasons": list(reasons)}
            self.core.engine.report(EventName.CHECKPOINT_FAILED, str(error), **about)
            return None
