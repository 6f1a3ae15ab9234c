"""Rows that cannot be read: views go on without them, and somebody is told once the transaction has ended."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_tiered_memory.errors import DamagedRowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy import Connection

    from langchain_tiered_memory.types.drafts import Incoming

Row = TypeVar("Row")
Record = TypeVar("Record")

OPTION = "damage"
"""The execution option under which every connection of a database carries its `Damage`."""


class Damage:
    """What becomes of damage in one database.

    Whoever opens the memory sets `tell` (a person wants to know) and `reread` (a message's derived columns are made
    again from its payload, for the moment). A store on its own has no listeners, and knows no messages.
    """

    def __init__(self) -> None:
        self.tell: Callable[[DamagedRowError], None] = lambda _: None
        self.reread: Callable[[str], Incoming | None] = lambda _: None
        self._noted = threading.local()

    def note(self, error: DamagedRowError) -> None:
        """Have somebody told when the transaction has ended: a listener may want the database for itself."""
        noted = getattr(self._noted, "errors", None)
        if noted is None:
            noted = self._noted.errors = []
        noted.append(error)

    def noted(self) -> list[DamagedRowError]:
        """What was noted in this thread since it was last asked."""
        errors, self._noted.errors = getattr(self._noted, "errors", None) or [], []
        return errors


def damage_of(connection: Connection) -> Damage:
    """What becomes of damage that is found on this connection."""
    found: Damage = connection.get_execution_options()[OPTION]
    return found


def readable(connection: Connection, found: Iterable[Row], read: Callable[[Row], Record]) -> list[Record]:
    """The records of those rows that can be read; the others are noted. Every view skips here."""
    records: list[Record] = []
    for row in found:
        try:
            records.append(read(row))
        except DamagedRowError as error:
            damage_of(connection).note(error)
    return records


def readable_or(connection: Connection, read: Callable[[], Record], otherwise: Any) -> Any:  # noqa: ANN401 - a Record
    """One record, or `otherwise` where its row is damaged, which is noted."""
    try:
        return read()
    except DamagedRowError as error:
        damage_of(connection).note(error)
        return otherwise
