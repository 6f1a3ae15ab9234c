"""Drives a built-in writer with each of its model calls counted and rate limited.

A job that meets the bound between two of its calls is done again when the minute has passed. What its model answered
until then is kept meanwhile and given again, so that a job of many calls comes to its end under any bound.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_tiered_memory.driver import Flow, ModelCall
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.summaries.writers.jobs import with_spent
from langchain_tiered_memory.types.outcomes import FailureReason
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.summaries.engine.metrics import Tally

T = TypeVar("T")
_MAX_KEPT = 256
"""Answers kept for jobs that wait; the oldest go first, and are asked for again."""

MINUTE_SECONDS = 60.0


class Meter:
    """Of one engine. Safe for threads."""

    def __init__(self, max_calls_per_minute: int | None, tally: Tally) -> None:
        self._most = max_calls_per_minute
        self._rate = RateBound(max_calls_per_minute)
        self._tally = tally
        self._lock = forks.Lock()
        self._kept: dict[str, Any] = {}

    def driven(self, flow: Flow[T], writer: str, now: Callable[[], float]) -> Flow[T]:
        """`flow`, within the bound.

        Raises:
            CondensationError: the flow's own; with `retry_after_seconds` where the bound is reached.
        """
        answers: dict[str, Any] = {}
        answer: Any = None
        error: Exception | None = None
        try:
            while True:
                try:
                    request = flow.throw(error) if error is not None else flow.send(answer)
                except StopIteration as stop:
                    written: T = stop.value
                    return written
                error = None
                try:
                    if isinstance(request, ModelCall):
                        answer = yield from self._called(request, writer, now, answers)
                    else:
                        answer = yield request
                except Exception as raised:  # noqa: BLE001 - handed on to the writer, who decides
                    error = raised
        except CondensationError as failure:
            if failure.retry_after_seconds is None:
                raise
            self._keep(answers)
            # What the answers took is told when they are given again.
            raise with_spent(failure, Spent()) from failure
        finally:
            flow.close()

    def _called(self, request: ModelCall, writer: str, now: Callable[[], float], answers: dict[str, Any]) -> Flow[Any]:
        """The answer to one call: one that is kept, or a new one where the bound leaves room."""
        key = f"{writer}:{_digest(request)}"
        with self._lock:
            answer = self._kept.pop(key, None)
        if answer is None:
            self._count(writer, now())
            answer = yield request
        answers[key] = answer
        return answer

    def _count(self, writer: str, now: float) -> None:
        seconds = self._rate.take(now)
        if not seconds:
            self._tally.add("called", writer)
            return
        message = (
            f"{self._most} model calls were made within a minute: {writer} waits for {seconds:.0f} seconds"
            " (condensation.max_calls_per_minute)"
        )
        raise CondensationError(message, reason=FailureReason.RATE_LIMITED, retry_after_seconds=seconds)

    def _keep(self, answers: dict[str, Any]) -> None:
        with self._lock:
            self._kept |= answers
            while len(self._kept) > _MAX_KEPT:
                del self._kept[next(iter(self._kept))]


def _digest(request: ModelCall) -> str:
    said = json.dumps([[message.type, str(message.text)] for message in request.messages])
    return hashlib.sha256(said.encode("ascii")).hexdigest()


class RateBound:
    """A sliding minute over the moments of calls. Safe for threads.

    `None` is no bound.
    """

    def __init__(self, max_calls: int | None) -> None:
        self._max_calls = max_calls
        self._lock = forks.Lock()
        self._moments: deque[float] = deque()

    def take(self, now: float) -> float:
        """Count a call that is made now and give 0; where there is no room, give the seconds until there is."""
        if self._max_calls is None:
            return 0.0
        with self._lock:
            while self._moments and self._moments[0] <= now - MINUTE_SECONDS:
                self._moments.popleft()
            if self._moments and self._moments[-1] > now:
                # The clock went back: what it calls the future was just now, and counts for a minute from here.
                self._moments = deque(min(moment, now) for moment in self._moments)
            if len(self._moments) >= self._max_calls:
                return max(self._moments[0] + MINUTE_SECONDS - now, 0.001)
            self._moments.append(now)
            return 0.0
