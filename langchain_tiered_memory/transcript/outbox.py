"""Transactional outbox: events written with what they tell of, until somebody has heard them.

A row is there from the commit that it belongs to until its event was told; a crash between the two leaves it, and the
next open tells it again, under the same id. Each row is tried a few times and their number is bounded, so that a
listener that always raises fills no database.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update

from langchain_tiered_memory.reports import Event
from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import retried
from langchain_tiered_memory.sql.rows import from_json
from langchain_tiered_memory.sql.schema import events, sessions, storable, unpacked
from langchain_tiered_memory.transcript.append import chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.sql.database import Database

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


@retried
@dataclass(frozen=True, slots=True)
class Outbox:
    """Reads and confirms events."""

    database: Database

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
    """An event that was written down, and how often it was told.

    Raises:
        DamagedRowError: when a column cannot be read.
    """
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
