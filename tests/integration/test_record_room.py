"""The record of what was condensed has its room also where the newest messages alone are more than fits."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_long_newest_answer_is_cut_before_the_record_is(call_style: CallStyle) -> None:
    talk = [
        message
        for number in range(80)
        for message in (
            HumanMessage(
                f"For crane {number} we agreed on {number * 31} kg, and team {number % 4} greases it on Monday."
            ),
            AIMessage(f"Noted: crane {number} lifts {number * 31} kg; berth {number % 5} is told before noon."),
        )
    ]
    answer = "\n".join(f"Step {number}: take the lever of crane {number} and turn it slowly." for number in range(400))
    shares: list[int] = []
    for newest in ("It is done.", answer):
        with open_memory() as memory:
            session = memory.session("s")
            told(call_style, session.add_messages, [*talk, HumanMessage("How is it done?"), AIMessage(newest)])
            context = told(call_style, session.context, max_tokens=2000)
            record = [context.section(name) for name in ("history", "facts")]
            shares.append(sum(one.tokens for one in record if one is not None))
            assert context.tokens <= 2000
    short, long = shares
    assert "shortened" in context.guard.steps
    assert long > 0.8 * min(short, context.policy.cover + context.policy.of("facts"))
