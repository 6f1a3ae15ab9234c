"""Who is told of events, the outbox, and what else a reading journey writes if it can.

Events that somebody hears are written with what they tell of: a row is there from the commit that it belongs to until
its event was told; a crash between the two leaves it, and the next open tells it again, under the same id. Where nobody
listens, and no log takes it, an event is owed to nobody, and costs no writes.
Each row is tried a few times and their number is bounded, so that a listener that always raises fills no database.

Plans, zones and outcomes are optional writes, which a read-only or full database may skip. Where the disk is full,
somebody holds the lock or nobody may write, reading goes on: such a write is left out, and that is reported. After one
that failed none is tried for a while, so that a request waits for a lock at most once.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from sqlalchemy import Connection, RowMapping, bindparam, delete, func, insert, or_, select, update

from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.reports import Event
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import from_json
from langchain_tiered_memory.sql.schema import events, sessions, storable, unpacked
from langchain_tiered_memory.text.scrubbing import told
from langchain_tiered_memory.transcript.append import chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.runtime import Runtime

P = ParamSpec("P")
T = TypeVar("T")

_PAUSE_SECONDS = 5.0
"""At least so long after a write failed; and as long as it may have waited for a lock."""


def write_if_possible(
    runtime: Runtime, session_id: str | None, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T | None:
    """Make a write and give its answer; `None` where it cannot be made now."""
    if not may_write(runtime):
        return None
    try:
        return call(*args, **kwargs)
    except StorageError as error:
        note_unwritten(runtime, session_id, error)
        return None


def may_write(runtime: Runtime) -> bool:
    """Whether a derived write is worth a try: not in a memory that only reads, nor just after one failed."""
    database = runtime.store.database
    if database.read_only and database.unwritable_because is None:
        return False
    return runtime.monotonic() >= runtime.view_cache.writes_paused_until


def note_unwritten(runtime: Runtime, session_id: str | None, error: StorageError) -> None:
    """Report that a derived write could not be made, and try none for a while."""
    seconds = max(_PAUSE_SECONDS, runtime.store.database.busy_seconds)
    runtime.view_cache.writes_paused_until = runtime.monotonic() + seconds
    runtime.report(
        EventName.VIEW_NOT_WRITTEN,
        "the read is complete, but what was derived from it could not be stored, and is not tried again for "
        f"{seconds:g} s: {error}",
        session_id=session_id,
        error=type(error).__name__,
    )


MOST_KEPT = 1000
"""Rows; the oldest go first. Far more than one process leaves behind, unless nobody ever hears it out."""
MOST_DELIVERIES = 3
"""Opens that tell an event which nobody took without an error; then it is dropped."""
_ROOM_FOR_ONE = delete(events).where(
    or_(
        events.c.id == bindparam("event"),
        events.c.key <= select(func.max(events.c.key)).scalar_subquery() - bindparam("others"),
    )
)
_WRITTEN_DOWN = insert(events)
_TOLD = delete(events).where(events.c.id.in_(bindparam("ids", expanding=True)))


def write_down(connection: Connection, event: Event | None, session_key: int) -> None:
    """Keep an event until it was told, in the transaction of what it tells of."""
    if event is None:
        return
    # Told again: the later one stands. Of all of them the newest stay, and one more comes.
    connection.execute(_ROOM_FOR_ONE, {"event": event.id, "others": MOST_KEPT - 1})
    connection.execute(
        _WRITTEN_DOWN,
        {
            "id": event.id,
            "session_key": session_key,
            "name": str(event.name),
            "at": event.at,
            "reason": storable(event.reason),
            "details": storable(json.dumps(event.details)),
        },
    )


class Outbox(Room):
    """Reads and confirms events."""

    def left_over(self) -> list[Event]:
        """Events whose telling was not confirmed, oldest first; each call counts as one delivery of them."""
        query = (
            select(events, sessions.c.session_id)
            .join(sessions, sessions.c.key == events.c.session_key)
            .order_by(events.c.key)
        )
        with self.database.read() as connection:
            rows = connection.execute(query).mappings().all()
            found = readable(connection, rows, _event)
        if not rows:
            return []
        with self.database.write() as connection:
            connection.execute(delete(events).where(events.c.deliveries >= MOST_DELIVERIES))
            connection.execute(update(events).values(deliveries=events.c.deliveries + 1))
        return [event for event, deliveries in found if deliveries < MOST_DELIVERIES]

    def confirm(self, ids: Sequence[str]) -> None:
        """These were told."""
        with self.database.write() as connection:
            for part in chunks(list(ids)):
                connection.execute(_TOLD, {"ids": part})


def _event(row: RowMapping) -> tuple[Event, int]:
    """An event that was written down, and how often it was told."""
    check(events, {column.name: row[column.name] for column in events.c})
    event = Event(
        id=row["id"],
        name=row["name"],
        session_id=unpacked(row["session_id"]),
        at=row["at"],
        reason=row["reason"],
        details=from_json(events, row, "details", dict[str, Any]),
    )
    return event, row["deliveries"]


_KNOWN_NAMES = frozenset(str(name) for name in EventName)


def deliver(runtime: Runtime, event: Event, owed: Event | None) -> None:
    """Tell an event; confirm it where a store wrote it down, unless a listener raised: then it comes again."""
    was_heard = runtime.tell(event)
    confirm(runtime, [event.id] if was_heard and owed is not None else [])


def confirm(runtime: Runtime, ids: Sequence[str] = ()) -> None:
    """Confirm these events, and those that a later listener was told. Blocking.

    Where the database cannot take it now, they are told again by the next open.
    """
    heard = [*ids, *runtime.listeners.heard_late()]
    if heard:
        with suppress(StorageError):
            runtime.store.outbox.confirm(heard)


def tell_left_over(runtime: Runtime) -> None:
    """Tell what a process that ended did not get to tell; kept for those who listen from now on. Blocking."""
    with suppress(StorageError):
        for event in runtime.store.outbox.left_over():
            if event.name not in _KNOWN_NAMES:
                continue  # a later version's, or damaged
            runtime.tell(event)
            runtime.listeners.keep(event)


logger = logging.getLogger("langchain_tiered_memory")


class Listeners:
    """Functions that are called with each event, in the thread where it happens."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._listeners: dict[object, Callable[[Event], object]] = {}
        self._kept: list[Event] = []
        self._own: list[Callable[[Event], object]] = []
        self._heard_late: set[str] = set()

    @property
    def are_there(self) -> bool:
        """Whether anybody listens, besides parts of this package."""
        return bool(self._listeners)

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
            key = object()
            self._listeners[key] = listener
            kept = list(self._kept)
        for event in kept:
            if _takes(listener, event):
                with self._lock:
                    self._heard_late.add(event.id)

        def end() -> None:
            with self._lock:
                self._listeners.pop(key, None)

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
