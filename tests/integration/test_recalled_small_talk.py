"""Recall quotes both halves of an exchange, and leaves out who only greets."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_tiered_memory.recall.recall import recall
from tests.memory_builders import open_memory, ref_of

ASKED = "Which dinner for the farmers association in Lisbon is on 4 May, and is Maria Gonzalez allergic to anything?"
DINNER = "My name is Maria Gonzalez and the dinner for the farmers association in Lisbon is on 4 May, for 12 guests."


def talk(count: int) -> list[BaseMessage]:
    pairs = (
        (HumanMessage(f"The market of town {n} had bread."), AIMessage(f"Bread {n} goes with cheese."))
        for n in range(count)
    )
    return [message for pair in pairs for message in pair]


def quoted(*messages: BaseMessage, asked: str, room: int) -> str:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(list(messages))
        return recall(session.core.runtime, ref_of(session), asked, room=room, code_room=room, shown=frozenset()).text


@pytest.mark.parametrize(
    "brief",
    [HumanMessage("Allergic to peanuts."), AIMessage("```\npytest -q allergic\n```")],
)
def test_what_is_brief_is_quoted_where_room_is_free(brief: BaseMessage) -> None:
    text = quoted(HumanMessage(DINNER), AIMessage("Noted."), *talk(3), brief, *talk(3), asked=ASKED, room=2000)
    assert brief.text.strip("`\n") in text


def test_a_greeting_leaves_its_room_to_what_tells_something() -> None:
    greetings = [HumanMessage(f"Hey Maria Gonzalez! Good to see you {'again ' * n}") for n in range(6)]
    text = quoted(HumanMessage(DINNER), *talk(2), *greetings, *talk(2), asked=ASKED, room=110)
    assert DINNER in text


def test_who_only_thanks_is_not_quoted_though_room_is_free() -> None:
    said = (HumanMessage(text, name="Jon") for text in ("I was in Rome last week.", "Thanks!", "Thanks, Gina!"))
    text = quoted(*said, *talk(3), asked="Which week did Jon say thanks for?", room=2000)
    assert "Rome" in text
    assert "Thanks" not in text


def test_a_question_brings_its_reply_however_alike_that_is() -> None:
    asked = HumanMessage("Zinc marmalade quartz pelican, which number shall I use?", name="Ann")
    for said in ("It is 8080 on Fridays.", "Take 8080 for the pelican of the zinc mine."):
        reply = HumanMessage(said, name="Bob")
        text = quoted(asked, reply, *talk(9), asked="zinc marmalade quartz pelican", room=100)
        assert said in text
        assert asked.text in text
