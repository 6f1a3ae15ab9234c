"""The transcript: sessions and their messages. Append-only; an edit keeps the old revision, only `forget` removes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, select, update

from langchain_tiered_memory.drafts import Appended, Incoming
from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.stores import rows
from langchain_tiered_memory.stores.appending import GroupRule, rounds_of, write_round
from langchain_tiered_memory.stores.schema import digest_of, entries, revisions, sessions
from langchain_tiered_memory.stores.session_rows import advance_epoch, ensure_session, lock_session
from langchain_tiered_memory.stores.view_reads import ViewReads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.records import SessionRef

_BY_DIGEST = select(sessions).where(sessions.c.digest == bindparam("digest"))
_BY_KEY = select(sessions).where(sessions.c.key == bindparam("session"))


@dataclass(frozen=True, slots=True)
class Transcript(ViewReads):
    """Reads and writes messages. Each method is one transaction."""

    group_rule: GroupRule
    """Says which group each new message joins; judged inside the transaction that numbers them."""

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
                row = connection.execute(_BY_KEY, {"session": row["key"]}).mappings().one()
            return Appended(ref=rows.session_ref(row), new=new, revised=tuple(revised))

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
            row = connection.execute(_BY_KEY, {"session": ref.key}).mappings().one_or_none()
        return dict(row) if row is not None else {}

    def end(self, ref: SessionRef, *, now: float | None) -> None:
        """Mark a session as closed at `now`, or as open again with `None`."""
        with self.database.write() as connection:
            connection.execute(update(sessions).where(sessions.c.key == ref.key).values(ended_at=now))
