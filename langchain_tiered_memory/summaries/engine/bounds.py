"""Bounds on writers: a rate for model calls, and a circuit breaker for each writer.

A job that meets the rate between two of its calls is done again when the minute has passed. What its model answered
until then is kept meanwhile and given again, so that a job of many calls comes to its end under any bound.

Who failed repeatedly is left alone by a circuit breaker (Nygard, "Release It!", 2007): closed while all is well; open
after so many failures in a row; after a wait half-open, which lets one trial through. A trial that fails opens it for
twice as long.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Pass:
    """Leave to call the writer once; hand it back with what became of the call."""

    state: int
    """Which of the breaker's states gave it: what a call says that began before is out of date."""


class CircuitBreaker:
    """Of one writer. Safe for threads.

    After `failures` in a row it opens for `seconds` at first, and never for more than `max_seconds`.
    """

    def __init__(self, *, failures: int, seconds: float, max_seconds: float) -> None:
        self._most = failures
        self._first_seconds = seconds
        self._max_seconds = max(seconds, max_seconds)
        self._lock = forks.Lock()
        self._state = 0
        self._in_a_row = 0
        self._opened_at: float | None = None
        self._seconds = seconds
        self._on_trial = False

    def wait_seconds(self, now: float) -> float:
        """Seconds until it lets somebody through; 0 where it does now."""
        with self._lock:
            return self._wait(now)

    def enter(self, now: float) -> Pass | None:
        """Leave to call; `None` while it is open, or half-open with its trial under way."""
        with self._lock:
            if self._wait(now) > 0:
                return None
            self._on_trial = self._opened_at is not None
            return Pass(self._state)

    def succeeded(self, given: Pass) -> bool:
        """The call went well. Returns whether this closed an open breaker."""
        with self._lock:
            if given.state != self._state:
                return False
            was_open = self._opened_at is not None
            self._in_a_row = 0
            if was_open:
                self._move(None)
                self._seconds = self._first_seconds
            return was_open

    def failed(self, given: Pass, now: float) -> float | None:
        """The call failed. Returns for how many seconds this opened the breaker; `None` where it did not."""
        with self._lock:
            if given.state != self._state:
                return None
            self._in_a_row += 1
            if self._opened_at is not None:
                self._seconds = min(self._seconds * 2, self._max_seconds)
            elif self._in_a_row < self._most:
                return None
            self._move(now)
            return self._seconds

    def left(self, given: Pass) -> None:
        """The call came to nothing that speaks for or against the writer: cancelled, or held back."""
        with self._lock:
            if given.state == self._state:
                self._on_trial = False

    def _move(self, opened_at: float | None) -> None:
        self._state += 1
        self._opened_at = opened_at
        self._on_trial = False

    def _wait(self, now: float) -> float:
        if self._opened_at is None:
            return 0.0
        self._opened_at = min(self._opened_at, now)  # a clock that went back must not make the wait longer than it is
        left = max(self._opened_at + self._seconds - now, 0.0)
        return self._seconds if self._on_trial and not left else left
