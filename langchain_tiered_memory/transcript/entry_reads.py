"""Messages are read: by place, by number, by id, by group.

Every statement here is built once: building one takes longer than SQLite takes to answer it.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

from sqlalchemy import Connection, Row, Select, bindparam, func, or_, select

from langchain_tiered_memory.errors import DamagedRowError, InvalidInputError
from langchain_tiered_memory.sql import entry_rows
from langchain_tiered_memory.sql.damage import damage_of, readable
from langchain_tiered_memory.sql.entry_rows import ROLES
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import of_track
from langchain_tiered_memory.sql.schema import digest_of, entries, packed, summaries, unpacked
from langchain_tiered_memory.transcript.append import OPEN_HEADS, chunks
from langchain_tiered_memory.transcript.summary_reads import FINISHED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_tiered_memory.types.records import Entry, Role, SessionRef


class Bounds(TypedDict, total=False):
    """What may bound a read of messages; `None` bounds nothing. Each is the name of its parameter in SQL."""

    track: str | None
    after: int | None
    """Only with `seq` above this."""
    up_to: int | None
    roles: Sequence[str] | None
    limit: int | None


OF_SESSION = select(*entry_rows.ENTRY_COLUMNS).where(entries.c.session_key == bindparam("session"))
CONDITIONS = {
    "track": entries.c.track == bindparam("track"),
    "after": entries.c.seq > bindparam("after"),
    "up_to": entries.c.seq <= bindparam("up_to"),
    "roles": entries.c.role.in_(bindparam("roles", expanding=True)),
}
_BY_SEQ = OF_SESSION.where(entries.c.seq.in_(bindparam("seqs", expanding=True))).order_by(entries.c.seq)
_MOMENTS = select(entries.c.seq, entries.c.at, entries.c.role, entries.c.name, entries.c.track).where(
    entries.c.session_key == bindparam("session"), entries.c.seq.in_(bindparam("seqs", expanding=True))
)
_BY_ID = OF_SESSION.where(entries.c.id_digest.in_(bindparam("digests", expanding=True)))
_BY_ID_ON_TRACK = _BY_ID.where(CONDITIONS["track"])
_BY_GROUP = OF_SESSION.where(entries.c.group_seq.in_(bindparam("groups", expanding=True)))
_NUMBERS = select(entries.c.seq, entries.c.id_digest).where(
    entries.c.session_key == bindparam("session"), CONDITIONS["track"]
)
_IN_THE_MAKING = select(summaries.c.id).where(
    summaries.c.session_key == bindparam("session"), summaries.c.level == 1, summaries.c.state.not_in(FINISHED)
)
_NOT_SUMMARISED = (
    OF_SESSION.where(or_(entries.c.summary_id.is_(None), entries.c.summary_id.in_(_IN_THE_MAKING)))
    .order_by(entries.c.seq.desc())
    .limit(bindparam("limit"))
)
_FIRST_TRACK = (
    select(entries.c.track, entries.c.seq)
    .where(entries.c.session_key == bindparam("session"))
    .order_by(entries.c.track, entries.c.seq)
    .limit(1)
)
_NEXT_TRACK = _FIRST_TRACK.where(entries.c.track > bindparam("track"))
WAITING = (
    OF_SESSION.where(entries.c.waits.is_(True), CONDITIONS["track"]).order_by(entries.c.seq.desc()).limit(OPEN_HEADS)
)
_KINDS = (
    select(entries.c.seq, entries.c.kind)
    .where(
        entries.c.session_key == bindparam("session"),
        entries.c.kind.is_not(None),
        CONDITIONS["track"],
        CONDITIONS["after"],
    )
    .order_by(entries.c.seq)
)
PINNED = OF_SESSION.where(entries.c.pinned.is_(True)).order_by(entries.c.seq)


@cache
def _bounded(filters: frozenset[str], *, newest_first: bool) -> Select[Any]:
    query = OF_SESSION.where(*(CONDITIONS[name] for name in sorted(filters - {"limit"})))
    query = query.order_by(entries.c.seq.desc() if newest_first else entries.c.seq)
    return query.limit(bindparam("limit")) if "limit" in filters else query


def read_named(connection: Connection, ref: SessionRef, message_ids: Sequence[str], *, track: str) -> dict[str, Entry]:
    """As `EntryReads.named`, in the caller's transaction."""
    places: dict[str, dict[str, Entry]] = {}
    for part in chunks(list(dict.fromkeys(digest_of(one) for one in message_ids))):
        for entry in found(connection, ref, _BY_ID, digests=part):
            places.setdefault(entry.id, {})[entry.track] = entry
    meant: dict[str, Entry] = {}
    for message_id, there in places.items():
        if track not in there and len(there) > 1:
            tracks = ", ".join(map(repr, sorted(there)))
            msg = (
                f"the id {message_id!r} stands on several tracks of the session {ref.session_id!r} ({tracks}), and not "
                f"on {track!r}: say which with memory.session({ref.session_id!r}, track=...)"
            )
            raise InvalidInputError(msg)
        meant[message_id] = there[track] if track in there else next(iter(there.values()))
    return meant


