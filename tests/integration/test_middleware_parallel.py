"""Agents that run at the same time, or are cut off in the middle."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig  # noqa: TC002 - LangGraph reads the annotation
from langgraph.graph import MessagesState, StateGraph

from langchain_tiered_memory.integrations.legacy.runnable_history import with_tiered_history
from langchain_tiered_memory.integrations.nodes import context_node, model_input, remember_node
from langchain_tiered_memory.integrations.state import TieredState
from tests.agent_builders import THREAD, ToolModel, built, open_memory, openai_model
from tests.call_styles import CALL_STYLES, CallStyle
from tests.graph_builders import chat_graph, thread
from tests.openai_server import OpenAIServer, Silence, calls

if TYPE_CHECKING:
    from pathlib import Path

    from tests.openai_server import Scripted

pytestmark = [pytest.mark.service, pytest.mark.slow]

LONG = "The bolts of this order came late, and the register has to say so. " * 14


def one_call_each(body: dict[str, Any]) -> Scripted:
    turns = sum(message["role"] == "user" for message in body["messages"])
    return "It is due on Monday." if body["messages"][-1]["role"] == "tool" else calls("look_up", {"order": turns})


async def test_twenty_threads_at_once_keep_to_themselves(tmp_path: Path) -> None:
    with OpenAIServer(script=one_call_each) as server, open_memory(tmp_path / "memory.db") as memory:
        agent = built(memory, openai_model(server), max_tokens=2500)

        async def talk(name: str) -> None:
            config: Any = {"configurable": {"thread_id": name}}
            for turn in range(2):
                state = await agent.ainvoke({"messages": [("user", f"This is {name}, turn {turn}. {LONG}")]}, config)
            stored = await memory.session(name).amessages()
            assert [one.id for one in stored] == [one.id for one in state["messages"]]

        names = [f"guest{number}x" for number in range(20)]
        await asyncio.gather(*[talk(name) for name in names])
        assert {one.status for one in server.requests} == {200}
        assert all(sum(name in one.text for name in names) == 1 for one in server.requests)


async def test_one_thread_used_twice_at_once_loses_nothing_that_was_said() -> None:
    with OpenAIServer(script=one_call_each) as server, open_memory() as memory:
        agent = built(memory, openai_model(server))
        for turn in range(3):
            asked = [{"messages": [("user", f"Turn {turn}, window {number}.")]} for number in range(3)]
            await asyncio.gather(*[agent.ainvoke(one, THREAD) for one in asked])
        await agent.ainvoke({"messages": [("user", "And now?")]}, THREAD)
        assert {one.status for one in server.requests} == {200}
        said = [str(one.text) for one in await memory.session("alice").amessages()]
        assert all(f"Turn {turn}, window {number}." in said for turn in range(3) for number in range(3))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", ["agent", "nodes", "chain"])
def test_turns_side_by_side_in_one_session_are_asked_their_own_questions(kind: str, call_style: CallStyle) -> None:
    model = ToolModel(answers=lambda shown: f"To {shown[-1].text}")
    asked = [f"Question {number}" for number in range(8)]
    with open_memory() as memory:
        if kind == "chain":
            chat: Any = with_tiered_history(model, memory)
            config: Any = {"configurable": {"session_id": "t"}}
        else:
            agent = {"checkpointer": None}
            chat = (
                chat_graph(memory, model).compile() if kind == "nodes" else built(memory, model, tools=(), agent=agent)
            )
            config = thread()
        given: list[Any] = [text if kind == "chain" else {"messages": [HumanMessage(text)]} for text in asked]
        done = chat.batch(given, config) if call_style == "sync" else asyncio.run(chat.abatch(given, config))
        answers = [one.text if kind == "chain" else one["messages"][-1].text for one in done]
        assert answers == [f"To {text}" for text in asked]
        assert len(memory.session("t").messages()) == 2 * len(asked)


@pytest.mark.parametrize("others", ["question", "turn", "answer"])
def test_what_another_turn_says_before_a_context_is_made_is_not_in_it(others: str) -> None:
    class State(MessagesState, TieredState): ...

    with open_memory() as memory:
        session = memory.session("t")
        session.add_messages([HumanMessage("I am Ann."), AIMessage("Hello Ann.")])
        beside = [HumanMessage("Who is Bob?"), AIMessage("Nobody.")]
        said = {"question": beside[:1], "turn": beside, "answer": beside[1:]}[others]
        shown: list[Any] = []

        def interrupt(_: Any) -> None:
            session.add_messages(said)

        def answer(state: Any, config: RunnableConfig) -> None:
            shown.extend(model_input(memory, state, config))

        builder = StateGraph(State)
        builder.add_sequence([remember_node(memory), interrupt, context_node(memory, max_tokens=900), answer])
        builder.set_entry_point("remember")
        builder.compile().invoke({"messages": [HumanMessage("Who am I?")]}, thread())
        assert [one.text for one in shown] == ["I am Ann.", "Hello Ann.", "Who am I?"]
        assert len(session.messages()) == 3 + len(said)


async def test_a_cancelled_call_loses_nothing_and_the_next_one_goes_on() -> None:
    with OpenAIServer(script=[Silence(seconds=60)]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=())
        running = asyncio.create_task(agent.ainvoke({"messages": [("user", "Hello")]}, THREAD))
        while not server.requests:  # noqa: ASYNC110 - the server runs on threads, and sets no event of this loop
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        server.play(["Here I am."])
        state = await agent.ainvoke({"messages": [("user", "Are you there?")]}, THREAD)
        said = [str(one.text) for one in await memory.session("alice").amessages()]
        assert said == ["Hello", "Are you there?", "Here I am."] == [str(one.text) for one in state["messages"]]
