"""A pointer to what is shown in part leads to one message, and stands where a tool takes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from langchain_tiered_memory.integrations.tools import memory_tools
from langchain_tiered_memory.types.records import Entry
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory, quick_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.types.contexts import Context

both = pytest.mark.parametrize("call_style", CALL_STYLES)
NAMED = re.compile(r'expand "([^"]+)"|passage of message (\d+)')


@tool
def look_up(order: int) -> str:
    """Look an order up."""
    return str(order)


def filled(memory: TieredMemory) -> None:
    """Long words of one maker of ids, whose first twelve characters are the same."""
    session = memory.session("s")
    said: list[BaseMessage] = [HumanMessage("Tell me of the cranes of the quay.", id="u")]
    for number in range(8):
        text = f"Crane {number} weighs {number * 31} tons. " + f"It stands by the water at berth {number}. " * 150
        call = {"name": "look_up", "args": {"order": number}, "id": f"c{number}"}
        said += [
            AIMessage("", tool_calls=[call], id=f"lc_run--01a2-{number}"),
            ToolMessage(text, tool_call_id=f"c{number}", id=f"lc_run--01a2-r{number}"),
        ]
    session.add_messages(said)


def shown(call_style: CallStyle, memory: TieredMemory, tools: Sequence[Any], query: str) -> Context:
    context: Context = told(call_style, memory.session("s").context, query, max_tokens=2500, tools=tools)
    assert context.tokens <= 2500
    return context


def text_of(context: Context) -> str:
    return "\n".join(str(one.text) for one in context.messages)


@both
@pytest.mark.parametrize("query", ["", "What does crane 3 weigh?"])
def test_a_pointer_leads_to_one_message(call_style: CallStyle, query: str) -> None:
    with open_memory(settings=quick_settings()) as memory:
        filled(memory)
        told(call_style, memory.session("s").flush)
        tools = memory_tools(memory, session_id="s")
        named = {one or other for one, other in NAMED.findall(text_of(shown(call_style, memory, tools, query)))}
        assert named
        assert len(named) > 1 or query == ""
        for name in named:
            (found,) = memory.session("s").expand(name)
            assert isinstance(found, Entry)
            assert found.text
            config: Any = {"configurable": {"thread_id": "s"}}
            assert "There is no message" not in tools[1].invoke({"id": name}, config)
            assert "stays in view" in tools[2].invoke({"id": name}, config)


@both
@pytest.mark.parametrize("tools", [(), (look_up,), ({"name": "expand_all", "parameters": {}},)])
def test_nothing_points_to_a_tool_that_is_not_there(call_style: CallStyle, tools: Sequence[Any]) -> None:
    with open_memory(settings=quick_settings()) as memory:
        filled(memory)
        told(call_style, memory.session("s").flush)
        text = text_of(shown(call_style, memory, tools, "What does crane 3 weigh?"))
        assert "tokens left out" in text or "(in part)" in text
        assert not NAMED.search(text)
        assert "search finds" not in text
        assert "lc_run" not in text


def test_an_id_that_is_a_number_is_named_itself() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("word " * 3000, id="2"), AIMessage("ok", id="1")])
        context = session.context("", max_tokens=600, tools=memory_tools(memory))
        assert 'expand "2"' in text_of(context)
        (found,) = session.expand("2")
        assert isinstance(found, Entry)
        assert found.id == "2"
