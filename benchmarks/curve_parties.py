"""Who is on the cost curve: each answers one request of a run after the other, and keeps its own state.

A peer is set up as its documentation shows, and within the window where it can be told to keep to it. Middlewares with
a state of their own (this memory's, deepagents') run in an agent of `create_agent`, which takes time of its own.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from langchain.agents import create_agent
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from benchmarks.agent_replay import Actor
from benchmarks.integration_replay import LatestSaver
from benchmarks.parties import Counting, Party, WholeHistory
from langchain_tiered_memory import TieredMemoryMiddleware
from langchain_tiered_memory.memory import TieredMemory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.embeddings import Embeddings
    from langchain_core.messages import AIMessage, BaseMessage

    from benchmarks.summariser import Summariser
    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.settings import Settings

_DEEP_TRIGGER, _DEEP_KEEPS = 0.85, 0.10
"""Shares of a window: what deepagents sets up for a model that tells its own."""
_CLEARED_FROM, _TOOL_USES_KEPT = 0.75, 3
"""The share of a window at which tool uses are cleared (by default 100,000 tokens, whatever the window), and the
default number of those that stay."""
_MOST_ANSWERED = 0.125
"""Of a window, that the agent's model says it writes at most."""
_CONFIG: Any = {"configurable": {"thread_id": "run"}}


class Contestant(Protocol):
    """One way to bound a context, in one run."""

    tools: Sequence[Any]
    """What it offers the model besides, with every request."""

    def request(self, arrived: Sequence[tuple[BaseMessage, float]], answer: AIMessage) -> Sequence[BaseMessage]:
        """What the model is sent for what arrived (with times); it will give `answer`."""

    def answered(self, answer: AIMessage, at: float) -> None:
        """The model has answered."""

    def close(self) -> None:
        """Let go of files."""


class Listed:
    """A party that is told of messages and asked for contexts."""

    def __init__(self, party: Party, *, tools: Sequence[Any] = ()) -> None:
        self._party = party
        self.tools = tools

    def request(self, arrived: Sequence[tuple[BaseMessage, float]], answer: AIMessage) -> Sequence[BaseMessage]:  # noqa: ARG002 - the interface
        """See `Contestant`."""
        for message, at in arrived:
            self._party.add(message, at)
        return self._party.context()

    def answered(self, answer: AIMessage, at: float) -> None:
        """See `Contestant`."""
        self._party.add(answer, at)

    def close(self) -> None:
        """See `Contestant`."""
        self._party.close()


class _Listener(Actor):
    """Says what it is told to say, and keeps what it was sent."""

    _heard: list[BaseMessage] = PrivateAttr(default_factory=list)
    _tools: Sequence[Any] = PrivateAttr(default=())

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> _Listener:  # noqa: ANN401 - the base class's own
        """Take tools, for they are sent."""
        self._tools = tools
        return self

    def _generate(self, messages: list[BaseMessage], *_: object, **__: object) -> ChatResult:
        self._heard = list(messages)
        return ChatResult(generations=[ChatGeneration(message=self._next)])


class _Both(_Listener):
    """A listener that condenses, too: what the memory asks goes to the stand-in."""

    _writer: Any = PrivateAttr(default=None)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,  # noqa: ANN401 - the base class's own
    ) -> ChatResult:
        if run_manager is not None and "tiered_memory" in run_manager.tags:
            result: ChatResult = self._writer._generate(messages)  # noqa: SLF001 - one model stands for another
            return result
        return super()._generate(messages, stop, run_manager, **options)


