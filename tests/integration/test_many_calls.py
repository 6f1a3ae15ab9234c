"""A message that makes very many calls side by side: it fits every budget, and a result of it costs no more."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory, quick_settings
from tests.properties.test_cost import Meter

pytestmark = pytest.mark.slow
LONG = "The gauge was read twice, and both readings agree within the tolerance of the instrument. " * 6


def calls(count: int, *, words: str = "") -> list[BaseMessage]:
    made = [{"name": "look", "args": {"at": at, "why": words}, "id": f"x{at}"} for at in range(count)]
    return [HumanMessage("Read every gauge.", id="ask"), AIMessage("I read them all.", tool_calls=made, id="calls")]


def results(count: int, *, start: int = 0, words: str = "") -> list[BaseMessage]:
    return [
        ToolMessage(f"gauge {at}: {at} bar. {words}", tool_call_id=f"x{at}", id=f"r{at}")
        for at in range(start, start + count)
    ]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("words", ["", LONG], ids=["short", "long"])
@pytest.mark.parametrize("answered", [1000, 500, 0])
@pytest.mark.sweep(2)
def test_a_thousand_parallel_calls_fit_into_4000_tokens(call_style: CallStyle, words: str, answered: int) -> None:
    with open_memory(settings=quick_settings(enabled=False)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [*calls(1000, words=words), *results(answered, words=words)])
        context = told(call_style, session.context, "", max_tokens=4000)
        assert context.tokens <= 4000
        assert check_valid(context.messages, complete=True) == []
        shown = [one for one in context.messages if isinstance(one, ToolMessage)]
        assert len(shown) >= 10
        assert any("more calls of the next message are not shown" in one.text for one in context.messages)
        assert any("Read every gauge." in one.text for one in context.messages)
        if answered:
            assert shown[-1].text.startswith(f"gauge {answered - 1}:")


def test_calls_that_fit_when_they_are_cut_are_all_shown() -> None:
    with open_memory(settings=quick_settings(enabled=False)) as memory:
        session = memory.session("s")
        session.add_messages([*calls(30), *results(30, words=LONG)])
        context = session.context("", max_tokens=4000)
        assert sum(isinstance(one, ToolMessage) for one in context.messages) == 30
        assert not any("are not shown for want of room" in one.text for one in context.messages)


def test_what_is_folded_is_named_in_the_account_and_stays_in_the_transcript() -> None:
    with open_memory(settings=quick_settings(enabled=False)) as memory:
        session = memory.session("s")
        session.add_messages([*calls(1000), *results(1000)])
        context = session.context("", max_tokens=4000)
        seen = {*context.entry_ids, *context.passage_ids}
        named = " ".join(left.what for section in context.sections for left in section.left_out)
        assert "r3" not in seen
        assert "r3" in named.split()
        assert len(session.messages()) == 1002
        assert "gauge 3: 3 bar." in session.messages()[5].text


def test_results_that_come_one_by_one_cost_the_same_beside_a_hundred_calls_and_beside_twenty_thousand() -> None:
    def cost(count: int) -> tuple[int, int]:
        with open_memory(settings=quick_settings(enabled=False)) as memory:
            session = memory.session("s")
            session.add_messages(calls(count))
            meter = Meter.on(memory)
            for one in results(20):
                session.add_messages([one])
            return meter.statements, meter.steps

    few, many = cost(100), cost(20_000)
    assert many[0] == few[0]
    assert many[1] <= 1.2 * few[1] + 400


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_twenty_thousand_calls_in_one_message_work(call_style: CallStyle) -> None:
    with open_memory(settings=quick_settings(enabled=False)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, calls(20_000))
        told(call_style, session.add_messages, results(10_000))
        for one in results(20, start=10_000):
            told(call_style, session.add_messages, [one])
        context = told(call_style, session.context, "", max_tokens=4000)
        assert context.tokens <= 4000
        assert check_valid(context.messages, complete=True) == []
        assert context.messages[-1].text.startswith("gauge 10019:")
