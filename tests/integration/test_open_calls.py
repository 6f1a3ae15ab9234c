"""A call that waits for its result stays in view, whatever is condensed, slid or pruned around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from benchmarks.provider_rules import check_valid
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory, quick_settings

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session

pytestmark = pytest.mark.slow

APPROVAL = {"name": "deploy", "args": {"to": "production"}, "id": "approval"}


def busy_since_an_open_call(call_style: CallStyle, *, condensed: bool) -> Session:
    """A session whose second message waits for an approval, with many finished steps behind it."""
    session = open_memory(None, settings=quick_settings(enabled=condensed)).session("s")
    told(
        call_style, session.add_messages, [HumanMessage("Deploy it."), AIMessage("", tool_calls=[APPROVAL], id="asks")]
    )
    for number in range(30):
        call = {"name": "look", "args": {"at": number}, "id": f"look-{number}"}
        step = [
            AIMessage("", tool_calls=[call], id=f"c{number}"),
            ToolMessage(f"gauge {number} shows {number * 7} bar. " * 6, tool_call_id=f"look-{number}", id=f"r{number}"),
        ]
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
    session = busy_since_an_open_call(call_style, condensed=True)
    for number in range(8):
        chat = [HumanMessage(f"And gauge {number}?", id=f"q{number}"), AIMessage("It is fine. " * 20, id=f"a{number}")]
        told(call_style, session.add_messages, chat)
        told(call_style, session.flush)
        told(call_style, session.context, "", max_tokens=700)
    told(call_style, session.add_messages, [ToolMessage("granted by Ann", tool_call_id="approval")])
    context = told(call_style, session.context, "", max_tokens=700)
    assert check_valid(context.messages, complete=True) == []
    assert "granted by Ann" in "\n".join(str(one.text) for one in context.messages)