class InAgent:
    """A middleware in an agent, whose model says what the run's model said.

    Args:
        middleware: To measure.
        window: That the model tells.
        close: Called at the end.
        model: The agent's, where it does more than that.
    """

    def __init__(
        self,
        middleware: Any,  # noqa: ANN401 - of any state
        *,
        window: int,
        close: Callable[[], object],
        model: _Listener | None = None,
    ) -> None:
        self._model = model if model is not None else _Listener(profile=_profile(window))
        self._agent = create_agent(self._model, [], middleware=[middleware], checkpointer=LatestSaver())
        self._waiting: list[BaseMessage] = []
        self._refused = False
        self._close = close

    @property
    def tools(self) -> Sequence[Any]:
        """See `Contestant`."""
        return self._model._tools  # noqa: SLF001 - a class of this module

    def request(self, arrived: Sequence[tuple[BaseMessage, float]], answer: AIMessage) -> Sequence[BaseMessage]:
        """See `Contestant`."""
        self._waiting += [message for message, _ in arrived]
        self._refused = True
        self._model.will_say(answer)
        state: Any = {"messages": self._waiting}
        self._agent.invoke(state, _CONFIG)
        self._waiting, self._refused = [], False
        return self._model._heard  # noqa: SLF001 - a class of this module

    def answered(self, answer: AIMessage, at: float) -> None:  # noqa: ARG002 - the interface
        """The agent has it already, unless there was no request: then it comes with the next one."""
        if self._refused:
            self._waiting.append(answer)

    def close(self) -> None:
        """See `Contestant`."""
        self._close()


def _profile(window: int) -> Any:  # noqa: ANN401 - LangChain's `ModelProfile`
    return {"max_input_tokens": window, "max_output_tokens": round(_MOST_ANSWERED * window)}


class ClearedToolUses(WholeHistory):
    """langchain's `ContextEditingMiddleware` as it is by default: results of old tool calls are replaced by a word."""

    name = "ContextEditing, ClearToolUses"

    def __init__(self, budget: int, *, counting: Counting) -> None:
        super().__init__()
        self._counting = counting
        self._edit = ClearToolUsesEdit(trigger=round(_CLEARED_FROM * budget), keep=_TOOL_USES_KEPT)

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        sent: list[Any] = list(super().context())
        self._edit.apply(sent, count_tokens=self._counting)
        return sent


def memory_middleware(
    window: int,
    *,
    counter: TokenCounter,
    summariser: Summariser | None,
    settings: Settings,
    embeddings: Embeddings | None,
    own: bool = False,
) -> InAgent:
    """This memory's middleware with its defaults; what falls due is condensed in the request that finds it.

    Args:
        window: Of the agent's model.
        counter: Of tokens.
        summariser: Who condenses; `None`: rules.
        settings: Of the memory.
        embeddings: For recall.
        own: Whether the agent's model is the one that condenses, within the same window.
    """
    model: _Both | None = None
    if own and summariser is not None:
        model = _Both(profile=_profile(window))
        model._writer = summariser.model  # noqa: SLF001 - a class of this module
    memory = TieredMemory.open(
        None,
        model=model or (summariser.model if summariser else None),
        embeddings=embeddings,
        token_counter=counter,
        settings=settings,
    )
    return InAgent(TieredMemoryMiddleware(memory), window=window, close=memory.close, model=model)


def deep_summarising(window: int, *, counting: Counting, summariser: Summariser) -> InAgent:
    """The summarisation middleware of deepagents with what it sets up for a model that tells its window."""
    from deepagents.backends import FilesystemBackend  # noqa: PLC0415 - it may not be installed
    from deepagents.middleware.summarization import SummarizationMiddleware  # noqa: PLC0415

    folder = tempfile.TemporaryDirectory()
    trigger, keep = ("tokens", round(_DEEP_TRIGGER * window)), ("tokens", round(_DEEP_KEEPS * window))
    middleware: Any = SummarizationMiddleware(
        model=summariser.model,
        backend=FilesystemBackend(root_dir=Path(folder.name), virtual_mode=True),
        trigger=trigger,
        keep=keep,
        token_counter=counting,
        trim_tokens_to_summarize=None,
        truncate_args_settings={"trigger": trigger, "keep": keep},
    )
    return InAgent(middleware, window=window, close=folder.cleanup)
