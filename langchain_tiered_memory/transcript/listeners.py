"""Who is told of events, besides Python's logging."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.text.scrubbing import told

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.reports import Event

logger = logging.getLogger("langchain_tiered_memory")


class Listeners:
    """Functions that are called with each event, in the thread where it happens."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._listeners: dict[int, Callable[[Event], object]] = {}
        self._next = 0
        self._kept: list[Event] = []
        self._own: list[Callable[[Event], object]] = []
        self._heard_late: set[str] = set()

    def watch(self, own: Callable[[Event], object]) -> None:
        """Have a part of this package told of each event from now on: it raises nothing, and takes nobody's place."""
        self._own.append(own)

    def keep(self, event: Event) -> None:
        """Keep an event of an earlier process for whoever listens from now on."""
        with self._lock:
            self._kept.append(event)

    def heard_late(self) -> list[str]:
        """Ids of kept events that somebody was told since this was asked last."""
        with self._lock:
            heard, self._heard_late = sorted(self._heard_late), set()
        return heard

    def add(self, listener: Callable[[Event], object]) -> Callable[[], None]:
        """Tell `listener` of what was kept, and of each event from now on. Returns the function that ends it."""
        with self._lock:
            number = self._next
            self._next += 1
            self._listeners[number] = listener
            kept = list(self._kept)
        for event in kept:
            if _takes(listener, event):
                with self._lock:
                    self._heard_late.add(event.id)

        def end() -> None:
            with self._lock:
                self._listeners.pop(number, None)

        return end

    def tell(self, event: Event) -> bool:
        """Tell everyone. One that raises is logged, and told of the next event again.

        Returns:
            Whether none of them raised.
        """
        for own in self._own:
            own(event)
        with self._lock:
            present = list(self._listeners.values())
        taken = [_takes(listener, event) for listener in present]
        return all(taken)


def _takes(listener: Callable[[Event], object], event: Event) -> bool:
    try:
        listener(event)
    except Exception as error:  # noqa: BLE001 - the seam: a listener is the user's, the turn is not
        logger.warning("a listener raised at the event %s: %s", event.name, told(error))
        return False
    return True
