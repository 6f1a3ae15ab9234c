"""Messages are read: by place, by number, by id, by group.

Every statement here is built once: building one takes longer than SQLite takes to answer it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sqlalchemy import Connection, Select, bindparam, func, select

from langchain_tiered_memory.stores import rows
from langchain_tiered_memory.stores.appending import OPEN_HEADS, chunks
from langchain_tiered_memory.stores.schema import digest_of, entries, packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.records import Entry, SessionRef
    from langchain_tiered_memory.stores.database import Database

Filter: TypeAlias = Literal["track", "after", "up_to", "roles", "limit"]
"""What may bound a read of messages; each is the name of its parameter."""

_OF_SESSION = select(*rows.ENTRY_COLUMNS).where(entries.c.session_key == bindparam("session"))
_CONDITIONS = {
    "track": entries.c.track == bindparam("track"),
    "after": entries.c.seq > bindparam("after"),
    "up_to": entries.c.seq <= bindparam("up_to"),
    "roles": entries.c.role.in_(bindparam("roles", expanding=True)),
}
_BY_SEQ = _OF_SESSION.where(entries.c.seq.in_(bindparam("seqs", expanding=True))).order_by(entries.c.seq)
_BY_ID = _OF_SESSION.where(entries.c.id_digest.in_(bindparam("digests", expanding=True)))
_BY_GROUP = _OF_SESSION.where(entries.c.group_seq.in_(bindparam("groups", expanding=True)))
_NUMBERS = select(entries.c.seq, entries.c.id_digest).where(
    entries.c.session_key == bindparam("session"), _CONDITIONS["track"]
)
_WAITING = (
    _OF_SESSION.where(entries.c.waits.is_(True), _CONDITIONS["track"]).order_by(entries.c.seq.desc()).limit(OPEN_HEADS)
)
_PINNED = _OF_SESSION.where(entries.c.pinned.is_(True)).order_by(entries.c.seq)


@cache
def _bounded(filters: frozenset[Filter], *, newest_first: bool) -> Select[Any]:
    query = _OF_SESSION.where(*(_CONDITIONS[name] for name in sorted(filters - {"limit"})))
    query = query.order_by(entries.c.seq.desc() if newest_first else entries.c.seq)
    return query.limit(bindparam("limit")) if "limit" in filters else query


def read_entries(
    connection: Connection,
    ref: SessionRef,
    *,
    track: str | None = None,
    after: int | None = None,
    up_to: int | None = None,
    roles: Sequence[str] | None = None,
    newest_first: bool = False,
    limit: int | None = None,
) -> list[Entry]:
    """As `EntryReads.entries`, in the caller's transaction."""
    given: dict[Filter, Any] = {"after": after, "up_to": up_to, "limit": limit}
    given["track"] = packed(track) if track is not None else None
    given["roles"] = list(roles) if roles is not None else None
    named = {name: value for name, value in given.items() if value is not None}
    return found(connection, ref, _bounded(frozenset(named), newest_first=newest_first), **named)


def read_waiting_heads(connection: Connection, ref: SessionRef, *, track: str) -> list[Entry]:
    """As `EntryReads.waiting_heads`, in the caller's transaction."""
    return found(connection, ref, _WAITING, track=packed(track))


def read_pinned(connection: Connection, ref: SessionRef) -> list[Entry]:
    """As `EntryReads.pinned`, in the caller's transaction."""
    return found(connection, ref, _PINNED)


def found(connection: Connection, ref: SessionRef, query: Select[Any], **named: Any) -> list[Entry]:  # noqa: ANN401 - values of SQL's types
    """What a select of `rows.ENTRY_COLUMNS` finds in a session, with the values of its other parameters."""
    return [rows.entry_of(row) for row in connection.execute(query, {"session": ref.key, **named}).all()]


@dataclass(frozen=True, slots=True)
class EntryReads:
    """Reads messages. Each method is one transaction."""

    database: Database

    def entries(
        self,
        ref: SessionRef,
        *,
        track: str | None = None,
        after: int | None = None,
        up_to: int | None = None,
        roles: Sequence[str] | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> list[Entry]:
        """Messages of a session in their order (or newest first), filtered.

        Args:
            ref: The session.
            track: Only this track.
            after: Only with `seq` above this.
            up_to: Only with `seq` up to this.
            roles: Only these roles.
            newest_first: Turn the order round; `limit` then takes the newest.
            limit: How many at most.
        """
        with self.database.read() as connection:
            return read_entries(
                connection,
                ref,
                track=track,
                after=after,
                up_to=up_to,
                roles=roles,
                newest_first=newest_first,
                limit=limit,
            )

    def by_seq(self, ref: SessionRef, seqs: Sequence[int]) -> list[Entry]:
        """The entries with these numbers, in order; numbers that are not there are left out."""
        with self.database.read() as connection:
            parts = chunks(sorted(set(seqs)))
            return [one for part in parts for one in found(connection, ref, _BY_SEQ, seqs=part)]

    def by_id(self, ref: SessionRef, message_ids: Sequence[str]) -> list[Entry]:
        """The entries of these messages, in order; ids that are not there are left out."""
        with self.database.read() as connection:
            parts = chunks(list(dict.fromkeys(digest_of(one) for one in message_ids)))
            read = [one for part in parts for one in found(connection, ref, _BY_ID, digests=part)]
        return sorted(read, key=lambda one: one.seq)

    def by_prefix(self, ref: SessionRef, message_id: str) -> list[Entry]:
        """The message of that id, else those whose id begins so: two at most. Looks through the session."""
        exact = self.by_id(ref, [message_id])
        if exact or not message_id:
            return exact
        beginning = packed(message_id)
        begins = func.substr(entries.c.message_id, 1, len(beginning)) == beginning  # `LIKE` refuses long patterns
        with self.database.read() as connection:
            return found(connection, ref, _OF_SESSION.where(begins).limit(2))

    def off_branch(self, ref: SessionRef, message_ids: Sequence[str], *, track: str) -> frozenset[int]:
        """`seq`s of a track's messages that are not among these. Reads every number of the track."""
        on_branch = {digest_of(one) for one in message_ids}
        with self.database.read() as connection:
            numbers = connection.execute(_NUMBERS, {"session": ref.key, "track": packed(track)})
            return frozenset(seq for seq, digest in numbers if digest not in on_branch)

    def groups_of(self, ref: SessionRef, group_seqs: Sequence[int]) -> list[Entry]:
        """Every entry of these groups, in order."""
        with self.database.read() as connection:
            parts = chunks(sorted(set(group_seqs)))
            read = [one for part in parts for one in found(connection, ref, _BY_GROUP, groups=part)]
        return sorted(read, key=lambda one: one.seq)

    def waiting_heads(self, ref: SessionRef, *, track: str) -> list[Entry]:
        """Messages with calls that have no result yet, newest first, as many as a late result may still join."""
        with self.database.read() as connection:
            return read_waiting_heads(connection, ref, track=track)

    def pinned(self, ref: SessionRef) -> list[Entry]:
        """Pinned messages, in order."""
        with self.database.read() as connection:
            return read_pinned(connection, ref)
