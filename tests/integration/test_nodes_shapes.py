"""Graphs as people build them: any state, any reducer, branches side by side, the functional API, a lost memory."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig  # noqa: TC002 - LangGraph reads a task's annotations
from langgraph.channels import Topic
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel
from typing_extensions import TypedDict

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.integrations.nodes import (
    acheckpoint_run,
    amodel_input,
    condense_node,
    context_node,
    evict_node,
    guard_node,
    model_input,
    remember_node,
)
from langchain_tiered_memory.integrations.state import STATE_KEY, TieredState, merged, packed, part_of, unpacked
from langchain_tiered_memory.testing import ScriptedModel
from tests.call_styles import CALL_STYLES, CallStyle
from tests.embedders import HashingEmbeddings
from tests.graph_builders import ChatState, Runner, answering, ask, chat_graph, open_saver, thread
from tests.memory_builders import conversation, entries_of, open_memory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.messages import BaseMessage

pytestmark = pytest.mark.slow


class AsTypedDict(TypedDict, total=False):
    chat: Annotated[list[Any], add_messages]
    tiered_memory: Annotated[dict[str, Any], merged]


class AsModel(BaseModel):
    chat: Annotated[list[AnyMessage], add_messages] = []
    tiered_memory: Annotated[dict[str, Any], merged] = {}


@dataclass
class AsDataclass:
    chat: Annotated[list[Any], add_messages] = field(default_factory=list)
    tiered_memory: Annotated[dict[str, Any], merged] = field(default_factory=dict)


class Appended(TypedDict, total=False):
    chat: Annotated[list[Any], operator.add]
    tiered_memory: Annotated[dict[str, Any], merged]


class Replaced(TypedDict, total=False):
    chat: list[Any]
    tiered_memory: Annotated[dict[str, Any], merged]


class Heaped(TieredState):
    messages: Annotated[list[Any], Topic(object, accumulate=True)]


def counting() -> ScriptedModel:
    """Says how many messages it was shown."""
    return ScriptedModel(answers=lambda messages: AIMessage(f"I was shown {len(messages)}."))


def questions(messages: Sequence[BaseMessage]) -> list[str]:
    return [one.text for one in messages if isinstance(one, HumanMessage)]


@pytest.mark.sweep(5)
@pytest.mark.parametrize("evicts", [False, True])
@pytest.mark.parametrize("state", [AsTypedDict, AsModel, AsDataclass, Appended, Replaced])
def test_any_kind_of_state_and_any_reducer_will_do_and_eviction_finds_a_way_with_each(state: Any, evicts: bool) -> None:  # noqa: FBT001 - a parameter of the test
    model, key = counting(), "chat"
    with open_memory() as memory:

        def answer(values: Any, config: RunnableConfig) -> dict[str, Any]:
            said = model.invoke(model_input(memory, values, config))
            return {key: [*part_of(values, key), said] if state is Replaced else [said]}

        builder = StateGraph(state)
        builder.add_node(remember_node(memory, messages_key=key))
        builder.add_node(context_node(memory, messages_key=key, max_tokens=4000))
        builder.add_node("answer", answer)
        builder.add_node("keep", remember_node(memory, messages_key=key))
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "context")
        builder.add_edge("context", "answer")
        builder.add_edge("answer", "keep")
        if evicts:
            builder.add_node(evict_node(memory, messages_key=key, keep_messages=4, at_messages=6))
            builder.add_edge("keep", "evict")
        graph = builder.compile(checkpointer=InMemorySaver())
        before: list[Any] = []
        for number in range(8):
            asked = HumanMessage(f"Question {number}", id=f"q{number}")
            given_ = {key: [*before, asked] if state is Replaced else [asked]}
            streamed = [one for one, _ in graph.stream(given_, thread(), stream_mode="messages")]
            assert [one.text for one in streamed] == [model.answers(model.prompts[-1]).text]
            before = graph.get_state(thread()).values[key]
            assert all(one.type in ("human", "ai") for one in before)
        assert len(before) == (4 if evicts else 16)
        asked_so_far = [f"Question {number}" for number in range(8)]
        assert questions(memory.session("t").messages()) == asked_so_far
        assert questions(model.prompts[-1]) == asked_so_far


def test_a_list_that_lets_nothing_go_is_left_as_it_is_and_the_reason_said() -> None:
    with open_memory() as memory:
        builder = StateGraph(Heaped)
        builder.add_node(remember_node(memory))
        builder.add_node(evict_node(memory, keep_messages=2, at_messages=3))
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "evict")
        graph = builder.compile(checkpointer=InMemorySaver())
        with pytest.raises(InvalidInputError, match="lets nothing be removed"):
            graph.invoke({"messages": conversation(3)}, thread())
        assert len(graph.get_state(thread()).values["messages"]) == 6


class Outcomes(MessagesState, TieredState):
    outs: Annotated[list[str], operator.add]


@pytest.mark.parametrize("says_which", [False, True])
def test_of_context_nodes_side_by_side_each_model_gets_its_own_or_a_sentence(says_which: bool) -> None:  # noqa: FBT001 - a parameter of the test
    with open_memory() as memory:

        def asks(node: str) -> Any:
            which = {"node": node} if says_which else {}
            return lambda state, config: {"outs": [f"{node}: {model_input(memory, state, config, **which)[0].text}"]}

        builder = StateGraph(Outcomes)
        builder.add_node(remember_node(memory))
        builder.add_edge(START, "remember")
        for node in ("lawyer", "clerk"):
            builder.add_node(node, context_node(memory, system=f"You are the {node}.", max_tokens=3000))
            builder.add_node(f"ask_{node}", asks(node))
            builder.add_edge("remember", node)
            builder.add_edge(node, f"ask_{node}")
        graph = builder.compile(checkpointer=InMemorySaver())
        if says_which:
            result = graph.invoke(ask(0), thread())
            assert sorted(result["outs"]) == ["clerk: You are the clerk.", "lawyer: You are the lawyer."]
            with pytest.raises(InvalidInputError, match="no context_node 'judge'"):
                model_input(memory, result, thread(), node="judge")
        else:
            with pytest.raises(InvalidInputError, match="ran side by side"):
                graph.invoke(ask(0), thread())


def test_context_nodes_one_after_the_other_need_not_be_told_apart() -> None:
    with open_memory() as memory:
        builder = StateGraph(Outcomes)
        builder.add_node(remember_node(memory))
        before = "remember"
        builder.add_edge(START, before)
        for node in ("lawyer", "clerk"):
            builder.add_node(node, context_node(memory, system=f"You are the {node}.", max_tokens=3000))
            builder.add_node(
                f"ask_{node}", lambda state, config: {"outs": [model_input(memory, state, config)[0].text]}
            )
            builder.add_edge(before, node)
            builder.add_edge(node, f"ask_{node}")
            before = f"ask_{node}"
        result = builder.compile(checkpointer=InMemorySaver()).invoke(ask(0), thread())
        assert result["outs"] == ["You are the lawyer.", "You are the clerk."]


def test_a_task_of_the_functional_api_is_in_the_conversation_of_its_entrypoint() -> None:
    model = counting()
    with open_memory() as memory:

        @task
        def answer(messages: list[Any], config: RunnableConfig) -> AIMessage:
            return model.invoke(model_input(memory, {"messages": messages}, config, max_tokens=3000))

        @entrypoint(checkpointer=InMemorySaver())
        def chat(said: str, *, previous: Any = None) -> Any:
            messages = [*(previous or []), HumanMessage(said)]
            found = answer(messages).result()
            return entrypoint.final(value=found.text, save=[*messages, found])

        for number in range(4):
            assert chat.invoke(f"Hello {number}", thread()) == f"I was shown {2 * number + 1}."
        assert {one.track for one in entries_of(memory.session("t"))} == {"main"}
        assert questions(memory.session("t").messages()) == [f"Hello {number}" for number in range(4)]


@pytest.mark.parametrize("is_older_copy", [False, True])
@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_memory_that_was_lost_or_put_back_gets_again_what_the_state_still_has(
    call_style: CallStyle,
    is_older_copy: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    runner, model, saver = Runner(call_style), answering(), InMemorySaver()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000).compile(checkpointer=saver)
        for number in range(4):
            result = await runner.invoke(graph, ask(number), thread())
    with open_memory() as another:
        if is_older_copy:
            another.session("t").add_messages(result["messages"][:3])
        graph = chat_graph(another, model, max_tokens=4000).compile(checkpointer=saver)
        result = await runner.invoke(graph, ask(4), thread())
        assert [one.id for one in another.session("t").messages()] == [one.id for one in result["messages"]]
        assert len(questions([one for one in model.prompts[-1] if one.id])) == 5
        # What is forgotten for good stays so, though the state has it.
        another.session("t").forget(message_ids=["q1", "a1"])
        for number in (5, 6):
            result = await runner.invoke(graph, ask(number), thread())
            another.session("t").add_messages([HumanMessage("From somewhere else.")])
        assert {"q1", "a1"}.isdisjoint(one.id for one in another.session("t").messages())


def test_the_record_in_the_state_does_not_grow_though_each_turn_drops_a_message() -> None:
    sizes = []
    with open_memory() as memory:
        builder = StateGraph(ChatState)
        builder.add_node(remember_node(memory))
        builder.add_node("drop", lambda state: {"messages": [RemoveMessage(id=state["messages"][-2].id)]})
        builder.add_node("keep", remember_node(memory))
        builder.add_node(evict_node(memory, keep_messages=6, at_messages=10))
        for before, after in ((START, "remember"), ("remember", "drop"), ("drop", "keep"), ("keep", "evict")):
            builder.add_edge(before, after)
        graph = builder.compile(checkpointer=InMemorySaver())
        for number in range(120):
            turn = [
                HumanMessage(f"Question {number}", id=f"q{number}"),
                AIMessage(f"Draft {number}", id=f"d{number}"),
                AIMessage(f"Answer {number}", id=f"a{number}"),
            ]
            result = graph.invoke({"messages": turn}, thread())
            sizes.append(len(json.dumps(result[STATE_KEY])))
        assert max(sizes[60:]) <= max(sizes[:60]) * 1.1
        assert max(sizes) < 900
        own = questions(shown_in(memory, result))
        assert own == [f"Question {number}" for number in range(120)]


def shown_in(memory: Any, values: dict[str, Any]) -> list[BaseMessage]:
    """What a model would see in that state, drafts left out or this raises."""
    shown = model_input(memory, values, thread(__pregel_checkpointer=InMemorySaver()), max_tokens=50_000)
    assert not any(one.text.startswith("Draft") for one in shown if one.id)
    return [one for one in shown if one.id]


@given(numbers=st.frozensets(st.integers(0, 3000)))
def test_a_set_of_numbers_comes_back_from_json_as_it_was_and_stays_small(numbers: frozenset[int]) -> None:
    written = json.loads(json.dumps(packed(numbers)))
    assert unpacked(written) == numbers
    assert len(json.dumps(written)) < 3000 / 6 + 200
    of_earlier_versions = [[number, number] for number in sorted(numbers)]
    assert unpacked(of_earlier_versions) == numbers


@pytest.mark.parametrize("where", ["file", pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_no_node_blocks_the_event_loop_with_a_real_database_and_vectors(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if where == "postgres" else None
    runner, model = Runner("async"), answering()
    place = url or tmp_path / "memory.db"
    memory = open_memory(place, embeddings=HashingEmbeddings(), chroma=str(tmp_path / "vectors"))

    async def answer(state: Any, config: RunnableConfig) -> dict[str, Any]:
        await acheckpoint_run(memory, config)
        return {"messages": [await model.ainvoke(await amodel_input(memory, state, config))]}

    call = {"model": model, "max_tokens": 900}
    builder = StateGraph(ChatState)
    nodes = [
        remember_node(memory),
        condense_node(memory),
        guard_node(memory, **call),
        context_node(memory, **call),
    ]
    before = START
    for node in nodes:
        builder.add_node(node)
        builder.add_edge(before, node.name)
        before = node.name
    builder.add_node("answer", answer)
    builder.add_node("keep", remember_node(memory))
    builder.add_node(evict_node(memory, keep_messages=4, at_messages=8))
    for after in ("answer", "keep", "evict"):
        builder.add_edge(before, after)
        before = after
    async with open_saver("sqlite", "async", folder=tmp_path) as saver:
        graph = builder.compile(checkpointer=saver)
        for number in range(8):
            result = await runner.invoke(graph, ask(number), thread())
        assert len(result["messages"]) <= 10
        assert len(memory.session("t").messages()) == 16
    memory.flush()
    assert memory.verify().problems == ()
    memory.close()
