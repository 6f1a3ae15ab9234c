"""Where long messages must be shown, they are cut before recall goes empty; what is news gives way last."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.testing import FrozenClock
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import NOW, open_memory

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("call_style", CALL_STYLES)
LONG = "The harbour office wrote about tides, ferries and the price of rope. "


def long_talk(turns: int, *, words: int = 40) -> list[HumanMessage | AIMessage]:
    """Turns whose answers are as long as a model's usually are, one of them with what is asked for later."""
    found: list[HumanMessage | AIMessage] = []
    for number in range(turns):
        told_once = "The crane of pier nine needs the blue hook. " if number == 2 else ""
        found.append(HumanMessage(f"Tell me more of part {number}. {told_once}", id=f"q{number}"))
        found.append(AIMessage(f"Part {number}. " + LONG * words, id=f"a{number}"))
    return found


@both
def test_the_newest_long_answers_leave_recall_its_share(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, long_talk(12))
        told(call_style, session.flush)
        context = told(call_style, session.context, "Which hook does the crane of pier nine need?", max_tokens=1000)
        assert check_valid(context.messages) == []
        assert context.tokens <= 1000
        (recalled,) = [section for section in context.sections if section.name == "recall"]
        assert "q2" in (*recalled.entry_ids, *recalled.passage_ids)
        assert "blue hook" in recalled.text
        assert "a11" in context.passage_ids, "and the last answer is there, head and tail"


@both
def test_without_a_question_the_messages_have_all_the_room(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, long_talk(4))
        context = told(call_style, session.context, "", max_tokens=1000)
        assert context.tokens > 900


@both
def test_a_result_that_the_model_has_not_seen_is_whole_before_recall_is(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, long_talk(4))
        call = {"name": "look_up", "args": {"what": "hooks"}, "id": "c1"}
        result = "The register says: hook. " * 100
        new = [
            HumanMessage("Which hook does the crane of pier nine need?", id="ask"),
            AIMessage("", tool_calls=[call], id="call"),
            ToolMessage(result, tool_call_id="c1", id="result"),
        ]
        told(call_style, session.add_messages, new)
        context = told(call_style, session.context, max_tokens=1000)
        assert {"ask", "result"} <= set(context.entry_ids), "more than half of the budget, and news"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    sizes=st.lists(st.integers(1, 60), min_size=3, max_size=8),
    budget=st.integers(600, 4000),
)
def test_recall_never_goes_empty_beside_messages_that_the_model_has_seen(sizes: list[int], budget: int) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Begin.", id="goal"), *long_talk(5, words=1)])
        for number, words in enumerate(sizes):
            session.add_messages([HumanMessage(f"And {number}?"), AIMessage(LONG * words)])
        session.flush()
        context = session.context("Which hook does the crane of pier nine need?", max_tokens=budget)
        assert context.tokens <= budget
        assert any("blue hook" in str(message.content) for message in context.messages)
