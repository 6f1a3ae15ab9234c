"""Sub-graphs and sub-agents: their tracks are named by their nodes, stay the same over turns, and never mix."""

from __future__ import annotations

import asyncio
import operator
import time
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send, interrupt

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.context.pieces import MARK
from langchain_tiered_memory.integrations.graph.tracks import place_of
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.integrations.nodes import (
    amodel_input,
    context_node,
    evict_node,
    model_input,
    remember_node,
)
from langchain_tiered_memory.testing import ScriptedModel
from tests.call_styles import CALL_STYLES, CallStyle
from tests.graph_builders import ChatState, Runner, answering, ask, chat_graph, thread
from tests.memory_builders import entries_of, open_memory, quick_settings, summaries_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow

TURNS = 8
NAMES = ("ALFA", "BRAVO", "CHARLIE", "DELTA")


class Caller(ScriptedModel):
    """A scripted model that takes tools."""

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        del tools
        return self


def polite() -> ScriptedModel:
    """A model that refuses requests that are not valid everywhere, and answers all alike."""

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        faults = check_valid(messages, complete=True)
        assert faults == [], faults
        return AIMessage("Noted.")

    return ScriptedModel(answers=reply)


def in_place(messages: Sequence[BaseMessage]) -> str:
    """What a request shows of the conversation itself, without what was recalled or condensed."""
    return "\n".join(str(one.text) for one in messages if MARK not in one.additional_kwargs)


def parent(node: Any, *, saver: Any, state: type = MessagesState, name: str = "chat") -> Any:
    builder = StateGraph(state)
    builder.add_node(name, node)
    builder.add_edge(START, name)
    return builder.compile(checkpointer=saver)


def calling(agent: Any, given: Any) -> RunnableLambda[Any, Any]:
    """A node function that calls a graph, sync and async."""

    def call(state: Any, config: RunnableConfig) -> Any:
        return {"messages": agent.invoke(given(state), config)["messages"][-1:]}

    async def acall(state: Any, config: RunnableConfig) -> Any:
        return {"messages": (await agent.ainvoke(given(state), config))["messages"][-1:]}

    return RunnableLambda(call, acall)


def newest(state: Any) -> dict[str, Any]:
    return {"messages": state["messages"][-1:]}


def agent_of(memory: TieredMemory, model: Any, tools: Sequence[Any] = (), **choices: Any) -> Any:
    return create_agent(model, list(tools), middleware=[TieredMemoryMiddleware(memory, recall=False)], **choices)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("sub_state", [ChatState, MessagesState], ids=["record", "no record"])
async def test_nodes_of_a_sub_graph_store_a_list_that_they_are_handed_whole_once(
    sub_state: type, call_style: CallStyle
) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory(settings=quick_settings()) as memory:
        sub = chat_graph(memory, model, state=sub_state).compile()
        graph = parent(sub, saver=InMemorySaver())
        for number in range(24):
            result = await runner.invoke(graph, ask(number), thread())
        chat = memory.session("t", track="chat")
        assert memory.session("t").tracks() == ["chat"]
        assert [one.id for one in chat.messages()] == [one.id for one in result["messages"]]
        assert memory.session("t").metrics().messages == 48
        memory.flush()
        assert len(summaries_of(chat)) <= 24
        assert memory.verify().problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("saver", [True, False], ids=["saver", "no saver"])
