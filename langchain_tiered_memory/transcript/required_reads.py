"""What a context must show of a track, or must not condense, read in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, Select, bindparam, literal_column, null, select, union_all

from langchain_tiered_memory.sql import entry_rows
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.schema import entries, packed
from langchain_tiered_memory.transcript.entry_reads import (
    CONDITIONS,
    OF_SESSION,
    PINNED,
    WAITING,
    EntryReads,
    entry_or_again,
)
from langchain_tiered_memory.transcript.file_store import WORKED_ON

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Entry, SessionRef


def _part(number: int, query: Select[Any]) -> Select[Any]:
    """The rows of a bounded read, each behind the number of its part."""
    rows = query.subquery()
    return select(
        literal_column(str(number), Integer).label("part"),
        *(rows.c[column.name] for column in entry_rows.ENTRY_COLUMNS),
    )


def _first_or_last(role: str | None, limit: str, *, newest_first: bool) -> Select[Any]:
    on_track = OF_SESSION.where(CONDITIONS["track"])
    said = on_track if role is None else on_track.where(entries.c.role == role)
    return said.order_by(entries.c.seq.desc() if newest_first else entries.c.seq).limit(bindparam(limit))


_worked = WORKED_ON.limit(bindparam("worked")).subquery()
_MUSTS = union_all(
    _part(0, _first_or_last("user", "goals", newest_first=False)),
    _part(1, _first_or_last("system", "prompts", newest_first=False)),
    _part(2, _first_or_last("user", "users", newest_first=True)),
    _part(3, _first_or_last(None, "newest", newest_first=True)),
    _part(4, WAITING),
    _part(5, PINNED),
    _part(6, OF_SESSION.where(entries.c.track < bindparam("track")).limit(1)),
    _part(7, OF_SESSION.where(entries.c.track > bindparam("track")).limit(1)),
    select(literal_column("8", Integer).label("part"), _worked.c.seq, *(null() for _ in entry_rows.ENTRY_COLUMNS[1:])),
)
_PARTS = 9
"""Eight of messages, and the numbers of those that worked on files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MustEntries:
    """Messages that a context must show, or must not condense; each part in order."""

    opening: tuple[Entry, ...] = ()
    """System messages that the track began with, and its first user message."""
    pinned: tuple[Entry, ...] = ()
    users: tuple[Entry, ...] = ()
    """The latest user messages."""
    newest: tuple[Entry, ...] = ()
    """The latest messages of any role."""
    waiting: tuple[Entry, ...] = ()
    """Messages with calls that have no result yet: the latest, as many as a late result may still join."""
    has_other_tracks: bool = False
    """Whether the session has messages of other tracks."""
    worked_on: tuple[int, ...] = ()
    """`seq`s of the latest messages that worked on files, newest first."""


class RequiredReads(EntryReads):
    """Reads what must be shown."""

    def required(
        self, ref: SessionRef, *, track: str, off: frozenset[int], opening: int, users: int, newest: int, worked_on: int
    ) -> MustEntries:
        """What must be shown of a track, as if the messages in `off` were not there; pins are those of all tracks.

        At most `opening` system messages before the first user message, `users` of the latest user messages,
        `newest` of the latest, and the numbers of `worked_on` messages.
        """
        most = len(off)
        limits = {"goals": 1 + most, "prompts": opening, "users": users + most, "newest": newest + most}
        asked = {"session": ref.key, "track": packed(track), "worked": worked_on} | limits
        rows: list[list[Any]] = [[] for _ in range(_PARTS)]
        with self.database.read() as connection:
            for part, *row in connection.execute(_MUSTS, asked):
                rows[part].append(row)
            read = partial(entry_or_again, connection)
            found = [sorted(readable(connection, one, read), key=lambda entry: entry.seq) for one in rows[:-1]]
        *shown, before, behind = found
        goals, prompts, asking, latest, waiting, pinned = (
            [one for one in some if one.seq not in off] for some in shown
        )
        return MustEntries(
            opening=(*(one for one in prompts if goals and one.seq < goals[0].seq), *goals[:1]),
            pinned=tuple(pinned),
            users=tuple(asking[-users:] if users else ()),
            newest=tuple(latest[-newest:] if newest else ()),
            waiting=tuple(waiting),
            has_other_tracks=bool(before or behind),
            worked_on=tuple(sorted((seq for seq, *_ in rows[-1] if isinstance(seq, int)), reverse=True)),
        )
