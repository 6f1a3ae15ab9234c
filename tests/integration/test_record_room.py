"""The record of what was condensed has its room also where the newest messages alone are more than fits."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.messages.message_text import text_of
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory

TALK = [
    message
    for number in range(80)
    for message in (
        HumanMessage(f"For crane {number} we agreed on {number * 31} kg, and team {number % 4} greases it on Monday."),
        AIMessage(f"Noted: crane {number} lifts {number * 31} kg; berth {number % 5} is told before noon."),
    )
]


@pytest.mark.parametrize("query", [None, "Which team greases crane 7?"])
@pytest.mark.parametrize("lines", [50, 400])
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_long_newest_answer_is_cut_before_the_record_is(call_style: CallStyle, lines: int, query: str | None) -> None:
    answer = "\n".join(
        f"Step {number}: take the lever of crane {number} and turn it slowly." for number in range(lines)
    )
    shown: list[dict[str, int]] = []
    for newest in ("It is done.", answer):
        with open_memory() as memory:
            session = memory.session("s")
            told(call_style, session.add_messages, [*TALK, HumanMessage("How is it done?"), AIMessage(newest)])
            context = told(call_style, session.context, query, max_tokens=2000)
            sections = {one.name: one.tokens for one in context.sections}
            shown.append({name: sections.get(name, 0) for name in ("history", "facts")})
            assert context.tokens <= 2000
    short, long = shown
    policy = context.policy
    assert lines < 400 or "shortened" in context.guard.steps
    assert long["history"] > 0.8 * min(short["history"], policy.least_cover)
    assert long["facts"] > 0.7 * min(short["facts"], policy.least_facts)  # a whole fact may have no room


def edited(number: int) -> list[BaseMessage]:
    call = {
        "name": "edit",
        "args": {"path": f"src/crane_{number % 7}.py", "new": f"LIMIT = {number}"},
        "id": f"{number}",
    }
    return [
        HumanMessage(f"Set the limit of crane {number} to {number * 31} kg and keep its lever as it is."),
        AIMessage("", tool_calls=[call]),
        ToolMessage(f"edited crane {number}: " + "crane lever limit " * 9, tool_call_id=call["id"]),
        AIMessage(f"Crane {number} lifts {number * 31} kg now; team {number % 4} was told."),
    ]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_beside_work_on_files_what_was_condensed_last_is_told_whole(call_style: CallStyle) -> None:
    newest = Counter[str]()
    with open_memory() as memory:
        session = memory.session("s")
        for number in range(80):
            told(call_style, session.add_messages, edited(number), wait=True)
            context = told(call_style, session.context, "", max_tokens=6000)
            text = "\n".join(text_of(message) for message in context.messages)
            parts = re.findall(r"^\[(messages )?\d+-\d+, ([^\]]*)\]", text, re.MULTILINE)
            if parts:
                headed, what = parts[-1]
                newest["whole" if headed and "in short" not in what else "less"] += 1
    assert newest["less"] == 0
    assert newest["whole"] > 10
