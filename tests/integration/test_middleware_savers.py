"""An agent over LangGraph's checkpointers on disk, under strict msgpack: everything is opened anew at every step."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware, human_in_the_loop
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.types import Command

from benchmarks.provider_rules import check_valid
from tests.agent_builders import THREAD, ToolModel, built, open_memory
from tests.call_styles import CALL_STYLES, CallStyle
from tests.graph_builders import Runner, open_saver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory
    from tests.graph_builders import SaverKind

pytestmark = [pytest.mark.parametrize("call_style", CALL_STYLES), pytest.mark.slow]

SAVERS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]
LONG = "The bolts of this order came late, and the register has to say so. " * 8
APPROVE = {"type": "approve"}
REJECT = {"type": "reject", "message": "not that one"}
EDIT = {"type": "edit", "edited_action": {"name": "look_up", "args": {"order": 77}}}
RESPOND = (
    {"type": "respond", "message": "the human looked it up: nine bolts"}
    if hasattr(human_in_the_loop, "RespondDecision")  # not in the oldest langchain that is supported
    else REJECT
)


@dataclass
class AssemblyInputs:
    """Opens the saver, the memory and the agent for one step, as a process of its own would."""

    kind: SaverKind
    folder: Path
    url: str | None
    runner: Runner
    model: ToolModel

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Any, TieredMemory]]:
        approval = HumanInTheLoopMiddleware(interrupt_on={"look_up": True})
        async with open_saver(self.kind, self.runner.call_style, folder=self.folder, url=self.url) as saver:
            with open_memory(self.folder / "memory.db") as memory:
                agent = {"checkpointer": saver}
                yield built(memory, self.model, behind=[approval], max_tokens=2500, agent=agent), memory

    async def say(self, given: Any, config: Any = None) -> tuple[dict[str, Any], list[BaseMessage]]:
        """One step: the state afterwards, and what the transcript has."""
        async with self.open() as (agent, memory):
            state = await self.runner.invoke(agent, given, config or THREAD)
            return state, memory.session("alice").messages()


def asking() -> ToolModel:
    """Calls the tool twice for each order, and raises when a request is not valid for every provider."""

    def reply(messages: Sequence[BaseMessage]) -> AIMessage | str:
        faults = check_valid(messages, complete=True)
        assert faults == [], faults
        users = [one for one in messages if isinstance(one, HumanMessage)]
        if isinstance(messages[-1], ToolMessage) or "Order" not in str(users[-1].content):
            return "It is due on Monday."
        made = f"c{len(str(messages))}"
        call = {"name": "look_up", "args": {"order": 5}, "id": f"{made}-1"}
        return AIMessage("", tool_calls=[call, call | {"id": f"{made}-2"}])

    return ToolModel(answers=reply)


def inputs(kind: SaverKind, call_style: CallStyle, folder: Path, request: pytest.FixtureRequest) -> AssemblyInputs:
    url = request.getfixturevalue("postgres_url") if kind == "postgres" else None
    return AssemblyInputs(kind=kind, folder=folder, url=url, runner=Runner(call_style=call_style), model=asking())


@pytest.mark.parametrize("kind", SAVERS)
async def test_approvals_across_restarts_leave_state_and_transcript_alike(
    call_style: CallStyle, kind: SaverKind, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    at = inputs(kind, call_style, tmp_path, request)
    for turn, decisions in enumerate([[APPROVE, REJECT], [EDIT, APPROVE], [RESPOND, APPROVE], [REJECT, REJECT]]):
        state, _ = await at.say({"messages": [("user", f"Order {turn}: {LONG}")]})
        assert "__interrupt__" in state
        state, stored = await at.say(Command(resume={"decisions": decisions}))
        assert "__interrupt__" not in state
        assert [one.id for one in stored] == [one.id for one in state["messages"]]
        assert [one.text for one in stored] == [one.text for one in state["messages"]]


@pytest.mark.parametrize("kind", SAVERS)
async def test_a_step_back_in_time_edits_and_deletions_show_after_a_restart(
    call_style: CallStyle, kind: SaverKind, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    at = inputs(kind, call_style, tmp_path, request)
    for turn in range(4):
        await at.say({"messages": [("user", f"Hello for the {turn}th time. {LONG}")]})
    await at.say({"messages": [("user", "The zeppelin lands at noon.")]})
    async with at.open() as (agent, _):
        ends = [one for one in await at.runner.history(agent, THREAD) if one.next == ()]
    await at.say({"messages": [("user", "Another branch.")]}, ends[2].config)
    assert "zeppelin" not in str(at.model.prompts[-1])
    assert "3th time" not in str(at.model.prompts[-1])
    assert "2th time" in str(at.model.prompts[-1])
    async with at.open() as (agent, _):
        held = (await at.runner.state(agent, THREAD)).values["messages"]
        edit = HumanMessage("Hello from the lighthouse.", id=held[2].id)
        await at.runner.update(agent, THREAD, {"messages": [edit, RemoveMessage(id=str(held[4].id))]})
    _, stored = await at.say({"messages": [("user", "And now?")]})
    asked = [str(one.content) for one in at.model.prompts[-1] if isinstance(one, HumanMessage)]
    assert "Hello from the lighthouse." in asked
    assert not any("2th time" in one for one in asked)
    assert "zeppelin" in " ".join(str(one.text) for one in stored)
