"""Reads groups of messages for pruning: the files and names they are about, what failed, and what superseded them."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.pruning import named_kind
from langchain_tiered_memory.messages.content_blocks import compact_json, requested_calls
from langchain_tiered_memory.messages.file_accesses import touches_of_call
from langchain_tiered_memory.messages.quoting import message_or_stand_in
from langchain_tiered_memory.settings import FileSettings
from langchain_tiered_memory.text.identifiers import identifiers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.messages.content_blocks import RequestedCall
    from langchain_tiered_memory.types.records import Entry, Group
    from langchain_tiered_memory.types.runs import FileOperation

ENOUGH_REFERENCES = 5
"""More give no more points."""
RECENT_GROUPS = 10
"""The newest groups: what they mention is referred to recently."""
_MAX_READ_CHARS = 20_000
"""Of one message, that are searched for names: its beginning; a dump has more of the same."""
_COMMON_SHARE = 0.2
"""A name that more of the groups mention tells nothing about any of them."""
_COMMON_LEAST = 10
_MIN_NAME_CHARS = 4
_MIN_REPEATED_TOKENS = 12
_HEAD_CHARS = 300
_TAIL_CHARS = 600
_FILES = FileSettings(ignore=())
_FAILED_HEAD = re.compile(
    r"\s{0,40}+(?:<(?:tool_use_)?error>|\[?error\b|exception\b|fatal\b|exit code:? [1-9]|command (?:failed|not found)"
    r"|traceback \(most|[\w.]{0,80}(?:error|exception)\b\s{0,40}?[:(\n]"
    r"|[^\n]{1,120}: (?:command not found|no such file|permission denied))",
    re.IGNORECASE,
)
_FAILED_TAIL = re.compile(
    r"^traceback \(most recent call last\)|(?:exited with|exit|return) (?:code|status):? [1-9]\d{0,2}\W{0,80}\Z",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReading:
    """One tool call and how it ended."""

    exact: str
    """Its tool and all its arguments: equal for the same call."""
    subjects: frozenset[str]
    """Its tool with each file it names, or with its command: a later success on one of them settles its failure."""
    paths: tuple[tuple[str, FileOperation], ...]
    failed: bool
    answered: bool


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
    resolved: bool = False
    """Whether each of its errors was followed by a success."""
    repeated: bool = False
    """Whether a later group says the same, or looked at the same again."""
    references: int = 0
    """Later groups that mention one of its names, up to `ENOUGH_REFERENCES`."""
    referenced_recently: bool = False


def failed_result(entry: Entry) -> bool:
    """Whether a tool's result is an error: by its status, or by how its text begins or ends."""
    if '"status":"error"' in entry.payload:
        return True
    return bool(_FAILED_HEAD.match(entry.text[:_HEAD_CHARS]) or _FAILED_TAIL.search(entry.text[-_TAIL_CHARS:]))


def _calls_of_group(group: Group) -> Iterator[CallReading]:
    results = {entry.answers: entry for entry in group.entries if entry.answers is not None}
    for entry in group.entries:
        for call in requested_calls(message_or_stand_in(entry)[0]) if entry.calls else ():
            result = results.get(call.id or "")
            paths = tuple((touch.path, touch.operation) for touch in touches_of_call(call, _FILES))
            yield CallReading(
                exact=f"{call.name} {call.raw or json.dumps(call.args, sort_keys=True, default=str)}",
                subjects=_subjects(call, [path for path, _ in paths]),
                paths=paths,
                failed=result is not None and failed_result(result),
                answered=result is not None,
            )


def _subjects(call: RequestedCall, paths: Sequence[str]) -> frozenset[str]:
    if "command" in call.args or not paths:
        main = call.args.get("command", call.args)
        command = main.strip() if isinstance(main, str) else call.raw or compact_json(main)
        return frozenset({f"{call.name} {command}"})
    return frozenset(f"{call.name} {path}" for path in paths)


def read_groups(groups: Sequence[Group]) -> list[GroupReading]:
    """Every group with what it is about, oldest first. Takes time in proportion to the texts."""
    calls = [tuple(_calls_of_group(group)) for group in groups]
    paths = [frozenset(path for call in made for path, _ in call.paths) for made in calls]
    names = [_names(group, named) for group, named in zip(groups, paths, strict=True)]
    resolved, looked_again = _made_moot(calls)
    said_again = _said_again(groups)
    referring = _references(names)
    return [
        GroupReading(
            group=group,
            calls=calls[at],
            paths=paths[at],
            names=names[at],
            failed=any(call.failed for call in calls[at]) or _says_error(group),
            resolved=at in resolved,
            repeated=at in looked_again or at in said_again,
            references=len(referring[at]),
            referenced_recently=any(later >= len(groups) - RECENT_GROUPS for later in referring[at]),
        )
        for at, group in enumerate(groups)
    ]


def _says_error(group: Group) -> bool:
    """Whether a message is called an error by whoever stored it, or is the bad result of a call that is not there."""
    if any(named_kind(entry.kind) == "error" for entry in group.entries):
        return True
    return group.entries[0].role == "tool" and failed_result(group.entries[0])


def _names(group: Group, paths: frozenset[str]) -> frozenset[str]:
    found = frozenset[str]().union(*(identifiers(entry.text[:_MAX_READ_CHARS]) for entry in group.entries))
    long = (name for name in found if len(name) >= _MIN_NAME_CHARS and not name.replace(".", "").isdigit())
    return frozenset(long) | frozenset(path.casefold() for path in paths)


def _made_moot(calls: Sequence[Sequence[CallReading]]) -> tuple[set[int], set[int]]:
    """Groups whose every error was settled later, and groups whose every look was repeated later. Read backwards."""
    resolved: set[int] = set()
    looked_again: set[int] = set()
    succeeded: set[str] = set()
    seen: set[str] = set()
    for at in range(len(calls) - 1, -1, -1):
        made = calls[at]
        errors = [call for call in made if call.failed]
        if errors and len(errors) == len(made) and all(call.subjects & succeeded for call in errors):
            resolved.add(at)
        looks = [call for call in made if call.paths and all(operation != "write" for _, operation in call.paths)]
        if made and len(looks) == len(made) and all(call.exact in seen for call in looks):
            looked_again.add(at)
        for call in made:
            if call.answered and not call.failed:
                succeeded |= call.subjects
                seen.add(call.exact)
    return resolved, looked_again


def _said_again(groups: Sequence[Group]) -> set[int]:
    """Groups whose texts a later group repeats word for word. Short ones ("go on") do no harm and stay."""
    latest: dict[tuple[tuple[str, str], ...], int] = {}
    again: set[int] = set()
    for at, group in enumerate(groups):
        said = tuple((entry.role, entry.text) for entry in group.entries)
        if group.tokens < _MIN_REPEATED_TOKENS * len(said):
            continue
        if said in latest:
            again.add(latest[said])
        latest[said] = at
    return again


def _references(names: Sequence[frozenset[str]]) -> list[set[int]]:
    """For each group, the latest few later groups that mention one of its names, by their places."""
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
