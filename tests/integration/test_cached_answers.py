"""Answers that come with an id that is known: from LangChain's cache, or from a model that gives all the same one."""

from __future__ import annotations

import asyncio
import operator
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_classic.chains import LLMChain
from langchain_core.caches import InMemoryCache
from langchain_core.globals import get_llm_cache, set_llm_cache
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnableWithMessageHistory
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_tiered_memory.integrations.legacy.chat_history import TieredChatMessageHistory
from langchain_tiered_memory.integrations.legacy.classic import ConversationTieredMemory
from langchain_tiered_memory.integrations.legacy.runnable_history import with_tiered_history
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.integrations.state import TieredState
from langchain_tiered_memory.testing import ScriptedModel
from tests.call_styles import CALL_STYLES, CallStyle
from tests.graph_builders import Runner, chat_graph, thread
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow

PROMPT = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
CONFIG: Any = {"configurable": {"session_id": "s"}}
TURNS = 4


class Growing(TieredState):
    messages: Annotated[list[BaseMessage], operator.add]


def same_answer(_: Sequence[BaseMessage]) -> AIMessage:
    usage: Any = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return AIMessage("The answer.", id="run-1", usage_metadata=usage)


@pytest.fixture(params=[True, False], ids=["cache", "no cache"], autouse=True)
def _cache(request: pytest.FixtureRequest) -> Iterator[None]:
    before = get_llm_cache()
    set_llm_cache(InMemoryCache() if request.param else None)
    yield
    set_llm_cache(before)


def run(chain: Any, given: Any, call_style: CallStyle, config: Any = CONFIG) -> Any:
    return chain.invoke(given, config) if call_style == "sync" else asyncio.run(chain.ainvoke(given, config))


def check(memory: TieredMemory, session_id: str = "s", turns: int = TURNS) -> None:
    stored = memory.session(session_id).messages()
    assert [one.type for one in stored] == ["human", "ai"] * turns
    assert len({one.id for one in stored}) == len(stored)
    assert stored[1].id == "run-1", "an id that nobody has stays"
    assert memory.verify().problems == ()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("keys", [True, False], ids=["keys", "no keys"])
@pytest.mark.parametrize("kept", [True, False], ids=["one object", "an object per run"])
def test_each_turn_of_a_chat_history_keeps_its_answer(call_style: CallStyle, *, keys: bool, kept: bool) -> None:
    with open_memory() as memory:
        model, one = ScriptedModel(answers=same_answer), TieredChatMessageHistory(memory, "s")
        names = {"input_messages_key": "input", "history_messages_key": "history"} if keys else {}

        def history(session_id: str) -> TieredChatMessageHistory:
            return one if kept else TieredChatMessageHistory(memory, session_id)

        chain: Any = RunnableWithMessageHistory(PROMPT | model if keys else model, history, **names)
        for _ in range(TURNS):
            run(chain, {"input": "hi"} if keys else [HumanMessage("hi")], call_style)
        check(memory)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("keys", [True, False], ids=["keys", "no keys"])
def test_each_turn_with_tiered_history_keeps_its_answer(call_style: CallStyle, *, keys: bool) -> None:
    with open_memory() as memory:
        model = ScriptedModel(answers=same_answer)
        names: Any = {"input_messages_key": "input", "history_messages_key": "history"} if keys else {}
        chain = with_tiered_history(PROMPT | model if keys else model, memory, **names)
        for _ in range(TURNS):
            run(chain, {"input": "hi"} if keys else "hi", call_style)
        check(memory)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_runs_side_by_side_that_get_the_same_answer_keep_one_each(call_style: CallStyle) -> None:
    with open_memory() as memory:
        chain = with_tiered_history(ScriptedModel(answers=same_answer), memory)
        asked = [f"question {number}" for number in range(12)]
        if call_style == "sync":
            chain.batch(asked, CONFIG)
        else:
            asyncio.run(chain.abatch(asked, CONFIG))
        stored = memory.session("s").messages()
        assert sorted(str(one.text) for one in stored if one.type == "human") == sorted(asked)
        assert sum(one.type == "ai" for one in stored) == len(asked)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_each_turn_of_a_classic_chain_keeps_its_answer(call_style: CallStyle) -> None:
    with open_memory() as memory:
        own = ConversationTieredMemory(memory=memory, session_id="s", return_messages=True)
        chain = LLMChain(llm=ScriptedModel(answers=same_answer), prompt=PROMPT, memory=own)
        for _ in range(TURNS):
            run(chain, {"input": "hi"}, call_style, None)
        answer = AIMessage("Said by hand.", id="x")
        for _ in range(TURNS):
            own.save_context({"input": "hi"}, {"output": answer})
        assert [one.type for one in memory.session("s").messages()] == ["human", "ai"] * (2 * TURNS)


