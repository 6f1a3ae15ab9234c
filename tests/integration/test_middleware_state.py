"""The agent middleware and a graph's state: restarts, forks, edits, interrupts, sub-agents, other middlewares."""

from __future__ import annotations

import contextlib
import copy
import logging
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    HumanInTheLoopMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    TodoListMiddleware,
    ToolCallLimitMiddleware,
)
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command

from benchmarks.provider_rules import check_valid
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.testing import FrozenClock, summarising_model
from tests.agent_builders import (
    THREAD,
    ToolModel,
    built,
    look_up,
    open_memory,
    openai_model,
    said,
    strict_saver,
)
from tests.call_styles import CALL_STYLES, CallStyle
from tests.openai_server import OpenAIServer, calls

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.openai_server import Scripted

pytestmark = [pytest.mark.service, pytest.mark.slow]

LONG = "The bolts of this order came late, and the register has to say so. " * 14


def one_call_each(body: dict[str, Any]) -> Scripted:
    turns = sum(message["role"] == "user" for message in body["messages"])
    latest = {message["role"] for message in body["messages"][-2:]}  # another middleware may stand behind the result
    return "It is due on Monday." if "tool" in latest else calls("look_up", {"order": turns})


def stored_texts(memory: Any, *, track: str = "main") -> list[str]:
    return [str(one.text) for one in memory.session("alice", track=track).messages()]


def _by_length(text: str) -> int:
    """Ids of summaries differ from database to database: counted so, they are equally long."""
    return len(text) // 4 + 1


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_restart_calls_no_condensing_model_and_changes_no_byte(call_style: CallStyle, tmp_path: Path) -> None:
    condensers = [summarising_model(), summarising_model()]
    model, clock, saver = ToolModel(answers=lambda _: AIMessage("ok")), FrozenClock(), strict_saver()

    def turn(memory: Any, number: int, checkpoints: Any) -> list[tuple[str, str]]:
        agent = built(memory, model, tools=(), max_tokens=2500, agent={"checkpointer": checkpoints})
        said(call_style, agent, {"messages": [HumanMessage(f"Order {number}: {LONG}", id=f"u{number}")]})
        return [(one.type, str(one.content)) for one in model.prompts[-1]]

    with open_memory(tmp_path / "one.db", model=condensers[0], clock=clock) as memory:
        for number in range(16):
            turn(memory, number, saver)
        # The same state and the same database, once in the process that goes on and once in a new one.
        with (
            contextlib.closing(sqlite3.connect(tmp_path / "one.db")) as source,
            contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as target,
        ):
            source.backup(target)
        kept = copy.deepcopy(saver)
        goes_on = turn(memory, 16, saver)
    with open_memory(tmp_path / "other.db", model=condensers[1], clock=clock) as memory:
        begins_again = turn(memory, 16, kept)
    assert begins_again == goes_on
    assert "<conversation_history" in str(goes_on)
    assert condensers[0].calls > 0
    assert condensers[1].calls == 0


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_fork_shows_nothing_of_the_branch_it_left(call_style: CallStyle) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), max_tokens=2500)
        for turn in range(6):
            said(call_style, agent, f"Order {turn}: {LONG}")
        before = next(
            one for one in agent.get_state_history(THREAD) if one.next == () and len(one.values["messages"]) == 12
        )
        said(call_style, agent, f"The zeppelin lands at noon. {LONG}")
        for turn in range(6, 10):
            said(call_style, agent, f"Order {turn}: {LONG}")
        assert "zeppelin" in " ".join(stored_texts(memory))
        said(call_style, agent, "When does it land?", before.config)
        assert "zeppelin" not in server.requests[-1].text
        assert "Order 5" in server.requests[-1].text
        said(call_style, agent, "And what else?")
        assert "zeppelin" not in server.requests[-1].text
        assert check_protocol(server)


