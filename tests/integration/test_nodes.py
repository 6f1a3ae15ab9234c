"""The nodes in compiled graphs, with real checkpointers under strict msgpack, sync and async."""

from __future__ import annotations

import json
import operator
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langchain_tiered_memory.errors import InvalidInputError, MixedOwnersError, SettingsError
from langchain_tiered_memory.integrations.nodes import (
    amodel_input,
    checkpoint_run,
    condense_node,
    context_node,
    evict_node,
    guard_node,
    model_input,
    remember_node,
)
from langchain_tiered_memory.integrations.state import STATE_KEY, TieredState, current, merged, zone_in
from langchain_tiered_memory.testing import summarising_model
from tests.call_styles import CALL_STYLES, CallStyle
from tests.graph_builders import ChatState, Runner, SaverKind, answering, ask, chat_graph, open_saver, thread
from tests.memory_builders import as_bytes, conversation, open_memory, shown_within

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow

SAVERS = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


def url_for(kind: SaverKind, request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("postgres_url") if kind == "postgres" else None


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", SAVERS)
async def test_a_long_chat_keeps_every_message_and_each_request_is_valid_and_within_its_budget(
    kind: SaverKind, call_style: CallStyle, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory(tmp_path / "memory.db") as memory:
        async with open_saver(kind, call_style, folder=tmp_path, url=url_for(kind, request)) as saver:
            graph = chat_graph(memory, model, max_tokens=600).compile(checkpointer=saver)
            for number in range(14):
                result = await runner.invoke(graph, ask(number), thread())
            held = (await runner.state(graph, thread())).values
        assert [one.id for one in held["messages"]] == [one.id for one in memory.session("t").messages()]
        assert result["messages"][-1].id == "a13"
        json.dumps(held[STATE_KEY])  # plain JSON came back
        assert held[STATE_KEY]["plan"]["tokens"] <= 600
        assert len(model.prompts[-1]) < len(held["messages"]), "the last request was condensed"
        assert model.calls == 14


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_restart_in_the_middle_calls_no_condensing_model_and_changes_no_byte_of_the_stable_part(
    call_style: CallStyle, tmp_path: Path
) -> None:
    runner = Runner(call_style)
    async with open_saver("sqlite", call_style, folder=tmp_path) as saver:
        first = summarising_model()
        with open_memory(tmp_path / "memory.db", model=first) as memory:
            graph = chat_graph(memory, answering()).compile(checkpointer=saver)
            for number in range(12):
                await runner.invoke(graph, ask(number), thread())
            shown_within(memory.session("t"), 300)
            assert first.calls > 0
            before = memory.session("t").context("", max_tokens=300)
        writer = summarising_model()
        with open_memory(tmp_path / "memory.db", model=writer) as memory:
            after = memory.session("t").context("", max_tokens=300)
            stable = [as_bytes(one) for one in before.messages[: before.stable_messages]]
            assert [as_bytes(one) for one in after.messages[: before.stable_messages]] == stable
            assert writer.calls == 0
            graph = chat_graph(memory, answering()).compile(checkpointer=saver)
            await runner.invoke(graph, ask(12), thread())
            held = (await runner.state(graph, thread())).values
            assert held[STATE_KEY]["branches"]["messages"]["whole"] is True


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_crash_between_context_and_model_is_made_good_by_the_nodes_of_the_next_process(
    call_style: CallStyle,
) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        saver = InMemorySaver()
        await runner.invoke(
            chat_graph(memory, model).compile(checkpointer=saver, interrupt_before=["answer"]), ask(0), thread()
        )
        again = chat_graph(memory, model).compile(checkpointer=saver)
        from langchain_tiered_memory.integrations.graph import node_cache as handover  # noqa: PLC0415 - what a new process does not have

        handover.handover_of(memory).contexts.clear()
        await runner.invoke(again, None, thread())
        assert [type(one).__name__ for one in model.prompts[0]] == ["SystemMessage", "HumanMessage"]
        handover._handovers.pop(memory)
        held = (await runner.state(again, thread())).values
        with pytest.raises(InvalidInputError, match="no context_node of this process"):
            model_input(memory, held, thread())
        assert model_input(memory, held, thread(), system="Be brief.", max_tokens=900)[0].content == "Be brief."


@pytest.mark.parametrize("node", [remember_node, condense_node, context_node, guard_node])
async def test_a_config_without_a_thread_says_what_to_do(node: Any) -> None:
    with open_memory() as memory:
        for call in (lambda: node(memory).invoke(ask(0), {}), lambda: model_input(memory, ask(0), {})):
            with pytest.raises(InvalidInputError, match="thread_id"):
                call()
        with pytest.raises(InvalidInputError, match="thread_id"):
            await node(memory).ainvoke(ask(0), {})


def test_another_users_session_is_refused() -> None:
    with open_memory() as memory:
        remember_node(memory).invoke(ask(0), thread(user_id="alice"))
        for node in (remember_node(memory), context_node(memory)):
            with pytest.raises(MixedOwnersError):
                node.invoke(ask(1), thread(user_id="bob"))
        with pytest.raises(MixedOwnersError):
            model_input(memory, ask(1), thread(user_id="bob"))
        assert [one.id for one in memory.session("t").messages()] == ["q0"]


def test_without_a_checkpointer_the_transcript_alone_is_the_history() -> None:
    model = answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model).compile()
        for number in range(3):
            graph.invoke(ask(number), thread())
        assert [one.id for one in memory.session("t").messages()] == ["q0", "a0", "q1", "a1", "q2", "a2"]
        assert [one.id for one in model.prompts[-1]][1:] == ["q0", "a0", "q1", "a1", "q2"]


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_the_guard_says_the_zone_in_figures_and_ties_its_checkpoint_to_langgraphs(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=700).compile(checkpointer=InMemorySaver())
        seen = set()
        for number in range(12):
            result = await runner.invoke(graph, ask(number), thread())
            seen.add(zone_in(result))
            guard = result[STATE_KEY]["guard"]
            assert guard["used_tokens"] >= 0
            assert guard["langgraph_checkpoint_id"]
        assert len(seen) > 1
        tied = [one for one in memory.session("t").checkpoints() if one.langgraph_checkpoint_id]
        known = {one.config["configurable"]["checkpoint_id"] for one in await runner.history(graph, thread())}
        assert tied
        assert {one.langgraph_checkpoint_id for one in tied} <= known


def test_a_checkpoint_is_saved_with_langgraphs_id_from_within_a_node() -> None:
    made = []
    with open_memory() as memory:

        def save(state: Any, config: RunnableConfig) -> dict[str, Any]:
            del state
            made.append(checkpoint_run(memory, config, "before deploy", project={"step": 1}))
            return {}

        builder = StateGraph(ChatState)
        builder.add_node(remember_node(memory))
        builder.add_node("save", save)
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "save")
        graph = builder.compile(checkpointer=InMemorySaver())
        graph.invoke(ask(0), thread())
        known = [one.config["configurable"]["checkpoint_id"] for one in graph.get_state_history(thread())]
        assert made[0].langgraph_checkpoint_id in known
        assert made[0].reasons == ("before deploy",)


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_the_condensing_node_finishes_what_is_due(call_style: CallStyle) -> None:
    runner = Runner(call_style)
    with open_memory(model=summarising_model()) as memory:
        builder = StateGraph(ChatState)
        builder.add_node(condense_node(memory))
        builder.add_edge(START, "condense")
        graph = builder.compile(checkpointer=InMemorySaver())
        result = await runner.invoke(graph, {"messages": conversation(10)}, thread())
        assert result[STATE_KEY]["condensed"]["summaries"] > 0
        assert result[STATE_KEY]["condensed"]["pending"] == 0
        assert len(result["messages"]) == 20


