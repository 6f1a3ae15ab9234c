"""What is pinned stands in every view until it is let go."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import conversation, open_memory


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_pinned_message_is_shown_until_it_is_unpinned(call_style: CallStyle) -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("The seal of the north gate is violet.", id="seal"), AIMessage("I see.")])
        session.add_messages(conversation(40))
        shown = []
        for verb in (None, session.pin, session.unpin):
            if verb is not None:
                told(call_style, verb, "seal")
            context = told(call_style, session.context, "", max_tokens=1000)
            section = context.section("pinned")
            shown.append(section is not None and "violet" in section.text and "seal" in context.entry_ids)
    assert shown == [False, True, False]