def test_what_is_added_by_hand_is_new_each_time_and_once_when_it_is_tried_again() -> None:
    with open_memory() as memory:
        history = TieredChatMessageHistory(memory, "s")
        answer = AIMessage("The answer.", id="x")
        for _ in range(TURNS):
            history.add_user_message("hi")
            history.add_ai_message(answer)
        assert len(history.messages) == 2 * TURNS
        for again in (history.messages[-1:], history.messages[-2:], history.messages):
            history.add_messages(again)
        assert len(history.messages) == 2 * TURNS
        history.add_messages([*history.messages, HumanMessage("and"), AIMessage("another", id="x")])
        assert [str(one.text) for one in history.messages[-2:]] == ["and", "another"]
        assert len(history.messages) == 2 * TURNS + 2
        assert memory.session("s").revisions("x") == []


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_an_agent_keeps_each_answer_in_its_state_and_in_the_memory(call_style: CallStyle) -> None:
    runner = Runner(call_style)
    with open_memory() as memory:
        own = TieredMemoryMiddleware(memory)
        agent = create_agent(ScriptedModel(answers=same_answer), [], middleware=[own], checkpointer=InMemorySaver())
        for _ in range(TURNS):
            state = await runner.invoke(agent, {"messages": [HumanMessage("hi")]}, thread())
        assert [one.type for one in state["messages"]] == ["human", "ai"] * TURNS
        check(memory, "t")


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", ["agent", "nodes"])
async def test_without_a_checkpointer_each_answer_is_kept_too(kind: str, call_style: CallStyle) -> None:
    runner, model = Runner(call_style), ScriptedModel(answers=same_answer)
    with open_memory() as memory:
        if kind == "agent":
            graph: Any = create_agent(model, [], middleware=[TieredMemoryMiddleware(memory)])
        else:
            graph = chat_graph(memory, model).compile()
        for number in range(TURNS):
            await runner.invoke(graph, {"messages": [HumanMessage(f"question {number}")]}, thread())
        check(memory, "t")


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("saves", [False, True])
async def test_a_list_that_only_grows_keeps_each_answer(call_style: CallStyle, *, saves: bool) -> None:
    runner, model = Runner(call_style), ScriptedModel(answers=same_answer)
    with open_memory() as memory:
        graph = chat_graph(memory, model, state=Growing).compile(checkpointer=InMemorySaver() if saves else None)
        said: list[BaseMessage] = []
        for number in range(TURNS):
            asked = HumanMessage(f"question {number}", id=str(number))
            said = (await runner.invoke(graph, {"messages": [*([] if saves else said), asked]}, thread()))["messages"]
        check(memory, "t")
        shown = memory.session("t").context(max_tokens=900).messages
        assert [one.text for one in shown] == [one.text for one in said]


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_the_same_question_is_new_behind_a_transcript_that_is_sent_back(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), ScriptedModel(answers=lambda shown: AIMessage(f"To {shown[-1].text}"))
    with open_memory() as memory:
        graph = chat_graph(memory, model, state=Growing).compile()
        for _ in range(TURNS):
            said = [*memory.session("t").messages(), HumanMessage("Go on.")]
            await runner.invoke(graph, {"messages": said}, thread())
        assert [one.text for one in memory.session("t").messages()] == ["Go on.", "To Go on."] * TURNS


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_sub_agent_that_is_handed_the_newest_message_alone_keeps_each_answer(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), ScriptedModel(answers=same_answer)
    with open_memory() as memory:
        agent = create_agent(model, [], middleware=[TieredMemoryMiddleware(memory)])

        def call(state: Any, config: RunnableConfig) -> Any:
            return {"messages": agent.invoke({"messages": state["messages"][-1:]}, config)["messages"][-1:]}

        async def acall(state: Any, config: RunnableConfig) -> Any:
            found = await agent.ainvoke({"messages": state["messages"][-1:]}, config)
            return {"messages": found["messages"][-1:]}

        builder = StateGraph(MessagesState)
        builder.add_node("helper", RunnableLambda(call, acall))
        builder.add_edge(START, "helper")
        graph = builder.compile(checkpointer=InMemorySaver())
        for number in range(TURNS):
            state = await runner.invoke(graph, {"messages": [HumanMessage(f"question {number}")]}, thread())
        check(memory, "t")
        assert len(state["messages"]) == 2 * TURNS
