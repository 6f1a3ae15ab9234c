"""A short last message of the user stands with what it answers, once both are condensed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import as_bytes, open_memory

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.types.contexts import Context

both = pytest.mark.parametrize("call_style", CALL_STYLES)
BUDGET = 1500
OPTIONS = "1. Weigh the cranes\n2. Paint the bollards\n3. Dredge the basin\n\nWhich of these shall be done?"


def looked_up(number: int) -> list[BaseMessage]:
    call = {"name": "look_up", "args": {"crane": number}, "id": f"c{number}", "type": "tool_call"}
    text = f"crane {number}: {number * 31} kg, berth {number % 5}, last seen on Monday by team {number % 4}"
    return [
        AIMessage("", id=f"l{number}", tool_calls=[call]),
        ToolMessage(text, tool_call_id=f"c{number}", id=f"r{number}"),
    ]


def worked_on(session: Session, call_style: CallStyle, first: int, last: int) -> None:
    for number in range(first, last):
        told(call_style, session.add_messages, looked_up(number))


def condensed(session: Session, call_style: CallStyle) -> Context:
    context: Context = told(call_style, session.context, max_tokens=BUDGET)
    assert context.tokens <= BUDGET
    return context


def begun(session: Session, call_style: CallStyle, asked: str, said: str) -> Context:
    """A view after much work on what the user `said` to what the assistant `asked`."""
    begins = [HumanMessage("What is there to do on the quay?", id="u0"), AIMessage(asked, id="asked")]
    told(call_style, session.add_messages, [*begins, HumanMessage(said, id="said")])
    worked_on(session, call_style, 0, 60)
    return condensed(session, call_style)


def place(context: Context, message_id: str) -> int | None:
    return next((at for at, one in enumerate(context.messages) if one.id == message_id), None)


@both
@pytest.mark.parametrize("said", ["1+2", "yes", "the second", "\u7b2c\u4e8c\u4e2a", "\U0001f44d"])
def test_a_short_answer_stands_behind_what_it_answers(call_style: CallStyle, said: str) -> None:
    with open_memory() as memory:
        context = begun(memory.session("s"), call_style, OPTIONS, said)
        asked, answered = place(context, "asked"), place(context, "said")
        assert asked is not None
        assert answered is not None
        assert asked < answered
        assert context.messages[asked].text == OPTIONS
        between = context.messages[asked + 1 : answered]
        assert all("<recalled>" in one.text for one in between), "nothing but what was recalled for it"


@both
def test_a_long_one_is_shown_head_and_tail_within_a_small_share(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        asked = "Begin at the north. " + "The report tells of each crane. " * 200 + "Shall I paint the bollards?"
        context = begun(session, call_style, asked, "yes")
        at = place(context, "asked")
        assert at is not None
        text = context.messages[at].text
        assert text.startswith("Begin at the north.")
        assert text.endswith("paint the bollards?")
        assert len(text) < len(asked) // 4


@both
def test_what_says_itself_what_it_is_about_stands_alone(call_style: CallStyle) -> None:
    said = (
        "Please weigh every crane of the north quay before noon, write the weights into the green ledger of the "
        "harbour office, and tell the foreman which bollards lost their paint during the last winter storm."
    )
    with open_memory() as memory:
        assert place(begun(memory.session("s"), call_style, OPTIONS, said), "asked") is None


@both
def test_what_answers_no_words_of_the_assistant_stands_alone(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("Look the cranes up.", id="u"), *looked_up(99)])
        told(call_style, session.add_messages, [HumanMessage("go on", id="said")])
        worked_on(session, call_style, 0, 60)
        context = condensed(session, call_style)
        assert place(context, "said") is not None
        assert place(context, "r99") is None


@both
def test_it_keeps_its_bytes_and_is_never_shown_twice(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("What is there to do?", id="u0")])
        told(call_style, session.add_messages, [AIMessage(OPTIONS, id="asked"), HumanMessage("1+2", id="said")])
        worked_on(session, call_style, 0, 40)
        before: Context | None = None
        for number in range(40, 60):
            told(call_style, session.add_messages, looked_up(number))
            context = condensed(session, call_style)
            assert sum(one.id == "asked" for one in context.messages) == 1
            if before is not None and context.guard.outcome.kind.value == "not_needed":
                kept, now = before.messages[: before.stable_messages], context.messages[: before.stable_messages]
                assert list(map(as_bytes, now)) == list(map(as_bytes, kept))
            before = context
        told(call_style, session.add_messages, [AIMessage("Both are done.", id="done"), HumanMessage("3", id="next")])
        context = condensed(session, call_style)
        shown = [one.id for one in context.messages if one.id in ("asked", "said", "done", "next")]
        assert shown[-2:] == ["done", "next"]


@both
def test_what_is_hardly_larger_than_its_room_is_not_cut(call_style: CallStyle) -> None:
    asked = "The quay: " + "crane " * 44 + "Shall I paint the bollards?"
    with open_memory() as memory:
        context = begun(memory.session("s"), call_style, asked, "yes")
        at = place(context, "asked")
        assert at is not None
        assert context.messages[at].text == asked


@both
def test_a_command_and_a_note_of_the_host_are_no_words_of_the_user(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("What is there to do on the quay?")])
        for number, said in enumerate(
            ("/mode", "[Stopped by the user]", "<out>set</out>", "Weigh [all] of them", "Go on")
        ):
            told(call_style, session.add_messages, [HumanMessage(said, id=f"h{number}")])
            worked_on(session, call_style, 20 * number, 20 * number + 20)
        history = condensed(session, call_style).section("history")
        assert history is not None
        quoted = history.text.partition("Earlier messages of the user")[2]
        assert "Weigh [all] of them" in quoted
        assert not any(one in quoted for one in ("/mode", "[Stopped", "<out>"))


@both
def test_where_a_host_puts_all_that_is_said_into_a_tag_it_is_quoted(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [HumanMessage("<query>What is there to do on the quay?</query>")])
        for number in range(4):
            said = f"<query>Weigh crate {number}</query>"
            told(call_style, session.add_messages, [HumanMessage(said, id=f"h{number}")])
            worked_on(session, call_style, 20 * number, 20 * number + 20)
        history = condensed(session, call_style).section("history")
        assert history is not None
        assert "Weigh crate 1" in history.text.partition("Earlier messages of the user")[2]
