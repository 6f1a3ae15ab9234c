"""Which day the recent messages of a view are from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.testing import FrozenClock
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import NOW, open_memory

if TYPE_CHECKING:
    from langchain_tiered_memory.types.contexts import Context

DAY = 86_400.0


def texts(context: Context) -> list[str]:
    return [one.text for one in context.messages]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_line_says_where_a_day_of_recent_messages_begins(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW + 3 * DAY)) as memory:
        session = memory.session("s")

        def shown_after(said: list[HumanMessage | AIMessage], *, day: int) -> Context:
            session.add_messages(said, at=[NOW + day * DAY] * len(said))
            return told(call_style, session.context, "", max_tokens=2000)

        first = shown_after([HumanMessage("The kiln is hot."), AIMessage("Noted.")], day=0)
        second = shown_after([HumanMessage("The kiln is cold."), AIMessage("Noted too.")], day=1)
        third = shown_after([HumanMessage("It was mended."), HumanMessage("Today.")], day=2)
        lines = ["[2023-11-15 22:13: the messages below]", "[2023-11-16 22:13: the messages below]"]
        assert texts(first) == ["The kiln is hot.", "Noted."]
        assert texts(second) == [*texts(first), lines[0], "The kiln is cold.", "Noted too."]
        assert texts(third) == [*texts(second), lines[1], "It was mended.", "Today."]
        recent = third.section("recent")
        assert recent is not None
        assert recent.tokens + 3 == third.tokens  # what primes the answer
        assert third.messages[2].additional_kwargs, "a line of ours is marked as ours"
