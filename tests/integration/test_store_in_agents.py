"""The memory's store under `create_agent`, langmem's tools and deepagents: what they keep is the run's user's alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.config import get_store

from langchain_tiered_memory import TieredStore
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from tests.agent_builders import ToolModel
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.graph_builders import thread
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("call_style", CALL_STYLES)]


@dataclass
class Ctx:
    """A context of a run."""

    user_id: str
    langgraph_user_id: str = "everybody"


@tool
def note(text: str) -> str:
    """Keep a note."""
    get_store().put(("notes",), "last", {"text": text})
    return "kept"


@tool
def look() -> str:
    """Read the note."""
    item = get_store().get(("notes",), "last")
    return str(item.value["text"]) if item is not None else "nothing"


def calling(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call-{name}"}])


def scripted(*answers: AIMessage) -> ToolModel:
    """Gives these answers, one for each request that no tool result ends."""
    waiting = iter(answers)

    def reply(messages: Sequence[BaseMessage]) -> AIMessage:
        return AIMessage("Done.") if isinstance(messages[-1], ToolMessage) else next(waiting)

    return ToolModel(answers=reply)


def results(call_style: CallStyle, agent: Any, runs: Sequence[str]) -> list[str]:
    """What the tool said in a run of each of these users, each in a thread of its own."""
    found = []
    for number, user in enumerate(runs):
        given = {"messages": [HumanMessage(f"Go on, {number}.")]}
        config = thread(f"thread {number}", langgraph_user_id=user)
        done = told(call_style, agent.invoke, given, config, context=Ctx(user_id=user))
        found.append(str(next(one.content for one in done["messages"] if isinstance(one, ToolMessage))))
    return found


def test_an_agents_notes_are_its_users(call_style: CallStyle) -> None:
    answers = [calling("note", text="zoe's"), calling("look"), calling("look"), calling("note", text="bob's")]
    with open_memory() as memory:
        agent = create_agent(
            scripted(*answers, calling("look")),
            [note, look],
            middleware=[TieredMemoryMiddleware(memory)],
            store=TieredStore(memory),
            context_schema=Ctx,
        )
        found = results(call_style, agent, ["zoe", "zoe", "bob", "bob", "zoe"])
        assert found == ["kept", "zoe's", "nothing", "kept", "zoe's"]
        assert told(call_style, memory.forget, user="zoe").items == 1
        assert TieredStore(memory, user="bob").get(("notes",), "last").value == {"text": "bob's"}


@pytest.mark.parametrize("namespace", [("memories", "{langgraph_user_id}"), ("memories",)], ids=["named", "for all"])
def test_langmems_tools_run_on_it_and_keep_to_the_user(call_style: CallStyle, namespace: tuple[str, ...]) -> None:
    langmem = pytest.importorskip("langmem", reason="the benchmarks' peers are an extra")
    with open_memory(embeddings=HashingEmbeddings()) as memory:
        store = TieredStore(memory)
        tools = [
            langmem.create_manage_memory_tool(namespace=namespace),
            langmem.create_search_memory_tool(namespace=namespace),
        ]
        answers = [
            calling("manage_memory", action="create", content="Zoe drinks dark roast coffee."),
            calling("manage_memory", action="create", content="Zoe has the blue bicycle."),
            calling("search_memory", query="which coffee", limit=1),
            calling("search_memory", query="which coffee"),
        ]
        agent = create_agent(scripted(*answers), tools, store=store, context_schema=Ctx)
        first, _, own, others = results(call_style, agent, ["zoe", "zoe", "zoe", "bob"])
        assert "created memory" in first
        assert "dark roast" in own
        assert "bicycle" not in own
        assert "dark roast" not in others
        assert len(TieredStore(memory, user="zoe").search(("memories",))) == 2
        assert store.search(()) == TieredStore(memory, user="bob").search(()) == []


def test_deepagents_keeps_files_in_it(call_style: CallStyle) -> None:
    deepagents = pytest.importorskip("deepagents", reason="deepagents is not installed: pip install deepagents")
    backends = pytest.importorskip("deepagents.backends", reason="this deepagents keeps its files elsewhere")
    answers = [
        calling("write_file", file_path="/plan.md", content="Zoe's plan: buy 19 bolts."),
        calling("read_file", file_path="/plan.md"),
        calling("read_file", file_path="/plan.md"),
    ]
    with open_memory() as memory:
        agent = deepagents.create_deep_agent(
            model=scripted(*answers),
            backend=backends.StoreBackend(namespace=lambda _: ("filesystem",)),
            store=TieredStore(memory),
            context_schema=Ctx,
        )
        _, own, others = results(call_style, agent, ["zoe", "zoe", "bob"])
        assert "19 bolts" in own
        assert "19 bolts" not in others
        assert memory.forget(user="zoe").items == 1
