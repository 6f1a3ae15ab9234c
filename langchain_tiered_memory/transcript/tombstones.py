"""Tombstones of forgotten messages, as keyed digests: no way in brings them back, and nobody reads them off.

A tombstone keeps the number that the message had, who spoke, and four digests of 12 bytes: of its track, of its id, of
its id with its words (one for each revision), and of what was said. They are kept as long as the database. The key is
made with the database and stands in it, so the digests of short words cannot be guessed without the file.

A message is held back where its id was forgotten on its track *with these words*: other words under an old id are new
ones, and ids are unique on a track alone. Whoever knows more, such as a state's list whose old messages stand in front
of the new, or which was handed down from another track, asks for `named` and `said` as well.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Row, RowMapping, and_, func, select, update

from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import damage_in
from langchain_tiered_memory.sql.damage import damage_of
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE, insert_all, insert_if_absent
from langchain_tiered_memory.sql.schema import (
    KEYED_DIGEST_BYTES,
    WORKS,
    digest_of,
    entries,
    forgotten,
    forgotten_sessions,
    packed,
    revisions,
    sessions,
    storable,
    unpacked,
)
from langchain_tiered_memory.transcript.append import chunks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.types.drafts import Incoming

_SAID = ("role", "text", "calls", "answers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """A forgotten message, as much as is kept of it."""

    seq: int
    role: str
    """As of the message, or `works`."""
    said: bytes
    """As `Tombstones.digest_of_said` gives it."""


class Tombstones(Room):
    """Knows forgotten messages again. Each method is one transaction."""

    def named(self, session_id: str, ids: Iterable[str], *, tracks: Collection[str] | None = None) -> frozenset[str]:
        """Those of the ids under which messages were forgotten, whatever they said, on these tracks or on any."""
        by_digest = {_digest(self._key, "id", session_id, one): one for one in ids}
        stones = self._stones(session_id, forgotten.c.id_digest, by_digest, tracks)
        return frozenset(by_digest[as_bytes(one.id_digest)] for one in stones)

    def worded(self, session_id: str, digests: Iterable[tuple[str, str]], *, tracks: Collection[str]) -> frozenset[str]:
        """Those of the ids that were forgotten with these words on one of the tracks: pairs of id and `digest`."""
        by_digest = {_digest(self._key, "words", session_id, *one): one[0] for one in digests}
        ids = {_digest(self._key, "id", session_id, one) for one in by_digest.values()}
        stones = self._stones(session_id, forgotten.c.id_digest, ids, tracks)
        there = {as_bytes(one.words_digest) for one in stones}
        return frozenset(message_id for digest, message_id in by_digest.items() if digest in there)

    def last_named(self, session_id: str, ids: Iterable[str]) -> frozenset[str]:
        """The one of the ids that a session ended with when it was forgotten whole; none where it is not among them."""
        by_digest = {_digest(self._key, "id", session_id, one): one for one in ids}
        with self.database.read() as connection:
            row = _session_row(connection, self._key, session_id)
            if row is None:
                return frozenset()
            mine = and_(forgotten.c.forgotten_session == row["key"], forgotten.c.seq < row["next_seq"])
            query = select(forgotten.c.id_digest).where(mine).order_by(forgotten.c.seq.desc()).limit(1)
            last = as_bytes(connection.scalar(query))
        return frozenset({by_digest[last]} if last in by_digest else ())

    def said(self, session_id: str, said: Iterable[bytes], *, tracks: Collection[str]) -> frozenset[bytes]:
        """Those of these digests that something has which was forgotten on one of the tracks."""
        stones = self._stones(session_id, forgotten.c.said_digest, set(said), tracks)
        return frozenset(as_bytes(one.said_digest) for one in stones)

    def newest(self, session_id: str, *, track: str, limit: int) -> list[Tombstone]:
        """A track's forgotten messages with the highest numbers, highest first."""
        with self.database.read() as connection:
            key = _session_key(connection, self._key, session_id)
            if key is None:
                return []
            mine = and_(
                forgotten.c.forgotten_session == key,
                forgotten.c.track_digest == _digest(self._key, "track", track),
                forgotten.c.said_digest.is_not(None),
            )
            query = select(forgotten).where(mine).order_by(forgotten.c.seq.desc()).limit(limit)
            found = connection.execute(query).mappings().all()
        return [Tombstone(seq=row["seq"], role=row["role"], said=as_bytes(row["said_digest"])) for row in found]

    def digest_of_said(
        self, session_id: str, *, role: str, text: str, calls: Sequence[str], answers: str | None
    ) -> bytes:
        """The digest under which something that was said is known again, whatever id it has."""
        stored_calls = rows.names_to_json(calls) if calls else None
        stored_answers = packed(answers) if answers is not None else None
        return _digest(self._key, "said", session_id, role, storable(text), stored_calls, stored_answers)

    def lift(self, session_id: str, ids: Iterable[str], *, track: str) -> None:
        """Let a track say the words of these ids again under them: for ids that are made from words, and no names."""
        digests = [_digest(self._key, "id", session_id, one) for one in ids]
        with self.database.write() as connection:
            key = _session_key(connection, self._key, session_id)
            for part in chunks(digests) if key is not None else ():
                mine = and_(
                    forgotten.c.forgotten_session == key,
                    forgotten.c.track_digest == _digest(self._key, "track", track),
                    forgotten.c.id_digest.in_(part),
                )
                connection.execute(update(forgotten).where(mine).values(id_digest=None, words_digest=None))

    def checkpointer_of(self, session_id: str) -> str | None:
        """The LangGraph checkpointer that was seen with a session which was forgotten whole."""
        with self.database.read() as connection:
            row = _session_row(connection, self._key, session_id)
            return row["checkpointer"] if row is not None else None

    def threads_deleted(self, session_ids: Sequence[str]) -> None:
        """Say that LangGraph's checkpointer has nothing of these sessions any more."""
        with self.database.write() as connection:
            for part in chunks([digest_of(one) for one in session_ids]):
                connection.execute(update(sessions).where(sessions.c.digest.in_(part)).values(checkpointer=None))
            for part in chunks([_digest(self._key, "session", one) for one in session_ids]):
                mine = forgotten_sessions.c.digest.in_(part)
                connection.execute(update(forgotten_sessions).where(mine).values(checkpointer=None))

    @property
    def _key(self) -> bytes:
        return self.database.forgetting_key

    def _stones(
        self, session_id: str, column: ColumnElement[Any], digests: Collection[bytes], tracks: Collection[str] | None
    ) -> list[Row[Any]]:
        """The tombstones of a session that have one of the digests, of these tracks or of any."""
        if not digests:
            return []
        with self.database.read() as connection:
            key = _session_key(connection, self._key, session_id)
            found = _stones_of(connection, key, column, digests) if key is not None else []
        on = {_digest(self._key, "track", track) for track in tracks or ()}
        return [one for one in found if tracks is None or as_bytes(one.track_digest) in on]


