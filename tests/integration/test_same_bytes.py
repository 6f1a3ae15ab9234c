"""The same messages give the same bytes: nothing that is drawn anew (ids of summaries, of requests) reaches a view."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.models.token_counters import best_counter
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

pytestmark = pytest.mark.slow

TURNS = 32


def work(turns: int) -> list[BaseMessage]:
    """Talk about orders, each looked up: enough for summaries of several levels."""
    said: list[BaseMessage] = []
    for turn in range(turns):
        call = {"name": "look_up", "args": {"order": turn}, "id": f"c{turn}", "type": "tool_call"}
        said += [
            HumanMessage(f"The crane of order {turn} goes to quay {turn % 7}, before Monday.", id=f"q{turn}"),
            AIMessage("", id=f"l{turn}", tool_calls=[call]),
            ToolMessage(f"order {turn}: {turn * 31} kg, berth {turn % 5}", tool_call_id=f"c{turn}", id=f"r{turn}"),
            AIMessage(f"Order {turn} weighs {turn * 31} kg; its crane is booked for quay {turn % 7}.", id=f"a{turn}"),
        ]
    return said


def views(budget: int) -> list[str]:
    """Every view of a session on the way, as text."""
    shown: list[str] = []
    with open_memory(token_counter=best_counter()) as memory:
        session = memory.session("s")
        for number, message in enumerate(work(TURNS)):
            session.add_messages([message], at=1.7e9 + 60.0 * number)
            if isinstance(message, ToolMessage):
                shown.append("\n".join(str(one) for one in session.context(max_tokens=budget).messages))
    return shown


@pytest.mark.parametrize("budget", [800, 2000])
@pytest.mark.sweep(1)
def test_two_memories_that_were_told_and_asked_the_same_show_the_same(budget: int) -> None:
    first, second = views(budget), views(budget)
    assert any("[1-" in view or "[messages 1-" in view for view in first), "nothing was condensed"
    assert first == second
