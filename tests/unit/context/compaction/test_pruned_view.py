"""What leaves a view that is pruned: by the work at hand on its own branch."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.context.compaction.leaving import pruned_view
from langchain_tiered_memory.context.request import Request, read_inputs
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.context.view.rendered_view import render_view
from langchain_tiered_memory.models.window_budget import ModelProfile
from langchain_tiered_memory.testing import FrozenClock
from tests.memory_builders import NOW, open_memory

_TARGET = 350
"""Less than all that is essential takes: the worst of that leaves."""


def read(path: str, call_id: str) -> list[BaseMessage]:
    call = {"name": "read_file", "args": {"path": path}, "id": call_id}
    text = "def parsed():\n    return None\n" * 30
    return [AIMessage("", tool_calls=[call]), ToolMessage(text, tool_call_id=call_id, id=f"text of {path}")]


def test_the_file_at_hand_stays_though_another_was_read_last_on_another_branch() -> None:
    said: list[BaseMessage] = [HumanMessage("Mend the parser."), *read("src/parser.py", "c1")]
    for number in range(12):
        said += [AIMessage(f"Step {number}: I look at what the tests say of it. " * 8), HumanMessage("Go on.")]
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages([*said, *read("src/other.py", "c2")])
        request = Request(
            track=session.core.track,
            query="",
            max_tokens=4000,
            system=None,
            tools=(),
            model=ModelProfile(),
            view="default",
            off=frozenset({len(said) + 1, len(said) + 2}),
        )
        inputs = read_inputs(session.core.runtime, "s", request)
        smaller, left = pruned_view(inputs, render_view(inputs, ViewPlan(border=0, tail_from=1)), target=_TARGET)
        assert left
        assert "text of src/parser.py" in {entry.id for entry in smaller.tail}
