"""Who is told of events, besides Python's logging."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.reports import Event

logger = logging.getLogger("langchain_tiered_memory")


class Listeners:
    """Functions that are called with each event, in the thread where it happens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[int, Callable[[Event], object]] = {}
        self._next = 0

    def add(self, listener: Callable[[Event], object]) -> Callable[[], None]:
        """Tell `listener` of each event from now on. Returns the function that ends it."""
        with self._lock:
            number = self._next
            self._next += 1
            self._listeners[number] = listener

        def end() -> None:
            with self._lock:
                self._listeners.pop(number, None)

        return end

    def tell(self, event: Event) -> None:
        """Tell everyone. One that raises is logged, and told of the next event again."""
        with self._lock:
            present = list(self._listeners.values())
        for listener in present:
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 - the seam: a listener is the user's, the turn is not
                logger.warning("a listener raised %s at the event %s: %s", type(error).__name__, event.name, error)
