"""What a request of an agent costs, over one agent's run: this memory and other ways to bound what a model gets.

All agents are made by `create_agent`, play the same transcript to the same model, which costs nothing, and keep their
state in the same saver. An agent without anything is the floor: what LangGraph itself takes for that list of messages.
What this memory condenses and embeds between two requests, as its background would, is timed on its own.
"""

from __future__ import annotations

import importlib.util
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware, wrap_model_call
from langchain_core.messages import AIMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from benchmarks.agent_replay import Actor, agent_turns
from benchmarks.integration_replay import LatestSaver
from benchmarks.sessions import open_memory
from benchmarks.turn_lists import KEPT_TOKENS
from benchmarks.turn_steps import BUDGET, Costs
from langchain_tiered_memory import TieredMemoryMiddleware
from langchain_tiered_memory.errors import TieredMemoryError
from langchain_tiered_memory.models.embeddings import MiniLMEmbeddings, find_minilm
from langchain_tiered_memory.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.messages import BaseMessage

_SUMMARY = "The user wants the change made; files were read and edited, and the tests were run. " * 20
_WARM_UP = 20
_CONFIG: Any = {"configurable": {"thread_id": "run"}}


@dataclass(slots=True)
class Played:
    """One transcript through one way to ask."""

    costs: Costs = field(default_factory=Costs)
    """Of each request."""
    between: Costs = field(default_factory=Costs)
    """Of what was condensed after each; empty where nothing is."""
    refused: int = 0
    """Requests for which no context could be made."""

    def ask(self, call: Callable[[], object]) -> None:
        """Make one request; of those that are refused no time is kept."""
        costs = Costs()
        try:
            costs.time(call)
        except TieredMemoryError:
            self.refused += 1
        self.costs.clock += costs.clock
        self.costs.processor += costs.processor


@dataclass(frozen=True, slots=True)
class _Way:
    """How this memory is asked."""

    name: str
    recall: bool = True
    embeddings: MiniLMEmbeddings | None = None
    """Without it words alone are looked up."""


def play_peers(messages: Sequence[BaseMessage], folder: Path) -> tuple[dict[str, Played], list[str]]:
    """The agents that keep their list in the state alone, and what was left out; deepagents writes into `folder`."""
    listed = {"nothing": [], "trim_messages": [_trimming()], "SummarizationMiddleware": [_summarising()]}
    remarks: list[str] = []
    if importlib.util.find_spec("deepagents") is None:
        remarks.append("deepagents: left out, it is not installed (pip install deepagents)")
    else:
        listed["deepagents' SummarizationMiddleware"] = [_deep_summarising(folder)]
    return {name: _played(messages, middleware) for name, middleware in listed.items()}, remarks


def play_memory(messages: Sequence[BaseMessage], databases: Mapping[str, Callable[[], str]]) -> dict[str, Played]:
    """This memory on each database: through the middleware, and its session alone.

    Args:
        messages: The transcript.
        databases: Names, each with what makes an empty database and gives its place.
    """
    found: dict[str, Played] = {}
    minilm = MiniLMEmbeddings() if find_minilm() is not None else None
    ways = [_Way("no question", recall=False), _Way("with a question")]
    ways += [_Way("with a question and vectors", embeddings=minilm)] if minilm is not None else []
    for database, make in databases.items():
        _played_remembering(messages[:_WARM_UP], make(), ways[-1])  # the first requests pay for imports
        for way in ways:
            found[f"this memory, {database}, {way.name}"] = _played_remembering(messages, make(), way)
            found[f"its session alone, {database}, {way.name}"] = _played_session(messages, make(), way)
    return found


def empty_files(folder: Path) -> Callable[[], str]:
    """What names a new SQLite file in `folder` at each call."""
    return lambda: str(Path(tempfile.mkdtemp(dir=folder)) / "memory.db")


def _played(
    messages: Sequence[BaseMessage], middleware: list[Any], after: Callable[[], object] | None = None
) -> Played:
    model, played = Actor(), Played()
    agent = create_agent(model, [], middleware=middleware, checkpointer=LatestSaver())
    for arrived, answer in agent_turns(messages):
        model.will_say(answer)
        state: Any = {"messages": arrived}
        played.ask(partial(agent.invoke, state, _CONFIG))
        if after is not None:
            played.between.time(after)
    return played


def _played_remembering(messages: Sequence[BaseMessage], where: str, way: _Way) -> Played:
    with open_memory(where, way.embeddings) as memory:
        middleware: Any = TieredMemoryMiddleware(memory, max_tokens=BUDGET, recall=way.recall)
        return _played(messages, [middleware], memory.flush)


def _played_session(messages: Sequence[BaseMessage], where: str, way: _Way) -> Played:
    """What arrived is added and a context is made, as a loop written by hand would; then the answer is added."""
    played = Played()

    def request() -> None:
        session.add_messages(arrived)
        session.context(None if way.recall else "", max_tokens=BUDGET)

    with open_memory(where, way.embeddings) as memory:
        session = memory.session("run")
        arrived: list[BaseMessage] = []
        for arrived, answer in agent_turns(messages):  # noqa: B007 - `request` reads it
            played.ask(request)
            session.add_messages([answer])
            played.between.time(memory.flush)
    return played


def _trimming() -> Any:  # noqa: ANN401 - a middleware of any state
    """The latest messages, from a request to the next; the state keeps all."""

    @wrap_model_call
    def trim(request: Any, handler: Any) -> Any:  # noqa: ANN401 - LangChain's own types
        kept = trim_messages(
            request.messages, max_tokens=BUDGET, token_counter=count_tokens_approximately, strategy="last"
        )
        return handler(request.override(messages=kept))

    return trim


def _summarising() -> Any:  # noqa: ANN401 - a middleware of any state
    return SummarizationMiddleware(
        model=_summary_model(), trigger=("tokens", BUDGET), keep=("tokens", KEPT_TOKENS), trim_tokens_to_summarize=None
    )


def _deep_summarising(folder: Path) -> Any:  # noqa: ANN401 - a middleware of any state
    """That of deepagents, which writes what it summarises to a file, and leaves the state's list alone."""
    from deepagents.backends import FilesystemBackend  # noqa: PLC0415 - it may not be installed
    from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarization  # noqa: PLC0415

    return DeepSummarization(
        model=_summary_model(),
        backend=FilesystemBackend(root_dir=folder, virtual_mode=True),
        trigger=("tokens", BUDGET),
        keep=("tokens", KEPT_TOKENS),
        trim_tokens_to_summarize=None,
    )


def _summary_model() -> ScriptedModel:
    return ScriptedModel(answers=lambda _: AIMessage(_SUMMARY))
