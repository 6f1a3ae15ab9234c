"""Moving archived messages out of graph state: the state stays small, and nothing is lost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.integrations.nodes import evict_node, model_input, remember_node
from langchain_tiered_memory.integrations.state import STATE_KEY, ArchivedPart, BranchRecord, unpacked
from langchain_tiered_memory.testing import ScriptedModel
from tests.call_styles import CALL_STYLES, CallStyle
from tests.graph_builders import STATES, ChatState, Runner, SaverKind, answering, ask, chat_graph, open_saver, thread
from tests.integration.test_nodes_branches import before_turn, said, whole
from tests.memory_builders import as_bytes, conversation, open_memory, ref_of, store_of, tool_turn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.messages import BaseMessage

pytestmark = pytest.mark.slow

SMALL = {"keep_messages": 4, "at_messages": 8}


def moving(memory: Any, *, state: type = ChatState, **limits: int) -> Any:
    """Only remember and evict."""
    builder = StateGraph(state)
    builder.add_node(remember_node(memory))
    builder.add_node(evict_node(memory, **limits))
    builder.add_edge(START, "remember")
    builder.add_edge("remember", "evict")
    return builder.compile(checkpointer=InMemorySaver())


def without_ids(messages: Sequence[BaseMessage]) -> list[bytes]:
    """What was sent, without the names of summaries: those are made up anew in each memory."""
    return [re.sub(rb"id [0-9a-f]{8}", b"id", as_bytes(one)) for one in messages]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
@pytest.mark.sweep(2)
async def test_the_state_stays_small_while_contexts_are_what_they_are_without_it(
    kind: SaverKind, call_style: CallStyle, state: type, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    runner, model, other = Runner(call_style), answering(), answering()
    with open_memory() as memory, open_memory() as untouched:
        async with open_saver(kind, call_style, folder=tmp_path, url=url) as saver:
            graph = chat_graph(memory, model, evict=SMALL, state=state).compile(checkpointer=saver)
            whole_graph = chat_graph(untouched, other, state=state).compile(checkpointer=InMemorySaver())
            for number in range(14):
                result = await runner.invoke(graph, ask(number), thread())
                await runner.invoke(whole_graph, ask(number), thread())
                assert len(result["messages"]) <= 8 + 2
                assert whole(result)
        assert len(memory.session("t").messages()) == 28
        assert [without_ids(prompt) for prompt in model.prompts] == [without_ids(prompt) for prompt in other.prompts]


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_after_a_move_forks_and_deletions_are_told_from_what_was_moved(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000, evict=SMALL).compile(checkpointer=InMemorySaver())
        for number in range(8):
            await runner.invoke(graph, ask(number), thread())
        past = await before_turn(runner, graph, 6)
        assert past.values[STATE_KEY]["branches"]["messages"]["archived"]
        result = await runner.invoke(graph, ask(30, "Another question."), past.config)
        shown = said(model.prompts[-1]).lower()
        assert "order 1000" in shown
        assert "order 1005" in shown
        assert "order 1006" not in shown
        assert "order 1007" not in shown
        assert not whole(result)
        for number in range(31, 40):  # moved out of a fork too
            result = await runner.invoke(graph, ask(number), thread())
        assert len(result["messages"]) <= 10
        shown = said(model.prompts[-1]).lower()
        assert "order 1000" in shown
        assert "another question." in shown
        assert "order 1007" not in shown
        gone = result["messages"][1].id
        await runner.update(graph, thread(), {"messages": [RemoveMessage(id=gone)]})
        await runner.invoke(graph, ask(40), thread())
        assert gone not in {one.id for one in model.prompts[-1]}
        assert memory.verify().problems == ()


def test_groups_open_calls_the_systems_word_and_the_last_question_stay() -> None:
    with open_memory() as memory:
        graph = moving(memory, keep_messages=2, at_messages=3)
        loop: list[Any] = [SystemMessage("Be brief.", id="s"), HumanMessage("Do it.", id="q")]
        for number in range(8):
            call = {"name": "look", "args": {"n": number}, "id": f"c{number}"}
            loop += [
                AIMessage("", tool_calls=[call], id=f"a{number}"),
                ToolMessage(f"found {number}", tool_call_id=f"c{number}", id=f"r{number}"),
            ]
        result = graph.invoke({"messages": loop}, thread())
        assert [one.id for one in result["messages"]] == ["s", "q", "a7", "r7"]
        waiting = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "open"}], id="open")
        result = graph.invoke({"messages": [waiting, *conversation(6, start=50)]}, thread())
        assert [one.id for one in result["messages"]][:3] == ["s", "open", "q50"]
        assert list(unpacked(result[STATE_KEY]["branches"]["messages"]["archived"]["off"])) == [1]


def test_parallel_calls_leave_together() -> None:
    with open_memory() as memory:
        graph = moving(memory, keep_messages=3, at_messages=4)
        result = graph.invoke({"messages": [*tool_turn(0, results=3), *tool_turn(1, results=4)]}, thread())
        assert [one.id for one in result["messages"]] == ["q1", "c1", "r1_0", "r1_1", "r1_2", "r1_3", "a1"]


def test_what_the_archive_cannot_give_back_stays_in_state_and_is_reported() -> None:
    events = []
    with open_memory() as memory:
        memory.subscribe(lambda event: events.append(event.name))
        graph = moving(memory, **SMALL)
        strange = ToolMessage("see artifact", tool_call_id="x", artifact=object(), id="r")
        node = remember_node(memory)
        messages = [
            HumanMessage("Do it.", id="q"),
            AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "x"}], id="a"),
            strange,
            *conversation(5),
        ]
        state = {"messages": messages}
        state |= node.invoke(state, thread())
        update = evict_node(memory, **SMALL).invoke(state, thread())
        assert {"a", "r"}.isdisjoint(one.id for one in update["messages"])
        assert "q" in {one.id for one in update["messages"]}
        assert "eviction_withheld" in events
        assert graph is not None


def test_a_damaged_or_forgotten_archive_is_noticed_before_anything_is_moved(tmp_path: Path) -> None:
    from sqlalchemy import update  # noqa: PLC0415 - plants the fault

    from langchain_tiered_memory.sql.schema import entries  # noqa: PLC0415

    with open_memory(tmp_path / "memory.db") as memory:
        state: dict[str, Any] = {"messages": conversation(10)}
        state |= remember_node(memory).invoke(state, thread())
        session = memory.session("t")
        session.forget(message_ids=["a0"])
        state |= remember_node(memory).invoke(state, thread())
        with store_of(memory).database.write() as connection:
            connection.execute(
                update(entries)
                .where(entries.c.session_key == ref_of(session).key, entries.c.seq == 3)
                .values(payload='{"v": 1, "class": "HumanMessage", "fields": {"content": "torn"}}')
            )
        update_ = evict_node(memory, **SMALL).invoke(state, thread())
        moved = {one.id for one in update_["messages"]}
        assert moved
        assert {"a0", "q1"}.isdisjoint(moved)


def test_eviction_without_the_mix_in_or_without_ids_says_what_to_do() -> None:
    with open_memory() as memory:
        graph = moving(memory, state=MessagesState, keep_messages=1, at_messages=1)
        with pytest.raises(InvalidInputError, match="TieredState"):
            graph.invoke({"messages": conversation(4)}, thread())


def test_an_archive_that_is_not_there_any_more_is_reported() -> None:
    events = []
    state: dict[str, Any] = {"messages": conversation(10)}
    with open_memory() as memory:
        state |= remember_node(memory).invoke(state, thread())
        update = evict_node(memory, **SMALL).invoke(state, thread())
        gone = {one.id for one in update["messages"]}
    state = {"messages": [one for one in state["messages"] if one.id not in gone], STATE_KEY: update[STATE_KEY]}
    with open_memory() as another:
        another.subscribe(lambda event: events.append(event.name))
        shown = model_input(another, state, thread(), max_tokens=2000)
        assert shown
    assert "archive_changed" in events


@given(seqs=st.frozensets(st.integers(1, 60)), reach=st.integers(1, 60))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_the_watermark_holds_exactly_what_was_moved(seqs: frozenset[int], reach: int) -> None:
    part = ArchivedPart(seq=reach, last_id="x", count=0, off=seqs)
    for seq in range(1, 70):
        assert part.holds(seq) == (seq <= reach and seq not in seqs)
    record = BranchRecord(track="main", count=1, ids="", said="", seq=3, epoch=0, whole=True, archived=part)
    assert BranchRecord.from_json(record.to_json()) == record
    older = record.to_json()
    older["archived"]["digest"] = "which states had before"
    assert BranchRecord.from_json(older) == record


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_list_that_a_client_sends_under_new_ids_is_moved_out_too(call_style: CallStyle) -> None:
    runner, numbers, kept = Runner(call_style), iter(range(1000)), []
    model = ScriptedModel(answers=lambda _: f"Answer {next(numbers)}.")
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000, evict={"keep_messages": 2, "at_messages": 4}).compile()
        for number in range(5):
            kept.append(("user", f"Question {number}"))
            held = (await runner.invoke(graph, {"messages": kept}, thread()))["messages"]
            kept.append(("assistant", held[-1].text))
        assert len(held) == 2
        stored = [one.text for one in memory.session("t").messages()]
        assert stored == [text for number in range(5) for text in (f"Question {number}", f"Answer {number}.")]
