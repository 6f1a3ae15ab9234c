"""Agents that run at the same time, or are cut off in the middle."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.agent_builders import THREAD, built, open_memory, openai_model
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