def held_back(connection: Connection, secret: bytes, session: Columns, incoming: Sequence[Incoming]) -> frozenset[int]:
    """Places of messages on their way in that were forgotten on their track with these words; the session is locked.

    One that stands in the session by now, word for word, is none of them: there is nothing to hold back.
    """
    key, session_id = session["forgotten"], unpacked(session["session_id"])
    if key is None or not incoming:
        return frozenset()
    ids = {_digest(secret, "id", session_id, item.draft.id) for item in incoming}
    stones = _stones_of(connection, key, forgotten.c.id_digest, ids)
    words = {(as_bytes(one.words_digest), as_bytes(one.track_digest)) for one in stones}
    places = [
        place
        for place, item in enumerate(incoming)
        if (
            _digest(secret, "words", session_id, item.draft.id, item.draft.digest),
            _digest(secret, "track", item.draft.track),
        )
        in words
    ]
    there: set[tuple[str, str, str]] = set()
    columns = (entries.c.id_digest, entries.c.digest, entries.c.track)
    for part in chunks([digest_of(incoming[place].draft.id) for place in places]):
        mine = and_(entries.c.session_key == session["key"], entries.c.id_digest.in_(part))
        there |= {(row.id_digest, row.digest, row.track) for row in connection.execute(select(*columns).where(mine))}
    drafts = ((place, incoming[place].draft) for place in places)
    return frozenset(place for place, one in drafts if (digest_of(one.id), one.digest, packed(one.track)) not in there)


def known_before(connection: Connection, secret: bytes, session_id: str) -> dict[str, Any]:
    """What a session that was forgotten whole goes on with when it is made anew: numbers are never given again."""
    row = _session_row(connection, secret, session_id)
    if row is None:
        return {}
    values = {name: row[name] for name in ("next_seq", "epoch", "checkpointer")} | {"forgotten": row["key"]}
    for error in damage_in(forgotten_sessions, {name: row[name] for name in ("next_seq", "epoch", "checkpointer")}):
        damage_of(connection).note(error)
        del values[error.column]
    newest = connection.scalar(select(func.max(forgotten.c.seq)).where(forgotten.c.forgotten_session == row["key"]))
    if type(newest) is int:
        values["next_seq"] = max(values.get("next_seq", 1), newest + 1)
    return values


