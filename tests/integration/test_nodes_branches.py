"""Forks, steps back in time, edits and deletions: the state's list of messages is the truth of its branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.context.pieces import MARK
from langchain_tiered_memory.integrations.nodes import condense_node, context_node, model_input, remember_node
from langchain_tiered_memory.integrations.state import STATE_KEY
from langchain_tiered_memory.testing import ScriptedModel
from tests.agent_builders import ToolModel, built
from tests.call_styles import CALL_STYLES, CallStyle
from tests.graph_builders import STATES, ChatState, Runner, SaverKind, answering, ask, chat_graph, open_saver, thread
from tests.memory_builders import conversation, open_memory, tool_turn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.runnables import RunnableConfig

pytestmark = pytest.mark.slow


SAVERS = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


def said(messages: Sequence[BaseMessage]) -> str:
    return "\n".join(str(one.text) for one in messages)


def whole(values: dict[str, Any]) -> bool:
    return bool(values[STATE_KEY]["branches"]["messages"]["whole"])


async def before_turn(runner: Runner, graph: Any, number: int) -> Any:
    """The state right before the input of a turn was taken."""
    for one in await runner.history(graph, thread()):
        if one.metadata["source"] == "loop" and not one.next and one.values["messages"][-1].id == f"a{number - 1}":
            return one
    raise AssertionError(number)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", SAVERS)
async def test_a_fork_sees_its_own_past_and_nothing_of_the_branch_that_it_left(
    kind: SaverKind, call_style: CallStyle, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        async with open_saver(kind, call_style, folder=tmp_path, url=url) as saver:
            graph = chat_graph(memory, model, max_tokens=4000).compile(checkpointer=saver)
            for number in range(6):
                await runner.invoke(graph, ask(number), thread())
            past = await before_turn(runner, graph, 3)
            result = await runner.invoke(graph, ask(30, "Another question."), past.config)
            shown = said(model.prompts[-1])
            assert "order 1002" in shown.lower()
            assert "Another question." in shown
            for gone in (3, 4, 5):
                assert f"order {1000 + gone}" not in shown.lower()
            assert not whole(result)
            # The thread's newest checkpoint is the fork's by now: it goes on there.
            await runner.invoke(graph, ask(31), thread())
            assert "Another question." in said(model.prompts[-1])
            assert "order 1004" not in said(model.prompts[-1]).lower()
            assert len(memory.session("t").messages()) == 6 * 2 + 4


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_going_back_to_the_branch_that_was_left_shows_it_as_it_was(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000).compile(checkpointer=InMemorySaver())
        for number in range(5):
            await runner.invoke(graph, ask(number), thread())
        tip = (await runner.state(graph, thread())).config
        past = await before_turn(runner, graph, 3)
        await runner.invoke(graph, ask(30, "Another question."), past.config)
        await runner.invoke(graph, ask(5), tip)
        shown = said(model.prompts[-1])
        assert "order 1004" in shown.lower()
        assert "Another question." not in shown


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_fork_from_before_the_first_message_knows_nothing_of_the_other_branch(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000).compile(checkpointer=InMemorySaver())
        for number in range(3):
            await runner.invoke(graph, ask(number), thread())
        start = (await runner.history(graph, thread()))[-1]
        assert start.values.get("messages", []) == []
        await runner.invoke(graph, ask(30, "A fresh start."), start.config)
        assert [one.text for one in model.prompts[-1]][1:] == ["A fresh start."]


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_what_a_session_had_before_its_thread_began_stays_in_view(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        memory.session("t").add_messages(conversation(2, start=50))
        graph = chat_graph(memory, model, max_tokens=4000).compile(checkpointer=InMemorySaver())
        for number in range(2):
            result = await runner.invoke(graph, ask(number), thread())
        assert "order 1050" in said(model.prompts[-1])
        assert whole(result)


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_running_again_from_an_earlier_checkpoint_says_nothing_twice(call_style: CallStyle) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000).compile(checkpointer=InMemorySaver())
        for number in range(3):
            await runner.invoke(graph, ask(number), thread())
        ids = [one.id for one in memory.session("t").messages()]
        past = next(one for one in await runner.history(graph, thread()) if one.next == ("answer",))
        await runner.invoke(graph, None, past.config)
        assert [one.id for one in memory.session("t").messages()] == ids
        assert memory.verify().problems == ()


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_deleted_message_leaves_the_view_and_stays_in_the_transcript(
    call_style: CallStyle, state: type
) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000, state=state).compile(checkpointer=InMemorySaver())
        for number in range(4):
            result = await runner.invoke(graph, ask(number), thread())
        assert whole(result)
        await runner.update(graph, thread(), {"messages": [RemoveMessage(id="q1"), RemoveMessage(id="a1")]})
        result = await runner.invoke(graph, ask(4), thread())
        assert "1001" not in said(model.prompts[-1])
        assert "1002" in said(model.prompts[-1])
        assert not whole(result)
        assert "q1" in {one.id for one in memory.session("t").messages()}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_an_edited_message_is_shown_as_edited_on_its_branch_and_as_it_was_on_the_other(
    call_style: CallStyle, state: type
) -> None:
    runner, model = Runner(call_style), answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000, state=state).compile(checkpointer=InMemorySaver())
        for number in range(3):
            await runner.invoke(graph, ask(number), thread())
        tip = (await runner.state(graph, thread())).config
        edited = await runner.update(graph, tip, {"messages": [HumanMessage("The wording is new.", id="q1")]})
        await runner.invoke(graph, ask(3), edited)
        assert "The wording is new." in said(model.prompts[-1])
        assert "what do we know about the crane of order 1001" not in said(model.prompts[-1])
        await runner.invoke(graph, ask(4), tip)
        assert "The wording is new." not in said(model.prompts[-1])
        assert "order 1001" in said(model.prompts[-1])
        assert "Question 3" not in said(model.prompts[-1])


async def test_a_forgotten_message_is_not_brought_back_by_a_state_that_still_has_it() -> None:
    with open_memory() as memory:
        graph = chat_graph(memory, answering(), max_tokens=4000).compile(checkpointer=InMemorySaver())
        for number in range(3):
            graph.invoke(ask(number), thread())
        memory.session("t").forget(message_ids=["q1", "a1"])
        graph.invoke(ask(3), thread())
        assert {"q1", "a1"}.isdisjoint(one.id for one in memory.session("t").messages())


@pytest.mark.parametrize("turns_between", [0, 1])
@pytest.mark.parametrize("evict", [None, {"keep_messages": 4, "at_messages": 4}])
def test_a_forgotten_message_stays_so_when_another_is_deleted_from_the_state(
    turns_between: int, evict: dict[str, int] | None
) -> None:
    with open_memory() as memory:
        graph = chat_graph(memory, answering(), max_tokens=4000, evict=evict).compile(checkpointer=InMemorySaver())
        for number in range(4):
            graph.invoke(ask(number), thread())
        memory.session("t").forget(message_ids=["a1", "q2"])
        for number in range(4, 4 + turns_between):
            graph.invoke(ask(number), thread())
        state = graph.get_state(thread()).values["messages"]
        graph.update_state(thread(), {"messages": [RemoveMessage(id=str(state[-1].id))]}, as_node="keep")
        graph.invoke({"messages": [HumanMessage("By the way.", id="q5"), *ask(6)["messages"]]}, thread())
        graph.invoke(ask(7), thread())
        stored = [one.id for one in memory.session("t").messages()]
        assert {"a1", "q2"}.isdisjoint(stored)
        assert stored[-5:] == ["q5", "q6", "a6", "q7", "a7"]


@pytest.mark.parametrize("place", [0, 2])
def test_a_message_that_is_put_between_old_ones_is_remembered_and_shown_whatever_was_pinned_before(place: int) -> None:
    model = answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000).compile(checkpointer=InMemorySaver())
        for number in range(3):
            graph.invoke(ask(number), thread())
        memory.session("t").pin("q1")
        held = graph.get_state(thread()).values["messages"]
        added = HumanMessage("The customer pays in shillings.", id="added")
        anew = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *held[:place], added, *held[place:]]
        graph.update_state(thread(), {"messages": anew})
        graph.invoke(ask(3), thread())
        assert "added" in {one.id for one in memory.session("t").messages()}
        assert "shillings" in said(model.prompts[-1])


RISKY = 7


def approving_graph(memory: Any, model: ScriptedModel) -> Any:
    """An agent by hand whose tool asks a person first."""

    def look_up(order: int) -> str:
        """Look an order up."""
        return f"order {order}: {interrupt({'order': order}) if order == RISKY else 'open'}"

    def call(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [model.invoke(model_input(memory, state, config))]}

    builder = StateGraph(ChatState)
    builder.add_node(condense_node(memory))
    builder.add_node(context_node(memory, model=model, tools=[look_up], max_tokens=1500))
    builder.add_node("call", call)
    builder.add_node("keep", remember_node(memory))
    builder.add_node("tools", ToolNode([look_up]))
    builder.add_edge(START, "condense")
    builder.add_edge("condense", "context")
    builder.add_edge("context", "call")
    builder.add_edge("call", "keep")
    builder.add_conditional_edges("keep", tools_condition, {"tools": "tools", END: END})
    builder.add_edge("tools", "condense")
    return builder


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", SAVERS)
async def test_a_call_that_waits_for_approval_is_left_alone_and_answered_later(
    kind: SaverKind, call_style: CallStyle, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    runner = Runner(call_style)

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        assert check_valid(messages, complete=True) == []
        if isinstance(messages[-1], ToolMessage):
            return AIMessage(f"Found: {messages[-1].text}")
        calls = [{"name": "look_up", "args": {"order": n}, "id": f"c{n}"} for n in (7, 8)]
        return AIMessage("", tool_calls=calls, id="calling")

    model = ScriptedModel(answers=reply)
    with open_memory() as memory:
        memory.session("t").add_messages(conversation(12))
        async with open_saver(kind, call_style, folder=tmp_path, url=url) as saver:
            graph = approving_graph(memory, model).compile(checkpointer=saver)
            result = await runner.invoke(graph, ask(70, "Look up 7 and 8."), thread())
            assert result["__interrupt__"][0].value == {"order": RISKY}
            memory.flush()
            from tests.memory_builders import entries_of  # noqa: PLC0415

            waiting = next(one for one in entries_of(memory.session("t")) if one.id == "calling")
            assert waiting.summary_id is None
            result = await runner.invoke(graph, Command(resume="approved"), thread())
        assert result["messages"][-1].text.startswith("Found: order")
        assert [type(one).__name__ for one in model.prompts[-1]][-3:] == ["AIMessage", "ToolMessage", "ToolMessage"]
        assert memory.verify().problems == ()


def test_a_sub_graph_that_shares_the_list_goes_on_with_the_same_conversation() -> None:
    model = answering()
    with open_memory() as memory:
        child = chat_graph(memory, model).compile()
        builder = StateGraph(ChatState)
        builder.add_node(remember_node(memory))
        builder.add_node("child", child)
        builder.add_node("last", remember_node(memory))
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "child")
        builder.add_edge("child", "last")
        graph = builder.compile(checkpointer=InMemorySaver())
        for number in range(3):
            result = graph.invoke(ask(number), thread())
        assert [one.id for one in memory.session("t").messages()] == [one.id for one in result["messages"]]
        assert whole(result)


@pytest.mark.parametrize("call_style", CALL_STYLES)
async def test_a_sub_agent_that_is_called_has_a_track_of_its_own(
    call_style: CallStyle,
) -> None:
    runner, inner = Runner(call_style), answering()
    with open_memory() as memory:
        child = chat_graph(memory, inner).compile()

        def delegate(state: Any, config: RunnableConfig) -> dict[str, Any]:
            # The very message is handed on, id and all.
            found = child.invoke({"messages": state["messages"][-1:]}, config)
            return {"messages": [AIMessage(f"My colleague says: {found['messages'][-1].text}")]}

        async def adelegate(state: Any, config: RunnableConfig) -> dict[str, Any]:
            found = await child.ainvoke({"messages": state["messages"][-1:]}, config)
            return {"messages": [AIMessage(f"My colleague says: {found['messages'][-1].text}")]}

        from langchain_core.runnables import RunnableLambda  # noqa: PLC0415

        builder = StateGraph(ChatState)
        builder.add_node(remember_node(memory))
        builder.add_node("delegate", RunnableLambda(delegate, adelegate))
        builder.add_node("keep", remember_node(memory))
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "delegate")
        builder.add_edge("delegate", "keep")
        graph = builder.compile(checkpointer=InMemorySaver())
        for number in range(3):
            result = await runner.invoke(graph, ask(number), thread())
        assert whole(result)
        # Recall looks through the whole session; the conversation itself is the sub-agent's own, from turn to turn.
        own = [one.id for one in inner.prompts[-1][1:] if MARK not in one.additional_kwargs]
        assert own == ["q0", "a0", "q1", "a1", "q2"]
        main = memory.session("t").messages()
        assert [one.type for one in main] == ["human", "ai"] * 3
        assert memory.session("t").tracks() == ["main", "delegate"]


def test_groups_of_parallel_calls_that_came_in_one_update_are_kept_whole() -> None:
    with open_memory() as memory:
        builder = StateGraph(ChatState)
        builder.add_node(remember_node(memory))
        builder.add_edge(START, "remember")
        graph = builder.compile(checkpointer=InMemorySaver())
        for number in range(6):
            result = graph.invoke({"messages": tool_turn(number, results=3)}, thread())
        state = {**result, "messages": [*result["messages"], HumanMessage("And now?", id="now")]}
        shown = model_input(memory, state, thread(), max_tokens=600)
        assert check_valid(shown, complete=True) == []


def test_a_state_without_the_mix_in_is_remembered_all_the_same() -> None:
    from langgraph.graph import MessagesState  # noqa: PLC0415

    model = answering()
    with open_memory() as memory:
        graph = chat_graph(memory, model, max_tokens=4000, state=MessagesState).compile(checkpointer=InMemorySaver())
        for number in range(3):
            result = graph.invoke(ask(number), thread())
        assert [one.id for one in memory.session("t").messages()] == [one.id for one in result["messages"]]


class Unlisted(InMemorySaver):
    """A checkpointer that does not list what it has."""

    def list(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def test_a_checkpointer_that_does_not_list_its_checkpoints_is_told_of() -> None:
    with open_memory() as memory:
        events: list[str] = []
        memory.subscribe(lambda event: events.append(event.name))
        memory.session("t").add_messages(conversation(2))
        chat_graph(memory, answering()).compile(checkpointer=Unlisted()).invoke(ask(9), thread())
        assert "thread_not_read" in events


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("kind", ["nodes", "evicting nodes", "agent"])
@pytest.mark.parametrize("words", ["What of the crane?", "And what of the shed?"])
async def test_a_question_that_is_removed_and_put_back_at_the_end_is_asked_there(
    words: str, kind: str, call_style: CallStyle
) -> None:
    runner, numbers = Runner(call_style), iter(range(1000))
    model = ToolModel(answers=lambda _: AIMessage(f"Answer {next(numbers)}."))
    with open_memory() as memory:
        evict = {"keep_messages": 1, "at_messages": 4} if kind.startswith("evicting") else None
        if kind == "agent":
            graph: Any = built(memory, model, tools=())
        else:
            graph = chat_graph(memory, model, max_tokens=4000, evict=evict).compile(checkpointer=InMemorySaver())
        for _ in range(3):
            for text, name in (("What of the crane?", "q1"), ("Who are you?", "q2")):
                held = [one.id for one in (await runner.state(graph, thread())).values.get("messages", [])]
                question = words if name == "q1" and held else text
                if name in held:
                    await runner.update(graph, thread(), {"messages": [RemoveMessage(name)]})
                await runner.invoke(graph, {"messages": [HumanMessage(question, id=name)]}, thread())
                assert model.prompts[-1][-1].text == question
        stored = [one.text for one in memory.session("t").messages()]
        asked = ["What of the crane?", *["Who are you?", words] * 2, "Who are you?"]
        assert stored == [one for number, text in enumerate(asked) for one in (text, f"Answer {number}.")]
        assert all(str(one.id).count("again") <= 1 for one in memory.session("t").messages()), "an id does not grow"
        assert memory.verify().problems == ()
