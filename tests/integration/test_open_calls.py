"""A call that waits for its result stays in view, whatever is condensed, slid or pruned around it; no abandoned one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.summaries.tree.condense import ABANDONED_AFTER
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory, quick_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session

pytestmark = pytest.mark.slow

APPROVAL = {"name": "deploy", "args": {"to": "production"}, "id": "approval"}


def looks(first: int, last: int) -> Iterator[list[BaseMessage]]:
    for number in range(first, last):
        call = {"name": "look", "args": {"at": number}, "id": f"look-{number}"}
        yield [
            AIMessage("", tool_calls=[call], id=f"c{number}"),
            ToolMessage(f"gauge {number} shows {number * 7} bar. " * 6, tool_call_id=f"look-{number}", id=f"r{number}"),
        ]


def busy_since_an_open_call(call_style: CallStyle, *, condensed: bool, steps: int = ABANDONED_AFTER - 1) -> Session:
    """A session in which a call waits for an approval, with finished steps before and behind it."""
    session = open_memory(None, settings=quick_settings(enabled=condensed)).session("s")
    asks: list[BaseMessage] = [AIMessage("", tool_calls=[APPROVAL], id="asks")]
    told(call_style, session.add_messages, [HumanMessage("Deploy it.", id="u0")])
    for step in [*looks(0, 30), asks, *looks(30, 30 + steps)]:
        told(call_style, session.add_messages, step)
        if condensed:
            told(call_style, session.flush)
    return session


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("condensed", [True, False], ids=["condensed", "slid or pruned"])
def test_an_open_call_stays_in_view_until_it_is_answered(call_style: CallStyle, condensed: bool) -> None:  # noqa: FBT001 - a case
    session = busy_since_an_open_call(call_style, condensed=condensed)
    context = told(call_style, session.context, "", max_tokens=700)
    assert context.tokens <= 700
    asked = [call["id"] for one in context.messages if isinstance(one, AIMessage) for call in one.tool_calls]
    assert "approval" in asked
    told(call_style, session.add_messages, [ToolMessage("granted by Ann", tool_call_id="approval", id="granted")])
    after = told(call_style, session.context, "", max_tokens=700)
    results = [one.text for one in after.messages if isinstance(one, ToolMessage) and one.tool_call_id == "approval"]
    assert results == ["granted by Ann"]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("condensed", [True, False], ids=["condensed", "slid or pruned"])
def test_a_result_that_comes_after_the_assistants_own_words_is_the_news_of_the_next_request(
    call_style: CallStyle,
    condensed: bool,  # noqa: FBT001 - a case
) -> None:
    session = busy_since_an_open_call(call_style, condensed=condensed)
    late = [AIMessage("All gauges are read.", id="read"), ToolMessage("granted by Ann", tool_call_id="approval")]
    for one in late:
        told(call_style, session.add_messages, [one])
    context = told(call_style, session.context, "", max_tokens=700)
    assert check_valid(context.messages, complete=True) == []
    assert "granted by Ann" in "\n".join(str(one.text) for one in context.messages)
    assert isinstance(context.messages[-1], HumanMessage | ToolMessage)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_result_that_comes_long_after_its_call_was_condensed_is_shown(call_style: CallStyle) -> None:
    session = busy_since_an_open_call(call_style, condensed=True, steps=30)
    for number in range(8):
        chat = [HumanMessage(f"And gauge {number}?", id=f"q{number}"), AIMessage("It is fine. " * 20, id=f"a{number}")]
        told(call_style, session.add_messages, chat)
        told(call_style, session.flush)
        told(call_style, session.context, "", max_tokens=700)
    told(call_style, session.add_messages, [ToolMessage("granted by Ann", tool_call_id="approval")])
    context = told(call_style, session.context, "", max_tokens=700)
    assert check_valid(context.messages, complete=True) == []
    assert "granted by Ann" in "\n".join(str(one.text) for one in context.messages)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("condensed", [True, False], ids=["condensed", "slid or pruned"])
@pytest.mark.parametrize("spoke", [True, False], ids=["the user spoke since", "much came since"])
def test_an_abandoned_call_is_history(call_style: CallStyle, condensed: bool, spoke: bool) -> None:  # noqa: FBT001 - cases
    session = busy_since_an_open_call(call_style, condensed=condensed, steps=0 if spoke else 30)
    if spoke:
        told(call_style, session.add_messages, [HumanMessage("I did that by hand.", id="u1")])
        for step in looks(30, 60):
            told(call_style, session.add_messages, step)
            if condensed:
                told(call_style, session.flush)
    context = told(call_style, session.context, "", max_tokens=700)
    assert check_valid(context.messages, complete=True) == []
    assert "asks" not in [one.id for one in context.messages]
    assert "Still open: call" not in "\n".join(str(one.text) for one in context.messages)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_an_abandoned_call_that_is_shown_stands_in_its_place(call_style: CallStyle) -> None:
    session = busy_since_an_open_call(call_style, condensed=True, steps=0)
    told(call_style, session.add_messages, [HumanMessage("I did that by hand.", id="u1")])
    for step in looks(30, 36):
        told(call_style, session.add_messages, step)
        told(call_style, session.flush)
        ids = [one.id for one in told(call_style, session.context, "", max_tokens=700).messages]
        assert "u1" in ids
        assert "asks" not in ids or ids.index("asks") < ids.index("u1")
