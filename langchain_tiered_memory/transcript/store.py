"""The transcript: sessions and their messages. Append-only; an edit keeps the old revision, only `forget` removes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    update,
)

from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.rows import advance_epoch, ensure_session, lock_session
from langchain_tiered_memory.sql.schema import (
    digest_of,
    entries,
    packed,
    plans,
    revisions,
    sessions,
    summaries,
)
from langchain_tiered_memory.transcript.append import DropFacts, any_known, rounds_of, write_round
from langchain_tiered_memory.transcript.entry_reads import EntryReads, read_named
from langchain_tiered_memory.transcript.tombstones import held_back, known_before
from langchain_tiered_memory.types.drafts import Appended, Follows, Incoming
from langchain_tiered_memory.types.records import DEFAULT_TRACK, SessionRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.sql.database import Database

_OF_SESSION = summaries.c.session_key == bindparam("session")
_PLAN = select(plans.c.payload).where(
    plans.c.session_key == bindparam("session"), plans.c.name == bindparam("name"), plans.c.epoch == bindparam("epoch")
)
_TOKENS_AND_PLAN = select(sessions.c.tokens, _PLAN.scalar_subquery().label("plan")).where(
    sessions.c.key == bindparam("session")
)
_BY_DIGEST = select(sessions).where(sessions.c.digest == bindparam("digest"))
_BY_KEY = select(sessions).where(sessions.c.key == bindparam("session"))
_ON_TRACK = and_(entries.c.session_key == sessions.c.key, entries.c.track == bindparam("track"))
_HEAD = select(
    sessions,
    select(entries.c.message_id).where(_ON_TRACK, entries.c.seq == bindparam("seq")).scalar_subquery().label("named"),
    exists()
    .where(_ON_TRACK, entries.c.id_digest.in_(bindparam("digests", expanding=True)))
    .correlate(sessions)
    .label("has_ids"),
).where(sessions.c.digest == bindparam("digest"))


def _last_seq(connection: Connection, row: Columns) -> int:
    """Number of a session's newest message; -1 where that column is damaged, which is noted."""
    return int(rows.figures_of(connection, {name: row[name] for name in ("key", "next_seq")})["next_seq"]) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackHead:
    """A session, and what whoever writes to one of its tracks asks first."""

    ref: SessionRef
    last_seq: int
    """Number of its newest message, on whatever track; -1 where that is not known."""
    named: str | None
    """Id of the message with the number that was asked for; `None` where the track has none."""
    has_ids: bool
    """Whether the track has one of the ids that were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptView:
    """A plan as it was kept, and the size of its session."""

    plan: str | None
    """`None` where none was made under the session's present epoch."""
    tokens: int
    """Raw tokens of all messages of the session."""


