"""The transcript: sessions and their messages. Append-only; an edit keeps the old revision, only `forget` removes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, select, update

from langchain_tiered_memory.drafts import Appended, Incoming
from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.stores import rows
from langchain_tiered_memory.stores.appending import OPEN_HEADS, GroupRule, chunks, rounds_of, write_round
from langchain_tiered_memory.stores.schema import digest_of, entries, packed, revisions, sessions
from langchain_tiered_memory.stores.session_rows import advance_epoch, ensure_session, find_session, lock_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.records import Entry, SessionRef
    from langchain_tiered_memory.stores.database import Database


@dataclass(frozen=True, slots=True)
class Transcript:
    """Reads and writes messages. Each method is one transaction."""

    database: Database
    group_rule: GroupRule
    """Says which group each new message joins; judged inside the transaction that numbers them."""

    def find(self, session_id: str) -> SessionRef | None:
        """The session of that name, or `None` where nothing was written to it yet."""
        with self.database.read() as connection:
            return find_session(connection, session_id)

    def sessions(self, *, user: str | None = None) -> list[SessionRef]:
        """All sessions, or those of one user, oldest first."""
        query = select(sessions).order_by(sessions.c.key)
        if user is not None:
            query = query.where(sessions.c.owner_digest == digest_of(user))
        with self.database.read() as connection:
            return [rows.session_ref(row) for row in connection.execute(query).mappings()]

    def append(
        self,
        session_id: str,
        incoming: Sequence[Incoming],
        *,
        user: str | None,
        title: str | None,
        now: float,
    ) -> Appended:
        """Write messages; ids that exist are taken as the same message (idempotent) or as its edit.

        Raises:
            InvalidInputError: for a track whose name is too long to be looked up by.
            MixedOwnersError: when the session belongs to another user.
            StorageError: when the database cannot take them; none was written then.
        """
        with self.database.write() as connection:
            row = ensure_session(connection, session_id, user=user, title=title, now=now)
            new, revised = 0, list[str]()
            for items in rounds_of(incoming):
                fresh, edits = write_round(connection, row, items, self.group_rule, now=now)
                new, revised = new + fresh, revised + edits
                # Numbers, totals and epoch moved: the next round and the caller see the row as it is now.
                row = connection.execute(select(sessions).where(sessions.c.key == row["key"])).mappings().one()
            return Appended(ref=rows.session_ref(row), new=new, revised=tuple(revised))

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
        query = select(entries).where(entries.c.session_key == ref.key)
        if track is not None:
            query = query.where(entries.c.track == packed(track))
        if after is not None:
            query = query.where(entries.c.seq > after)
        if up_to is not None:
            query = query.where(entries.c.seq <= up_to)
        if roles is not None:
            query = query.where(entries.c.role.in_(list(roles)))
        query = query.order_by(entries.c.seq.desc() if newest_first else entries.c.seq)
        if limit is not None:
            query = query.limit(limit)
        with self.database.read() as connection:
            return [rows.entry(row) for row in connection.execute(query).mappings()]

    def by_seq(self, ref: SessionRef, seqs: Sequence[int]) -> list[Entry]:
        """The entries with these numbers, in order; numbers that are not there are left out."""
        found: list[Entry] = []
        with self.database.read() as connection:
            for part in chunks(sorted(set(seqs))):
                query = select(entries).where(entries.c.session_key == ref.key, entries.c.seq.in_(part))
                found += [rows.entry(row) for row in connection.execute(query.order_by(entries.c.seq)).mappings()]
        return found

    def by_id(self, ref: SessionRef, message_ids: Sequence[str]) -> list[Entry]:
        """The entries of these messages, in order; ids that are not there are left out."""
        found: list[Entry] = []
        with self.database.read() as connection:
            for part in chunks(list(dict.fromkeys(digest_of(one) for one in message_ids))):
                query = select(entries).where(entries.c.session_key == ref.key, entries.c.id_digest.in_(part))
                found += [rows.entry(row) for row in connection.execute(query).mappings()]
        return sorted(found, key=lambda one: one.seq)

    def by_prefix(self, ref: SessionRef, message_id: str) -> list[Entry]:
        """The message of that id, else those whose id begins so: two at most. Looks through the session."""
        exact = self.by_id(ref, [message_id])
        if exact or not message_id:
            return exact
        begins = entries.c.message_id.startswith(packed(message_id), autoescape=True)
        query = select(entries).where(entries.c.session_key == ref.key, begins).limit(2)
        with self.database.read() as connection:
            return [rows.entry(row) for row in connection.execute(query).mappings()]

    def off_branch(self, ref: SessionRef, message_ids: Sequence[str], *, track: str) -> frozenset[int]:
        """`seq`s of a track's messages that are not among these. Reads every number of the track."""
        on_branch = {digest_of(one) for one in message_ids}
        query = select(entries.c.seq, entries.c.id_digest).where(
            entries.c.session_key == ref.key, entries.c.track == packed(track)
        )
        with self.database.read() as connection:
            return frozenset(row.seq for row in connection.execute(query) if row.id_digest not in on_branch)

    def groups_of(self, ref: SessionRef, group_seqs: Sequence[int]) -> list[Entry]:
        """Every entry of these groups, in order."""
        found: list[Entry] = []
        with self.database.read() as connection:
            for part in chunks(sorted(set(group_seqs))):
                query = select(entries).where(entries.c.session_key == ref.key, entries.c.group_seq.in_(part))
                found += [rows.entry(row) for row in connection.execute(query).mappings()]
        return sorted(found, key=lambda one: one.seq)

    def waiting_heads(self, ref: SessionRef, *, track: str) -> list[Entry]:
        """Messages with calls that have no result yet, newest first, as many as a late result may still join."""
        query = (
            select(entries)
            .where(entries.c.session_key == ref.key, entries.c.waits.is_(True), entries.c.track == packed(track))
            .order_by(entries.c.seq.desc())
            .limit(OPEN_HEADS)
        )
        with self.database.read() as connection:
            return [rows.entry(row) for row in connection.execute(query).mappings()]

    def pinned(self, ref: SessionRef) -> list[Entry]:
        """Pinned messages, in order."""
        query = select(entries).where(entries.c.session_key == ref.key, entries.c.pinned.is_(True))
        with self.database.read() as connection:
            return [rows.entry(row) for row in connection.execute(query.order_by(entries.c.seq)).mappings()]

    def set_pin(self, ref: SessionRef, message_id: str, *, pinned: bool) -> None:
        """Pin a message or let it go.

        Raises:
            NotFoundError: when the session has no such message.
        """
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            done = connection.execute(
                update(entries)
                .where(entries.c.session_key == ref.key, entries.c.id_digest == digest_of(message_id))
                .values(pinned=pinned)
            )
            if not done.rowcount:
                msg = f"the session {ref.session_id!r} has no message {message_id!r}"
                raise NotFoundError(msg)
            advance_epoch(connection, ref.key)

    def revisions(self, ref: SessionRef, message_id: str) -> list[str]:
        """Payloads of the earlier revisions of a message, oldest first."""
        query = (
            select(revisions.c.payload)
            .join(entries, and_(entries.c.session_key == revisions.c.session_key, entries.c.seq == revisions.c.seq))
            .where(entries.c.session_key == ref.key, entries.c.id_digest == digest_of(message_id))
            .order_by(revisions.c.revision)
        )
        with self.database.read() as connection:
            return [str(payload) for payload in connection.scalars(query)]

    def totals(self, ref: SessionRef) -> dict[str, Any]:
        """Running figures of a session: `entries`, `tokens`, `passages`, `terms`, `last_at`, `next_seq`."""
        with self.database.read() as connection:
            row = connection.execute(select(sessions).where(sessions.c.key == ref.key)).mappings().one_or_none()
        return dict(row) if row is not None else {}

    def end(self, ref: SessionRef, *, now: float | None) -> None:
        """Mark a session as closed at `now`, or as open again with `None`."""
        with self.database.write() as connection:
            connection.execute(update(sessions).where(sessions.c.key == ref.key).values(ended_at=now))
