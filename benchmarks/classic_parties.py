"""langchain-classic's summary memories as peers. They are deprecated, and still what many applications use."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from langchain_classic.memory import ConversationSummaryBufferMemory, ConversationSummaryMemory
from langchain_classic.memory.prompt import SUMMARY_PROMPT
from langchain_core.messages import AIMessage, BaseMessage

from benchmarks.parties import SLACK_TOKENS, Counting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.summariser import Summariser


class SummaryBuffer:
    """langchain-classic's `ConversationSummaryBufferMemory`: turns are saved in pairs."""

    name = "ConversationSummaryBufferMemory"

    def __init__(self, budget: int, *, counting: Counting, summariser: Summariser, summary_tokens: int) -> None:
        self.fixed_tokens = counting(AIMessage(SUMMARY_PROMPT.format(summary="", new_lines="")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._memory = ConversationSummaryBufferMemory(
                llm=summariser.model,
                max_token_limit=budget - summary_tokens - SLACK_TOKENS,
                return_messages=True,
            )
        self._asked: BaseMessage | None = None

    def add(self, message: BaseMessage, at: float) -> None:  # noqa: ARG002 - the interface
        """See `Party`."""
        if self._asked is None:
            self._asked = message
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._memory.save_context({"input": str(self._asked.text)}, {"output": str(message.text)})
        self._asked = None

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        kept: list[BaseMessage] = list(self._memory.load_memory_variables({})["history"])
        return [*kept, self._asked] if self._asked is not None else kept

    def close(self) -> None:
        """See `Party`."""


class RollingSummary:
    """langchain-classic's `ConversationSummaryMemory`: one summary, written anew after every pair of messages."""

    name = "ConversationSummaryMemory"

    def __init__(self, *, counting: Counting, summariser: Summariser) -> None:
        self.fixed_tokens = counting(AIMessage(SUMMARY_PROMPT.format(summary="", new_lines="")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._memory = ConversationSummaryMemory(llm=summariser.model, return_messages=True)
        self._asked: BaseMessage | None = None

    def add(self, message: BaseMessage, at: float) -> None:  # noqa: ARG002 - the interface
        """See `Party`."""
        if self._asked is None:
            self._asked = message
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._memory.save_context({"input": str(self._asked.text)}, {"output": str(message.text)})
        self._asked = None

    def context(self) -> Sequence[BaseMessage]:
        """See `Party`."""
        kept: list[BaseMessage] = list(self._memory.load_memory_variables({})["history"])
        return [*kept, self._asked] if self._asked is not None else kept

    def close(self) -> None:
        """See `Party`."""