def found(connection: Connection, ref: SessionRef, query: Select[Any], **named: Any) -> list[Entry]:  # noqa: ANN401 - values of SQL's types
    """What a select of `entry_rows.ENTRY_COLUMNS` finds in a session, with the values of its other parameters."""
    read = connection.execute(query, {"session": ref.key, **named}).all()
    return readable(connection, read, partial(entry_or_again, connection))


def entry_or_again(connection: Connection, row: Row[Any] | Sequence[Any]) -> Entry:
    """A row of `entry_rows.ENTRY_COLUMNS`; where a derived column is damaged, with what its payload gives instead.

    Raises:
        DamagedRowError: where that does not help.
    """
    try:
        return entry_rows.entry_of(row)
    except DamagedRowError as error:
        damage = damage_of(connection)
        again = entry_rows.entry_again(row, damage.reread)
        damage.note(error)
        return again


class Moment(NamedTuple):
    """Who said a message, and when, without what was said."""

    seq: int
    at: float
    role: Role
    name: str | None
    track: str


class EntryReads(Room):
    """Reads messages. Each method is one transaction."""

    def entries(
        self, ref: SessionRef, *, newest_first: bool = False, skip_damaged: bool = True, **bounds: Unpack[Bounds]
    ) -> list[Entry]:
        """Messages of a session in their order, or newest first (`limit` then takes the newest), filtered.

        A message whose row cannot be read is left out, and told of; without `skip_damaged` it is a
        `DamagedRowError`.
        """
        named: dict[str, Any] = {name: value for name, value in bounds.items() if value is not None}
        if "track" in named:
            named["track"] = packed(named["track"])
        if "roles" in named:
            named["roles"] = list(named["roles"])
        query = _bounded(frozenset(named), newest_first=newest_first)
        with self.database.read() as connection:
            if skip_damaged:
                return found(connection, ref, query, **named)
            rows = connection.execute(query, {"session": ref.key, **named})
            return [entry_or_again(connection, row) for row in rows]

    def _found(self, ref: SessionRef, query: Select[Any], **named: Any) -> list[Entry]:  # noqa: ANN401 - as `found`
        with self.database.read() as connection:
            return found(connection, ref, query, **named)

    def _found_by(
        self,
        ref: SessionRef,
        query: Select[Any],
        name: str,
        values: Iterable[Any],
        **named: Any,  # noqa: ANN401
    ) -> list[Entry]:
        """The entries that have one of the values, in order."""
        with self.database.read() as connection:
            parts = ({name: part} for part in chunks(list(dict.fromkeys(values))))
            read = [one for part in parts for one in found(connection, ref, query, **part, **named)]
        return sorted(read, key=lambda one: one.seq)

    def by_seq(self, ref: SessionRef, seqs: Sequence[int]) -> list[Entry]:
        """The entries with these numbers, in order; numbers that are not there are left out."""
        return self._found_by(ref, _BY_SEQ, "seqs", sorted(seqs))

    def moments(self, ref: SessionRef, seqs: Sequence[int]) -> list[Moment]:
        """Who said these entries, and when, in order: a question weighs a thousand and shows a few of them.

        Of one whose row cannot be read so, what `by_seq` makes of it.
        """
        read: list[Moment] = []
        damaged: list[int] = []
        with self.database.read() as connection:
            for part in chunks(sorted(set(seqs))):
                for seq, at, role, name, track in connection.execute(_MOMENTS, {"session": ref.key, "seqs": part}):
                    if isinstance(at, float | int) and role in ROLES:
                        read.append(Moment(seq, at, role, None if name is None else unpacked(name), unpacked(track)))
                    else:
                        damaged.append(seq)
            again = found(connection, ref, _BY_SEQ, seqs=damaged) if damaged else []
        read += [Moment(one.seq, one.at, one.role, one.name, one.track) for one in again]
        return sorted(read)

    def by_id(self, ref: SessionRef, message_ids: Sequence[str], *, track: str | None = None) -> list[Entry]:
        """The entries of these messages, in order, on one track or on each that has them; the missing are left out."""
        query, named = (_BY_ID, {}) if track is None else (_BY_ID_ON_TRACK, {"track": packed(track)})
        return self._found_by(ref, query, "digests", map(digest_of, message_ids), **named)

    def named(self, ref: SessionRef, message_ids: Sequence[str], *, track: str) -> dict[str, Entry]:
        """Which message each id means to who works on a track; ids that are not there are left out.

        It is the track's own message; else that of the one other track that has such an id.

        Raises:
            InvalidInputError: when several other tracks have one of the ids.
        """
        with self.database.read() as connection:
            return read_named(connection, ref, message_ids, track=track)

    def by_prefix(self, ref: SessionRef, message_id: str, *, track: str | None = None) -> list[Entry]:
        """The messages of that id, else those of the ids that begin so: two ids at most. Looks through the session.

        With a `track` no other has a say.
        """
        exact = self.by_id(ref, [message_id], track=track)
        if exact or not message_id:
            return exact
        beginning = packed(message_id)
        begins = func.substr(entries.c.message_id, 1, len(beginning)) == beginning  # `LIKE` refuses long patterns
        with self.database.read() as connection:
            mine = select(entries.c.message_id).where(*of_track(entries, ref, track), begins)
            names = [unpacked(name) for name in connection.scalars(mine.distinct().limit(2))]
        return self.by_id(ref, names, track=track)

    def tracks(self, ref: SessionRef) -> list[str]:
        """Tracks that have messages, in the order in which they began. One search for each."""
        first: dict[str, int] = {}
        with self.database.read() as connection:
            row = connection.execute(_FIRST_TRACK, {"session": ref.key}).one_or_none()
            while row is not None:
                first[unpacked(row.track)] = row.seq
                row = connection.execute(_NEXT_TRACK, {"session": ref.key, "track": row.track}).one_or_none()
        return sorted(first, key=lambda track: first[track])

    def numbers(self, ref: SessionRef, *, track: str, up_to: int | None = None) -> list[tuple[int, str]]:
        """`seq` and id of every message of a track, in order. Reads nothing else of them."""
        query = select(entries.c.seq, entries.c.message_id).where(
            entries.c.session_key == ref.key, entries.c.track == packed(track)
        )
        if up_to is not None:
            query = query.where(entries.c.seq <= up_to)
        with self.database.read() as connection:
            return [(row.seq, unpacked(row.message_id)) for row in connection.execute(query.order_by(entries.c.seq))]

    def off_branch(self, ref: SessionRef, message_ids: Sequence[str], *, track: str) -> frozenset[int]:
        """`seq`s of a track's messages that are not among these. Reads every number of the track."""
        on_branch = {digest_of(one) for one in message_ids}
        with self.database.read() as connection:
            numbers = connection.execute(_NUMBERS, {"session": ref.key, "track": packed(track)})
            return frozenset(seq for seq, digest in numbers if digest not in on_branch)

    def groups_of(self, ref: SessionRef, group_seqs: Sequence[int]) -> list[Entry]:
        """Every entry of these groups, in order."""
        return self._found_by(ref, _BY_GROUP, "groups", sorted(group_seqs))

    def waiting_heads(self, ref: SessionRef, *, track: str) -> list[Entry]:
        """Messages with calls that have no result yet, newest first, as many as a late result may still join."""
        return self._found(ref, WAITING, track=packed(track))

    def kinds(self, ref: SessionRef, *, track: str, after: int) -> list[tuple[int, str]]:
        """Number and kind of the messages of a track behind a number that were given a kind, in order."""
        named = {"session": ref.key, "track": packed(track), "after": after}
        with self.database.read() as connection:
            return [(seq, unpacked(kind)) for seq, kind in connection.execute(_KINDS, named)]

    def not_summarised(self, ref: SessionRef, *, limit: int) -> list[Entry]:
        """The newest messages that no finished summary stands for, of all tracks, newest first."""
        return self._found(ref, _NOT_SUMMARISED, limit=limit)

    def pinned(self, ref: SessionRef) -> list[Entry]:
        """Pinned messages, in order."""
        return self._found(ref, PINNED)
