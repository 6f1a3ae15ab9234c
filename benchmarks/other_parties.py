"""Peers that this project's environment does not have by itself, and the simplest rule that a memory has to beat.

deepagents is a package that may not be installed; hermes-lcm is no package at all, but the source of an agent's engine
that somebody checked out (`github.com/stephenschoettler/hermes-lcm`). Where one cannot be had, a line says why.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import tempfile
import types
from collections import Counter
from importlib import import_module
from itertools import count
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult

from benchmarks.integration_replay import LatestSaver
from benchmarks.parties import KEEP_SHARE, Trimmed
from langchain_tiered_memory.text.sentences import sentences

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.parties import Counting
    from benchmarks.summariser import Summariser

_TRIGGER_SHARE = 0.85
"""Of the budget: what deepagents sets up for a model whose window it knows."""
_COMPRESSES_FROM, _LEAF_TOKENS, _FRESH_MESSAGES = 0.75, 3000, 20
"""hermes-lcm: its own share; its leaf and its tail are made for windows of 200,000 tokens, and are smaller here."""


class RareSentences(Trimmed):
    """Ten lines: half of the budget for the newest messages, the other half for the rarest sentences before them."""

    name = "rare sentences, a rule of ten lines"

    def __init__(self, budget: int, *, counting: Counting) -> None:
        super().__init__(budget // 2, counting=counting)
        self._rest = budget // 2

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        newest = super().context()
        older = [one for message in self._messages[: -len(newest) or None] for one in sentences(str(message.text))]
        words = {one: {word.casefold() for word in one.split()} for one in older}
        seen = Counter(word for said in words.values() for word in said)
        worth = {one: sum(log(len(words) / seen[w]) + any(map(str.isdigit, w)) for w in words[one]) for one in words}
        lines: list[str] = []
        room = self._rest
        for one in sorted(words, key=lambda said: -worth[said] / max(len(words[said]), 6)):
            room -= self._counting(HumanMessage(one))
            if room > 0:
                lines.append(one)
        return [HumanMessage("\n".join(lines)), *newest]


class _Listening(BaseChatModel):
    """An agent's model: it says next to nothing, and keeps what it was sent."""

    heard: list[BaseMessage] = []  # noqa: RUF012 - a field of a pydantic model
    number: Any = None

    @property
    def _llm_type(self) -> str:
        return "listening"

    def _generate(self, messages: list[BaseMessage], *_: object, **__: object) -> ChatResult:
        self.heard = list(messages)
        answer = AIMessage("...", id=f"said-{next(self.number)}")
        return ChatResult(generations=[ChatGeneration(message=answer)])


class DeepAgents:
    """deepagents' summarisation middleware in an agent, whose model says what the conversation's assistant said."""

    name = "deepagents' summarisation"
    fixed_tokens = 0

    def __init__(self, budget: int, *, counting: Counting, summariser: Summariser) -> None:
        from deepagents.backends import FilesystemBackend  # noqa: PLC0415 - it may not be installed
        from deepagents.middleware.summarization import SummarizationMiddleware  # noqa: PLC0415

        self._folder = tempfile.TemporaryDirectory()
        self._model = _Listening(number=count())
        middleware: Any = SummarizationMiddleware(
            model=summariser.model,
            backend=FilesystemBackend(root_dir=Path(self._folder.name), virtual_mode=True),
            trigger=("tokens", round(_TRIGGER_SHARE * budget)),
            keep=("tokens", round(KEEP_SHARE * budget)),
            token_counter=counting,
            trim_tokens_to_summarize=None,
        )
        self._agent = create_agent(self._model, [], middleware=[middleware], checkpointer=LatestSaver())
        self._config: Any = {"configurable": {"thread_id": "run"}}
        self._waiting: list[BaseMessage] = []
        self._spoke: str | None = None
        """The id of what the model said, which no message of the conversation replaced yet."""

    @staticmethod
    def missing() -> str | None:
        """Why it cannot be had, or `None`."""
        return None if importlib.util.find_spec("deepagents") else "it is not installed (pip install deepagents)"

    def add(self, message: BaseMessage, at: float) -> None:  # noqa: ARG002 - the interface
        """See `Party`."""
        if self._spoke is not None:
            answers = isinstance(message, AIMessage)
            said = AIMessage(message.content, id=self._spoke) if answers else RemoveMessage(id=self._spoke)
            self._agent.update_state(self._config, {"messages": [said]})
            self._spoke = None
            if answers:
                return
        self._waiting.append(message)

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        if self._spoke is not None:
            self._agent.update_state(self._config, {"messages": [RemoveMessage(id=self._spoke)]})
        state: Any = {"messages": self._waiting}
        answered = self._agent.invoke(state, self._config)
        self._waiting, self._spoke = [], answered["messages"][-1].id
        return list(self._model.heard)

    def close(self) -> None:
        """See `Party`."""
        self._folder.cleanup()


