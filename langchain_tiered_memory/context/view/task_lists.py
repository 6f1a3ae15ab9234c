"""The list of tasks that an agent wrote last, where its view does not show the call that wrote it.

Agents keep what is done and what is open in a list that one call writes whole: `write_todos` of LangChain and
deepagents, `TodoWrite`, `update_plan`. It is known by its form, a list of objects with a status each, whatever the
tool. It stands in the plan, in the record behind the user's earlier messages, until a condensation finds a later one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.messages.content_blocks import requested_calls
from langchain_tiered_memory.messages.quoting import message_or_stand_in
from langchain_tiered_memory.text.truncation import most_fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.types.records import Entry

_STATUS = "status"
_WORDS = ("content", "step", "task", "title", "subject", "text", "description", "name")
"""Under which of its keys an object says what the task is, the first that it has."""
_DONE = frozenset({"completed", "complete", "done", "finished", "cancelled", "canceled"})
_MOST_CHARS = 200
"""Of one task."""


def task_list(tail: Sequence[Entry], *, before: int, last: str, room: int, count: Callable[[str], int]) -> str:
    """What the newest list of tasks says; empty where the view shows the call that wrote it, or there is none.

    Args:
        tail: Messages among which it is looked for, in order.
        before: The view shows those from this `seq` on.
        last: What stands where `tail` has none.
        room: Tokens: tasks that are done leave first, the oldest before others.
        count: Tokens of a text.
    """
    for entry in reversed(tail):
        tasks = _tasks_in(entry)
        if tasks:
            return _told(tasks, entry, room=room, count=count) if entry.seq < before else ""
    return last


def _tasks_in(entry: Entry) -> list[tuple[str, str]]:
    """Status and words of each task that a message lists."""
    if not entry.calls or f'"{_STATUS}"' not in entry.payload:
        return []
    for call in requested_calls(message_or_stand_in(entry)[0]):
        for value in call.args.values():
            tasks = [_task(one) for one in value] if isinstance(value, list) else []
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


def _told(tasks: Sequence[tuple[str, str]], entry: Entry, *, room: int, count: Callable[[str], int]) -> str:
    open_first = sorted(range(len(tasks)), key=lambda place: (tasks[place][0].casefold() in _DONE, -place))

    def text(number: int) -> str:
        shown = sorted(open_first[:number])
        left = len(tasks) - number
        head = f"Tasks as the agent last listed them, message {entry.seq}{f' ({left} more)' if left else ''}:"
        return "\n".join([head, *(f"- {tasks[place][0]}: {tasks[place][1]}" for place in shown)])

    most = most_fitting(len(tasks), lambda number: count(text(number)) <= room)
    return text(most) if most and count(text(most)) <= room else ""
