"""What every context asks, joined: each method is one transaction of a few statements, however long the session is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, bindparam, func, select

from langchain_tiered_memory.records import SummaryState
from langchain_tiered_memory.stores.entry_reads import EntryReads, read_entries, read_pinned, read_waiting_heads
from langchain_tiered_memory.stores.schema import digest_of, entries, packed, plans, sessions, summaries, unpacked
from langchain_tiered_memory.stores.summary_reads import FINISHED

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.records import Entry, SessionRef

_OF_SESSION = summaries.c.session_key == bindparam("session")
_TOKENS = select(sessions.c.tokens).where(sessions.c.key == bindparam("session"))
_PLAN = select(plans.c.payload).where(
    plans.c.session_key == bindparam("session"), plans.c.name == bindparam("name"), plans.c.epoch == bindparam("epoch")
)
_FIRST_TRACK = select(func.min(entries.c.track)).where(
    entries.c.session_key == bindparam("session"), entries.c.summary_id.is_(None)
)
_NEXT_TRACK = _FIRST_TRACK.where(entries.c.track > bindparam("after"))
_BEGUN = (
    select(summaries.c.track, summaries.c.state)
    .where(_OF_SESSION, summaries.c.level == 1, summaries.c.parent_id.is_(None))
    .order_by(summaries.c.first_seq)
    .limit(bindparam("limit"))
)
_LATER = (
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
    """A plan as it was kept, and the messages that its caller wanted to see with it."""

    plan: str | None
    """`None` where none was made under the session's present epoch."""
    tokens: int
    """Raw tokens of all messages of the session."""
    tail: tuple[Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherTracks:
    """What other tracks said that a view does not stand for."""

    waiting: tuple[str, ...]
    """Tracks with messages that no finished summary stands for."""
    later: tuple[str, ...]
    """Ids of finished level-1 summaries that end behind the view's border, in order."""
    is_cut: bool
    """Whether there may be more than were looked at."""


@dataclass(frozen=True, slots=True)
class ViewReads(EntryReads):
    """Reads what a context is made of."""

    def musts(
        self, ref: SessionRef, *, track: str, off: frozenset[int], opening: int, users: int, newest: int
    ) -> MustEntries:
        """What must be shown of a track.

        Args:
            ref: The session.
            track: Which line of it; pins are those of all.
            off: `seq`s that are not on this branch: as if they were not there.
            opening: How many system messages before the first user message, at most.
            users: How many of the latest user messages.
            newest: How many of the latest messages.
        """
        most = len(off)

        def on(found: list[Entry], count: int | None = None) -> list[Entry]:
            return [entry for entry in found if entry.seq not in off][:count]

        with self.database.read() as connection:
            goal = on(read_entries(connection, ref, track=track, roles=("user",), limit=1 + most), 1)
            before: list[Entry] = []
            if goal and goal[0].seq > 1:
                first_seq = goal[0].seq
                before = read_entries(connection, ref, track=track, roles=("system",), up_to=first_seq, limit=opening)
            asked = read_entries(connection, ref, track=track, roles=("user",), newest_first=True, limit=users + most)
            latest = read_entries(connection, ref, track=track, newest_first=True, limit=newest + most)
            heads = read_waiting_heads(connection, ref, track=track)
            pinned = read_pinned(connection, ref)
        return MustEntries(
            opening=(*on(before), *goal),
            pinned=tuple(on(pinned)),
            users=tuple(reversed(on(asked, users))),
            newest=tuple(reversed(on(latest, newest))),
            waiting=tuple(reversed(on(heads))),
        )

    def kept_view(
        self, ref: SessionRef, name: str, *, track: str, tail: Callable[[str | None, int], tuple[int, int] | None]
    ) -> KeptView:
        """A view's plan, the size of the session, and the newest messages of a track behind a border.

        Args:
            ref: The session.
            name: The view's.
            track: Whose messages.
            tail: Gets the plan and the session's tokens; says behind which `seq`, and how many messages at most, or
                `None` for none. It runs inside the transaction: it decides, and asks nobody.
        """
        with self.database.read() as connection:
            named = {"session": ref.key, "name": digest_of(name), "epoch": ref.epoch}
            plan = connection.scalar(_PLAN, named)
            tokens = int(connection.scalar(_TOKENS, {"session": ref.key}) or 0)
            wanted = tail(plan, tokens)
            found: list[Entry] = []
            if wanted is not None:
                after, limit = wanted
                found = read_entries(connection, ref, track=track, after=after, newest_first=True, limit=limit)
        return KeptView(plan=plan, tokens=tokens, tail=tuple(reversed(found)))

    def other_tracks(self, ref: SessionRef, *, track: str, after: int, tracks: int, limit: int) -> OtherTracks:
        """What is told of other tracks beside the view of one.

        Args:
            ref: The session.
            track: The view's.
            after: The view's border.
            tracks: How many tracks with messages that no summary has taken are named, at most.
            limit: How many summaries are looked at: of those without a higher one the oldest, and as many behind the
                border.
        """
        with self.database.read() as connection:
            waiting = _waiting_tracks(connection, ref, tracks)
            begun = connection.execute(_BEGUN, {"session": ref.key, "limit": limit}).all()
            named = {"session": ref.key, "track": packed(track), "after": after, "limit": limit}
            later = tuple(connection.scalars(_LATER, named))
        unfinished = (one for one, state in begun if one is not None and not SummaryState(state).finished)
        named_once = dict.fromkeys([*waiting, *(unpacked(one) for one in unfinished)])
        return OtherTracks(
            waiting=tuple(one for one in named_once if one != track),
            later=later,
            is_cut=limit in (len(begun), len(later)),
        )


def _waiting_tracks(connection: Connection, ref: SessionRef, most: int) -> list[str]:
    """The first tracks, in the database's own order, that have messages without a summary: one search for each."""
    found: list[str] = []
    query, after = _FIRST_TRACK, dict[str, str]()
    while len(found) < most:
        track = connection.scalar(query, {"session": ref.key, **after})
        if track is None:
            break
        found.append(unpacked(track))
        query, after = _NEXT_TRACK, {"after": track}
    return found
