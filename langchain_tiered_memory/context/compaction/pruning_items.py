"""What pruning knows of a view's groups: names, what failed, their task, how they bear on the work at hand."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.pruning import (
    MOST_REFERENCE_POINTS,
    POINTS_PER_REFERENCE,
    RECENCY_POINTS,
    PruneItem,
    named_kind,
)
from langchain_tiered_memory.messages.content_blocks import compact_json, requested_calls
from langchain_tiered_memory.messages.file_accesses import touches_of_call
from langchain_tiered_memory.messages.showing import message_or_stand_in
from langchain_tiered_memory.summaries.critical_groups import is_error
from langchain_tiered_memory.text.identifiers import identifiers
from langchain_tiered_memory.text.readings import READ_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_tiered_memory.context.compaction.pruning import Bond, Category, ContentKind, Priority
    from langchain_tiered_memory.settings import FileSettings
    from langchain_tiered_memory.types.records import Entry, Group
    from langchain_tiered_memory.types.runs import FileAccess, FileOperation, Task

ENOUGH_REFERENCES = MOST_REFERENCE_POINTS // POINTS_PER_REFERENCE
"""More give no more points."""
RECENT_GROUPS = 10
"""The newest groups: what they mention is referred to recently."""
_COMMON_SHARE = 0.2
"""A name that more of the groups mention tells nothing about any of them."""
_COMMON_LEAST = 10
LEAST_NAME_CHARS = 4
"""A name that is shorter stands in a text by chance."""
_MIN_REPEATED_TOKENS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReading:
    """One tool call and how it ended."""

    exact: str
    """Its tool and all its arguments: equal for the same call."""
    subjects: frozenset[str]
    """Its tool with each file it names, or with its command: a later success on one of them settles its failure."""
    paths: tuple[tuple[str, FileOperation], ...]
    result: Entry | None
    """Its answer, where there is one."""
    failed: bool

    @property
    def succeeded(self) -> bool:
        """Whether it was answered, and not with an error."""
        return self.result is not None and not self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """A group with what it is about."""

    group: Group
    calls: tuple[CallReading, ...]
    paths: frozenset[str]
    """Files that its calls name."""
    names: frozenset[str]
    """Identifiers in its texts, and its paths, casefolded."""
    failed: bool
    """Whether it ended in an error: a result that says so, or a message whose kind does."""
    task: str | None
    """The task that it belongs to."""


def calls_of_group(group: Group, settings: FileSettings) -> Iterator[CallReading]:
    """The calls that a group makes, in order."""
    results = {entry.answers: entry for entry in group.entries if entry.answers is not None}
    for entry in group.entries:
        for call in requested_calls(message_or_stand_in(entry)[0]) if entry.calls else ():
            result = results.get(call.id or "")
            paths = tuple((touch.path, touch.operation) for touch in touches_of_call(call, settings))
            subjects = [path for path, _ in paths]
            if "command" in call.args or not paths:
                main = call.args.get("command", call.args)
                subjects = [main.strip() if isinstance(main, str) else call.raw or compact_json(main)]
            yield CallReading(
                exact=f"{call.name} {call.raw or json.dumps(call.args, sort_keys=True, default=str)}",
                subjects=frozenset(f"{call.name} {about}" for about in subjects),
                paths=paths,
                result=result,
                failed=result is not None and is_error(result),
            )


def _read(group: Group, settings: FileSettings, tasks: Iterable[Task]) -> GroupReading:
    """A group with what it is about. Takes time in proportion to its texts."""
    calls = tuple(calls_of_group(group, settings))
    paths = frozenset(path for call in calls for path, _ in call.paths)
    found = frozenset[str]().union(*(identifiers(entry.text[:READ_CHARS]) for entry in group.entries))
    long = (name for name in found if len(name) >= LEAST_NAME_CHARS and not name.replace(".", "").isdigit())
    first = group.entries[0]
    # What its author calls an error is one, and so is the bad result of a call that is not there.
    says_error = any(named_kind(entry.kind) == "error" for entry in group.entries)
    return GroupReading(
        group=group,
        calls=calls,
        paths=paths,
        names=frozenset(long) | frozenset(path.casefold() for path in paths),
        failed=says_error or any(call.failed for call in calls) or (first.role == "tool" and is_error(first)),
        task=task_of(group.entries, tasks),
    )


def _made_moot(readings: Sequence[GroupReading]) -> tuple[set[int], set[int]]:
    """Groups whose every error was settled later, and groups that a later one says or looks at again. Read backwards.

    Short texts ("go on") do no harm and stay, however often they are said.
    """
    resolved, repeated = set[int](), set[int]()
    succeeded, seen, said = set[str](), set[str](), set[tuple[tuple[str, str], ...]]()
    for at in range(len(readings) - 1, -1, -1):
        group, made = readings[at].group, readings[at].calls
        errors = [call for call in made if call.failed]
        if errors and len(errors) == len(made) and all(call.subjects & succeeded for call in errors):
            resolved.add(at)
        texts = tuple((entry.role, entry.text) for entry in group.entries)
        looks = [call for call in made if call.paths and all(operation != "write" for _, operation in call.paths)]
        is_look = bool(made) and len(looks) == len(made) and all(call.exact in seen for call in looks)
        if is_look or (texts in said and group.tokens >= _MIN_REPEATED_TOKENS * len(texts)):
            repeated.add(at)
        said.add(texts)
        for call in made:
            if call.succeeded:
                succeeded |= call.subjects
                seen.add(call.exact)
    return resolved, repeated


def _references(readings: Sequence[GroupReading]) -> list[set[int]]:
    """For each group, the latest few later groups that mention one of its names, by their places."""
    names = [one.names for one in readings]
    common = max(_COMMON_LEAST, _COMMON_SHARE * len(names))
    mentions = Counter(name for named in names for name in named)
    latest: defaultdict[str, list[int]] = defaultdict(list)  # the newest few that mention a name, newest first
    referring: list[set[int]] = [set() for _ in names]
    for at in range(len(names) - 1, -1, -1):
        for name in names[at]:
            if not 1 < mentions[name] <= common:
                continue
            if len(referring[at]) < ENOUGH_REFERENCES:
                referring[at].update(latest[name])
            if len(latest[name]) < ENOUGH_REFERENCES:
                latest[name].append(at)
    return [set(sorted(later, reverse=True)[:ENOUGH_REFERENCES]) for later in referring]


ACTIVE_FILES = 3
"""Files touched last, that the work at hand is about."""
NEARBY_FILES = 8
"""Files touched lately: less close to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The groups of a context, and what holds for all of them. Places are indexes into the groups."""

    readings: tuple[GroupReading, ...]
    resolved: set[int]
    """Places of groups whose each error was followed by a success."""
    repeated: set[int]
    """Places of groups that a later one says, or looks at, again."""
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
    """Place of what says what is to be done: the first user message of the current task, or of the run."""

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
    groups: Sequence[Group],
    *,
    settings: FileSettings,
    tasks: Sequence[Task] = (),
    current_task: str | None = None,
    touches: Sequence[FileAccess] = (),
) -> RunFacts:
    """Look at all groups together, oldest first.

    `settings` say which tools work on files: a file that no list shall name is what a call is about all the same, so
    nothing in them is ignored. `tasks` are those that are active, and the last finished ones. `touches` name each file
    with the message that touched it last; those that the groups themselves touch need not be among them.
    """
    every_file = settings.model_copy(update={"ignore": ()})
    readings = tuple(_read(group, every_file, tasks) for group in groups)
    resolved, repeated = _made_moot(readings)
    known = {task.id: task for task in tasks}
    current = known.get(current_task) if current_task is not None else None
    # Files that were read or written, the latest first; one that could not be read is none.
    latest = {touch.path: touch.seq for touch in touches if touch.operation in ("read", "write")}
    shown_at, listing = dict[str, int](), None
    for at, one in enumerate(readings):
        for call, (path, operation) in ((made, touched) for made in one.calls for touched in made.paths):
            if operation == "write" or (operation == "read" and not call.failed):
                latest[path] = max(latest.get(path, 0), one.group.first_seq)
            if call.succeeded and operation != "search":
                shown_at[path] = at
            listing = at if operation == "list" else listing
    files = sorted(latest, key=lambda path: (-latest[path], path))
    users = [at for at, one in enumerate(readings) if one.group.entries[0].role == "user"]
    since = max([users[-1] if users else 0, len(readings) - RECENT_GROUPS])
    errors = [at for at, one in enumerate(readings) if one.failed and at not in resolved and at >= since]
    since_task = current.first_seq if current is not None else 0
    return RunFacts(
        readings=readings,
        resolved=resolved,
        repeated=repeated,
        tasks=known,
        finished=max((task.number for task in tasks), default=0),
        current=current,
        active_files=frozenset(files[:ACTIVE_FILES]),
        nearby_files=frozenset(files[:NEARBY_FILES]),
        showing=shown_at.get(files[0]) if files else None,
        error=max(errors, default=None),
        listing=listing,
        users=tuple(reversed(users)),
        description=next((at for at in users if readings[at].group.first_seq >= since_task), None),
    )


USER_MESSAGES_KEPT = 3
FEEDBACK_ITEMS = 5
RECENT_TASKS = 3
TASKS_UNTIL_PRUNED = 5
RECENT_MINUTES = RECENCY_POINTS[-1][0]
"""Where no task tells: as long as age gives points."""


def prune_items(run: RunFacts, *, now: float, must_stay: frozenset[int]) -> list[PruneItem]:
    """The groups of a context as `prune` takes them, in their order, at `now` in seconds since the epoch.

    `must_stay` are the `first_seq`s of groups that the caller needs; pinned ones are added.
    """
    referring = _references(run.readings)
    return [_item(at, run, later, now=now, must_stay=must_stay) for at, later in enumerate(referring)]


def _item(at: int, run: RunFacts, referring: set[int], *, now: float, must_stay: frozenset[int]) -> PruneItem:
    reading = run.readings[at]
    group, task = reading.group, reading.task
    named = next((kind for entry in group.entries if (kind := named_kind(entry.kind))), None)
    known = run.tasks.get(task) if task is not None else None
    bond = _bond(reading, task, run)
    # How many tasks were finished since its own, where that is finished.
    ago = run.finished - known.number if known is not None and known.state == "finished" else None
    age = (now - group.entries[-1].at) / 60
    category: Category
    if named == "system" or group.entries[0].role == "system":
        category = "system"
    elif named == "examples":
        category = "examples"
    elif run.current is not None and task is not None:
        recent = ago < RECENT_TASKS if ago is not None else task in run.tasks
        category = "current_task" if task == run.current.id else "recent_history" if recent else "old_history"
    elif run.current is None and run.users and at >= run.users[0]:
        category = "current_task"
    else:
        category = "recent_history" if age < RECENT_MINUTES else "old_history"
    own = named if run.belongs(task) else None
    rows: tuple[tuple[Priority, str, bool], ...] = (
        (1, "system_role_prompt", category == "system"),
        (1, "current_task_description", at == run.description or own == "task"),
        (1, "current_task_acceptance_criteria", own == "criteria"),
        (1, "active_file_being_edited", at == run.showing or own == "active_file"),
        (1, "last_3_user_messages", at in run.users[:USER_MESSAGES_KEPT]),
        (1, "critical_error_context", at == run.error or own == "error"),
        (4, "completed_task_details", named == "finished" or (ago is not None and ago >= TASKS_UNTIL_PRUNED)),
        (4, "resolved_error", at in run.resolved or named == "resolved"),
        (4, "deprecated_context", named == "deprecated"),
        (4, "temporary_debug_info", named == "debug"),
        (4, "redundant_information", at in run.repeated or named == "redundant"),
        (3, "old_task_history", named == "old_history"),
        (3, "success_metrics", named == "metric"),
        (3, "project_guidelines", named == "guideline"),
        (3, "example_code_snippets", named == "examples"),
        (3, "documentation_links", named == "link"),
        (2, "active_pr_context", named == "pull_request"),
        (2, "dependency_information", named == "dependency" or bond == "dependency"),
        (2, "current_file_structure", named == "structure" or at == run.listing),
        (2, "recent_feedback", named == "feedback" or at in run.users[:FEEDBACK_ITEMS]),
        (2, "recent_task_history", named == "recent_history" or category in ("current_task", "recent_history")),
        (3, "old_task_history", True),
    )
    # The first row of the matrix that holds: what must be kept stands before what must go.
    priority, reason = next((priority, reason) for priority, reason, holds in rows if holds)
    return PruneItem(
        key=group.first_seq,
        tokens=group.tokens,
        category=category,
        kind=_content_kind(at, reading, own, run, category=category),
        age_minutes=max(0.0, age),
        references=len(referring),
        bond=bond,
        relevant=bond != "none" or bool(reading.names & {path.casefold() for path in run.active_files}),
        referenced_recently=any(later >= len(run.readings) - RECENT_GROUPS for later in referring),
        priority=priority,
        reason=reason,
        must_stay=group.first_seq in must_stay or any(entry.pinned for entry in group.entries),
    )


def _bond(reading: GroupReading, task: str | None, run: RunFacts) -> Bond:
    if run.current is not None:
        if task == run.current.id:
            return "task"
        return "dependency" if task in run.current.depends_on else "none"
    if reading.paths & run.active_files:
        return "task"
    return "dependency" if reading.paths & run.nearby_files else "none"


_CONTENT: dict[str | None, ContentKind] = {
    "task": "current_task",
    "criteria": "acceptance_criteria",
    "active_file": "active_code",
    "code": "active_code",
    "feedback": "recent_feedback",
    "examples": "examples",
}


def _content_kind(at: int, reading: GroupReading, own: str | None, run: RunFacts, *, category: Category) -> ContentKind:
    if category == "system":
        return "system_prompt"
    if own in _CONTENT:
        return _CONTENT[own]
    if at == run.description:
        return "current_task"
    if reading.paths & run.active_files:
        return "active_code"
    return "recent_feedback" if at in run.users[:FEEDBACK_ITEMS] else "task_history"
