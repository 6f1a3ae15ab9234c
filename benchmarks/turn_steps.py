"""The steps of a turn in long sessions, each timed by the clock and by the processor."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.conversations import turns
from benchmarks.reporting import median, p95
from benchmarks.sessions import SESSION, one_turn, open_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.memory import Session

Place: TypeAlias = tuple[str, int]
"""A database and the number of messages in a session there."""

BUDGET = 8000
STEPS = ("turn", "turn with a question", "add", "context", "context with a question")
_WARM_UP = 4
_FLUSH_EACH = 5  # turns; a background thread would do it
_QUESTIONS = (
    "who looks after the ferry ledger?",
    "what did we decide about the panels for the greenhouse?",
    "where are the notes about the archive?",
    "how much was the budget for the boiler again?",
)


@dataclass(slots=True)
class Costs:
    """Milliseconds of one step, call by call."""

    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    """Of this process alone: what a busy machine does not stretch much."""

    def time(self, call: Callable[[], object]) -> None:
        """Make one call and note what it took."""
        began, worked = time.perf_counter(), time.process_time()
        call()
        self.processor.append(1000 * (time.process_time() - worked))
        self.clock.append(1000 * (time.perf_counter() - began))

    def plus(self, other: Costs) -> Costs:
        """Two steps of the same turns, one after the other."""
        return Costs(
            clock=[mine + theirs for mine, theirs in zip(self.clock, other.clock, strict=True)],
            processor=[mine + theirs for mine, theirs in zip(self.processor, other.processor, strict=True)],
        )

    @property
    def spreads(self) -> dict[str, dict[str, float]]:
        """Median, tail and largest, by the clock and by the processor."""
        return {"clock_ms": spread(self.clock), "processor_ms": spread(self.processor)}


def spread(values: Sequence[float]) -> dict[str, float]:
    """What is told of a list of times."""
    return {"median": median(values), "p95": p95(values), "largest": max(values), "count": len(values)}


def hold_turns(wheres: Mapping[Place, str], count: int) -> dict[Place, dict[str, Costs]]:
    """Hold `count` turns in each session, a turn of each and then the next of each; gives the costs of each step.

    So whatever else the machine does falls on all sessions alike, and their ratios can be read.
    """
    measured: dict[Place, dict[str, Costs]] = {
        place: {step: Costs() for step in ("add", "context", "context with a question")} for place in wheres
    }
    source = turns(seed=3)
    with ExitStack() as opened:
        sessions = {place: opened.enter_context(open_memory(where)).session(SESSION) for place, where in wheres.items()}
        for number in range(_WARM_UP):
            for session in sessions.values():
                one_turn(session, number)
        for number in range(count):
            pair = [turn.message for turn in islice(source, 2)]
            for place in _in_turns(sessions, number):
                _timed_turn(sessions[place], pair, measured[place], number)
    for costs in measured.values():
        costs["turn"] = costs["add"].plus(costs["context"])
        costs["turn with a question"] = costs["add"].plus(costs["context with a question"])
    return measured


def _in_turns(places: Iterable[Place], number: int) -> list[Place]:
    """Forwards and backwards: nobody is always first."""
    listed = list(places)
    return listed if number % 2 else listed[::-1]


def _timed_turn(session: Session, pair: Sequence[BaseMessage], costs: dict[str, Costs], number: int) -> None:
    fresh = [message.model_copy(update={"id": None}) for message in pair]
    question = _QUESTIONS[number % len(_QUESTIONS)]
    costs["add"].time(lambda: session.add_messages(fresh))
    costs["context"].time(lambda: session.context("", max_tokens=BUDGET))
    costs["context with a question"].time(lambda: session.context(question, max_tokens=BUDGET))
    if number % _FLUSH_EACH == _FLUSH_EACH - 1:
        session.flush()
