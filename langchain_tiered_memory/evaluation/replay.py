"""Feeds a conversation to a memory turn by turn, as a chat would, and notes what each step took and what it sent."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage

from langchain_tiered_memory.runs.files.monitor import timing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.conversations import Conversation, Turn
    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.protocols import TokenCounter
    from langchain_tiered_memory.reports import SessionMetrics
    from langchain_tiered_memory.types.contexts import Context
    from langchain_tiered_memory.types.files import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """How long a replay took, and what it sent."""

    conversation: str
    session: str
    messages: int
    sittings: int
    calls: int
    """How often a model would have been called: before each of its messages."""
    budget: int
    sent_tokens: int
    """Tokens of all contexts together."""
    full_tokens: int
    """Tokens that the same calls would have sent with the whole history in each."""
    largest_context: int
    largest_history: int
    """Tokens of the whole history at the last call."""
    adding: Timing
    assembling: Timing
    finishing_seconds: float
    """Seconds to make the summaries and vectors that were still waiting at the end."""
    metrics: SessionMetrics
    last_context: Context | None
    """The context of the last call. `None` if no model is called."""

    @property
    def sent_per_call(self) -> float:
        """Mean tokens of one context."""
        return self.sent_tokens / self.calls if self.calls else 0.0

    @property
    def full_per_call(self) -> float:
        """Mean tokens of the whole history at the time of a call."""
        return self.full_tokens / self.calls if self.calls else 0.0


def calls_a_model(turns: Sequence[Turn]) -> list[bool]:
    """For each turn, whether a model is called after it.

    This is before every message of a model. In a chat without a model, it is after every message.
    """
    by_model = [isinstance(turn.message, AIMessage) for turn in turns]
    return [*by_model[1:], not by_model[-1]] if any(by_model) else [True] * len(turns)


def replay(
    conversation: Conversation,
    session: Session,
    *,
    max_tokens: int,
    counter: TokenCounter,
    on_step: Callable[[], None],
) -> ReplayReport:
    """Add every turn, assemble a context wherever a model would be called, then finish what waits.

    `counter` is the memory's own; it counts the whole history for comparison. `on_step` is called once per turn.

    Raises:
        TieredMemoryError: whatever the memory raises. Turns added before remain.
    """
    adding, assembling = list[float](), list[float]()
    history = longest = sent = full = largest = 0
    context: Context | None = None
    for turn, called in zip(conversation.turns, calls_a_model(conversation.turns), strict=True):
        began = time.perf_counter()
        session.add_messages([turn.message], at=turn.at, kind=turn.kind, task=turn.task)
        adding.append(time.perf_counter() - began)
        history += counter.count_message(turn.message)
        if called:
            began = time.perf_counter()
            context = session.context(max_tokens=max_tokens)
            assembling.append(time.perf_counter() - began)
            sent, full, longest = sent + context.tokens, full + history, history
            largest = max(largest, context.tokens)
        on_step()
    began = time.perf_counter()
    session.flush()
    finishing_seconds = time.perf_counter() - began
    return ReplayReport(
        conversation=conversation.id,
        session=session.session_id,
        messages=len(conversation.turns),
        sittings=len(conversation.sittings),
        calls=len(assembling),
        budget=max_tokens,
        sent_tokens=sent,
        full_tokens=full,
        largest_context=largest,
        largest_history=longest,
        adding=timing_of(len(adding), adding),
        assembling=timing_of(len(assembling), assembling),
        finishing_seconds=finishing_seconds,
        metrics=session.metrics(),
        last_context=context,
    )
