"""How the agent middleware reads what others changed in a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_tiered_memory.integrations.agent.request import changes_of

if TYPE_CHECKING:
    from collections.abc import Callable

HELD: list[BaseMessage] = [
    HumanMessage("Hello", id="h1"),
    AIMessage("Good morning", id="a1"),
    HumanMessage("To Zanzibar", id="h2"),
]


def unnamed(message: BaseMessage, text: str | None = None) -> BaseMessage:
    return message.model_copy(update={"id": None, "content": message.content if text is None else text})


def test_the_same_messages_without_ids_are_no_change() -> None:
    assert not changes_of(HELD, [unnamed(one) for one in HELD]).any


def test_a_reworded_message_without_an_id_is_an_edit_of_the_one_in_its_place() -> None:
    found = changes_of(HELD, [HELD[0], unnamed(HELD[1]), unnamed(HELD[2], "To [place]")])
    assert {key: edit.content for key, edit in found.edits.items()} == {"h2": "To [place]"}
    assert found.edits["h2"].id == "h2"
    assert (found.before, found.behind) == ((), ())


@pytest.mark.parametrize("rest", [[], [unnamed(one) for one in HELD[:2]] + [unnamed(HELD[2], "To [place]")]])
def test_an_addition_behind_stays_one(rest: list[BaseMessage]) -> None:
    note = HumanMessage("Be brief.")
    found = changes_of(HELD, [*(rest or HELD), note])
    assert (found.before, found.behind) == ((), (note,))
    assert set(found.edits) == ({"h2"} if rest else set())


def test_an_addition_in_front_stays_one() -> None:
    note = HumanMessage("Be brief.")
    found = changes_of(HELD, [note, *HELD])
    assert (found.before, found.behind, found.edits) == ((note,), (), {})


def test_an_addition_beside_a_cut_history_replaces_nothing() -> None:
    note = HumanMessage("Be brief.")
    found = changes_of(HELD, [HELD[1], HELD[2], note])
    assert (found.before, found.behind, found.edits) == ((), (note,), {})


def test_a_cut_history_without_ids_adds_nothing() -> None:
    assert not changes_of(HELD, [unnamed(HELD[2])]).any


@pytest.mark.parametrize("name", [lambda one: one, unnamed])
def test_messages_that_are_missing_were_left_out(name: Callable[[BaseMessage], BaseMessage]) -> None:
    found = changes_of(HELD, [name(HELD[0]), name(HELD[2])])
    assert (found.left_out, found.any) == ({"a1"}, False)


def test_nothing_is_left_out_of_the_same_messages() -> None:
    assert [changes_of(HELD, other).left_out for other in (HELD, list(HELD), [unnamed(one) for one in HELD])] == [
        frozenset()
    ] * 3


def test_a_message_that_is_worded_anew_is_not_left_out() -> None:
    assert not changes_of(HELD, [*HELD[:2], unnamed(HELD[2], "To [place]")]).left_out


def test_a_message_that_another_stands_for_is_left_out() -> None:
    summary = HumanMessage("So far: greetings.", additional_kwargs={"lc_source": "summarization"})
    found = changes_of(HELD, [summary, HELD[2]])
    assert (found.left_out, found.before) == ({"h1", "a1"}, (summary,))


def test_the_same_words_said_twice_are_told_apart_without_ids() -> None:
    held: list[BaseMessage] = [HumanMessage("ok", id="1"), HumanMessage("secret", id="2"), HumanMessage("ok", id="3")]
    found = changes_of(held, [unnamed(held[0]), unnamed(held[2])])
    assert (found.left_out, found.any) == ({"2"}, False)
