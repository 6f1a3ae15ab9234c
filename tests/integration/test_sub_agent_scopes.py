"""Sub-agents keep their tracks to themselves, and see of the agent above them what their scope says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.integrations.nodes import context_node, model_input, remember_node
from langchain_tiered_memory.integrations.tools import memory_tools
from langchain_tiered_memory.testing import ScriptedModel
from langchain_tiered_memory.types import Scope
from tests.call_styles import CALL_STYLES, CallStyle
from tests.graph_builders import ChatState, Runner, thread
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow

SCOPES = [None, Scope(), Scope(sight_tokens=300)]


class Caller(ScriptedModel):
    """A scripted model that takes tools."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools
        return self


def texts(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(str(one.text) for one in messages)


def delegate(agent: Any) -> StructuredTool:
    """A tool that hands its word to an agent, sync and async."""

    def call(what: str) -> str:
        return str(agent.invoke({"messages": [HumanMessage(what)]})["messages"][-1].text)

    async def acall(what: str) -> str:
        return str((await agent.ainvoke({"messages": [HumanMessage(what)]}))["messages"][-1].text)

    return StructuredTool.from_function(call, acall, name="delegate", description="Delegate a task.")


def calling(name: str, number: int, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"{name}{number}"}])


def told_main(memory: TieredMemory) -> list[str]:
    return [str(one.text) for one in memory.session("t").messages()]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("scope", SCOPES, ids=["no scope", "own track", "sight"])
async def test_an_agent_that_a_tool_calls_sees_of_the_one_above_what_its_scope_says(
    call_style: CallStyle, scope: Scope | None
) -> None:
    runner, shown = Runner(call_style), []

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        assert check_valid(messages, complete=True) == []
        shown.append(texts(messages))
        return AIMessage("It is permitted.")

    with open_memory() as memory:
        helper = create_agent(
            ScriptedModel(answers=reply), [], middleware=[TieredMemoryMiddleware(memory, scope=scope)]
        )
        answers = [calling("delegate", 1, what="Look for the permit."), "Done.", "Noted."]
        boss = create_agent(
            Caller(answers=answers),
            [delegate(helper)],
            middleware=[TieredMemoryMiddleware(memory)],
            checkpointer=InMemorySaver(),
        )
        await runner.invoke(boss, {"messages": [HumanMessage("Build the kingfisher quay.")]}, thread())
        assert ("kingfisher" in shown[0]) == (scope is not None and scope.sight_tokens > 0)
        assert shown[0].endswith("Look for the permit.")
        assert not any("Look for" in one for one in told_main(memory))
        assert [one.text for one in memory.session("t", track="tools").messages()] == [
            "Look for the permit.",
            "It is permitted.",
        ]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("scope", SCOPES, ids=["no scope", "own track", "sight"])
async def test_nodes_of_a_sub_graph_see_of_the_graph_above_what_their_scope_says(
    call_style: CallStyle, scope: Scope | None
) -> None:
    class Inner(ChatState):
        """Another list than the graph's above."""

    runner, shown = Runner(call_style), []

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        shown.append(texts(messages))
        return AIMessage("It is permitted.")

    with open_memory() as memory:

        def answer(state: Any, config: RunnableConfig) -> dict[str, Any]:
            return {"messages": [reply(model_input(memory, state, config))]}

        inner = StateGraph(Inner)
        inner.add_node("remember", remember_node(memory))
        inner.add_node("context", context_node(memory, max_tokens=2000, scope=scope))
        inner.add_node("answer", answer)
        inner.add_edge(START, "remember")
        inner.add_edge("remember", "context")
        inner.add_edge("context", "answer")
        compiled = inner.compile()

        def ask(state: Any) -> dict[str, Any]:
            del state
            compiled.invoke({"messages": [HumanMessage("Look for the permit.")]})
            return {"messages": [AIMessage("Looked up.")]}

        builder = StateGraph(MessagesState)
        builder.add_node("remember", remember_node(memory, messages_key="messages"))
        builder.add_node("permits", ask)
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "permits")
        app = builder.compile(checkpointer=InMemorySaver())
        await runner.invoke(app, {"messages": [HumanMessage("Build the kingfisher quay.")]}, thread())
        assert memory.session("t").tracks() == ["main", "permits"]
        assert ("kingfisher" in shown[0]) == (scope is not None and scope.sight_tokens > 0)
        assert told_main(memory) == ["Build the kingfisher quay."]


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_tools_of_a_sub_agent_search_its_own_track_alone(call_style: CallStyle) -> None:
    runner = Runner(call_style)
    with open_memory() as memory:
        model = Caller(answers=[calling("recall", 1, query="quay permit kingfisher"), "Nothing more."])
        helper = create_agent(model, [], middleware=[TieredMemoryMiddleware(memory, tools=True)], checkpointer=False)
        answers = [
            calling("delegate", 1, what="The quay permit is with the harbour."),
            calling("recall", 2, query="quay"),
        ]
        boss = create_agent(
            Caller(answers=[*answers, "Done."]),
            [delegate(helper)],
            middleware=[TieredMemoryMiddleware(memory, tools=True)],
            checkpointer=InMemorySaver(),
        )
        out = await runner.invoke(boss, {"messages": [HumanMessage("Build the kingfisher quay.")]}, thread())
        sub = [one for one in memory.session("t", track="tools").messages() if isinstance(one, ToolMessage)]
        assert "harbour" in sub[0].text
        assert "kingfisher" not in sub[0].text.replace("quay permit kingfisher", "")
        main = [one for one in out["messages"] if isinstance(one, ToolMessage) and one.name == "recall"]
        assert "kingfisher" in main[0].text
        assert "harbour" in main[0].text


def test_a_scope_that_is_none_is_refused_where_it_is_written() -> None:
    with open_memory() as memory:
        with pytest.raises(SettingsError, match="scope"):
            TieredMemoryMiddleware(memory, scope="main")  # type: ignore[arg-type]
        with pytest.raises(SettingsError, match="sight_tokens"):
            context_node(memory, scope=Scope(sight_tokens=-5))
        with pytest.raises(SettingsError, match="scope"):
            memory_tools(memory, scope=3)  # type: ignore[arg-type]
