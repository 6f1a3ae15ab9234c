"""Leaves alone what failed repeatedly, a model or a server (Nygard, "Release It!", 2007)."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_tiered_memory.sql import forks


@dataclass(slots=True)
class Pass:
    """Leave to call once; hand it back with what became of the call."""

    state: int
    """Which of the breaker's states gave it: what a call says that began before is out of date."""
    well: bool = True
    """Whether the call speaks for whom it calls."""


class CircuitBreaker:
    """Closed while all is well; open after so many failures in a row; after a wait half-open, which lets one through.

    A trial that fails opens it for twice as long. One that ends without a word, as in a process that was forked
    meanwhile, is followed by another after the same wait. Safe for threads.
    After `failures` in a row it opens for `seconds` at first, and never for more than `max_seconds`.
    """

    def __init__(self, *, failures: int, seconds: float, max_seconds: float) -> None:
        self._most = failures
        self._first_seconds = seconds
        self._max_seconds = max(seconds, max_seconds)
        self._lock = forks.Lock()
        self._state = 0
        self._in_a_row = 0
        self._waits_since: float | None = None
        self._seconds = seconds

    @property
    def is_open(self) -> bool:
        """Whether it failed, and nobody knows that it works again."""
        return self._waits_since is not None

    def wait_seconds(self, now: float) -> float:
        """Seconds until it lets somebody through; 0 where it does now."""
        with self._lock:
            return self._wait(now)

    def enter(self, now: float) -> Pass | None:
        """Leave to call; `None` while it is open, or half-open with its trial under way."""
        with self._lock:
            if self._wait(now) > 0:
                return None
            if self._waits_since is not None:
                self._waits_since = now
            return Pass(self._state)

    def succeeded(self, given: Pass | None = None) -> bool:
        """The call, or one that needed no leave, went well. Returns whether this closed an open breaker."""
        with self._lock:
            if given is not None and given.state != self._state:
                return False
            was_open = self._waits_since is not None
            self._in_a_row = 0
            if was_open:
                self._move(None)
                self._seconds = self._first_seconds
            return was_open

    def failed(self, given: Pass, now: float, *, wait: float | None = None) -> float | None:
        """The call failed. Returns for how many seconds this opened the breaker; `None` where it did not.

        Whoever was called may have asked for a `wait` in seconds: it opens at once, for so long.
        """
        with self._lock:
            if given.state != self._state:
                return None
            self._in_a_row += 1
            if wait is not None:
                self._seconds = min(wait, self._max_seconds)
            elif self._waits_since is not None:
                self._seconds = min(self._seconds * 2, self._max_seconds)
            elif self._in_a_row < self._most:
                return None
            self._move(now)
            return self._seconds

    def left(self, given: Pass) -> None:
        """The call came to nothing that speaks for or against whom it calls: cancelled, or held back."""
        with self._lock:
            if given.state == self._state and self._waits_since is not None:
                self._waits_since -= self._seconds

    def _move(self, waits_since: float | None) -> None:
        self._state += 1
        self._waits_since = waits_since

    def _wait(self, now: float) -> float:
        if self._waits_since is None:
            return 0.0
        # A clock that went back must not make the wait longer than it is.
        self._waits_since = min(self._waits_since, now)
        return max(self._waits_since + self._seconds - now, 0.0)
