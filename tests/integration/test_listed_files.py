"""The list of files that a view does not show any more keeps to its own share, whatever else leaves room."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.testing import FrozenClock
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import NOW, open_memory

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("budget", [1000, 2000, 4000])
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_the_list_of_files_keeps_to_its_share_of_the_budget(call_style: CallStyle, budget: int) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("Fix the crane.", id="goal")])
        for number in range(90):
            call = {
                "name": "read_file",
                "args": {"path": f"packages/harbour_{number}/crane/part_{number}.py"},
                "id": f"c{number}",
            }
            looks = [AIMessage("", tool_calls=[call]), ToolMessage("a line of it\n" * 12, tool_call_id=f"c{number}")]
            told(call_style, session.add_messages, looks)
        told(call_style, session.flush)
        context = told(call_style, session.context, "", max_tokens=budget)
        (listed,) = [section for section in context.sections if section.name == "files"]
        assert 0 < listed.tokens <= listed.cap == round(0.05 * budget)
