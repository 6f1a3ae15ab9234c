"""The list of tasks that an agent wrote last, where its view does not show the call that wrote it.

Agents keep what is done and what is open in a list that one call writes whole: `write_todos` of LangChain and
deepagents, `TodoWrite`, `update_plan`. It is known by its form, whatever the tool: an argument named as such lists are,
of objects with a status each. While something in it is open it stands in the plan, in the record behind the user's
earlier messages, until a later one is written.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.messages.content_blocks import requested_calls
from langchain_tiered_memory.messages.file_accesses import folded
from langchain_tiered_memory.messages.quoting import message_or_stand_in
from langchain_tiered_memory.text.truncation import most_fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.types.records import Entry

_LISTS = frozenset({"todos", "todo", "todolist", "tasks", "tasklist", "plan", "steps", "checklist"})
"""Names of arguments that hold one, without case and underscores: a list of orders has a status each as well."""
_STATUS = "status"
_WORDS = ("content", "step", "task", "title", "subject", "text", "description", "name")
"""Under which of its keys an object says what the task is, the first that it has."""
_DONE = frozenset({"completed", "complete", "done", "finished", "cancelled", "canceled"})
_MOST_CHARS = 200
"""Of one task."""


def with_tasks(inputs: Inputs, plan: ViewPlan, tail: Sequence[Entry], *, is_shown: Callable[[Entry], bool]) -> ViewPlan:
    """`plan` with the newest list of tasks in `tail`, where the view does not show the call that wrote it.

    `tail` is what the view showed before, in order; without a list in it, the one that stood in the plan goes on
    standing. It takes half of the room of the user's earlier messages at most.
    """
    for entry in reversed(tail):
        tasks = _tasks_in(entry)
        if tasks:
            is_open = any(state.casefold() not in _DONE for state, _ in tasks)
            stands = is_open and not is_shown(entry)
            return replace(plan, tasks=_told(tasks, entry, inputs=inputs) if stands else "")
    return plan


def _tasks_in(entry: Entry) -> list[tuple[str, str]]:
    """Status and words of each task that a message lists."""
    if not entry.calls or f'"{_STATUS}"' not in entry.payload:
        return []
    for call in requested_calls(message_or_stand_in(entry)[0]):
        for name, value in call.args.items():
            is_list = isinstance(value, list) and folded(name) in _LISTS
            tasks = [_task(one) for one in value] if is_list else []
            found = [one for one in tasks if one is not None]
            if found and len(found) == len(tasks):
                return found
    return []


def _task(item: Any) -> tuple[str, str] | None:  # noqa: ANN401 - an argument of a call
    if not isinstance(item, dict) or not isinstance(item.get(_STATUS), str):
        return None
    said = next((item[key] for key in _WORDS if isinstance(item.get(key), str)), "")
    words = " ".join(said.split())
    return (item[_STATUS], words[:_MOST_CHARS]) if words else None


def _told(tasks: Sequence[tuple[str, str]], entry: Entry, *, inputs: Inputs) -> str:
    """As many as there is room for: those that are done leave first, the oldest before others."""
    room, count = inputs.policy.queries // 2, inputs.counter.count_text
    open_first = sorted(range(len(tasks)), key=lambda place: (tasks[place][0].casefold() in _DONE, -place))

    def text(number: int) -> str:
        shown = sorted(open_first[:number])
        left = len(tasks) - number
        head = f"Tasks as the agent last listed them, message {entry.seq}{f' ({left} more)' if left else ''}:"
        return "\n".join([head, *(f"- {tasks[place][0]}: {tasks[place][1]}" for place in shown)])

    most = most_fitting(len(tasks), lambda number: count(text(number)) <= room)
    return text(most) if most and count(text(most)) <= room else ""