async def test_a_memory_is_opened_off_the_loop_when_it_is_first_needed(tmp_path: Path) -> None:
    import functools  # noqa: PLC0415

    @functools.cache
    def lazily() -> TieredMemory:
        return open_memory(tmp_path / "memory.db")

    builder = StateGraph(ChatState)
    builder.add_node(remember_node(lazily))
    builder.add_edge(START, "remember")
    graph = builder.compile(checkpointer=InMemorySaver())
    assert lazily.cache_info().currsize == 0
    await Runner("async").invoke(graph, ask(0), thread())
    assert [one.id for one in lazily().session("t").messages()] == ["q0"]
    lazily().close()


def test_a_function_that_opens_no_memory_is_told_of_in_words() -> None:
    with pytest.raises(SettingsError, match="opens a TieredMemory"):
        context_node(lambda: None, max_tokens=500).invoke(ask(0), thread())  # type: ignore[arg-type,return-value]
    with pytest.raises(SettingsError, match="opens a TieredMemory"):
        checkpoint_run(lambda: "memory.db", thread())  # type: ignore[arg-type,return-value]


async def test_a_node_also_works_by_itself() -> None:
    with open_memory() as memory:
        update = context_node(memory, max_tokens=500).invoke(ask(0), thread())
        assert update[STATE_KEY]["plan"]["messages"] == 1
        state = {**ask(0), **update}
        shown = await amodel_input(memory, state, thread())
        assert [one.id for one in shown] == ["q0"]


def test_what_a_later_version_wrote_is_refused_and_what_is_not_ours_too() -> None:
    with pytest.raises(InvalidInputError, match="later"):
        current({"v": 99})
    with pytest.raises(InvalidInputError, match="not what the memory"):
        current({"branches": {}})
    assert current(None) == {}


def test_parts_of_the_state_that_nodes_wrote_side_by_side_are_put_together() -> None:
    one = {"v": 1, "branches": {"messages": {"count": 1}}, "guard": {"zone": "safe"}}
    other = {"v": 1, "branches": {"notes": {"count": 2}}, "plan": {"call": "x"}}
    both = merged(one, other)
    assert set(both["branches"]) == {"messages", "notes"}
    assert both["guard"] == {"zone": "safe"}
    assert both["plan"] == {"call": "x"}


def test_a_list_that_holds_no_messages_gets_a_sentence() -> None:
    with open_memory() as memory:
        with pytest.raises(InvalidInputError, match="messages_key"):
            remember_node(memory, messages_key="question").invoke({"question": "hello"}, thread())
        with pytest.raises(SettingsError, match="keep_messages"):
            evict_node(memory, keep_messages=0)


def test_importing_the_nodes_loads_neither_langgraph_nor_chroma() -> None:
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    code = (
        "import sys, langchain_tiered_memory.integrations.nodes\n"
        "print([one for one in ('chromadb', 'langgraph', 'langchain') if one in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_messages_without_ids_are_known_by_what_they_say() -> None:
    class State(TieredState):
        messages: Annotated[list[Any], operator.add]

    with open_memory() as memory:
        builder = StateGraph(State)
        builder.add_node(remember_node(memory))
        builder.add_edge(START, "remember")
        graph = builder.compile(checkpointer=InMemorySaver())
        for _ in range(2):
            graph.invoke({"messages": [HumanMessage("yes"), AIMessage("done")]}, thread())
        assert [one.text for one in memory.session("t").messages()] == ["yes", "done", "yes", "done"]
