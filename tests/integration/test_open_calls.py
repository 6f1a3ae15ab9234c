"""A call that waits for its result stays in view, whatever is condensed, slid or pruned around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from tests.colours import COLOURS, Colour, told
from tests.memory_builders import open_memory, quick_settings

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import Session

APPROVAL = {"name": "deploy", "args": {"to": "production"}, "id": "approval"}


def busy_since_an_open_call(colour: Colour, *, condensed: bool) -> Session:
    """A session whose second message waits for an approval, with many finished steps behind it."""
    session = open_memory(None, settings=quick_settings(enabled=condensed)).session("s")
    told(colour, session.add_messages, [HumanMessage("Deploy it."), AIMessage("", tool_calls=[APPROVAL], id="asks")])
    for number in range(30):
        call = {"name": "look", "args": {"at": number}, "id": f"look-{number}"}
        step = [
            AIMessage("", tool_calls=[call], id=f"c{number}"),
            ToolMessage(f"gauge {number} shows {number * 7} bar. " * 6, tool_call_id=f"look-{number}", id=f"r{number}"),
        ]
        told(colour, session.add_messages, step)
        if condensed:
            told(colour, session.flush)
    return session


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("condensed", [True, False], ids=["condensed", "slid or pruned"])
def test_an_open_call_stays_in_view_until_it_is_answered(colour: Colour, condensed: bool) -> None:  # noqa: FBT001 - a case
    session = busy_since_an_open_call(colour, condensed=condensed)
    context = told(colour, session.context, "", max_tokens=700)
    assert context.tokens <= 700
    asked = [call["id"] for one in context.messages if isinstance(one, AIMessage) for call in one.tool_calls]
    assert "approval" in asked
    told(colour, session.add_messages, [ToolMessage("granted by Ann", tool_call_id="approval", id="granted")])
    after = told(colour, session.context, "", max_tokens=700)
    results = [one.text for one in after.messages if isinstance(one, ToolMessage) and one.tool_call_id == "approval"]
    assert results == ["granted by Ann"]
