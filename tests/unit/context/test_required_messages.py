"""What must be shown is read once, and what a caller does to it stays with the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.context.required_messages import read_required, says_something
from langchain_tiered_memory.messages.message_text import is_notice
from langchain_tiered_memory.summaries.tree.condense import ABANDONED_AFTER
from tests.fact_builders import entry
from tests.memory_builders import as_bytes, conversation, open_memory, ref_of, tool_turn

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.context.required_messages import RequiredMessages
    from langchain_tiered_memory.memory import Session


def asking(message_id: str) -> AIMessage:
    """An assistant's message with a call that nobody answers."""
    return AIMessage("", id=message_id, tool_calls=[{"name": "look_up", "args": {}, "id": f"call-{message_id}"}])


def session_of(*messages: BaseMessage) -> Session:
    session = open_memory().session("s")
    session.add_messages(list(messages))
    return session


def musts_of(session: Session, *, off: frozenset[int] = frozenset()) -> RequiredMessages:
    return read_required(session.core.runtime, ref_of(session), "main", off=off)


def said(count: int) -> list[AIMessage]:
    return [AIMessage(f"so be it, {number}", id=f"a{number}") for number in range(count)]


def users(count: int) -> list[HumanMessage]:
    return [HumanMessage(f"question {number}", id=f"u{number}") for number in range(count)]


def test_the_goal_comes_last_of_the_opening_and_the_last_user_message_last_of_the_users() -> None:
    found = musts_of(session_of(*conversation(5)))
    assert [entry.id for entry in found.opening] == ["q0"]
    assert [entry.id for entry in found.users] == ["q0", "q1", "q2", "q3", "q4"]
    assert found.last_user is not None
    assert found.last_user_text == found.last_user.text == "What do we know about the customs of order 1004?"


def test_the_last_messages_are_guarded_with_their_whole_groups() -> None:
    found = musts_of(session_of(*conversation(3), *tool_turn(9, results=4)[:-1]))
    assert 8 in found.held, "the message that called, whose results are the last ones"
    assert found.guard == 10


def test_a_late_result_holds_its_call_and_nothing_of_what_was_said_in_between() -> None:
    late = ToolMessage("granted", tool_call_id="call-late", id="granted")
    found = musts_of(session_of(*users(1), asking("late"), *conversation(6), late))
    assert 2 in found.held
    assert found.guard == 13


def test_an_open_call_is_held_until_the_user_speaks_or_much_comes_behind_it() -> None:
    first, second, *_ = users(4)
    open_late = session_of(first, second, asking("late"), *said(5))
    assert 3 in musts_of(open_late).held, "its group stays, wherever it stands"
    assert musts_of(open_late).guard == 6, "what was said behind it may be condensed"
    open_early = session_of(first, asking("early"), second, *said(5))
    assert 2 not in musts_of(open_early).held, "the user spoke since"
    assert musts_of(open_early).guard == 6
    long_ago = session_of(first, asking("early"), *said(ABANDONED_AFTER))
    assert 2 not in musts_of(long_ago).held, "it is given up for dead, as where it is condensed"


def test_a_message_off_the_branch_guards_nothing_and_asks_nothing() -> None:
    session = session_of(*users(4), asking("late"))
    found = musts_of(session, off=frozenset({4, 5}))
    assert found.last_user_text == "question 2"
    assert found.guard == 1


def test_an_empty_track_has_no_musts() -> None:
    session = session_of(*users(1))
    assert read_required(session.core.runtime, ref_of(session), "side", off=frozenset()).last_user is None


def test_what_a_caller_does_to_the_messages_of_a_context_reaches_no_other_context() -> None:
    session = session_of(*conversation(3), *tool_turn(3), HumanMessage([{"type": "text", "text": "and now?"}], id="q"))
    first = session.context("", max_tokens=4000).messages
    sent = [as_bytes(message) for message in first]
    for message in first:
        spoil(message)
    assert [as_bytes(message) for message in session.context("", max_tokens=4000).messages] == sent
    assert [message.id for message in session.messages()][-1] == "q"


def spoil(message: BaseMessage) -> None:
    """Change whatever can be changed in place, and every field."""
    parts: list[Any] = [value for value in message.__dict__.values() if isinstance(value, list | dict)]
    for part in parts:
        for inner in part if isinstance(part, list) else part.values():
            if isinstance(inner, dict):
                inner.clear()
        part.clear()
    message.content = "spoiled"
    message.id = "spoiled"


@pytest.mark.parametrize(
    ("said", "tells"),
    [
        ("yes please", False),
        ("1+2", False),
        ("yeah do it", False),
        ("Use port 8443 from now on.", True),
        ("ja, bitte den Hafen", True),
    ],
)
def test_assent_and_a_bare_choice_say_nothing_to_who_does_not_see_what_they_answer(said: str, *, tells: bool) -> None:
    assert says_something(entry(1, said)) is tells


SKILL = (
    "Base directory for this skill: /home/ana/skills/tide-tables\n\n# Tide tables\n\nRead them before the ferry leaves."
)


def test_a_document_that_a_host_loads_is_none_of_the_users_words() -> None:
    assert is_notice(SKILL)
    assert not is_notice("Please read this: /home/ana/tides.md\n\nIt is about the ferry.")
    assert not is_notice("# Task\n\nWrite the tide tables.\n\n# Rules\n\nNever guess.")
    assert not is_notice("I want the following:\n\n# Tide tables\n\nfor each harbour")
