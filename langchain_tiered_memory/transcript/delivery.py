"""At-least-once delivery of events: written with what they stand for, confirmed when delivered."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.events import EventName

if TYPE_CHECKING:
    from langchain_tiered_memory.reports import Event
    from langchain_tiered_memory.runtime import Runtime

_KNOWN = frozenset(str(name) for name in EventName)


def deliver(runtime: Runtime, event: Event) -> None:
    """Tell an event that a store has written down, and confirm it, unless a listener raised: then it comes again."""
    ids = [event.id] if runtime.tell(event) else []
    confirm(runtime, ids)


def confirm(runtime: Runtime, ids: list[str] | None = None) -> None:
    """Confirm these events, and those that a later listener was told. Blocking.

    Where the database cannot take it now, they are told again by the next open.
    """
    heard = [*(ids or []), *runtime.listeners.heard_late()]
    if heard:
        with suppress(StorageError):
            runtime.store.outbox.confirm(heard)


def tell_left_over(runtime: Runtime) -> None:
    """Tell what a process that ended did not get to tell; kept for those who listen from now on. Blocking."""
    with suppress(StorageError):
        for event in runtime.store.outbox.left_over():
            if event.name not in _KNOWN:
                continue  # a later version's, or damaged
            runtime.tell(event)
            runtime.listeners.keep(event)