def bury(connection: Connection, secret: bytes, session: RowMapping, which: ColumnElement[bool] | None) -> None:
    """Leave a tombstone for each message that is about to be removed from a locked session.

    `which` says which of its rows in `ltm_entries`; `None`: all, for the session itself goes.
    """
    session_id = unpacked(session["session_id"])
    digest = digest_of_session(secret, session_id)
    connection.execute(insert_if_absent(connection, forgotten_sessions).values(digest=digest))
    key = _session_key(connection, secret, session_id)
    if which is None:
        values = {name: session[name] for name in ("next_seq", "checkpointer")} | {"epoch": session["epoch"] + 1}
        connection.execute(update(forgotten_sessions).where(forgotten_sessions.c.key == key).values(values))
    else:
        connection.execute(update(sessions).where(sessions.c.key == session["key"]).values(forgotten=key))
    after = -1
    while page := _page(connection, session["key"], which, after):
        after = page[-1]["seq"]
        mine = and_(revisions.c.session_key == session["key"], revisions.c.seq.in_([row["seq"] for row in page]))
        former: dict[int, list[tuple[int, str]]] = {}
        for seq, revision, digest in connection.execute(
            select(revisions.c.seq, revisions.c.revision, revisions.c.digest).where(mine)
        ):
            former.setdefault(seq, []).append((revision, digest))
        stones: list[dict[str, Any]] = []
        for row in page:
            name = unpacked(row["message_id"])
            stone = {
                "forgotten_session": key,
                "seq": row["seq"],
                "track_digest": _digest(secret, "track", unpacked(row["track"])),
                "id_digest": _digest(secret, "id", session_id, name),
            }
            # Columns as they are stored: a damaged one must not keep its message from being forgotten.
            said = _digest(secret, "said", session_id, *(row[name] for name in _SAID))
            wordings: list[tuple[int, str, str, bytes | None]] = [
                (row["revision"], row["digest"], WORKS if row["calls"] else row["role"], said)
            ]
            wordings += [(revision, digest, "", None) for revision, digest in former.get(row["seq"], ())]
            stones += [
                stone
                | {"revision": revision, "role": role, "said_digest": said}
                | {"words_digest": _digest(secret, "words", session_id, name, digest)}
                for revision, digest, role, said in wordings
            ]
        insert_all(connection, forgotten, stones)


def _page(
    connection: Connection, session_key: int, which: ColumnElement[bool] | None, after: int
) -> Sequence[RowMapping]:
    columns = ("seq", "revision", "message_id", "track", "digest", *_SAID)
    query = select(*(entries.c[name] for name in columns)).where(
        entries.c.session_key == session_key, entries.c.seq > after
    )
    if which is not None:
        query = query.where(which)
    return connection.execute(query.order_by(entries.c.seq).limit(ROWS_AT_ONCE)).mappings().all()


def _session_row(connection: Connection, secret: bytes, session_id: str) -> RowMapping | None:
    mine = forgotten_sessions.c.digest == digest_of_session(secret, session_id)
    return connection.execute(select(forgotten_sessions).where(mine)).mappings().one_or_none()


def _session_key(connection: Connection, secret: bytes, session_id: str) -> int | None:
    row = _session_row(connection, secret, session_id)
    return row["key"] if row is not None else None


def _stones_of(
    connection: Connection, key: int, column: ColumnElement[Any], digests: Collection[bytes]
) -> list[Row[Any]]:
    names = ("id_digest", "words_digest", "said_digest", "track_digest")
    query = select(*(forgotten.c[name] for name in names)).where(forgotten.c.forgotten_session == key)
    return [row for part in chunks(list(digests)) for row in connection.execute(query.where(column.in_(part)))]


def digest_of_session(secret: bytes, session_id: str) -> bytes:
    """The digest under which a session is known again of which something was forgotten."""
    return _digest(secret, "session", session_id)


def as_bytes(digest: object) -> bytes:
    """A kept digest as bytes; an empty one for what damage put there, which is the digest of nothing."""
    return bytes(digest) if isinstance(digest, bytes | memoryview) else b""


def _digest(secret: bytes, kind: str, *parts: object) -> bytes:
    """A keyed digest; JSON keeps the parts apart, and lone surrogates what they are."""
    said = json.dumps([kind, *parts]).encode("ascii")
    return hashlib.blake2b(said, key=secret, digest_size=KEYED_DIGEST_BYTES).digest()
