"""The first request is the goal of a run until it is answered; then it is quoted as one, or the record tells of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import conversation, open_memory

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.types.contexts import Context

ASKED = HumanMessage(
    "Please have every crane of the north quay inspected, and write down what each one weighs.", id="ask"
)
BUDGET = 900


def looked_up(number: int) -> list[BaseMessage]:
    call = {"name": "look_up", "args": {"crane": number}, "id": f"c{number}", "type": "tool_call"}
    return [
        AIMessage("", id=f"l{number}", tool_calls=[call]),
        ToolMessage(f"crane {number}: {number * 31} kg, berth {number % 5}, last seen on Monday by team {number % 4}",
                    tool_call_id=f"c{number}", id=f"r{number}"),
    ]  # fmt: skip


def shows(context: Context, text: str) -> bool:
    """Whether a message of the user's own says it, and not a text of ours."""
    return any(isinstance(one, HumanMessage) and one.id == "ask" and text in one.text for one in context.messages)


def condensed(session: Session, call_style: CallStyle) -> Context:
    context: Context = told(call_style, session.context, max_tokens=BUDGET)
    history = context.section("history")
    assert history is not None
    assert history.tokens > 0
    return context


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_request_stands_on_top_while_it_is_worked_at_and_is_quoted_once_it_is_answered(
    call_style: CallStyle,
) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [ASKED])
        for number in range(30):
            told(call_style, session.add_messages, looked_up(number))
        assert shows(condensed(session, call_style), "north quay")
        told(call_style, session.add_messages, [AIMessage("All thirty are inspected; the list is written.", id="done")])
        for number in range(30, 60):
            told(call_style, session.add_messages, conversation(1, start=number))
        context = condensed(session, call_style)
        assert not shows(context, "north quay")
        assert context.section("goal") is None
        history = context.section("history")
        assert history is not None
        assert ASKED.text in history.text.partition("Earlier messages of the user")[2]
        facts = context.section("facts")
        assert facts is None or "north quay" not in facts.text, "what is quoted is told"


NOTE = "<local-command-stdout>Connected to the yard.</local-command-stdout>"
SKILL = "Base directory for this skill: /yard/skills/weighing\n\n# Weighing\n\nAlways weigh a crane twice."


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_is_left_out_behind_the_last_request_is_told_right_behind_it(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [ASKED, AIMessage("Gladly.", id="yes")])
        told(call_style, session.add_messages, [HumanMessage("Begin with the heaviest of them, please.", id="next")])
        for number in range(60):
            told(call_style, session.add_messages, looked_up(number))
        messages = condensed(session, call_style).messages
        place = next(at for at, one in enumerate(messages) if one.id == "next")
        first = next(one.seq for one in session.entries() if one.id == messages[place + 2].id)
        assert messages[place + 1].text.startswith(
            f"[left out here: messages 4-{first - 1}; below: from {first} on, of "
        )


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_says_nothing_alone_and_what_a_host_wrote_are_not_quoted_as_the_users_words(call_style: CallStyle) -> None:
    said = ["Paint the cranes of the south quay green.", "yes please", NOTE, SKILL, "The hooks are next."]
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [ASKED, *looked_up(0), AIMessage("It is done.", id="done")])
        for place, text in enumerate(said):
            asked = [HumanMessage(text, id=f"u{place}"), *looked_up(100 + place), AIMessage("Done.", id=f"d{place}")]
            told(call_style, session.add_messages, asked)
        told(call_style, session.add_messages, [HumanMessage("Go on with the berths.", id="last")])
        for number in range(40):
            told(call_style, session.add_messages, looked_up(number + 1))
        history = condensed(session, call_style).section("history")
    assert history is not None
    quoted = history.text.partition("Earlier messages of the user")[2]
    assert said[0] in quoted
    assert said[-1] in quoted
    assert not [one for one in said[1:-1] if one.partition("\n")[0] in quoted]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_the_user_adds_while_the_assistant_works_answers_nothing(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [ASKED])
        for number in range(40):
            more = [HumanMessage(f"Look at berth {number} as well.", id=f"u{number}")] if number % 8 == 7 else []
            told(call_style, session.add_messages, [*looked_up(number), *more])
        assert shows(condensed(session, call_style), "north quay")


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_the_first_message_of_talk_is_no_goal_also_after_the_database_was_opened_again(
    tmp_path: Path, call_style: CallStyle
) -> None:
    where = tmp_path / "m.db"
    with open_memory(where) as memory:
        session = memory.session("s")
        session.add_messages([ASKED, AIMessage("It is done.", id="done"), *conversation(30)])
        first = condensed(session, call_style)
    with open_memory(where) as memory:
        again = condensed(memory.session("s"), call_style)
    assert [one.text for one in again.messages] == [one.text for one in first.messages]
    assert not shows(again, "north quay")


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_among_people_who_are_named_another_s_message_answers_the_first(call_style: CallStyle) -> None:
    ask = HumanMessage(ASKED.text, id="ask", name="Ana")
    for other, stays in (("Bram", False), ("Ana", True)):
        with open_memory() as memory:
            session = memory.session("s")
            talk = [
                HumanMessage(f"The crane {number} weighs {number * 31} kg, says the yard of berth {number % 5}.",
                             id=f"t{number}", name="Ana" if number % 4 else other)
                for number in range(60)
            ]  # fmt: skip
            told(call_style, session.add_messages, [ask, *talk])
            assert shows(condensed(session, call_style), "north quay") == stays
