"""Messages are read: by place, number, id or group; what a context must show of a track; and files that they touched.

Every statement here is built once: building one takes longer than SQLite takes to answer it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from sqlalchemy import (
    Connection,
    Integer,
    Row,
    RowMapping,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    null,
    or_,
    select,
    union_all,
)

from langchain_tiered_memory.errors import DamagedRowError, InvalidInputError
from langchain_tiered_memory.sql import entry_rows
from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import damage_of, readable
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE, of_track
from langchain_tiered_memory.sql.schema import digest_of, entries, files, packed, summaries, unpacked
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.records import FINISHED
from langchain_tiered_memory.types.runs import FileAccess

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from langchain_tiered_memory.types.records import Entry, SessionRef
    from langchain_tiered_memory.types.runs import FileOperation


class Bounds(TypedDict, total=False):
    """What may bound a read of messages; `None` bounds nothing. Each is the name of its parameter in SQL."""

    track: str | None
    after: int | None
    """Only with `seq` above this."""
    up_to: int | None
    roles: Sequence[str] | None
    limit: int | None


_OF_SESSION = select(*entry_rows.ENTRY_COLUMNS).where(entries.c.session_key == bindparam("session"))
_CONDITIONS = {
    "track": entries.c.track == bindparam("track"),
    "after": entries.c.seq > bindparam("after"),
    "up_to": entries.c.seq <= bindparam("up_to"),
    "roles": entries.c.role.in_(bindparam("roles", expanding=True)),
}
_BY_SEQ = _OF_SESSION.where(entries.c.seq.in_(bindparam("seqs", expanding=True))).order_by(entries.c.seq)
_BY_ID = _OF_SESSION.where(entries.c.id_digest.in_(bindparam("digests", expanding=True)))
_BY_ID_ON_TRACK = _BY_ID.where(_CONDITIONS["track"])
_BY_GROUP = _OF_SESSION.where(entries.c.group_seq.in_(bindparam("groups", expanding=True)))
_IN_THE_MAKING = select(summaries.c.id).where(
    summaries.c.session_key == bindparam("session"), summaries.c.level == 1, summaries.c.state.not_in(FINISHED)
)
_NOT_SUMMARISED = (
    _OF_SESSION.where(or_(entries.c.summary_id.is_(None), entries.c.summary_id.in_(_IN_THE_MAKING)))
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
_WAITING = (
    _OF_SESSION.where(entries.c.waits.is_(True), _CONDITIONS["track"])
    .order_by(entries.c.seq.desc())
    .limit(entry_rows.OPEN_HEADS)
)
_KINDS = (
    select(entries.c.seq, entries.c.kind)
    .where(
        entries.c.session_key == bindparam("session"),
        entries.c.kind.is_not(None),
        _CONDITIONS["track"],
        _CONDITIONS["after"],
    )
    .order_by(entries.c.seq)
)
_PINNED = _OF_SESSION.where(entries.c.pinned.is_(True)).order_by(entries.c.seq)


_LOOKED_AT = 2000
"""Newest accesses among which the latest files are found: the cost does not grow with a run."""

_SHOWN = (files.c.path_digest, files.c.path, files.c.seq, files.c.operation, files.c.tool, files.c.at)
_WORKED_ON = (
    select(files.c.seq)
    .where(files.c.session_key == bindparam("session"), files.c.operation.in_(("read", "write")))
    .group_by(files.c.seq)
    .order_by(files.c.seq.desc())
)
"""Numbers of messages whose calls read or wrote a file, newest first."""
_WORKED_ON_TRACK = _WORKED_ON.where(files.c.track == bindparam("track"))


def _part(number: int, query: Select[Any]) -> Select[Any]:
    """The rows of a bounded read, each behind the number of its part."""
    rows = query.subquery()
    return select(
        literal_column(str(number), Integer).label("part"),
        *(rows.c[column.name] for column in entry_rows.ENTRY_COLUMNS),
    )


def _first_or_last(role: str | None, limit: str, *, newest_first: bool) -> Select[Any]:
    on_track = _OF_SESSION.where(_CONDITIONS["track"])
    said = on_track if role is None else on_track.where(entries.c.role == role)
    return said.order_by(entries.c.seq.desc() if newest_first else entries.c.seq).limit(bindparam(limit))


_worked = _WORKED_ON_TRACK.limit(bindparam("worked")).subquery()
_MUSTS = union_all(
    _part(0, _first_or_last("user", "goals", newest_first=False)),
    _part(1, _first_or_last("system", "prompts", newest_first=False)),
    _part(2, _first_or_last("user", "users", newest_first=True)),
    _part(3, _first_or_last(None, "newest", newest_first=True)),
    _part(4, _WAITING),
    _part(5, _PINNED),
    _part(6, _OF_SESSION.where(entries.c.track < bindparam("track")).limit(1)),
    _part(7, _OF_SESSION.where(entries.c.track > bindparam("track")).limit(1)),
    select(literal_column("8", Integer).label("part"), _worked.c.seq, *(null() for _ in entry_rows.ENTRY_COLUMNS[1:])),
)
_PARTS = 9
"""Eight of messages, and the numbers of those that worked on files."""


@cache
def _bounded(filters: frozenset[str], *, newest_first: bool) -> Select[Any]:
    query = _OF_SESSION.where(*(_CONDITIONS[name] for name in sorted(filters - {"limit"})))
    query = query.order_by(entries.c.seq.desc() if newest_first else entries.c.seq)
    return query.limit(bindparam("limit")) if "limit" in filters else query


_VIEWED = union_all(
    _part(0, _bounded(frozenset({"track", "after", "limit"}), newest_first=True)),
    _part(1, _BY_GROUP),
    _part(2, _BY_SEQ),
)


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
                f"the id {message_id!r} is on several tracks of the session {ref.session_id!r} ({tracks}), but not on "
                f"{track!r}: choose one with memory.session({ref.session_id!r}, track=...)"
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
        on_branch = frozenset(message_ids)
        return frozenset(seq for seq, name in self.numbers(ref, track=track) if name not in on_branch)

    def groups_of(self, ref: SessionRef, group_seqs: Sequence[int]) -> list[Entry]:
        """Every entry of these groups, in order."""
        return self._found_by(ref, _BY_GROUP, "groups", sorted(group_seqs))

    def viewed(
        self, ref: SessionRef, *, track: str, after: int, limit: int, groups: Sequence[int], seqs: Sequence[int]
    ) -> tuple[list[Entry], list[Entry], list[Entry]]:
        """What a view shows, in one statement: the newest messages of a track, newest first; groups; some by number.

        Of the groups and of the numbers as many as one `IN (...)` takes.
        """
        few = {"groups": list(groups[:ROWS_AT_ONCE]), "seqs": list(seqs[:ROWS_AT_ONCE])}
        asked = {"session": ref.key, "track": packed(track), "after": after, "limit": limit} | few
        rows: list[list[Any]] = [[], [], []]
        with self.database.read() as connection:
            for part, *row in connection.execute(_VIEWED, asked):
                rows[part].append(row)
            read = partial(entry_or_again, connection)
            newest, of_groups, by_seq = (readable(connection, one, read) for one in rows)
        return sorted(newest, key=lambda one: -one.seq), of_groups, by_seq

    def kinds(self, ref: SessionRef, *, track: str, after: int) -> list[tuple[int, str]]:
        """Number and kind of the messages of a track behind a number that were given a kind, in order."""
        named = {"session": ref.key, "track": packed(track), "after": after}
        with self.database.read() as connection:
            return [(seq, unpacked(kind)) for seq, kind in connection.execute(_KINDS, named)]

    def not_summarised(self, ref: SessionRef, *, limit: int) -> list[Entry]:
        """The newest messages that no finished summary stands for, of all tracks, newest first."""
        with self.database.read() as connection:
            return found(connection, ref, _NOT_SUMMARISED, limit=limit)

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
            parts = [sorted(readable(connection, one, read), key=lambda entry: entry.seq) for one in rows[:-1]]
        *shown, before, behind = parts
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


def _access(row: RowMapping, done: Mapping[FileOperation, Mapping[str, tuple[str, int | None]]]) -> FileAccess:
    check(files, {name: row[name] for name in ("seq", "operation", "at")})
    operation = next((one for one, by in done.items() if row["path_digest"] in by), row["operation"])
    by, seq = done.get(operation, {}).get(row["path_digest"], ("", None))
    return FileAccess(
        path=unpacked(row["path"]),
        operation=operation,
        tool=unpacked(by or row["tool"]),
        seq=row["seq"],
        at=row["at"],
        changed_in=seq if operation == "write" else None,
    )


@cache
def _statements(*, of_track: bool) -> tuple[Select[Any], Select[Any]]:
    """The newest accesses, and on which of some files something was done before them: of a session, or of a track."""
    mine = [files.c.session_key == bindparam("session")]
    if of_track:
        mine.append(files.c.track == bindparam("track"))
    some = files.c.path_digest.in_(bindparam("digests", expanding=True)), files.c.seq < bindparam("before")
    walk = select(*_SHOWN).where(*mine).order_by(files.c.seq.desc()).limit(_LOOKED_AT)
    done = files.c.operation == bindparam("operation")
    return walk, select(files.c.path_digest).where(*mine, done, *some).distinct()


class Files(Room):
    """Reads which files were touched."""

    def latest(
        self,
        ref: SessionRef,
        *,
        track: str | None,
        limit: int,
        but: Collection[tuple[int, str]] = (),
        off: Collection[int] = (),
    ) -> list[FileAccess]:
        """One access for each path, the latest first, of a track or of all; as if those in `but` and `off` were not.

        A file that was not touched within the last 2,000 accesses is not among them; whether one was ever written, or
        read, is known however long ago that was, and by which tool if it was within these.
        """
        walk, once_done = _statements(of_track=track is not None)
        asked: dict[str, Any] = {"session": ref.key} | ({} if track is None else {"track": packed(track)})
        newest: dict[str, RowMapping] = {}
        done: dict[FileOperation, dict[str, tuple[str, int | None]]] = {"write": {}, "read": {}}
        walked, has_older, seq, is_full = 0, True, 0, False
        passed = {(seq, digest_of(path)) for seq, path in but}
        with self.database.read() as connection:
            for row in connection.execute(walk, asked):
                if is_full and row.seq != seq:
                    break
                walked, seq = walked + 1, row.seq
                if seq in off or (seq, row.path_digest) in passed:
                    continue
                if row.path_digest not in newest:
                    is_full = len(newest) == limit
                    if is_full:
                        continue
                    newest[row.path_digest] = row._mapping  # noqa: SLF001 - public, whatever its name says
                if row.operation in done:
                    done[row.operation].setdefault(row.path_digest, (row.tool, row.seq))
            else:
                has_older = walked == _LOOKED_AT
            for operation, by in done.items() if has_older else ():
                left = [one for one in newest if isinstance(one, str) and one not in by and one not in done["write"]]
                for part in chunks(left):
                    named = {"operation": operation, "digests": part, "before": seq}
                    by.update(dict.fromkeys(connection.scalars(once_done, asked | named), ("", None)))
            accesses = readable(connection, newest.values(), lambda one: _access(one, done))
        return sorted(accesses, key=lambda one: (-one.seq, one.path))

    def turns(self, ref: SessionRef, seqs: Collection[int], *, track: str) -> dict[int, int]:
        """For each of these messages how many of the user's there were up to it on a track."""
        if not seqs:
            return {}
        said = and_(entries.c.session_key == ref.key, entries.c.track == packed(track), entries.c.role == "user")
        first = min(seqs)
        before = select(func.count()).select_from(entries).where(said, entries.c.seq <= first)
        since = select(entries.c.seq).where(said, entries.c.seq > first, entries.c.seq <= max(seqs))
        with self.database.read() as connection:
            earlier = int(connection.scalar(before) or 0)
            later = list(connection.scalars(since.order_by(entries.c.seq)))
        return {seq: earlier + bisect_right(later, seq) for seq in seqs}

    def worked_on(self, ref: SessionRef, *, track: str | None, limit: int, before: int | None = None) -> list[int]:
        """`seq`s of the latest messages whose calls read or wrote a file, newest first; of a track or of all."""
        query = _WORKED_ON if track is None else _WORKED_ON_TRACK
        asked = {"session": ref.key} | ({} if track is None else {"track": packed(track)})
        behind = query if before is None else query.where(files.c.seq < before)
        with self.database.read() as connection:
            return [seq for seq in connection.scalars(behind.limit(limit), asked) if isinstance(seq, int)]
