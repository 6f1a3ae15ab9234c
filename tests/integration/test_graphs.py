"""The ready graphs: they load as LangGraph's server loads them, and run without a key and without a blocking call."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_tiered_memory.integrations.state import STATE_KEY
from tests.graph_builders import thread

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

GRAPHS = Path(__file__).parents[2] / "graphs"
SPECS: dict[str, str] = json.loads((GRAPHS / "langgraph.json").read_text(encoding="utf-8"))["graphs"]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Loads a graph by its name in `langgraph.json`, from its file, as the server does."""
    monkeypatch.syspath_prepend(str(GRAPHS))
    monkeypatch.delenv("TIERED_MEMORY_MODEL", raising=False)
    monkeypatch.setenv("TIERED_MEMORY_PATH", str(tmp_path / "memory.db"))
    sys.modules.pop("parts", None)

    def load(name: str) -> Any:
        path, _, attribute = SPECS[name].partition(":")
        spec = importlib.util.spec_from_file_location(f"graphs_{name}", GRAPHS / path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, attribute)

    yield load
    parts = sys.modules.pop("parts", None)
    if parts is not None and parts._opened.cache_info().currsize:
        parts.memory().close()


async def built(found: Any) -> Any:
    """A compiled graph: itself, or what its factory makes. Opening happens with blocking calls forbidden."""
    with blockbuster_ctx():
        return await found() if inspect.iscoroutinefunction(found) else found


@pytest.mark.parametrize("name", SPECS)
async def test_a_graph_talks_and_its_memory_keeps_everything(name: str, loaded: Any) -> None:
    graph = (await built(loaded(name))).copy()
    assert graph.checkpointer is None, "LangGraph's server brings its own"
    graph.checkpointer = InMemorySaver()
    with blockbuster_ctx():
        for number in range(25):
            said = f"Please write down that ship {number} left the pier at {number} o'clock with {number * 7} crates."
            result = await graph.ainvoke({"messages": [HumanMessage(said)]}, thread())
    assert isinstance(result["messages"][-1], AIMessage)
    memory = sys.modules["parts"].memory()
    kept = memory.session("t").messages()
    assert len(kept) == 50
    assert [one.id for one in kept][-len(result["messages"]) :] == [one.id for one in result["messages"]]
    assert "I was shown" in result["messages"][-1].text
    assert memory.verify().problems == ()


@pytest.mark.parametrize("name", ["agent", "by_hand"])
async def test_an_agent_uses_its_tool(name: str, loaded: Any) -> None:
    graph = await built(loaded(name))
    with blockbuster_ctx():
        asked = {"messages": [HumanMessage("How many anchors are in stock?")]}
        result = await graph.ainvoke(asked, thread("other"))
    assert result["messages"][-1].text == "The books say: anchor: 3 in stock."


async def test_a_long_run_opens_a_file_once_and_points_to_it_then(loaded: Any) -> None:
    graph = (await built(loaded("long_run"))).copy()
    graph.checkpointer = InMemorySaver()
    with blockbuster_ctx():
        for _ in range(2):
            result = await graph.ainvoke({"messages": [HumanMessage("Open parts.py")]}, thread())
    shown = [one.text for one in result["messages"] if one.type == "tool"]
    assert "What the graphs here share" in shown[0]
    assert shown[1] == shown[0]
    assert "has the same text as message" in result["messages"][-1].text, "the model was sent a pointer"
    counts = sys.modules["parts"].memory().run("t").report().counts
    assert (counts["opened_new"], counts["opened_hot"], counts["offered"]) == (1, 1, 1)


async def test_the_state_of_the_chat_stays_small(loaded: Any) -> None:
    graph = loaded("chat").copy()
    graph.checkpointer = InMemorySaver()
    for number in range(30):
        result = await graph.ainvoke({"messages": [HumanMessage(f"Ship {number} is in.")]}, thread())
    assert len(result["messages"]) <= 42
    assert result[STATE_KEY]["branches"]["messages"]["archived"]["count"] >= 18


def test_importing_the_graphs_opens_no_memory() -> None:
    code = (
        "import importlib, sys\n"
        f"sys.path.insert(0, {str(GRAPHS)!r})\n"
        "for name in ('chat', 'by_hand', 'agent', 'long_run'):\n"
        "    importlib.import_module(name)\n"
        "print(sys.modules['parts']._opened.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=GRAPHS.parent)
    assert done.stdout.strip() == "0"
