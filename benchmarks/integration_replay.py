"""Does every request that reaches a model fit and hold together? Agents' transcripts, through the integrations.

Each transcript is played to an agent of `create_agent` with `TieredMemoryMiddleware`, and to a hand-built graph with
the memory's nodes: what the user and the tools said comes in, and before each of the transcript's own answers the model
is called. The model is a stand-in that tells its window, refuses what does not fit it as a provider would, and checks
every request by rules that share no code with what assembles them.

    python -m benchmarks.integration_replay FOLDER --windows 8000,32000,128000
    python -m benchmarks.integration_replay --quick

A folder holds `NAME.json` files: a list of OpenAI-style messages each, or a list of runs with `messages`.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import PrivateAttr

from benchmarks.made_up_run import made_up_run
from benchmarks.provider_rules import check_valid
from benchmarks.reporting import Grid, Report, Target, arguments, finish, numbers, show
from langchain_tiered_memory.conversations.turns import message_of
from langchain_tiered_memory.errors import BudgetError, InvalidInputError
from langchain_tiered_memory.integrations.middleware import TieredMemoryMiddleware
from langchain_tiered_memory.integrations.nodes import context_node, model_input, remember_node
from langchain_tiered_memory.integrations.state import TieredState
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.models.message_counting import PRIMING_TOKENS
from langchain_tiered_memory.models.token_counters import best_counter
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.protocols import TokenCounter

Integration: TypeAlias = Literal["middleware", "nodes"]
INTEGRATIONS: tuple[Integration, ...] = ("middleware", "nodes")
WINDOWS = (8000, 32_000, 128_000)
_QUICK_WINDOWS = (2000, 8000)
_QUICK_TURNS = 12
_COUNTED_AS = "gpt-4"
_MOST_ANSWERED = 0.125
"""Of a window, that the stand-in writes at most."""
_SYSTEM = "You are an agent that works on what the user asks for, with the tools at hand."
_SIDE_FILES = (".files", ".compactions", ".checkpoints", ".probes")


@dataclass(slots=True, kw_only=True)
class Replayed:
    """One transcript through one integration at one window."""

    integration: Integration
    name: str
    window: int
    messages: int = 0
    requests: int = 0
    """That reached the model."""
    most_tokens: int = 0
    faults: list[str] = field(default_factory=list)
    """What a provider would refuse."""
    overflows: int = 0
    """Requests over the window; each was refused, and tried once more."""
    not_made: list[str] = field(default_factory=list)
    """Requests that never were, for no context could be made."""
    seconds: float = 0.0


class StandIn(BaseChatModel):
    """A model that says what the transcript says, and takes nothing that a provider would not take."""

    window: int
    name: str | None = "stand-in"

    _run: Replayed = PrivateAttr()
    _counter: TokenCounter = PrivateAttr()
    _next: AIMessage = PrivateAttr(default_factory=lambda: AIMessage("ok"))

    def watch(self, run: Replayed, counter: TokenCounter) -> None:
        """Write what comes into `run`."""
        self._run, self._counter = run, counter

    def will_say(self, answer: AIMessage) -> None:
        """The next answer."""
        self._next = answer

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the base class passes it
        run_manager: object = None,  # noqa: ARG002 - the base class passes it
        **_: Any,  # noqa: ANN401 - any option of any provider
    ) -> ChatResult:
        run = self._run
        tokens = PRIMING_TOKENS + sum(self._counter.count_message(message) for message in messages)
        run.requests += 1
        run.faults += check_valid(messages, complete=True)
        if tokens > self.window:
            run.overflows += 1
            msg = f"maximum context length is {self.window} tokens, your messages resulted in {tokens} tokens"
            raise ValueError(msg)
        run.most_tokens = max(run.most_tokens, tokens)
        return ChatResult(generations=[ChatGeneration(message=self._next)])


class LatestSaver(InMemorySaver):
    """A checkpointer that keeps the latest checkpoint alone: a long run of large messages would fill the memory."""

    def put(self, config: RunnableConfig, checkpoint: Any, metadata: Any, new_versions: Any) -> RunnableConfig:  # noqa: ANN401 - LangGraph's own types
        """See `InMemorySaver`."""
        kept = super().put(config, checkpoint, metadata, new_versions)
        thread, namespace = config["configurable"]["thread_id"], config["configurable"].get("checkpoint_ns", "")
        held = self.storage[thread][namespace]
        for old in list(held):
            if old != checkpoint["id"]:
                del held[old]
                self.writes.pop((thread, namespace, old), None)
        versions = checkpoint["channel_versions"]
        for key in [key for key in self.blobs if key[:2] == (thread, namespace) and versions.get(key[2]) != key[3]]:
            del self.blobs[key]
        return kept


class _State(MessagesState, TieredState):
    """The state of the hand-built graph."""


def replay(
    integration: Integration, name: str, messages: Sequence[BaseMessage], window: int, *, counter: TokenCounter
) -> Replayed:
    """Play one transcript through one integration."""
    run = Replayed(integration=integration, name=name, window=window, messages=len(messages))
    profile = {"max_input_tokens": window, "max_output_tokens": int(window * _MOST_ANSWERED)}
    model = StandIn(window=window, profile=profile)
    model.watch(run, counter)
    began = time.perf_counter()
    settings = Settings(tree=TreeSettings(background=False))
    with TieredMemory.open(None, embeddings=None, settings=settings, token_counter=counter) as memory:
        graph = (_agent if integration == "middleware" else _by_hand)(memory, model)
        config: RunnableConfig = {"configurable": {"thread_id": name}}
        waiting: list[BaseMessage] = []
        for message in messages:
            if isinstance(message, AIMessage) and waiting:
                model.will_say(message)
                try:
                    graph.invoke({"messages": waiting}, config)
                    waiting = []
                except BudgetError as error:
                    run.not_made.append(str(error))
                    waiting = [*waiting, message]
            elif not isinstance(message, SystemMessage):
                waiting.append(message)
    run.seconds = time.perf_counter() - began
    return run


def _agent(memory: TieredMemory, model: StandIn) -> Any:  # noqa: ANN401 - a compiled graph
    middleware = [TieredMemoryMiddleware(memory)]
    return create_agent(model, [], system_prompt=_SYSTEM, middleware=middleware, checkpointer=LatestSaver())


def _by_hand(memory: TieredMemory, model: StandIn) -> Any:  # noqa: ANN401 - a compiled graph
    def call(state: _State, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [model.invoke(model_input(memory, state, config))]}

    graph = StateGraph(_State)
    graph.add_node("remember", remember_node(memory))
    graph.add_node("context", context_node(memory, model=model, system=_SYSTEM, max_tokens=model.window))
    graph.add_node("call", call)
    graph.add_edge(START, "remember")
    graph.add_edge("remember", "context")
    graph.add_edge("context", "call")
    graph.add_edge("call", END)
    return graph.compile(checkpointer=LatestSaver())


def read_folder(folder: Path, *, names: Sequence[str] = (), runs_of_a_list: int = 5) -> dict[str, list[BaseMessage]]:
    """The transcripts of a folder by name; of a file with many runs the first few.

    Raises:
        InvalidInputError: when there is none, or one cannot be read.
    """
    found: dict[str, list[BaseMessage]] = {}
    for path in sorted(folder.glob("*.json")):
        if path.stem == "INDEX" or path.stem.endswith(_SIDE_FILES) or (names and path.stem not in names):
            continue
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            msg = f"{path}: {error}"
            raise InvalidInputError(msg) from error
        if rows and "messages" in rows[0]:
            runs = {str(row["id"]): row["messages"] for row in rows[:runs_of_a_list]}
        else:
            runs = {path.stem: rows}
        for name, one in runs.items():
            found[name] = [message_of(row | {"id": f"m{place}"}) for place, row in enumerate(one)]
    if not found:
        msg = f"{folder}: no transcript"
        raise InvalidInputError(msg)
    return found


def report_of(runs: Sequence[Replayed]) -> Report:
    """The counts of all runs, one row for each integration and window."""
    rows = []
    for integration, window in dict.fromkeys((run.integration, run.window) for run in runs):
        mine = [run for run in runs if (run.integration, run.window) == (integration, window)]
        rows.append(
            (
                f"{integration}, {window:,}",
                len(mine),
                sum(run.messages for run in mine),
                sum(run.requests for run in mine),
                sum(len(run.faults) for run in mine),
                sum(run.overflows for run in mine),
                sum(len(run.not_made) for run in mine),
                max(run.most_tokens for run in mine),
                sum(run.seconds for run in mine),
            )
        )
    columns = (
        "integration, window",
        "transcripts",
        "messages",
        "requests",
        "invalid",
        "over",
        "not made",
        "largest",
        "seconds",
    )
    bad = sum(len(run.faults) + run.overflows + len(run.not_made) for run in runs)
    return Report(
        benchmark="integration replay",
        about="Every request that reaches a model through a integration is valid and within its window",
        settings={"counted as": _COUNTED_AS},
        grids=(Grid(title="requests", columns=columns, rows=tuple(rows)),),
        figures={
            "runs": [
                {
                    "integration": run.integration,
                    "transcript": run.name,
                    "window": run.window,
                    "requests": run.requests,
                    "largest_tokens": run.most_tokens,
                    "faults": run.faults[:20],
                    "overflows": run.overflows,
                    "not_made": run.not_made[:5],
                    "seconds": run.seconds,
                }
                for run in runs
            ]
        },
        targets=(Target(aim="no request invalid, over the window, or not made", measured=f"{bad}", met=not bad),),
        remarks=(
            "over: refused by the stand-in and tried once more, smaller",
            "not made: the memory raised a BudgetError that says what takes the room",
        ),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="where the transcripts are")
    parser.add_argument("--windows", type=numbers, default=None, help="of the model, in tokens")
    parser.add_argument("--names", default="", help="transcripts, with commas; all if not given")
    parser.add_argument(
        "--integrations", default=",".join(INTEGRATIONS), help="middleware, nodes, or both with a comma"
    )
    parser.add_argument("--quick", action="store_true", help="a made-up run alone")
    asked = parser.parse_args(arguments_given)
    if asked.quick:
        made_up = made_up_run(turns=_QUICK_TURNS)
        transcripts, windows = {made_up.name: list(made_up.messages)}, asked.windows or _QUICK_WINDOWS
    elif asked.folder is not None:
        names = [name for name in asked.names.split(",") if name]
        transcripts, windows = read_folder(asked.folder, names=names), asked.windows or WINDOWS
    else:
        parser.error("name a folder, or use --quick")
    counter = best_counter(_COUNTED_AS)
    runs = [
        replay(integration, name, messages, window, counter=counter)
        for integration in INTEGRATIONS
        if integration in asked.integrations.split(",")
        for window in windows
        for name, messages in transcripts.items()
    ]
    reports = [report_of(runs)]
    show(reports[0])
    finish(reports, asked.json)
    return reports


if __name__ == "__main__":
    main()
