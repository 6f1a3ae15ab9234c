"""What is worth quoting beside a message of a conversation that goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.recall.finding import find
from langchain_tiered_memory.recall.judgement import judge
from tests.memory_builders import entries_of, open_memory, ref_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.recall.judgement import Judged

IN_VIEW = 4
"""Messages at the end of each conversation here that its view shows."""


def judged_beside(*said: str, older: Sequence[str]) -> Judged:
    """The last of what is `said`, user and assistant in turns, judged by what is `older` and out of sight."""
    texts = [*older, *said]
    first_by_user = len(texts) % 2 == 1
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(
            [
                HumanMessage(text) if (place % 2 == 0) is first_by_user else AIMessage(text)
                for place, text in enumerate(texts)
            ]
        )
        entries = entries_of(session)
        found = find(session.core.runtime, ref_of(session), texts[-1], asked_at=entries[-1].seq)
        shown_from = entries[len(older)].seq
        return judge(found, lambda seq: seq < shown_from)


def filler(count: int) -> list[str]:
    """Talk of which each message has words of its own."""
    return [f"The item{at} went into box{at} of shelf{at} with label{at}." for at in range(count)]


GREETINGS = [
    "Hey Nora, how have you been since we last talked?",
    "Hey! I was in Lisbon and came home with a cold.",
    "Hey Nora, what's up today? A lot happened since we talked last.",
    "Not much, the roof of the shed was mended.",
]


@pytest.mark.parametrize("greeting", ["Hey Nora, what's been up since we last talked?", "Hi Nora, how are you today?"])
def test_a_greeting_asks_nothing_older_however_many_greetings_match_it(greeting: str) -> None:
    judged = judged_beside("See you!", greeting, older=[*GREETINGS, *filler(60), *GREETINGS])
    assert judged.asks == "nothing"
    assert judged.worth_quoting() == []


@pytest.mark.parametrize("choice", ["1+2", "ok 2", "yes please"])
def test_a_bare_choice_asks_nothing_older(choice: str) -> None:
    older = [*filler(30), "1. Paint it green. 2. Please leave it as it is. 3. Ask Nora of the shed.", *filler(30)]
    judged = judged_beside("1. Sand the door. 2. Oil the hinges. 3. Sweep. Which?", choice, older=older)
    assert judged.asks == "nothing"
    assert judged.worth_quoting() == []


@pytest.mark.parametrize("said", ["Hey Nora, where did the ladder stand?", "OK, and the ladder in the old chapel"])
def test_what_is_asked_behind_a_greeting_is_asked(said: str) -> None:
    older = [*filler(30), "Nora keeps the ladder in the old chapel.", *filler(30)]
    judged = judged_beside("See you!", said, older=older)
    assert judged.asks == "a question"
    assert len(judged.worth_quoting()) >= 1


CAPTION = "[shares an image: a photo of a person standing before a brick building with a red door]"


def test_words_that_always_come_together_are_no_answer() -> None:
    older = [*filler(40), *(f"Look at thing{at}! {CAPTION}" for at in range(6)), *filler(40)]
    said = f"We met the neighbours. {CAPTION}"
    assert judged_beside("What did you do?", said, older=older).worth_quoting() == []
    rare = "The hedgehog of the neighbours sleeps behind the compost."
    said = "We met the neighbours with their hedgehog in the compost. It rained."
    assert len(judged_beside("What did you do?", said, older=[*older, rare, *filler(2)]).answers) == 1


WARM = [*filler(20), "The kiln of the pottery is warm.", *filler(40)]
ASKED = "What temperature does the kiln glaze need?"


@pytest.mark.parametrize(
    ("talk", "is_subject"),
    [
        (("I am firing the kiln with the new glaze.", "Nice."), True),
        (("Nice.", "What glaze does the kiln want?"), True),
        (("I am painting the fence.", "Nice."), False),
        (("What glaze does the kiln want?", "Sorry?"), False),  # the user's own asking waits for its answer still
        (("The kiln glaze.", "Nice."), False),  # says nothing that is not asked
    ],
)
def test_what_goes_on_with_what_stands_in_view_asks_little_of_what_is_older(
    talk: tuple[str, ...], *, is_subject: bool
) -> None:
    judged = judged_beside(*talk, ASKED, older=WARM)
    assert (judged.asks, judged.goes_on) == ("a question", is_subject)
    assert [one.sequence for one in judged.hidden if one.sequence in judged.answers] == [21]
    assert (len(judged.worth_quoting()) == 1) is is_subject, "beside the answer less is quoted"


@pytest.mark.parametrize(
    ("said", "answers"),
    [
        ("The kiln broke.", {21}),
        ("I had soup with Fred. The kiln broke.", set()),
        ("I had soup with Fred. The new kiln of the pottery broke.", {21}),
    ],
)
def test_beside_other_things_that_are_said_more_has_to_be_shared(said: str, answers: set[int]) -> None:
    older = [*filler(20), "The kiln of the pottery needs 1240 degrees.", *filler(40)]
    assert judged_beside("See you!", said, older=older).answers == answers


def ran(command: str, result: str) -> list[BaseMessage]:
    """A call of a tool, and what it gave."""
    call = {"name": "run", "args": {"command": command}, "id": command, "type": "tool_call"}
    return [AIMessage("", tool_calls=[call]), ToolMessage(result, tool_call_id=command, name="run")]


def quoted_of(older: Sequence[BaseMessage], asks: str) -> list[str]:
    """What of the `older` messages, all out of sight, is worth quoting beside a question."""
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([*older, HumanMessage(asks)])
        entries = entries_of(session)
        found = find(session.core.runtime, ref_of(session), asks, asked_at=entries[-1].seq)
        worth = judge(found, lambda seq: seq < entries[-1].seq).worth_quoting()
        return [found.entries[one.sequence].text for one in sorted(worth, key=lambda one: one.sequence)]


def test_of_what_tools_gave_only_what_answers_is_quoted_beside_a_question() -> None:
    asks, near = "Which way does the pylon of crane Halvard lean?", "Crane Halvard was weighed on Monday."
    found = ran("list pylons", "The pylon of crane Halvard leans eastward by the lighthouse.")
    rest: list[BaseMessage] = [HumanMessage(text) for text in filler(40)]
    said = quoted_of([HumanMessage(near), *rest, *found, *rest], asks)
    assert near in said, "what people said cannot be had again"
    given = quoted_of([*ran("weigh cranes", near), *rest, *found, *rest], asks)
    assert any("eastward" in one for one in given)
    assert near not in given
    again = ran("look at it", "The pylon of crane Halvard leans eastward, too.")
    for told in (asks, "Paint the pylon of Halvard."):
        assert sum("eastward" in one for one in quoted_of([*found, *rest, *again, *rest], told)) == 2


def test_a_note_of_the_host_is_quoted_for_nothing() -> None:
    note = "<local-command-stdout>Connected to the crane Halvard.</local-command-stdout>"
    told = "The crane Halvard was painted green."
    older: list[BaseMessage] = [HumanMessage(note), HumanMessage(told), AIMessage("I see.")]
    older += [one for text in filler(30) for one in (HumanMessage(text), AIMessage(f"Yes. {text}"))]
    worth = quoted_of(older, "What colour has the crane Halvard?")
    assert told in worth
    assert note not in worth