class HermesLcm:
    """hermes-lcm's context engine, outside of the agent that it is made for.

    Args:
        budget: In tokens.
        summariser: Stands in for its auxiliary model.
        folder: Its checked-out source.
        fresh_messages: Of the newest messages, how many stay whatever happens.
        leaf_tokens: What it summarises at a time.
    """

    name = "hermes-lcm"
    fixed_tokens = 0

    def __init__(
        self,
        budget: int,
        *,
        summariser: Summariser,
        folder: Path,
        fresh_messages: int = _FRESH_MESSAGES,
        leaf_tokens: int = _LEAF_TOKENS,
    ) -> None:
        _make_importable(folder)
        sys.modules["agent.auxiliary_client"].call_llm = self._called  # type: ignore[attr-defined] # a stub of ours
        engine, config = import_module("hermes_lcm.engine"), import_module("hermes_lcm.config").LCMConfig()
        self._count = import_module("hermes_lcm.tokens").count_messages_tokens
        self._summariser = summariser
        self._folder = tempfile.TemporaryDirectory()
        config.database_path = str(Path(self._folder.name) / "lcm.db")
        config.fresh_tail_count, config.leaf_chunk_tokens = fresh_messages, leaf_tokens
        config.incremental_max_depth, config.max_assembly_tokens = -1, budget
        self._engine = engine.LCMEngine(config=config)
        self._engine.on_session_start("run")
        self._engine.context_length, self._engine.threshold_tokens = budget, round(_COMPRESSES_FROM * budget)
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": "You are an assistant."}]
        self._counts: dict[int, tuple[dict[str, Any], int]] = {}
        self.tools: list[dict[str, Any]] = self._engine.get_tool_schemas()
        """What its agent is offered with every request."""
        self.tool_tokens = 0
        """Of those, where they are to count: the agent tells it what a whole request took."""

    @staticmethod
    def missing(folder: Path | None) -> str | None:
        """Why it cannot be had, or `None`."""
        if folder is None or not (folder / "engine.py").is_file():
            return "no checked-out source of it was named (--hermes FOLDER)"
        return None

    def add(self, message: BaseMessage, at: float) -> None:  # noqa: ARG002 - the interface
        """See `Party`."""
        [said] = convert_to_openai_messages([message])
        said["content"] = str(message.text)
        self._messages = [*self._messages, said]

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        tokens = self.tool_tokens + sum(self._tokens_of(one) for one in self._messages)
        if tokens > self._engine.threshold_tokens:
            self._messages = self._engine.compress(self._messages, current_tokens=tokens)
        return convert_to_messages([one | {"content": one.get("content") or ""} for one in self._messages])

    def close(self) -> None:
        """See `Party`."""
        self._folder.cleanup()

    def _tokens_of(self, message: dict[str, Any]) -> int:
        """By its own count, each message once."""
        held, tokens = self._counts.get(id(message), (None, 0))
        if held is not message:
            tokens = self._count([message])
            self._counts[id(message)] = (message, tokens)
        return tokens

    def _called(self, *, messages: Sequence[dict[str, str]], **_: Any) -> Any:  # noqa: ANN401 - as its own client answers
        answer = self._summariser.model.invoke([HumanMessage(one["content"]) for one in messages])
        choice = types.SimpleNamespace(message=types.SimpleNamespace(content=str(answer.text)))
        return types.SimpleNamespace(choices=[choice])


def _make_importable(folder: Path) -> None:
    """Give the engine the two modules of its agent that it imports, and itself a name as a package."""
    if "agent.context_engine" in sys.modules:
        return

    class ContextEngine:
        """What the engine expects of its base class."""

        last_prompt_tokens = context_length = threshold_tokens = compression_count = 0

        def on_session_reset(self) -> None:
            """Nothing of its own to reset."""

    agent, base = types.ModuleType("agent"), types.ModuleType("agent.context_engine")
    base.ContextEngine = ContextEngine  # type: ignore[attr-defined] # a stub
    package = types.ModuleType("hermes_lcm")
    package.__path__ = [str(folder)]
    client = types.ModuleType("agent.auxiliary_client")
    sys.modules |= {
        "agent": agent,
        "agent.context_engine": base,
        "agent.auxiliary_client": client,
        "hermes_lcm": package,
    }
    logging.getLogger("hermes_lcm").setLevel(logging.CRITICAL)
