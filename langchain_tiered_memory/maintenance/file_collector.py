"""Tends the files of a run in the background: one daemon thread for one run, from its start to its end.

What is due is decided by the memory's clock and by what the database says was done last, so two processes with a run
each of one session do not collect twice. A forked child starts none: the run is its parent's.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_SECONDS = 5.0
"""How often it looks whether something is due: the shortest time of the default rules is 60 times that."""
_STOP_SECONDS = 10.0
"""How long `stop` waits for the step in hand."""


class FileCollector:
    """Calls `tend`, a bound method that it holds weakly, until it is stopped or the owner of that is gone."""

    def __init__(self, tend: Callable[[], object], *, look_seconds: float = _LOOK_SECONDS) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=_tend_until,
            args=(weakref.WeakMethod(tend), self._stopped, look_seconds),
            name="tiered-memory-files",
            daemon=True,
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the step in hand. Again: nothing."""
        self._stopped.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(_STOP_SECONDS)

    @property
    def is_running(self) -> bool:
        """Whether its thread is alive in this process."""
        return self._thread.is_alive()


def _tend_until(reference: weakref.WeakMethod[Callable[[], object]], stopped: threading.Event, seconds: float) -> None:
    while not stopped.wait(seconds):
        tend = reference()
        if tend is None:
            return
        tend()
        del tend
