"""A vector index that gave no answer in time is left alone: words answer at once, and it is asked again behind them.

A circuit breaker (Nygard, "Release It!", 2007) whose trials cost nobody's question a wait.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import TieredMemoryError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import Runtime

_FIRST_PAUSE_SECONDS = 1.0
"""A server that was stopped for a moment is back in use soon after."""
_LONGEST_PAUSE_SECONDS = 60.0
"""One that is away for long costs a request a minute, and is missed a minute at most."""


class IndexOutage:
    """Whether the index is left alone, and until when. Safe for threads; a forked child goes on with it."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._ask_at: float | None = None
        self._pause = _FIRST_PAUSE_SECONDS

    @property
    def is_on(self) -> bool:
        """Whether the index is left alone."""
        return self._ask_at is not None

    def begin(self, now: float) -> float | None:
        """Leave the index alone. Returns for how many seconds at first; `None` where it was left alone before."""
        with self._lock:
            if self._ask_at is not None:
                return None
            self._pause = _FIRST_PAUSE_SECONDS
            self._ask_at = now + self._pause
            return self._pause

    def is_due(self, now: float) -> bool:
        """Whether it is to be asked again now, by who asks this: the next time is after twice the pause."""
        with self._lock:
            if self._ask_at is None or now < self._ask_at:
                return False
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
            self._ask_at = now + self._pause
            return True

    def end(self) -> bool:
        """It answered. Returns whether it was left alone before."""
        with self._lock:
            was_on = self._ask_at is not None
            self._ask_at = None
            return was_on


def is_left_alone(runtime: Runtime) -> bool:
    """Whether a question is not to wait for the index; where it is time to, it is asked again in the background."""
    outage = runtime.index_outage
    if not outage.is_on:
        return False
    if outage.is_due(runtime.monotonic()):
        threading.Thread(target=_ask, args=(runtime,), name="tiered-memory-index", daemon=True).start()
    return True


def answered(runtime: Runtime) -> None:
    """The index gave an answer: questions go to it again."""
    if runtime.index_outage.end():
        runtime.report(EventName.VECTORS_BACK, "the vector index answers again: search uses it from now on")


def _ask(runtime: Runtime) -> None:
    try:
        index = runtime.open_index()
        if index is not None:
            index.count()
    except TieredMemoryError:  # still silent, or the memory was closed meanwhile
        return
    answered(runtime)
