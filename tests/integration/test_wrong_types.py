"""Input of a wrong type gets a sentence and changes nothing; what a context points to can be had."""

from __future__ import annotations

import copy
import math
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import conversation, open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_tiered_memory.memory import TieredMemory


@pytest.fixture
def memory() -> Iterator[TieredMemory]:
    with open_memory(None) as opened:
        yield opened


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize(
    "messages", ["hello", b"hello", {"role": "user", "content": "x"}, HumanMessage("alone"), None, 7]
)
def test_what_is_no_list_of_messages_is_refused_and_nothing_is_written(
    memory: TieredMemory, messages: Any, call_style: CallStyle
) -> None:
    with pytest.raises(InvalidInputError, match="put it in a list"):
        told(call_style, memory.session("s").add_messages, messages)
    assert memory.session("s").messages() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": 5},
        {"max_tokens": "100"},
        {"max_tokens": math.nan},
        {"system": ["a"]},
        {"tools": None},
        {"branch": "abc"},
        {"view": "sideways"},
        {"view": ["default"]},
        {"profile": 5},
    ],
)
def test_a_context_is_not_made_from_input_of_a_wrong_type(memory: TieredMemory, wrong: dict[str, Any]) -> None:
    session = memory.session("s")
    session.add_messages([HumanMessage("hi")])
    with pytest.raises(InvalidInputError):
        session.context(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 1.5},
        {"k": 0},
        {"tracks": "main"},
        {"levels": 0},
        {"levels": [-1]},
        {"since": "2024-01-01"},
        {"until": 1.0},
    ],
)
def test_a_search_with_a_wrong_filter_is_refused(memory: TieredMemory, wrong: dict[str, Any]) -> None:
    session = memory.session("s")
    session.add_messages([HumanMessage("hi")])
    with pytest.raises(InvalidInputError):
        session.search("hi", **wrong)


@pytest.mark.parametrize("at", ["2024-01-01", -2e11, 1e15, math.nan, True])
def test_a_time_that_is_none_is_refused(memory: TieredMemory, at: Any) -> None:
    with pytest.raises(InvalidInputError):
        memory.session("s").add_messages([HumanMessage("hi")], at=at)


def test_ids_to_forget_may_come_from_a_generator_and_not_as_one_string(memory: TieredMemory) -> None:
    session = memory.session("s")
    ids = session.add_messages([HumanMessage("one"), HumanMessage("two")])
    with pytest.raises(InvalidInputError, match="put it in a list"):
        session.forget(message_ids=ids[0])
    made: Any = (one for one in ids)
    assert session.forget(message_ids=made).entries == 2
    assert session.messages() == []


def test_an_id_that_nothing_begins_with_is_not_found_and_a_depth_below_one_is_refused(memory: TieredMemory) -> None:
    session = memory.session("s")
    session.add_messages(conversation(12))
    session.flush()
    with pytest.raises(NotFoundError, match="no summary and no message"):
        session.expand("zzz")
    with pytest.raises(InvalidInputError, match="depth"):
        session.expand("zzz", depth=0)


@pytest.mark.parametrize("share", [0.55, 0.7, 0.9])
def test_a_large_system_prompt_never_costs_the_users_last_message(memory: TieredMemory, share: float) -> None:
    session = memory.session("s")
    session.add_messages([*conversation(20), HumanMessage("LASTQUESTION where is the red crane?")])
    session.flush()
    system = "rule " * 2000
    budget = 2400
    count = memory.core.runtime.counter.count_text
    system = system[: int(len(system) * share * budget / count(system))]
    context = session.context(max_tokens=budget, system=system)
    assert any("LASTQUESTION" in str(message.content) for message in context.messages)
    assert context.tokens <= budget


def test_what_one_model_taught_is_not_applied_to_another(memory: TieredMemory) -> None:
    session = memory.session("s")
    session.add_messages(conversation(40))
    session.flush()
    plans = memory.core.runtime.store.plans
    counter = memory.core.runtime.counter.fingerprint
    plans.set_calibration("cheap", counter, ratio=0.5, samples=9)
    plans.set_calibration("dear", counter, ratio=2.0, samples=9)
    cheap = session.context("", max_tokens=1200, model="cheap")
    dear = session.context("", max_tokens=1200, model="dear")
    assert cheap.tokens <= 1200
    assert dear.raw_tokens * 2 <= 1202
    assert dear.tokens == math.ceil(dear.raw_tokens * 2 - 1e-9)


def test_many_pins_leave_room_for_the_conversation_and_those_left_out_are_named(memory: TieredMemory) -> None:
    session = memory.session("s")
    ids = session.add_messages(conversation(60))
    for one in ids[:80]:
        session.pin(one)
    session.flush()
    context = session.context("", max_tokens=1500)
    pinned = context.section("pinned")
    assert pinned is not None
    assert "more pinned messages do not fit" in pinned.text
    assert context.tokens <= 1500


def test_the_recall_view_shows_the_users_question_where_none_is_given(memory: TieredMemory) -> None:
    session = memory.session("s")
    session.add_messages([*conversation(20), HumanMessage("What about the harbour?")])
    session.flush()
    context = session.context(max_tokens=900, view="recall")
    assert "What about the harbour?" in str(context.messages[-1].content)


def test_a_memory_that_something_copies_along_stays_the_same_one(memory: TieredMemory) -> None:
    held = {"memory": memory, "session": memory.session("s")}
    copied = copy.deepcopy(held)
    assert copied["memory"] is memory
    copied["session"].add_messages([HumanMessage("said to the copy")])
    assert [one.text for one in memory.session("s").messages()] == ["said to the copy"]
    with pytest.raises(InvalidInputError, match="open it again"):
        pickle.dumps(memory)


def test_a_dict_that_lacks_a_field_says_which(memory: TieredMemory) -> None:
    with pytest.raises(InvalidInputError, match="it has no 'tool_call_id'"):
        memory.session("s").add_messages([{"role": "tool", "content": "found"}])
