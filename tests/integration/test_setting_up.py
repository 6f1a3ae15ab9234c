"""What an integration is set up with is looked at where it is written, and refused with what to write instead."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.integrations.legacy.chat_history import TieredChatMessageHistory
from langchain_tiered_memory.integrations.legacy.classic import ConversationTieredMemory
from langchain_tiered_memory.integrations.legacy.runnable_history import with_tiered_history
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.integrations.nodes import (
    condense_node,
    context_node,
    evict_node,
    guard_node,
    remember_node,
)
from langchain_tiered_memory.integrations.retriever import TieredMemoryRetriever
from langchain_tiered_memory.integrations.tools import memory_tools
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.settings import ContextSettings, Settings, ViewSettings
from langchain_tiered_memory.testing import ScriptedModel
from tests.agent_builders import THREAD, ToolModel, built, open_memory, said, streamed
from tests.call_styles import CALL_STYLES, CallStyle

if TYPE_CHECKING:
    from collections.abc import Callable

NODES: dict[str, Callable[..., Any]] = {
    "remember_node": remember_node,
    "condense_node": condense_node,
    "context_node": context_node,
    "guard_node": guard_node,
    "evict_node": evict_node,
}
INTEGRATIONS: dict[str, Callable[..., Any]] = {
    **NODES,
    "TieredMemoryMiddleware": TieredMemoryMiddleware,
    "memory_tools": memory_tools,
    "TieredChatMessageHistory": lambda memory, **choices: TieredChatMessageHistory(memory, "s", **choices),
    "with_tiered_history": lambda memory, **choices: with_tiered_history(RunnableLambda(str), memory, **choices),
    "TieredMemoryRetriever": lambda memory: TieredMemoryRetriever(memory=memory, session_id="s"),
    "ConversationTieredMemory": lambda memory, **choices: ConversationTieredMemory(
        memory=memory, session_id="s", **choices
    ),
}
WITH_BUDGETS = [
    "context_node",
    "guard_node",
    "TieredMemoryMiddleware",
    "memory_tools",
    "TieredChatMessageHistory",
    "with_tiered_history",
    "ConversationTieredMemory",
]
WITH_VIEWS = [one for one in WITH_BUDGETS if one != "memory_tools"]


@pytest.mark.parametrize("integration", list(INTEGRATIONS))
@pytest.mark.parametrize("given", ["x.db", Path("x.db"), None, TieredMemory, 7], ids=repr)
def test_what_is_no_memory_is_refused_with_how_to_open_one(integration: str, given: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"TieredMemory\.open\(") as caught:
        INTEGRATIONS[integration](given)
    assert integration in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_arguments_of_a_history_that_changed_places_are_told_of() -> None:
    with (
        open_memory() as memory,
        pytest.raises(SettingsError, match="TieredChatMessageHistory: memory must be a TieredMemory"),
    ):
        TieredChatMessageHistory("s", memory)  # type: ignore[arg-type]


@pytest.mark.parametrize("integration", WITH_BUDGETS)
@pytest.mark.parametrize("given", [-1, 0, "8k", 1.5, True, float("nan")], ids=repr)
def test_a_budget_that_is_none_is_refused(integration: str, given: Any) -> None:
    with open_memory() as memory, pytest.raises(SettingsError, match="max_tokens must be a whole number"):
        INTEGRATIONS[integration](memory, max_tokens=given)


@pytest.mark.parametrize("integration", WITH_VIEWS)
@pytest.mark.parametrize("given", ["nope", 3, None], ids=repr)
def test_a_view_that_nobody_knows_is_refused(integration: str, given: Any) -> None:
    with open_memory() as memory, pytest.raises(SettingsError, match="view"):
        INTEGRATIONS[integration](memory, view=given)


@pytest.mark.parametrize("integration", WITH_VIEWS)
def test_views_of_the_settings_are_known(integration: str) -> None:
    settings = Settings(context=ContextSettings(views={"mine": ViewSettings()}))
    with open_memory(settings=settings) as memory:
        assert INTEGRATIONS[integration](memory, view="mine") is not None


@pytest.mark.parametrize("integration", list(NODES))
def test_a_node_takes_a_function_that_opens_a_memory(integration: str) -> None:
    assert NODES[integration](functools.cache(lambda: None)) is not None


@pytest.mark.parametrize("integration", [*NODES, "TieredMemoryMiddleware", "TieredChatMessageHistory"])
def test_a_track_that_is_no_name_is_refused(integration: str) -> None:
    with open_memory() as memory, pytest.raises((SettingsError, InvalidInputError), match="track must be a string"):
        INTEGRATIONS[integration](memory, track=3)


@pytest.mark.parametrize("given", [0, -5, "500", True], ids=repr)
def test_room_for_a_plan_that_is_none_is_refused(given: Any) -> None:
    with open_memory() as memory, pytest.raises(SettingsError, match="project_tokens must be a whole number"):
        TieredMemoryMiddleware(memory, project=["todos"], project_tokens=given)


def test_a_copy_of_the_middleware_shares_the_memory_and_has_its_own_choices() -> None:
    class Mine(TieredMemoryMiddleware):
        """Has something of its own."""

        def __init__(self, memory: TieredMemory, **choices: Any) -> None:
            super().__init__(memory, **choices)
            self.notes = ["one"]

    with open_memory() as memory:
        first = Mine(memory, max_tokens=900, tools=True)
        for copied in (copy.deepcopy(first), copy.deepcopy({"middleware": first})["middleware"]):
            assert type(copied) is Mine
            assert copied._memory is memory
            assert copied._choices == first._choices
            assert copied._notices is not first._notices
            assert copied.notes == ["one"]
            assert copied.notes is not first.notes
            assert [one.name for one in copied.tools] == [one.name for one in first.tools]
            agent = create_agent(ToolModel(answers=["ok"]), [], middleware=[copied], checkpointer=InMemorySaver())
            agent.invoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": str(id(copied))}})
        assert len(memory.sessions()) == 2
        assert copy.copy(memory) is memory


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_loop_that_reads_the_last_message_of_every_update_goes_on_to_the_end(
    call_style: CallStyle, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_memory() as memory:
        agent = built(memory, ScriptedModel(answers=["Monday."]), tools=())
        for question in ("When?", "And then?"):
            for _, step in streamed(call_style, agent, question, ["updates"]):
                for update in step.values():
                    update["messages"][-1].pretty_print()
        assert "Monday." in capsys.readouterr().out
        state = said(call_style, agent, "Anything else?")
        assert [one.type for one in state["messages"]] == ["human", "ai"] * 3
        assert [one.id for one in memory.session("alice").messages()] == [one.id for one in state["messages"]]
        assert agent.get_state(THREAD).next == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_the_entry_of_the_middleware_brings_no_message_twice_into_the_stream_of_messages(call_style: CallStyle) -> None:
    with open_memory() as memory:
        agent = built(memory, ScriptedModel(answers=["Monday."]), tools=())
        chunks = [chunk for _, (chunk, *_) in streamed(call_style, agent, "When?", ["messages"])]
        assert [str(one.text) for one in chunks if str(one.text)] == ["Monday."]