def check_protocol(server: OpenAIServer) -> bool:
    return all(one.status == 200 for one in server.requests)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_fork_from_before_the_first_answer_begins_anew(call_style: CallStyle) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=())
        said(call_style, agent, "The zeppelin lands at noon.")
        said(call_style, agent, "And when does it leave?")
        first = list(agent.get_state_history(THREAD))[-1]
        said(call_style, agent, "Hello", first.config)
        assert "zeppelin" not in server.requests[-1].text


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_edited_and_deleted_messages_are_shown_as_the_state_has_them(call_style: CallStyle) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=())
        for turn in range(3):
            said(call_style, agent, f"Order {turn} is for the zeppelin.")
        held = agent.get_state(THREAD).values["messages"]
        edit = HumanMessage("Order 0 is for the lighthouse.", id=held[0].id)
        agent.update_state(THREAD, {"messages": [edit, RemoveMessage(id=str(held[2].id))]})
        said(call_style, agent, "Which orders are there?")
        shown = [one["content"] for one in server.requests[-1].messages if one["role"] == "user"]
        assert shown[0] == "Order 0 is for the lighthouse."
        assert not any("Order 1" in one for one in shown)
        assert any("Order 2" in one for one in shown)
        assert [one.text for one in memory.session("alice").revisions(str(held[0].id))] == [
            "Order 0 is for the zeppelin."
        ]


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_history_that_the_memory_had_before_the_thread_stays_in_view(call_style: CallStyle) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        memory.session("alice").add_messages([HumanMessage("My boat is called Zora."), AIMessage("A fine name.")])
        agent = built(memory, openai_model(server), tools=())
        said(call_style, agent, "Hello")
        said(call_style, agent, "What is my boat called?")
        assert "Zora" in server.requests[0].text
        assert "Zora" in server.requests[1].text


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_without_a_checkpointer_the_memory_alone_keeps_the_conversation(call_style: CallStyle) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), agent={"checkpointer": None})
        said(call_style, agent, "My boat is called Zora.")
        said(call_style, agent, "What is my boat called?")
        roles = [one["role"] for one in server.requests[-1].messages]
        assert roles == ["system", "user", "assistant", "user"]
        assert len(memory.session("alice").messages()) == 4


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("decision", ["approve", "edit", "reject"])
def test_a_pending_approval_is_left_alone_and_its_outcome_remembered(call_style: CallStyle, decision: str) -> None:
    approval = HumanInTheLoopMiddleware(interrupt_on={"look_up": True})
    answers: dict[str, Any] = {
        "approve": {"type": "approve"},
        "edit": {"type": "edit", "edited_action": {"name": "look_up", "args": {"order": 77}}},
        "reject": {"type": "reject", "message": "not that one"},
    }
    with OpenAIServer(script=[calls("look_up", {"order": 5}), "Done."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), behind=[approval])
        said(call_style, agent, "What about order 5?")
        assert agent.get_state(THREAD).next
        memory.session("alice").flush()
        state = said(call_style, agent, Command(resume={"decisions": [answers[decision]]}))
        assert [one.status for one in server.requests] == [200, 200]
        stored = memory.session("alice").messages()
        assert [one.id for one in stored] == [one.id for one in state["messages"]]
        assert [one.text for one in stored] == [one.text for one in state["messages"]]


