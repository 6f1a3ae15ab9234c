"""What is asked of a context counts: its tools and system prompt, its branch, its track alone or what others said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.testing import FrozenClock
from langchain_tiered_memory.types import Scope
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import NOW, open_memory

if TYPE_CHECKING:
    from langchain_tiered_memory.types.contexts import Context

both = pytest.mark.parametrize("call_style", CALL_STYLES)


def text_of(context: Context) -> str:
    return "\n".join(one.text for one in context.messages)


@both
def test_tools_and_a_system_prompt_take_their_room(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Hi."), AIMessage("Hello.")])
        bare = told(call_style, session.context, max_tokens=2000).tokens
        schema = {"type": "function", "function": {"name": "look_up", "description": "Look an order up. " * 9}}
        with_tools = told(call_style, session.context, max_tokens=2000, tools=[schema]).tokens
        with_system = told(call_style, session.context, max_tokens=2000, system="Keep the register. " * 9).tokens
        assert min(with_tools, with_system) > bare + 20


@both
def test_a_branch_shows_its_own_messages_and_an_empty_one_none(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("The wall is blue.", id="q0"), HumanMessage("The wall is green.", id="q1")])
        shown = [
            ("blue" in text_of(one), "green" in text_of(one))
            for branch in (None, ["q0"], [])
            for one in (told(call_style, session.context, max_tokens=2000, branch=branch),)
        ]
        assert shown == [(True, True), (True, False), (False, False)]


@both
def test_what_another_track_said_answers_unless_the_handle_is_kept_to_its_own(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        memory.session("s", track="sub").add_messages([HumanMessage("The vault's code is Zq5566.")])
        memory.session("s").add_messages([HumanMessage("Hi."), AIMessage("Hello."), HumanMessage("The vault's code?")])
        free = told(call_style, memory.session("s").context, max_tokens=4000)
        kept = told(call_style, memory.session("s", scope=Scope()).context, max_tokens=4000)
        assert "Zq5566" in text_of(free)
        assert "Zq5566" not in text_of(kept)
