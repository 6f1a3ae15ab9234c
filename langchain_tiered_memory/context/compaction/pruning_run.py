"""What holds for a whole context that is to be pruned: its tasks, the files at hand, the error that is still open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.pruning_reads import RECENT_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_tiered_memory.context.compaction.pruning_reads import GroupReading
    from langchain_tiered_memory.types.records import Entry, Group
    from langchain_tiered_memory.types.runs import FileAccess, Task

ACTIVE_FILES = 3
"""Files touched last, that the work at hand is about."""
NEARBY_FILES = 8
"""Files touched lately: less close to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What holds for all groups of a context. Places are indexes into the groups."""

    now: float
    tasks: dict[str, Task]
    finished: int
    """Number of the task finished last."""
    current: Task | None
    active_files: frozenset[str]
    nearby_files: frozenset[str]
    showing: int | None
    """Place of the group that shows the active file's latest content."""
    error: int | None
    """Place of the latest group with an unresolved error, if the work still turns on it."""
    listing: int | None
    """Place of the latest group that lists files."""
    users: tuple[int, ...]
    """Places of user messages, latest first."""
    description: int | None
    """Place of what says what is to be done."""
    must_stay: frozenset[int] = frozenset()

    def task_of(self, group: Group) -> str | None:
        """The task that a group belongs to."""
        return task_of(group.entries, self.tasks.values())

    def belongs(self, task: str | None) -> bool:
        """Whether something of `task` belongs to the current one: it does, or is of no task in particular."""
        return task is None or self.current is None or task == self.current.id


def task_of(entries: Sequence[Entry], tasks: Iterable[Task]) -> str | None:
    """The task that messages name, else the latest one that was being worked on when they came."""
    named = next((entry.task for entry in entries if entry.task is not None), None)
    if named is not None:
        return named
    seq, track = entries[0].seq, entries[0].track
    within = [
        task
        for task in tasks
        if task.state != "waiting"
        and task.track == track
        and task.first_seq <= seq
        and (task.last_seq is None or seq <= task.last_seq)
    ]
    return max(within, key=lambda task: task.first_seq).id if within else None


def run_facts(
    readings: Sequence[GroupReading],
    *,
    now: float,
    tasks: Sequence[Task],
    current_task: str | None,
    touches: Sequence[FileAccess],
    must_stay: frozenset[int] = frozenset(),
) -> RunFacts:
    """Look at all groups together; the arguments are those of `prune_items`."""
    known = {task.id: task for task in tasks}
    current = known.get(current_task) if current_task is not None else None
    files = _latest_files(readings, touches)
    users = [at for at, one in enumerate(readings) if one.group.entries[0].role == "user"]
    since = max([users[-1] if users else 0, len(readings) - RECENT_GROUPS])
    errors = [at for at, one in enumerate(readings) if one.failed and not one.resolved and at >= since]
    listings = [at for at, one in enumerate(readings) if any(_lists(call.paths) for call in one.calls)]
    return RunFacts(
        now=now,
        tasks=known,
        finished=max((task.number for task in tasks), default=0),
        current=current,
        active_files=frozenset(files[:ACTIVE_FILES]),
        nearby_files=frozenset(files[:NEARBY_FILES]),
        showing=_place_of_content(readings, files[0]) if files else None,
        error=max(errors, default=None),
        listing=max(listings, default=None),
        users=tuple(reversed(users)),
        description=_description(readings, current, users),
        must_stay=must_stay,
    )


def _latest_files(readings: Sequence[GroupReading], touches: Sequence[FileAccess]) -> list[str]:
    """Files that were read or written, the latest first."""
    latest = {touch.path: touch.seq for touch in touches if touch.operation in ("read", "write")}
    for one in readings:
        for call in one.calls:
            for path, operation in call.paths:
                if operation in ("read", "write"):
                    latest[path] = max(latest.get(path, 0), one.group.first_seq)
    return sorted(latest, key=lambda path: (-latest[path], path))


def _lists(paths: Sequence[tuple[str, str]]) -> bool:
    return any(operation == "list" for _, operation in paths)


def _place_of_content(readings: Sequence[GroupReading], path: str) -> int | None:
    """The latest group that shows `path` as it is: read or written without an error."""
    for at in range(len(readings) - 1, -1, -1):
        for call in readings[at].calls:
            if call.answered and not call.failed and any(one == path and kind != "search" for one, kind in call.paths):
                return at
    return None


def _description(readings: Sequence[GroupReading], current: Task | None, users: Sequence[int]) -> int | None:
    """The first user message of the current task; of the whole run where there is none."""
    since = current.first_seq if current is not None else 0
    return next((at for at in users if readings[at].group.first_seq >= since), None)