@pytest.mark.parametrize("how", ["node", "function"])
async def test_an_agent_below_a_graph_stays_on_one_track_and_sees_its_earlier_turns(
    how: str, call_style: CallStyle, *, saver: bool
) -> None:
    runner, model = Runner(call_style), polite()
    with open_memory() as memory:
        agent = agent_of(memory, model)
        graph = parent(agent if how == "node" else calling(agent, newest), saver=InMemorySaver() if saver else None)
        for number in range(TURNS):
            await runner.invoke(graph, ask(number), thread())
        assert memory.session("t").tracks() == ["main"], "who begins a session is on its main track"
        assert len(memory.session("t").messages()) == 2 * TURNS
        assert "Question 0:" in in_place(model.prompts[-1])


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_an_agent_below_a_graph_with_memory_has_a_track_of_its_node(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), polite()
    with open_memory() as memory:
        memory.session("t").add_messages([HumanMessage("Said before.", id="before")])
        graph = parent(calling(agent_of(memory, model), newest), saver=InMemorySaver(), name="helper")
        for number in range(TURNS):
            await runner.invoke(graph, ask(number), thread())
        assert memory.session("t").tracks() == ["main", "helper"]
        assert len(memory.session("t", track="helper").messages()) == 2 * TURNS
        assert "Question 0:" in in_place(model.prompts[-1])
        assert "Said before." not in in_place(model.prompts[-1])


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_sub_graph_below_a_sub_graph_is_named_by_both_nodes(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        inner = chat_graph(memory, model, max_tokens=4000).compile()
        graph = parent(parent(inner, saver=None, name="inner"), saver=InMemorySaver(), name="outer")
        for number in range(3):
            await runner.invoke(graph, ask(number), thread())
        assert memory.session("t").tracks() == ["outer|inner"]
        assert len(memory.session("t", track="outer|inner").messages()) == 6


def fan_out(node: Any, *, names: Sequence[str], saver: Any) -> Any:
    class State(MessagesState):
        outs: Annotated[list[str], operator.add]

    builder = StateGraph(State)
    builder.add_node("work", node)
    builder.add_conditional_edges(START, lambda _: [Send("work", {"who": who}) for who in names], ["work"])
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("saver", [True, False], ids=["saver", "no saver"])
async def test_tasks_of_one_node_side_by_side_never_see_each_other_nor_those_of_turns_before(
    call_style: CallStyle, *, saver: bool
) -> None:
    runner, found = Runner(call_style), []

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        assert check_valid(messages, complete=True) == []
        found.append({one for one in seen if one in in_place(messages)})
        who = next(one for one in seen if one in in_place(messages))
        if messages[-1].type == "human":
            return AIMessage("", tool_calls=[{"name": "look", "args": {"what": who}, "id": f"c-{who}"}])
        return AIMessage(f"{who} is done.")

    @tool
    def look(what: str) -> str:
        """Look."""
        return f"Found {what}."

    with open_memory() as memory:
        agent = agent_of(memory, Caller(answers=reply), [look])

        def work(state: Any, config: RunnableConfig) -> Any:
            task = {"messages": [HumanMessage(f"Research {state['who']}.")]}
            return {"outs": [agent.invoke(task, config)["messages"][-1].text]}

        async def awork(state: Any, config: RunnableConfig) -> Any:
            task = {"messages": [HumanMessage(f"Research {state['who']}.")]}
            return {"outs": [(await agent.ainvoke(task, config))["messages"][-1].text]}

        kept = InMemorySaver() if saver else None
        seen = [f"{name}-{turn}" for turn in range(3) for name in NAMES]
        for turn in range(3):
            names = [f"{name}-{turn}" for name in NAMES]
            graph = fan_out(RunnableLambda(work, awork), names=names, saver=kept)
            await runner.invoke(graph, {"messages": [HumanMessage("go")]}, thread())
        assert len(found) == 2 * 3 * len(NAMES)
        assert [one for one in found if len(one) != 1] == []
        tracks = memory.session("t").tracks()
        # The first to ask begins the session, unless another wrote before it; then it is on the track of its node.
        assert sorted(tracks) in (["main", *(beside := ["work:2", "work:3", "work:4"])], ["work", *beside])
        for track in tracks:
            said = memory.session("t", track=track).messages()
            assert len(said) == 4 * 3
            for start in range(0, 12, 4):
                whole = "\n".join(str(one.text) for one in said[start : start + 4])
                assert len({one for one in seen if one in whole}) == 1, "a task's list stands together"


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_agents_that_tools_call_start_anew_each_time_and_share_no_words(call_style: CallStyle) -> None:
    runner, shown = Runner(call_style), []

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        shown.append(in_place(messages))
        return AIMessage("Done.")

    with open_memory() as memory:
        helper = agent_of(memory, ScriptedModel(answers=reply))

        def call(what: str) -> str:
            return str(helper.invoke({"messages": [HumanMessage(f"Task {what}.")]})["messages"][-1].text)

        async def acall(what: str) -> str:
            return str((await helper.ainvoke({"messages": [HumanMessage(f"Task {what}.")]}))["messages"][-1].text)

        delegate = StructuredTool.from_function(call, acall, name="delegate", description="Delegate a task.")

        calls = [{"name": "delegate", "args": {"what": name}, "id": f"c-{name}"} for name in NAMES]
        answers = [AIMessage("", tool_calls=calls[:2]), AIMessage("", tool_calls=calls[2:3]), "ok"]
        answers += [AIMessage("", tool_calls=calls[3:]), "ok"]
        boss = agent_of(memory, Caller(answers=answers), [delegate], checkpointer=InMemorySaver())
        for _ in range(2):
            await runner.invoke(boss, {"messages": [HumanMessage("go")]}, thread())
        assert sorted(shown) == sorted(f"Task {name}." for name in NAMES)
        assert sorted(memory.session("t").tracks()) == ["main", "tools", "tools:2"]
        assert "Task" not in "\n".join(str(one.text) for one in memory.session("t").messages() if one.type == "human")


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_tasks_that_say_nearly_the_same_are_shown_nothing_of_one_another(
    call_style: CallStyle,
) -> None:
    runner, model = Runner(call_style), polite()
    with open_memory() as memory:
        helper = create_agent(model, [], middleware=[TieredMemoryMiddleware(memory, max_tokens=700)])

        def given(name: str) -> Any:
            said = [f"Look the late bolts of the register up for {name}, part {part}. " * 6 for part in range(9)]
            return {"messages": [one for text in said for one in (HumanMessage(text), AIMessage("Go on."))][:-1]}

        def call(what: str) -> str:
            return str(helper.invoke(given(what))["messages"][-1].text)

        async def acall(what: str) -> str:
            return str((await helper.ainvoke(given(what)))["messages"][-1].text)

        delegate = StructuredTool.from_function(call, acall, name="delegate", description="Delegate a task.")
        calls = [{"name": "delegate", "args": {"what": name}, "id": f"c-{name}"} for name in NAMES]
        answers = [one for _ in range(3) for one in (AIMessage("", tool_calls=calls), "ok")]
        boss = agent_of(memory, Caller(answers=answers), [delegate], checkpointer=InMemorySaver())
        for _ in range(3):
            await runner.invoke(boss, {"messages": [HumanMessage("What of the late bolts?")]}, thread())
            memory.flush()
        shown = ["\n".join(str(one.text) for one in request) for request in model.prompts]
        assert len(shown) == 3 * len(NAMES)
        assert [sum(name in request for name in NAMES) for request in shown] == [1] * len(shown)


class SlowSaver(InMemorySaver):
    """Writes a checkpoint while the step that began with it runs already, as LangGraph lets it."""

    def put(self, *given: Any) -> RunnableConfig:
        time.sleep(0.02)
        return super().put(*given)

    async def aput(self, *given: Any) -> RunnableConfig:
        await asyncio.sleep(0.02)
        return super().put(*given)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("saver", [InMemorySaver, SlowSaver])
async def test_a_sub_agent_under_a_graph_that_evicts_is_shown_nothing_of_another_branch(
    saver: type[InMemorySaver], call_style: CallStyle
) -> None:
    runner, model = Runner(call_style), polite()
    with open_memory() as memory:
        builder = StateGraph(ChatState)
        builder.add_node("remember", remember_node(memory))
        builder.add_node("agent", agent_of(memory, model))
        builder.add_node("evict", evict_node(memory, keep_messages=2, at_messages=4))
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "agent")
        builder.add_edge("agent", "evict")
        graph = builder.compile(checkpointer=saver())
        for number in range(3):
            await runner.invoke(graph, {"messages": [HumanMessage(f"base {number}")]}, thread())
        fork = (await runner.state(graph, thread())).config
        for number in range(4):
            await runner.invoke(graph, {"messages": [HumanMessage(f"left {number}")]}, thread())
        await runner.invoke(graph, {"messages": [HumanMessage("taken 0")]}, fork)
        for number in range(1, 6):
            await runner.invoke(graph, {"messages": [HumanMessage(f"taken {number}")]}, thread())
        shown = in_place(model.prompts[-1])
        assert "left" not in shown
        assert all(f"base {number}" in shown for number in range(3))
        assert all(f"taken {number}" in shown for number in range(6))


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_loop_over_a_sub_graph_goes_on_on_its_track(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), polite()
    with open_memory() as memory:
        memory.session("t").add_messages([HumanMessage("Said before.", id="before")])
        agent = agent_of(memory, model)

        class State(MessagesState):
            rounds: Annotated[int, operator.add]

        def step(state: Any, config: RunnableConfig) -> Any:
            agent.invoke({"messages": [HumanMessage(f"Round {state.get('rounds', 0)}.")]}, config)
            return {"rounds": 1}

        async def astep(state: Any, config: RunnableConfig) -> Any:
            await agent.ainvoke({"messages": [HumanMessage(f"Round {state.get('rounds', 0)}.")]}, config)
            return {"rounds": 1}

        builder = StateGraph(State)
        builder.add_node("step", RunnableLambda(step, astep))
        builder.add_edge(START, "step")
        builder.add_conditional_edges("step", lambda state: END if state["rounds"] >= 4 else "step", [END, "step"])
        await runner.invoke(builder.compile(checkpointer=InMemorySaver()), {"messages": [], "rounds": 0}, thread())
        said = [str(one.text) for one in memory.session("t", track="step").messages()]
        assert said == [text for number in range(4) for text in (f"Round {number}.", "Noted.")]
        assert "Round 0." in in_place(model.prompts[-1])


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_sub_graph_that_waits_for_a_person_goes_on_where_it_was_also_in_another_process(
    call_style: CallStyle, tmp_path: Any
) -> None:
    runner, saver = Runner(call_style), InMemorySaver()

    def graph_of(memory: TieredMemory) -> Any:
        def approve(_: Any) -> Any:
            return {"messages": [HumanMessage(f"Approved: {interrupt('May I?')}")]}

        builder = StateGraph(ChatState)
        builder.add_node(remember_node(memory))
        builder.add_node("approve", approve)
        builder.add_node("keep", remember_node(memory))
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "approve")
        builder.add_edge("approve", "keep")
        sub = builder.compile()
        top = StateGraph(MessagesState)
        top.add_node("work", sub)
        top.add_conditional_edges(
            START, lambda _: [Send("work", {"messages": [HumanMessage(name, id=name)]}) for name in NAMES[:2]], ["work"]
        )
        return top.compile(checkpointer=saver)

    with open_memory(tmp_path / "memory.db") as memory:
        waiting = await runner.invoke(graph_of(memory), {"messages": [HumanMessage("go")]}, thread())
        before = {one.text: one.track for one in entries_of(memory.session("t"))}
    answers = {one.id: one.value + str(number) for number, one in enumerate(waiting["__interrupt__"])}
    with open_memory(tmp_path / "memory.db") as memory:
        await runner.invoke(graph_of(memory), Command(resume=answers), thread())
        assert sorted(memory.session("t").tracks()) == ["work", "work:2"]
        for name in NAMES[:2]:
            track = memory.session("t", track=before[name]).messages()
            assert [one.id for one in track][:1] == [name]
            assert len(track) == 2


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_sub_graph_with_a_checkpointer_of_its_own_keeps_its_track(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), polite()
    with open_memory() as memory:
        memory.session("t").add_messages([HumanMessage("Said before.", id="before")])
        agent = agent_of(memory, model, checkpointer=True)
        graph = parent(calling(agent, newest), saver=InMemorySaver(), name="helper")
        for number in range(3):
            await runner.invoke(graph, ask(number), thread())
        assert memory.session("t").tracks() == ["main", "helper"]
        assert "Question 0:" in in_place(model.prompts[-1])


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_state_that_names_a_track_of_an_earlier_version_goes_on_there(call_style: CallStyle) -> None:
    runner, old = Runner(call_style), "chat:0fd48d85-e1e0-4c5a-5067-6c131a5ceba5"
    with open_memory() as memory:
        before = [HumanMessage("An old question.", id="old-q"), AIMessage("An old answer.", id="old-a")]
        memory.session("t", track=old).add_messages(before)
        record = remember_node(memory, track=old).invoke({"messages": before}, thread())

        def answer(state: Any, config: RunnableConfig) -> Any:
            return {"messages": [AIMessage(model_input(memory, state, config)[0].text)]}

        async def aanswer(state: Any, config: RunnableConfig) -> Any:
            return {"messages": [AIMessage((await amodel_input(memory, state, config))[0].text)]}

        builder = StateGraph(ChatState)
        builder.add_node(remember_node(memory))
        builder.add_node(context_node(memory, max_tokens=2000))
        builder.add_node("answer", RunnableLambda(answer, aanswer))
        for first, second in ((START, "remember"), ("remember", "context"), ("context", "answer")):
            builder.add_edge(first, second)
        graph = parent(calling(builder.compile(), lambda state: state), saver=InMemorySaver(), state=ChatState)
        given = {"messages": [*before, HumanMessage("A new one.", id="new-q")], **record}
        await runner.invoke(graph, given, thread())
        assert memory.session("t").tracks() == [old]
        assert [one.id for one in memory.session("t", track=old).messages()] == ["old-q", "old-a", "new-q"]


def test_a_place_names_its_nodes_and_their_tasks() -> None:
    here = "outer:1f|1|inner:2e|node:3d"
    checkpoints = {"": "top", "outer:1f|1": "first", "outer:1f|1|inner:2e": "second"}
    place = place_of({"configurable": {"thread_id": "t", "checkpoint_ns": here, "checkpoint_map": checkpoints}}, "user")
    assert [(part.name, part.task, part.step) for part in place.parts] == [
        ("outer", "outer:1f", "top"),
        ("1", None, ""),
        ("inner", "outer:1f|1|inner:2e", "first"),
    ]
    assert place_of({"configurable": {"thread_id": "t", "checkpoint_ns": "node:3d"}}, "user").parts == ()
