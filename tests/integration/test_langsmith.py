"""What reaches LangSmith: its client, told by its variables alone, sends the memory's runs to a server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tracers.langchain import wait_for_all_tracers

from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.testing import ScriptedModel, summarising_model
from tests.graph_builders import answering, ask, chat_graph, thread
from tests.langsmith_server import LangSmithServer
from tests.memory_builders import open_memory, quick_settings

OURS = {"assemble", "recall", "search", "condense"}
_MODES = ["values", "messages", "updates", "custom"]
_TURNS = 6
pytestmark = [pytest.mark.service, pytest.mark.slow]


def _program(style: str, *, traces: bool) -> None:
    """An agent and a graph for some turns, then a search: what their streams gave is printed."""
    settings = quick_settings(eager=True).model_copy(update={"traces": traces})
    told: list[Any] = []
    with open_memory(model=summarising_model(), settings=settings) as memory:
        middleware = TieredMemoryMiddleware(memory, max_tokens=900)
        model = ScriptedModel(answers=lambda _: AIMessage("The crane stands in hall 4, and its rope is worn. " * 16))
        agent = create_agent(model, [], system_prompt="Be brief.", middleware=[middleware])
        graph = chat_graph(memory, answering()).compile()

        async def streamed(runs: Any, said: Any, name: str) -> None:
            told.extend([part async for part in runs.astream(said, thread(name), stream_mode=_MODES)])

        for number in range(_TURNS):
            for runs, name in ((agent, "agent"), (graph, "graph")):
                asked = HumanMessage(f"Where is crane {number}, and how is its rope?")
                said = {"messages": [asked]} if name == "agent" else ask(number)
                if style == "async":
                    asyncio.run(streamed(runs, said, name))
                else:
                    told.extend(runs.stream(said, thread(name), stream_mode=_MODES))
        memory.session("agent").search("rope", k=2)
    wait_for_all_tracers()
    print(json.dumps({"told": str(told), "parts": len(told)}))  # noqa: T201 - for the test


def _traced(server: LangSmithServer, style: str, *, traces: bool = True) -> dict[str, Any]:
    """What the program printed, with LangSmith's variables set as a user sets them."""
    foreign = ("LANGSMITH_", "LANGCHAIN_", "TIERED_MEMORY_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment |= {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": server.url, "LANGSMITH_API_KEY": "made-up"}
    command = [sys.executable, "-m", "tests.integration.test_langsmith", style, str(traces)]
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "langsmith" not in done.stderr.casefold(), done.stderr[-3000:]
    assert server.refused == []
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


@pytest.mark.parametrize("style", ["sync", "async"])
def test_langsmith_gets_each_step_of_the_memory_under_what_asked_for_it(style: str) -> None:
    with LangSmithServer() as server:
        printed = _traced(server, style)
        runs = list(server.runs.values())
        assert all("end_time" in run and not run.get("error") for run in runs)
        assert all(run.get("parent_run_id") in {None, *server.runs} for run in runs)
        for run in (one for one in runs if one["name"] in OURS):
            assert "tiered_memory" in run["tags"]
            assert run["extra"]["metadata"]["session"] in {"agent", "graph"}

        assembled = server.named("assemble")
        assert len(assembled) == 2 * _TURNS
        for run in assembled:
            assert server.above(run)[-1] == "LangGraph"
            assert server.above(run)[0] in {"guard", "context"} or "wrap_model_call" in server.above(run)[0]
            assert run["inputs"]["max_tokens"] == 900
            assert 0 < run["outputs"]["tokens"] <= 900
            assert sum(run["outputs"]["sections"].values()) == run["outputs"]["tokens"]
            assert run["outputs"]["messages"]
        recalled = server.named("recall")
        assert recalled
        assert all(server.above(run)[0] == "assemble" for run in recalled)
        assert all("rope" in run["inputs"]["query"] or "crane" in run["inputs"]["query"] for run in recalled)
        assert {type(run["outputs"]["tokens"]) for run in recalled} == {int}

        condensed = server.named("condense")
        assert condensed
        for run in condensed:
            assert run["outputs"]["text"]
            assert run["outputs"]["input_tokens"] > run["outputs"]["output_tokens"] > 0
        calls = server.named("tiered_memory_condense")
        assert [server.above(run)[0] for run in calls] == ["condense"] * len(condensed), "each with the model's call"
        assert all(run["run_type"] == "llm" for run in calls)
        assert all(run["extra"]["metadata"]["usage_metadata"]["input_tokens"] > 0 for run in calls)

        (searched,) = server.named("search")
        assert searched["inputs"] == {"query": "rope", "k": 2}
        assert len(searched["outputs"]["hits"]) == 2
        assert printed["parts"] > 0
        assert not [name for name in (*OURS, "tiered_memory_condense") if f"'{name}'" in printed["told"]]


def test_a_setting_keeps_the_memorys_steps_from_langsmith_and_leaves_the_programs_own() -> None:
    with LangSmithServer() as server:
        _traced(server, "sync", traces=False)
        names = {run["name"] for run in server.runs.values()}
        assert not names & OURS
        assert {"LangGraph", "ScriptedModel"} <= names


if __name__ == "__main__":
    _program(sys.argv[1], traces=sys.argv[2] == "True")
