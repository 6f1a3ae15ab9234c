"""The list of tasks that an agent wrote last, where its view does not show the call that wrote it.

Agents keep what is done and what is open in a list that one call writes whole: `write_todos` of LangChain and
deepagents, `TodoWrite`, `update_plan`. It is known by its form, whatever the tool: an argument named as such lists are,
of objects with a status each. Others make it item by item (`TaskCreate` and `TaskUpdate` of Claude Code): a call of a
tool named after tasks, whose result repeats its words behind a number, and calls that set the status of a number. While
something in it is open it stands in the plan, in the record behind the user's earlier messages, until it is written
anew.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.messages.content_blocks import requested_calls
from langchain_tiered_memory.messages.file_accesses import folded
from langchain_tiered_memory.messages.message_text import is_marked_error
from langchain_tiered_memory.messages.showing import message_or_stand_in
from langchain_tiered_memory.text.truncation import CUT, first_chars, most_fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.types.records import Entry

_LISTS = frozenset({"todos", "todo", "todolist", "tasks", "tasklist", "plan", "steps", "checklist"})
"""Names of arguments that hold one, without case and underscores: a list of orders has a status each as well."""
_STATUS = "status"
_WORDS = ("content", "step", "task", "title", "subject", "text", "description", "name")
"""Under which of its keys an object says what the task is, the first that it has."""
_DONE = frozenset({"completed", "complete", "done", "finished", "cancelled", "canceled", "deleted"})
_MOST_CHARS = 200
"""Of one task."""
_NAMED_AFTER = ("task", "todo")
_NUMBERS = frozenset({"taskid", "todoid", "itemid", "id"})
"""Names of arguments that say which item is meant, without case and underscores."""
_NUMBER = re.compile(r"#(\w{1,40})")
_RESULT_CHARS = 600
"""A longer result is what a task brought, and not that one was written down."""
_MOST_ITEMS = 64
"""Of a list that is made item by item, the newest, what is done leaving first: more than find room."""


def with_tasks(inputs: Inputs, plan: ViewPlan, tail: Sequence[Entry], *, is_shown: Callable[[Entry], bool]) -> ViewPlan:
    """`plan` with the newest list of tasks in `tail`, where the view does not show the call that wrote it.

    `tail` is what the view showed before, in order; without a list in it, the one that stood in the plan goes on
    standing, and what was said of single items since is put in. It takes half of the room of the user's earlier
    messages at most.
    """
    written = next(((entry, tasks) for entry in reversed(tail) if (tasks := _tasks_in(entry))), None)
    since = written[0].seq if written is not None else 0
    changes = [one for one in _changes(tail) if one[0].seq > since]
    if changes:
        items = {} if written is not None else {number: (state, words) for number, state, words in plan.listed}
        for _, number, status, renamed in changes:
            state, words = items.get(number, ("", ""))
            items[number] = (status or state, renamed or words)
        named = [number for number, (_, words) in items.items() if words]
        stays = frozenset(sorted(named, key=lambda number: _is_open(items[number][0]))[-_MOST_ITEMS:])
        known = {number: items[number] for number in named if number in stays}
        told = {number for asked, number, _, words in changes if words and is_shown(asked)}
        is_hidden = any(_is_open(state) and number not in told for number, (state, _) in known.items())
        tasks = [(state, f"#{number} {words}") for number, (state, words) in known.items()]
        text = _told(tasks, changes[-1][0], inputs=inputs) if is_hidden else ""
        return replace(plan, tasks=text, listed=tuple((number, *item) for number, item in known.items()))
    if written is None:
        return plan
    entry, tasks = written
    stands = any(_is_open(state) for state, _ in tasks) and not is_shown(entry)
    return replace(plan, tasks=_told(tasks, entry, inputs=inputs) if stands else "", listed=())


def _is_open(state: str) -> bool:
    return state.casefold() not in _DONE


def _changes(tail: Sequence[Entry]) -> Iterator[tuple[Entry, str, str | None, str]]:
    """What calls say of single items of a list, in order; nothing of one that failed or was not answered.

    The message that makes the call, the number of the item, its status, and its words: empty where they stay.
    """
    heads = {call: entry for entry in tail for call in entry.calls}
    for result in tail:
        head = heads.get(result.answers or "")
        is_short = len(result.text) <= _RESULT_CHARS and not is_marked_error(result)
        if head is None or not is_short or (result.name and not _is_of_tasks(result.name)):
            continue
        for call in requested_calls(message_or_stand_in(head)[0]):
            if call.id != result.answers or not _is_of_tasks(call.name):
                continue
            given = next((value for name, value in call.args.items() if folded(name) in _NUMBERS), None)
            status, words = call.args.get(_STATUS), _words(call.args)
            state = status if isinstance(status, str) else None
            if isinstance(given, str | int):
                # A longer description is no name.
                yield head, str(given).removeprefix("#"), state, words if "description" not in call.args else ""
            elif words and words.rstrip(CUT) in " ".join(result.text.split()) and (made := _NUMBER.search(result.text)):
                yield head, made[1], state or "pending", words


def _is_of_tasks(tool: str) -> bool:
    return any(word in folded(tool) for word in _NAMED_AFTER)


def _tasks_in(entry: Entry) -> list[tuple[str, str]]:
    """Status and words of each task that a message lists."""
    if not entry.calls or f'"{_STATUS}"' not in entry.payload:
        return []
    for call in requested_calls(message_or_stand_in(entry)[0]):
        for name, value in call.args.items():
            if not isinstance(value, list) or folded(name) not in _LISTS:
                continue
            tasks = [(one.get(_STATUS), _words(one)) for one in value if isinstance(one, dict)]
            found = [(state, words) for state, words in tasks if isinstance(state, str) and words]
            if found and len(found) == len(value):
                return found
    return []


def _words(item: dict[str, Any]) -> str:
    said = next((item[key] for key in _WORDS if isinstance(item.get(key), str)), "")
    return first_chars(" ".join(said.split()), _MOST_CHARS)


def _told(tasks: Sequence[tuple[str, str]], entry: Entry, *, inputs: Inputs) -> str:
    """As many as there is room for: those that are done leave first, the oldest before others."""
    room, count = inputs.policy.queries // 2, inputs.counter.count_text
    open_first = sorted(range(len(tasks)), key=lambda place: (not _is_open(tasks[place][0]), -place))

    def text(number: int) -> str:
        shown = sorted(open_first[:number])
        left = len(tasks) - number
        head = f"Tasks as the agent last listed them, message {entry.seq}{f' ({left} more)' if left else ''}:"
        return "\n".join([head, *(f"- {tasks[place][0]}: {tasks[place][1]}" for place in shown)])

    most = most_fitting(len(tasks), lambda number: count(text(number)) <= room)
    return text(most) if most and count(text(most)) <= room else ""
