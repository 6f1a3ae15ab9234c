"""The last resort: of a context, only what no work can go on without. The design's aggressive pruning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.pruning_kinds import named_kind
from langchain_tiered_memory.context.compaction.pruning_reads import read_groups
from langchain_tiered_memory.context.compaction.pruning_run import run_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Group
    from langchain_tiered_memory.types.runs import FileAccess, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Essentials:
    """The groups of a minimal context, by `first_seq`. One group can be more than one thing."""

    system: tuple[int, ...] = ()
    task: tuple[int, ...] = ()
    """What says what is to be done: description and acceptance criteria, else the first user message."""
    file: int | None = None
    """Where the active file's latest content stands."""
    user: int | None = None
    """The last user message."""
    error: int | None = None
    """The latest error that nothing settled; where all are settled, the latest."""

    @property
    def keys(self) -> tuple[int, ...]:
        """All of them, each once, in the order of the conversation."""
        single = {key for key in (self.file, self.user, self.error) if key is not None}
        return tuple(sorted({*self.system, *self.task, *single}))


def essentials(
    groups: Sequence[Group],
    *,
    tasks: Sequence[Task] = (),
    current_task: str | None = None,
    touches: Sequence[FileAccess] = (),
) -> Essentials:
    """What a minimal context consists of.

    Args:
        groups: What there is to choose from, oldest first.
        tasks: Active tasks, and the last finished ones.
        current_task: Id of the task being worked on.
        touches: Files that were touched; those that the groups themselves touch need not be among them.
    """
    readings = read_groups(groups)
    run = run_facts(readings, now=0.0, tasks=tasks, current_task=current_task, touches=touches)
    kinds = [{named_kind(entry.kind) for entry in group.entries} for group in groups]
    own = [run.belongs(run.task_of(group)) for group in groups]
    described = [at for at, kind in enumerate(kinds) if own[at] and kind & {"task", "criteria"}]
    if run.description is not None and not any("task" in kinds[at] for at in described):
        described.append(run.description)
    errors = [at for at, one in enumerate(readings) if one.failed]
    unsettled = [at for at in errors if not readings[at].resolved]
    return Essentials(
        system=tuple(
            group.first_seq
            for group, kind in zip(groups, kinds, strict=True)
            if "system" in kind or group.entries[0].role == "system"
        ),
        task=tuple(groups[at].first_seq for at in sorted(described)),
        file=groups[run.showing].first_seq if run.showing is not None else None,
        user=groups[run.users[0]].first_seq if run.users else None,
        error=groups[max(unsettled or errors)].first_seq if errors else None,
    )
