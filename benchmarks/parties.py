"""This memory and its peers behind one small interface: a message is added, a context is asked for.

Each peer is used as its documentation shows, and set up so that what it sends keeps within the budget: a summary may
take a fixed share of it, the rest is for messages.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Literal, Protocol

from langchain.agents.middleware import SummarizationMiddleware
from langchain.agents.middleware.summarization import DEFAULT_SUMMARY_PROMPT
from langchain_core.messages import AIMessage, BaseMessage, trim_messages
from langgraph.graph.message import add_messages
from langmem.short_term import RunningSummary, summarize_messages

from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.models.message_counting import PRIMING_TOKENS
from langchain_tiered_memory.settings import CondensationSettings, Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.embeddings import Embeddings

    from benchmarks.summariser import Summariser
    from langchain_tiered_memory.protocols import TokenCounter

KEEP_SHARE = 0.25
"""Of the budget: messages that stay after a peer has summarised, as this memory keeps them."""
SLACK_TOKENS = 200
"""For the framing of a summary and the user's newest message, where a peer counts neither."""


class Party(Protocol):
    """A way to bound a context."""

    name: str
    fixed_tokens: int
    """Instructions in each of its prompts, in tokens."""

    def add(self, message: BaseMessage, at: float) -> None:
        """The next message of the conversation."""

    def context(self) -> Sequence[BaseMessage]:
        """What would be sent to a model now."""

    def close(self) -> None:
        """Let go of files."""


class Counting:
    """Counts messages, each once."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._known: dict[str, int] = {}

    def __call__(self, messages: Any) -> int:  # noqa: ANN401 - peers pass lists of messages, or one
        """Tokens of messages, or of one."""
        listed = [messages] if isinstance(messages, BaseMessage) else list(messages)
        return sum(self._one(message) for message in listed)

    def request(self, messages: Sequence[BaseMessage]) -> int:
        """Tokens of a whole request."""
        return PRIMING_TOKENS + self(messages)

    def _one(self, message: BaseMessage) -> int:
        key = f"{message.type}:{message.text}:{message.tool_calls if isinstance(message, AIMessage) else ''}"
        if key not in self._known:
            self._known[key] = self._counter.count_message(message)
        return self._known[key]


class OurMemory:
    """This memory; what falls due is condensed after each message, as the background would.

    Args:
        path: Its database.
        budget: In tokens.
        counter: Of tokens.
        summariser: Its condensing model; `None` for the extractive condenser.
        recall: Whether the last user message is looked up; without, a context has no volatile part.
        embeddings: For recall.
        settings: The defaults, if not given, with what falls due made in this thread.
    """

    fixed_tokens = 0  # told apart in its prompts, which are ours

    def __init__(
        self,
        path: Path | None,
        budget: int,
        *,
        counter: TokenCounter,
        summariser: Summariser | None,
        recall: bool = False,
        embeddings: Embeddings | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.name = "this memory, with recall" if recall else "this memory"
        self.memory = TieredMemory.open(
            path,
            model=summariser.model if summariser else None,
            embeddings=embeddings,
            token_counter=counter,
            settings=settings
            or Settings(
                tree=TreeSettings(background=False),
                # Weeks of talk are held here in seconds: bounds of time would have the load of the machine decide.
                condensation=CondensationSettings(max_calls_per_minute=None, foreground_seconds=600),
            ),
        )
        self.session = self.memory.session("benchmark")
        self._budget = budget
        self._query = None if recall else ""

    def add(self, message: BaseMessage, at: float) -> None:
        """See `Party`."""
        self.session.add_messages([message], at=at, wait=True)

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        return self.session.context(self._query, max_tokens=self._budget).messages

    def ask(self, question: str) -> Sequence[BaseMessage]:
        """What would be sent with `question` looked up."""
        return self.session.context(question, max_tokens=self._budget).messages

    def close(self) -> None:
        """See `Party`."""
        self.memory.close()


class WholeHistory:
    """Everything, whatever the budget: the reference."""

    name = "whole history"
    fixed_tokens = 0

    def __init__(self) -> None:
        self._messages: list[BaseMessage] = []

    def add(self, message: BaseMessage, at: float) -> None:  # noqa: ARG002 - the interface
        """See `Party`."""
        self._messages.append(message)

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        return list(self._messages)

    def close(self) -> None:
        """See `Party`."""


class Trimmed(WholeHistory):
    """langchain-core's `trim_messages`: a window that slides with each turn."""

    name = "trim_messages"

    def __init__(self, budget: int, *, counting: Counting, start_on: Sequence[str] = ("human",)) -> None:
        super().__init__()
        self._start_on = start_on
        self._budget = budget - PRIMING_TOKENS
        self._counting = counting

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        kept: list[BaseMessage] = trim_messages(
            self._messages,
            max_tokens=self._budget,
            token_counter=self._counting,
            strategy="last",
            start_on=self._start_on,
            include_system=True,
        )
        return kept


class Middleware:
    """langchain's `SummarizationMiddleware`, through the hook that an agent calls before its model.

    Args:
        budget: In tokens.
        counting: Of tokens.
        summariser: Its model.
        keep: What stays; a quarter of the budget, if not given.
        trim_tokens: All but so many are left out of its prompt; nothing is, if not given.
    """

    name = "SummarizationMiddleware"

    def __init__(
        self,
        budget: int,
        *,
        counting: Counting,
        summariser: Summariser,
        keep: tuple[Literal["messages", "tokens"], int] | None = None,
        trim_tokens: int | None = None,
    ) -> None:
        self.fixed_tokens = counting(AIMessage(DEFAULT_SUMMARY_PROMPT.replace("{messages}", "")))
        self._middleware = SummarizationMiddleware(
            model=summariser.model,
            trigger=("tokens", budget - PRIMING_TOKENS),
            keep=keep or ("tokens", round(KEEP_SHARE * budget)),
            token_counter=counting,
            trim_tokens_to_summarize=trim_tokens,
        )
        self._messages: list[Any] = []
        self._numbers = count()

    def add(self, message: BaseMessage, at: float) -> None:  # noqa: ARG002 - the interface
        """See `Party`."""
        self._messages = add_messages(self._messages, [message])  # type: ignore[assignment] # messages in, messages out

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        update = self._middleware.before_model({"messages": self._messages}, None)  # type: ignore[arg-type] # unused
        if update is not None:
            self._messages = add_messages(self._messages, update["messages"])  # type: ignore[assignment]
        return list(self._messages)

    def close(self) -> None:
        """See `Party`."""


class Langmem:
    """langmem's `summarize_messages` over the whole list, with its running summary kept."""

    name = "langmem summarize_messages"
    fixed_tokens = 30

    def __init__(self, budget: int, *, counting: Counting, summariser: Summariser, summary_tokens: int) -> None:
        self._messages: list[Any] = []
        self._running: RunningSummary | None = None
        self._model = summariser.model
        self._counting = counting
        self._budget = budget
        self._summary_tokens = summary_tokens

    def add(self, message: BaseMessage, at: float) -> None:  # noqa: ARG002 - the interface
        """See `Party`."""
        self._messages.append(message)

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        result = summarize_messages(
            self._messages,
            running_summary=self._running,
            model=self._model,
            max_tokens=self._budget,
            max_tokens_before_summary=self._budget - self._summary_tokens - SLACK_TOKENS,
            max_summary_tokens=self._summary_tokens,
            token_counter=self._counting,
        )
        self._running = result.running_summary or self._running
        return list(result.messages)

    def close(self) -> None:
        """See `Party`."""
