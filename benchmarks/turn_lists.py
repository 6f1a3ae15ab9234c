"""Other ways to bound a context, over a list of a session's messages that is in memory already.

That is how they are used: each reads the list anew for every call. `SummarizationMiddleware` replaces what it has
summarised, so its first call, over the whole list, and the later ones are told apart; after the first the older
messages are gone.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph.message import add_messages
from langmem.short_term import RunningSummary, summarize_messages

from benchmarks.conversations import turns
from benchmarks.turn_steps import BUDGET, Costs
from langchain_tiered_memory.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.messages import BaseMessage

MOST_LISTED = 100_000
"""Messages in a list: more take gigabytes as Python objects."""
KEPT_TOKENS = 2000
"""That `SummarizationMiddleware` keeps when it summarises."""
_TURNS = 5
_LEFT_BY_LANGMEM = 60


def measure_lists(size: int) -> dict[str, Costs]:
    """What a call of each costs with `size` messages in the list."""
    messages: list[BaseMessage] = [turn.message for turn in islice(turns(), size)]
    first, later = _summarising(messages)
    return {
        "trim_messages": _timed(lambda: _trimmed(messages)),
        "langmem summarize_messages": _timed(_langmem(messages)),
        "SummarizationMiddleware, first call": first,
        "SummarizationMiddleware, later calls": later,
    }


def _timed(call: Callable[[], object]) -> Costs:
    costs = Costs()
    for _ in range(_TURNS):
        costs.time(call)
    return costs


def _trimmed(messages: list[BaseMessage]) -> object:
    return trim_messages(
        messages, max_tokens=BUDGET, token_counter=count_tokens_approximately, strategy="last", start_on="human"
    )


def _langmem(messages: list[BaseMessage]) -> Callable[[], object]:
    """With all but the last messages summarised before, so that no call has to summarise."""
    summarised = messages[: max(0, len(messages) - _LEFT_BY_LANGMEM)]
    running = RunningSummary(
        summary="A summary of what was said.",
        summarized_message_ids={str(one.id) for one in summarised},
        last_summarized_message_id=summarised[-1].id if summarised else None,
    )
    model = ScriptedModel()
    return lambda: summarize_messages(messages, running_summary=running, model=model, max_tokens=BUDGET)


def _summarising(messages: list[BaseMessage]) -> tuple[Costs, Costs]:
    """The hook that an agent calls before its model, with the state's list as LangGraph reduces it."""
    middleware: Any = SummarizationMiddleware(
        model=ScriptedModel(),
        trigger=("tokens", BUDGET),
        keep=("tokens", KEPT_TOKENS),
        trim_tokens_to_summarize=BUDGET,
    )
    state: list[Any] = list(messages)
    first, later = Costs(), Costs()

    def call() -> None:
        nonlocal state
        update = middleware.before_model({"messages": state}, None)
        if update is not None:
            state = add_messages(state, update["messages"])  # type: ignore[assignment] # messages in, messages out

    first.time(call)
    for number in range(_TURNS):
        state = [*state, AIMessage(f"Noted, {number}.", id=f"later-{number}")]
        later.time(call)
    return first, later