class Transcript(EntryReads):
    """Reads and writes messages. Each method is one transaction."""

    def __init__(self, database: Database, drop_facts: DropFacts) -> None:
        super().__init__(database)
        self.drop_facts = drop_facts
        """Takes the facts that an edited message stated out, inside the transaction that edits it."""

    def find(self, session_id: str) -> SessionRef | None:
        """The session of that name, or `None` where nothing was written to it yet."""
        with self.database.read() as connection:
            row = connection.execute(_BY_DIGEST, {"digest": digest_of(session_id)}).mappings().one_or_none()
        return rows.session_ref(row) if row is not None else None

    def head(self, session_id: str, *, track: str, seq: int, ids: Sequence[str] = ()) -> TrackHead | None:
        """How a session stands: as of `find`, with who is asked for (see `TrackHead`) in the same statement.

        The number and the ids, as many as one `IN (...)` takes, are looked for on the track.
        """
        named = {"track": packed(track), "seq": seq, "digests": [digest_of(one) for one in ids]}
        with self.database.read() as connection:
            row = connection.execute(_HEAD, {"digest": digest_of(session_id), **named}).mappings().one_or_none()
            if row is None:
                return None
            last_seq = _last_seq(connection, row)
        name = rows.unpacked_or_none(row["named"])
        return TrackHead(ref=rows.session_ref(row), last_seq=last_seq, named=name, has_ids=bool(row["has_ids"]))

    def sessions(self, *, user: str | None = None) -> list[SessionRef]:
        """All sessions, or those of one user, oldest first."""
        query = select(sessions).order_by(sessions.c.key)
        if user is not None:
            query = query.where(sessions.c.owner_digest == digest_of(user))
        return self._records(query, rows.session_ref)

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
        joins_task: bool = False,
        follows: Follows | None = None,
    ) -> Appended:
        """Write messages; ids that exist on its track are taken as the same message (idempotent) or its edit.

        Nothing is written when one of `new_ids` exists, nor where the messages, all of one track, are to follow what is
        not there as it was known, or the session has forgotten anything. With `joins_task` those without a task are of
        the one that was started last on their track.

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
            taken = Appended(ref=rows.session_ref(row), new=0, revised=(), is_taken=True)
            if follows is not None and (row["epoch"], row["forgotten"]) != (follows.epoch, None):
                connection.rollback()
                return taken
            left_out = held_back(connection, secret, row, incoming)
            is_forgotten = any(incoming[place].draft.id in new_ids for place in left_out)
            if new_ids and (is_forgotten or any_known(connection, row["key"], incoming, new_ids)):
                return taken
            if left_out and len(left_out) == len(incoming):
                connection.rollback()
                return Appended(ref=rows.session_ref(row), new=0, revised=(), left_out=left_out)
            new, revised, behind = 0, list[str](), _last_seq(connection, row)
            rounds = rounds_of([item for place, item in enumerate(incoming) if place not in left_out])
            for number, items in enumerate(rounds, 1):
                wrote = write_round(
                    connection, row, items, self.drop_facts, now=now, joins_task=joins_task, follows=follows
                )
                if wrote is None:
                    connection.rollback()
                    return taken
                (fresh, edits), follows = wrote, None
                new, revised = new + fresh, revised + edits
                if edits or number < len(rounds):  # numbers, totals and epoch moved
                    row = connection.execute(_BY_KEY, {"session": row["key"]}).mappings().one()
            ref = rows.session_ref(row)
            return Appended(ref=ref, new=new, revised=tuple(revised), left_out=left_out, behind=behind)

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
                tokens = func.coalesce(func.sum(entries.c.tokens), 0).label("tokens")
                counted = select(func.count().label("entries"), tokens).where(*rows.of_track(entries, ref, track))
                return dict(connection.execute(counted).mappings().one())
            row = connection.execute(_BY_KEY, {"session": ref.key}).mappings().one_or_none()
            return rows.figures_of(connection, row) if row is not None else {}

    def end(self, ref: SessionRef, *, now: float | None) -> None:
        """Mark a session as closed at `now`, or as open again with `None`."""
        with self.database.write() as connection:
            connection.execute(update(sessions).where(sessions.c.key == ref.key).values(ended_at=now))

    def kept_view(self, ref: SessionRef, name: str) -> KeptView:
        """A view's plan under the session's present epoch, and the size of the session."""
        with self.database.read() as connection:
            named = {"session": ref.key, "name": digest_of(name), "epoch": ref.epoch}
            row = connection.execute(_TOKENS_AND_PLAN, named).mappings().one_or_none()
            plan = row["plan"] if row is not None else None
            tokens = int(rows.figures_of(connection, row)["tokens"]) if row is not None else 0
        return KeptView(plan=plan, tokens=tokens)

    def count_between(
        self, ref: SessionRef, *, track: str, after: int, before: int, without: Sequence[str], most: int
    ) -> int:
        """How many messages of a track stand between two numbers, up to `most`; those of some summaries not counted."""
        taken = or_(entries.c.summary_id.is_(None), entries.c.summary_id.not_in(list(without)))
        some = select(entries.c.seq).where(
            entries.c.session_key == ref.key,
            entries.c.track == packed(track),
            entries.c.seq > after,
            entries.c.seq < before,
            *([taken] if without else []),
        )
        return self._count(select(func.count()).select_from(some.limit(most).subquery()))
