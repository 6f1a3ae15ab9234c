"""The transcript: sessions and their messages. Append-only; an edit keeps the old revision, only `forget` removes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, Select, and_, bindparam, func, literal_column, null, or_, select, union_all, update

from langchain_tiered_memory.errors import NotFoundError
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import retried
from langchain_tiered_memory.sql.rows import advance_epoch, ensure_session, figures_of, lock_session
from langchain_tiered_memory.sql.schema import (
    digest_of,
    entries,
    packed,
    plans,
    revisions,
    sessions,
    summaries,
    unpacked,
)
from langchain_tiered_memory.transcript.append import DropFacts, GroupRule, any_known, rounds_of, write_round
from langchain_tiered_memory.transcript.entry_reads import EntryReads, read_named, read_required
from langchain_tiered_memory.transcript.summary_reads import FINISHED
from langchain_tiered_memory.transcript.tombstones import held_back, known_before
from langchain_tiered_memory.types.drafts import Appended, Incoming
from langchain_tiered_memory.types.records import DEFAULT_TRACK, SessionRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Entry

_OF_SESSION = summaries.c.session_key == bindparam("session")
_PLAN = select(plans.c.payload).where(
    plans.c.session_key == bindparam("session"), plans.c.name == bindparam("name"), plans.c.epoch == bindparam("epoch")
)
_TOKENS_AND_PLAN = select(sessions.c.tokens, _PLAN.scalar_subquery().label("plan")).where(
    sessions.c.key == bindparam("session")
)
_WAITING, _BEGUN, _LATER = range(3)
_BY_DIGEST = select(sessions).where(sessions.c.digest == bindparam("digest"))
_BY_KEY = select(sessions).where(sessions.c.key == bindparam("session"))


def _waiting_tracks() -> Select[Any]:
    """The first tracks, in the database's own order, that have messages without a summary: one search for each."""
    waits = and_(entries.c.session_key == bindparam("session"), entries.c.summary_id.is_(None))
    place = literal_column("1", Integer).label("place")
    found = select(func.min(entries.c.track).label("track"), place).where(waits)
    walk = found.cte("waiting", recursive=True)
    following = select(func.min(entries.c.track)).where(waits, entries.c.track > walk.c.track)
    walk = walk.union_all(
        select(following.scalar_subquery(), walk.c.place + 1).where(
            walk.c.track.is_not(None), walk.c.place < bindparam("tracks")
        )
    )
    return select(walk.c.track).where(walk.c.track.is_not(None))


_begun = (
    select(summaries.c.track, summaries.c.state)
    .where(_OF_SESSION, summaries.c.level == 1, summaries.c.parent_id.is_(None))
    .order_by(summaries.c.first_seq)
    .limit(bindparam("limit"))
    .subquery()
)
_later = (
    select(summaries.c.id)
    .where(
        _OF_SESSION,
        summaries.c.level == 1,
        summaries.c.track != bindparam("track"),
        summaries.c.last_seq > bindparam("after"),
        summaries.c.state.in_(FINISHED),
    )
    .order_by(summaries.c.last_seq)
    .limit(bindparam("limit"))
    .subquery()
)
_waiting = _waiting_tracks().subquery()
_OTHER_TRACKS = union_all(
    select(
        literal_column(str(_WAITING), Integer).label("part"), _waiting.c.track.label("named"), null().label("state")
    ),
    select(literal_column(str(_BEGUN), Integer), _begun.c.track, _begun.c.state),
    select(literal_column(str(_LATER), Integer), _later.c.id, null()),
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptView:
    """A plan as it was kept, and the size of its session."""

    plan: str | None
    """`None` where none was made under the session's present epoch."""
    tokens: int
    """Raw tokens of all messages of the session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherTracks:
    """What other tracks said that a view does not stand for."""

    waiting: tuple[str, ...]
    """Tracks with messages that no finished summary stands for."""
    later: tuple[str, ...]
    """Ids of finished level-1 summaries that end behind the view's border, in order."""
    is_cut: bool
    """Whether there may be more than were looked at."""


@retried
@dataclass(frozen=True, slots=True)
class Transcript(EntryReads):
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

    def required(
        self, ref: SessionRef, *, track: str, off: frozenset[int], opening: int, users: int, newest: int
    ) -> MustEntries:
        """What must be shown of a track, as if the messages in `off` were not there; pins are those of all tracks.

        At most `opening` system messages before the first user message, `users` of the latest user messages,
        and `newest` of the latest.
        """
        most = len(off)

        def on(found: list[Entry]) -> list[Entry]:
            return [entry for entry in found if entry.seq not in off]

        with self.database.read() as connection:
            first, prompts, asked, latest, heads, pinned = read_required(
                connection, ref, track=track, goals=1 + most, prompts=opening, users=users + most, newest=newest + most
            )
        goal = on(first)[:1]
        return MustEntries(
            opening=(*(one for one in on(prompts) if goal and one.seq < goal[0].seq), *goal),
            pinned=tuple(on(pinned)),
            users=tuple(on(asked)[-users:] if users else ()),
            newest=tuple(on(latest)[-newest:] if newest else ()),
            waiting=tuple(on(heads)),
        )

    def kept_view(self, ref: SessionRef, name: str) -> KeptView:
        """A view's plan under the session's present epoch, and the size of the session."""
        with self.database.read() as connection:
            named = {"session": ref.key, "name": digest_of(name), "epoch": ref.epoch}
            row = connection.execute(_TOKENS_AND_PLAN, named).mappings().one_or_none()
            plan = row["plan"] if row is not None else None
            tokens = int(figures_of(connection, row)["tokens"]) if row is not None else 0
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
        with self.database.read() as connection:
            return int(connection.scalar(select(func.count()).select_from(some.limit(most).subquery())) or 0)

    def other_tracks(self, ref: SessionRef, *, track: str, after: int, tracks: int, limit: int) -> OtherTracks:
        """What is told of other tracks beside the view of `track` with its border at `after`.

        At most `tracks` with messages that no summary has taken are named. `limit` summaries are looked at: of
        those without a higher one the oldest, and as many behind the border.
        """
        named = {"session": ref.key, "track": packed(track), "after": after, "limit": limit, "tracks": tracks}
        with self.database.read() as connection:
            found = connection.execute(_OTHER_TRACKS, named).all()
        waiting = [name for part, name, _ in found if part == _WAITING]
        begun = [(name, state) for part, name, state in found if part == _BEGUN]
        later = tuple(name for part, name, _ in found if part == _LATER)
        unfinished = (one for one, state in begun if one is not None and state not in FINISHED)
        named_once = dict.fromkeys(unpacked(one) for one in (*waiting, *unfinished))
        return OtherTracks(
            waiting=tuple(one for one in named_once if one != track),
            later=later,
            is_cut=limit in (len(begun), len(later)),
        )
