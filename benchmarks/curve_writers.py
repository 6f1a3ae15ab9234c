"""The stand-ins for a condensing model, with the time that they take: no party is to pay for it."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from benchmarks.paraphraser import Paraphraser
from benchmarks.summariser import Summariser

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from benchmarks.curve_runs import Run
    from langchain_tiered_memory.protocols import TokenCounter

Writes: TypeAlias = Literal["quotes", "rewords"]
"""What the model does: it quotes the most telling sentences, or says planted facts in other words and forgets some."""
WRITES: tuple[Writes, ...] = ("quotes", "rewords")

_PROFILE = {"max_input_tokens": 128_000, "max_output_tokens": 16_000}
"""What the stand-in tells of itself: a small model of today, as is used for summaries."""
_MOST_TOKENS = 2000
_MOST_SHARE = 0.25
"""Of the window: longest answer where a prompt names no size."""


class _Timed(Summariser):
    """Keeps what it was asked, and what it took."""

    seconds: float = 0.0
    """Of the processor, in all calls together."""

    @cached_property
    def prompts(self) -> list[list[BaseMessage]]:
        """The messages of each of its `calls`."""
        return []

    def _answer(self, messages: Sequence[BaseMessage]) -> str:
        began = time.process_time()
        try:
            answer = super()._answer(messages)
            self.prompts.append(list(messages))
            return answer
        finally:
            self.seconds += time.process_time() - began


class QuotingWriter(_Timed):
    """See `Summariser`."""


class RewordingWriter(_Timed, Paraphraser):
    """See `Paraphraser`."""


def most_tokens(window: int) -> int:
    """The longest answer of a model whose prompt names no size."""
    return min(_MOST_TOKENS, round(_MOST_SHARE * window))


def writer_for(run: Run, window: int, *, counter: TokenCounter, writes: Writes) -> QuotingWriter | RewordingWriter:
    """A new stand-in for one party's run."""
    most = most_tokens(window)
    writer = (
        QuotingWriter(run.talk.messages, counter=counter, most_tokens=most)
        if writes == "quotes"
        else RewordingWriter(run.talk, counter=counter, most_tokens=most)
    )
    writer.model.profile = dict(_PROFILE)
    return writer
