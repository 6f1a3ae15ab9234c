"""Bounds the model calls that condensing makes in any minute."""

from __future__ import annotations

from collections import deque

from langchain_tiered_memory.sql import forks

MINUTE_SECONDS = 60.0


class RateBound:
    """A sliding minute over the moments of calls. Safe for threads.

    Args:
        max_calls: In any minute; `None` for no bound.
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
