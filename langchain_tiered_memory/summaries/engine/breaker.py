"""Circuit breaker of a writer that failed repeatedly.

The circuit breaker of Nygard ("Release It!", 2007): closed while all is well; open after so many failures in a row;
after a wait half-open, which lets one trial through. A trial that fails opens it for twice as long.
"""

from __future__ import annotations

from dataclasses import dataclass

from langchain_tiered_memory.sql import forks


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
