"""The transcript: sessions and their messages. Append-only; an edit keeps the old revision, only `forget` removes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, func, select, update

from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import retried
from langchain_tiered_memory.sql.schema import digest_of, entries, packed, revisions, sessions
from langchain_tiered_memory.sql.session_rows import advance_epoch, ensure_session, lock_session
from langchain_tiered_memory.transcript.append import DropFacts, GroupRule, any_known, rounds_of, write_round
from langchain_tiered_memory.transcript.entry_reads import read_named
from langchain_tiered_memory.transcript.tombstones import held_back, known_before
from langchain_tiered_memory.transcript.view_reads import ViewReads
from langchain_tiered_memory.types.drafts import Appended, Incoming
from langchain_tiered_memory.types.records import DEFAULT_TRACK, SessionRef

if TYPE_CHECKING:
    from collections.abc import Sequence


_BY_DIGEST = select(sessions).where(sessions.c.digest == bindparam("digest"))
_BY_KEY = select(sessions).where(sessions.c.key == bindparam("session"))


@retried
@dataclass(frozen=True, slots=True)
class Transcript(ViewReads):
    """Reads and writes messages. Each method is one transaction."""

    group_rule: GroupRule
    """Says which group each new message joins; judged inside the transaction that numbers them."""
    drop_facts: DropFacts
    """Takes the facts that an edited message stated out, inside the transaction that edits it."""

    def find(self, session_id: str) -> SessionRef | None:
        """The session of that name, or `None` where nothing was written to it yet."""
        with self.database.read() as connection:
            row = connection.execute(_BY_DIGEST, {"digest": digest_of(session_id)}).mappings().one_or_none()
        return rows.session_ref(row) if row is not None else None

    def sessions(self, *, user: str | None = None) -> list[SessionRef]:
        """All sessions, or those of one user, oldest first."""
        query = select(sessions).order_by(sessions.c.key)
        if user is not None:
            query = query.where(sessions.c.owner_digest == digest_of(user))
        with self.database.read() as connection:
            return readable(connection, connection.execute(query).mappings(), rows.session_ref)

    def append(
        self,
        session_id: str,
        incoming: Sequence[Incoming],
        *,
        user: str | None,
        title: str | None,
        now: float,
        begun_by: str | None = None,
        new_ids: frozenset[str] = frozenset(),
        checkpointer: str | None = None,
    ) -> Appended:
        """Write messages; ids that exist on its track are taken as the same message (idempotent) or its edit.

        Nothing is written when one of `new_ids` exists.

        What was forgotten is left out; where nothing is left, a session is not made for it either.

        Raises:
            InvalidInputError: for a track whose name is too long to be looked up by.
            MixedOwnersError: when the session belongs to another user.
            StorageError: when the database cannot take them; none was written then.
        """
        secret = self.database.forgetting_key
        with self.database.write(line=digest_of(session_id)) as connection:
            row = ensure_session(
                connection,
                session_id,
                user=user,
                title=title,
                now=now,
                begun_by=begun_by,
                checkpointer=checkpointer,
                before=lambda: known_before(connection, secret, session_id),
            )
            left_out = held_back(connection, secret, row, incoming)
            is_forgotten = any(incoming[place].draft.id in new_ids for place in left_out)
            if new_ids and (is_forgotten or any_known(connection, row["key"], incoming, new_ids)):
                return Appended(ref=rows.session_ref(row), new=0, revised=(), is_taken=True)
            if left_out and len(left_out) == len(incoming):
                connection.rollback()
                return Appended(ref=rows.session_ref(row), new=0, revised=(), left_out=left_out)
            new, revised = 0, list[str]()
            for items in rounds_of([item for place, item in enumerate(incoming) if place not in left_out]):
                fresh, edits = write_round(connection, row, items, self.group_rule, self.drop_facts, now=now)
                new, revised = new + fresh, revised + edits
                # Numbers, totals and epoch moved: the next round and the caller see the row as it is now.
                row = connection.execute(_BY_KEY, {"session": row["key"]}).mappings().one()
            return Appended(ref=rows.session_ref(row), new=new, revised=tuple(revised), left_out=left_out)

    def set_pin(self, ref: SessionRef, message_id: str, *, pinned: bool, track: str = DEFAULT_TRACK) -> None:
        """Pin a message, as `named` means it, or let it go.

        Raises:
            NotFoundError: when the session has no such message.
            InvalidInputError: when several other tracks have that id.
        """
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            meant = read_named(connection, ref, [message_id], track=track)
            if message_id not in meant:
                msg = f"the session {ref.session_id!r} has no message {message_id!r}"
                raise NotFoundError(msg)
            mine = and_(entries.c.session_key == ref.key, entries.c.seq == meant[message_id].seq)
            connection.execute(update(entries).where(mine).values(pinned=pinned))
            advance_epoch(connection, ref.key)

    def revisions(self, ref: SessionRef, message_id: str, *, track: str = DEFAULT_TRACK) -> list[str]:
        """Payloads of the earlier revisions of a message, as `named` means it, oldest first.

        Raises:
            InvalidInputError: when several other tracks have that id.
        """
        with self.database.read() as connection:
            meant = read_named(connection, ref, [message_id], track=track).get(message_id)
            if meant is None:
                return []
            mine = and_(revisions.c.session_key == ref.key, revisions.c.seq == meant.seq)
            query = select(revisions.c.payload).where(mine).order_by(revisions.c.revision)
            return [str(payload) for payload in connection.scalars(query)]

    def totals(self, ref: SessionRef, *, track: str | None = None) -> dict[str, Any]:
        """Running figures of a session: `entries`, `tokens`, `passages`, `terms`, `last_at`, `next_seq`.

        Of one track alone `entries` and `tokens`, which are counted.
        """
        with self.database.read() as connection:
            if track is not None:
                mine = and_(entries.c.session_key == ref.key, entries.c.track == packed(track))
                counted = select(
                    func.count().label("entries"), func.coalesce(func.sum(entries.c.tokens), 0).label("tokens")
                )
                return dict(connection.execute(counted.where(mine)).mappings().one())
            row = connection.execute(_BY_KEY, {"session": ref.key}).mappings().one_or_none()
            return rows.figures_of(connection, row) if row is not None else {}

    def end(self, ref: SessionRef, *, now: float | None) -> None:
        """Mark a session as closed at `now`, or as open again with `None`."""
        with self.database.write() as connection:
            connection.execute(update(sessions).where(sessions.c.key == ref.key).values(ended_at=now))