class Reminder(AgentMiddleware):
    """Adds a message to every request that the state never has, as a middleware for reminders does."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(messages=[*request.messages, HumanMessage("Remember to be brief.")]))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(messages=[*request.messages, HumanMessage("Remember to be brief.")]))


def others() -> list[Any]:
    edit = ClearToolUsesEdit(trigger=300, keep=1)
    return [
        TodoListMiddleware(),
        ToolCallLimitMiddleware(run_limit=3),
        PIIMiddleware("email", apply_to_output=True, apply_to_tool_results=True),
        ContextEditingMiddleware(edits=[edit], token_count_method="approximate"),  # noqa: S106 - how tokens are counted
        Reminder(),
    ]


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("place", ["first", "last", "between"])
def test_it_works_with_other_middlewares_in_any_order(call_style: CallStyle, place: str) -> None:
    before = {"first": [], "last": others(), "between": others()[:2]}[place]
    behind = {"first": others(), "last": [], "between": others()[2:]}[place]
    with OpenAIServer(script=one_call_each, window_tokens=4000) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), before=before, behind=behind, max_tokens=3500)
        for turn in range(12):
            state = said(call_style, agent, f"What about order {turn}? Write to ann{turn}@example.com.")
        assert check_protocol(server)
        assert all("Remember to be brief." in one.text for one in server.requests)
        assert "Remember to be brief." not in " ".join(stored_texts(memory))
        assert "cleared" not in " ".join(stored_texts(memory))
        assert "@example.com" not in " ".join(one.text for one in server.requests)
        assert len(state["messages"]) == len(memory.session("alice").messages())


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_what_is_taken_out_of_an_answer_is_never_written_where_that_is_asked_for(call_style: CallStyle) -> None:
    mail = PIIMiddleware("email", apply_to_output=True)
    with OpenAIServer(script=["Write to ann@example.com."]) as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=(), behind=[mail])
        said(call_style, agent, "Whom do I ask?")
        said(call_style, agent, "Again, please?")
        session = memory.session("alice")
        answer = session.messages()[1]
        assert "ann@" not in answer.text
        assert session.revisions(str(answer.id)) == []


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_summaries_of_another_middleware_are_warned_of(call_style: CallStyle, caplog: pytest.LogCaptureFixture) -> None:
    model = ToolModel()
    rewriting = SummarizationMiddleware(model=ToolModel(), trigger=("messages", 4), keep=("messages", 2))
    with caplog.at_level(logging.WARNING), open_memory() as memory:
        agent = built(memory, model, tools=(), behind=[rewriting])
        for turn in range(5):
            said(call_style, agent, f"Order {turn}")
    assert sum("SummarizationMiddleware" in record.message for record in caplog.records) == 1
    assert [fault for prompt in model.prompts for fault in check_valid(prompt, complete=True)] == []


def planning(messages: Sequence[Any]) -> AIMessage | str:
    """Writes its plan first, then works through many orders."""
    results = sum(isinstance(one, ToolMessage) for one in messages)
    if not any(isinstance(one, AIMessage) for one in messages):
        todos = [{"content": "Check the lighthouse", "status": "in_progress"}]
        return AIMessage("", tool_calls=[{"name": "write_todos", "args": {"todos": todos}, "id": "plan"}])
    made = len(str(messages)) + results
    return AIMessage("", tool_calls=[{"name": "look_up", "args": {"order": made}, "id": f"c{made}"}])


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_plan_in_the_state_stays_in_sight_when_the_call_that_wrote_it_is_gone(call_style: CallStyle) -> None:
    model = ToolModel(answers=planning)
    limit = ToolCallLimitMiddleware(run_limit=16, exit_behavior="end")
    with open_memory() as memory:
        agent = built(
            memory,
            model,
            behind=[TodoListMiddleware(), limit],
            max_tokens=5000,
            project=("todos", "sails"),
            agent={"system_prompt": None},
        )
        said(call_style, agent, "Check every order.", THREAD | {"recursion_limit": 200})
    last = [str(prompt[-1].text) for prompt in model.prompts]
    assert not any("<agent_state>" in text for text in last[:3])
    assert "- [>] Check the lighthouse" in last[-1]
    assert "sails" not in last[-1]
    assert [fault for prompt in model.prompts for fault in check_valid(prompt, complete=True)] == []


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_sub_agent_has_a_track_of_its_own(call_style: CallStyle) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        own = TieredMemoryMiddleware(memory, recall=False)
        helper = create_agent(openai_model(server), [], middleware=[own], name="helper")

        @tool
        def ask_helper(task: str) -> str:
            """Hand a task to the helper."""
            return str(helper.invoke({"messages": [("user", task)]})["messages"][-1].text)

        @tool
        async def aask_helper(task: str) -> str:
            """Hand a task to the helper."""
            return str((await helper.ainvoke({"messages": [("user", task)]}))["messages"][-1].text)

        chosen = ask_helper if call_style == "sync" else aask_helper
        replies = [calls(chosen.name, {"task": "Count the bolts."}), "Seven bolts.", "There are seven."]
        server.play([*replies, calls(chosen.name, {"task": "Count the nuts."}), "Nine nuts.", "There are nine."])
        agent = built(memory, openai_model(server), tools=[chosen])
        said(call_style, agent, "How many bolts are there?")
        said(call_style, agent, "And nuts?")
        assert check_protocol(server)
        assert stored_texts(memory)[0] == "How many bolts are there?"
        assert "Count the bolts." not in stored_texts(memory)
        assert server.requests[1].messages == [{"role": "user", "content": "Count the bolts."}]
        assert "Count the bolts" not in server.requests[4].text
        assert memory.session("alice").tracks() == ["main", "tools"]


def _entries(memory: Any) -> list[Any]:
    store = memory.core.runtime.store.transcript
    return list(store.entries(store.find("alice")))


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_agents_that_share_their_messages_share_a_track(call_style: CallStyle) -> None:
    from langgraph.graph import END, START, MessagesState, StateGraph  # noqa: PLC0415 - of this test alone

    with OpenAIServer(script=["From the first.", "From the second."] * 3) as server, open_memory() as memory:
        first = create_agent(openai_model(server), [], middleware=[TieredMemoryMiddleware(memory)], name="first")
        second = create_agent(openai_model(server), [], middleware=[TieredMemoryMiddleware(memory)], name="second")
        graph = StateGraph(MessagesState)
        graph.add_node("first", first)
        graph.add_node("second", second)
        graph.add_edge(START, "first")
        graph.add_edge("first", "second")
        graph.add_edge("second", END)
        agent = graph.compile(checkpointer=strict_saver())
        said(call_style, agent, "Hello, both.")
        state = said(call_style, agent, "And again.")
        assert check_protocol(server)
        assert stored_texts(memory) == [str(one.text) for one in state["messages"]]
        assert {entry.track for entry in _entries(memory)} == {"main"}


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_system_messages_of_the_state_stay_in_front(call_style: CallStyle) -> None:
    with OpenAIServer() as server, open_memory() as memory:
        agent = built(memory, openai_model(server), tools=())
        said(call_style, agent, {"messages": [SystemMessage("Speak like a sailor."), HumanMessage("Hello")]})
        first = server.requests[-1].messages[0]
        assert first["role"] == "system"
        assert "register" in str(first["content"])
        assert "sailor" in str(first["content"])


async def test_nothing_blocks_the_event_loop(tmp_path: Path) -> None:
    with OpenAIServer(script=one_call_each, window_tokens=3000) as server:
        with open_memory(tmp_path / "memory.db") as memory:
            agent = built(memory, openai_model(server), tools=[look_up])
            await agent.ainvoke({"messages": [("user", "Warm the imports up.")]}, THREAD)
            with blockbuster_ctx("langchain_tiered_memory"):
                for turn in range(8):
                    await agent.ainvoke({"messages": [("user", f"Order {turn}: {LONG}")]}, THREAD)
        assert sum(one.status == 400 for one in server.requests) == 1


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_the_tools_of_the_memory_can_be_given_to_the_agent(call_style: CallStyle) -> None:
    with OpenAIServer(script=[calls("recall", {"query": "boat"}), "Zora."]) as server, open_memory() as memory:
        memory.session("alice").add_messages([HumanMessage("My boat is called Zora."), AIMessage("A fine name.")])
        agent = built(memory, openai_model(server), tools=(), tools_of_memory=True)
        said(call_style, agent, "What is my boat called?")
        assert {one["function"]["name"] for one in server.requests[0].body["tools"]} >= {"recall", "expand", "pin"}
        assert check_protocol(server)


def test_choices_that_cannot_be_used_are_refused() -> None:
    with open_memory() as memory:
        with pytest.raises(SettingsError, match="project must be a list"):
            TieredMemoryMiddleware(memory, project="todos")
        with pytest.raises(SettingsError, match="messages"):
            TieredMemoryMiddleware(memory, project=("messages",))
