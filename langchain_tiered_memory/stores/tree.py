"""The summary tree: planned, leased, committed and read, one transaction a method.

What a summary covers is recorded twice: in its own `sources`, and as `summary_id` or `parent_id` of each thing it
covers. The second is reserved when the summary is planned, by an update that only takes what nobody else has; so no
message is ever under two summaries, and two processes can never make the same summary.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, case, func, insert, or_, select, update

from langchain_tiered_memory.drafts import SummaryPlan, WaitingEntry, Written, digest_of_summary
from langchain_tiered_memory.records import SessionRef, Spent, Summary, SummaryState
from langchain_tiered_memory.stores import rows
from langchain_tiered_memory.stores.appending import chunks
from langchain_tiered_memory.stores.index_rows import drop_passages
from langchain_tiered_memory.stores.schema import entries, packed, passages, storable, summaries, unpacked
from langchain_tiered_memory.stores.session_rows import (
    advance_epoch,
    insert_all,
    lock_session,
    lock_session_of_summary,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement

    from langchain_tiered_memory.stores.database import Database

_FINISHED = (SummaryState.ACTIVE, SummaryState.SUPERSEDED, SummaryState.ARCHIVED)
_ROOT = (SummaryState.ACTIVE, SummaryState.ARCHIVED)
_UNFINISHED = (SummaryState.PENDING, SummaryState.GENERATING, SummaryState.FAILED)


@dataclass(frozen=True, slots=True)
class Tree:
    """Reads and writes summaries."""

    database: Database

    # What waits

    def next_waiting_track(self, ref: SessionRef, *, after: str | None) -> str | None:
        """The first track, behind `after` in the database's own order, that has messages without a summary."""
        query = select(func.min(entries.c.track)).where(
            entries.c.session_key == ref.key, entries.c.summary_id.is_(None)
        )
        if after is not None:
            query = query.where(entries.c.track > packed(after))
        with self.database.read() as connection:
            found = connection.scalar(query)
        return unpacked(found) if found is not None else None

    def waiting_entries(self, ref: SessionRef, *, track: str, limit: int) -> list[WaitingEntry]:
        """The oldest messages of a track that no summary has taken."""
        query = (
            select(
                entries.c.seq, entries.c.group_seq, entries.c.tokens, entries.c.at, entries.c.open_calls.is_not(None)
            )
            .where(entries.c.session_key == ref.key, entries.c.summary_id.is_(None), entries.c.track == packed(track))
            .order_by(entries.c.seq)
            .limit(limit)
        )
        with self.database.read() as connection:
            return [
                WaitingEntry(seq=seq, group=group, tokens=tokens, at=at, waits=bool(waits))
                for seq, group, tokens, at, waits in connection.execute(query)
            ]

    def waiting_summaries(self, ref: SessionRef, *, level: int, limit: int) -> list[Summary]:
        """The oldest summaries of a level that no higher one has taken, finished or not."""
        query = (
            select(summaries)
            .where(summaries.c.session_key == ref.key, summaries.c.level == level, summaries.c.parent_id.is_(None))
            .order_by(summaries.c.first_seq)
            .limit(limit)
        )
        return self._read(query)

    def due(self, ref: SessionRef, *, now: float, remake_stale: bool) -> Summary | None:
        """A planned, failed, abandoned, degraded or (if asked) stale summary whose time has come, lowest first."""
        ready = and_(
            summaries.c.retry_at <= now, or_(summaries.c.lease_until.is_(None), summaries.c.lease_until <= now)
        )
        wanted = or_(summaries.c.state.in_(_UNFINISHED), summaries.c.degraded.is_(True))
        if remake_stale:
            wanted = or_(wanted, summaries.c.stale.is_(True))
        query = (
            select(summaries)
            .where(summaries.c.session_key == ref.key, ready, wanted)
            .order_by(summaries.c.level, summaries.c.first_seq)
            .limit(1)
        )
        found = self._read(query)
        return found[0] if found else None

    def unfinished(self, ref: SessionRef | None = None) -> int:
        """Summaries that somebody works on or that wait for another attempt."""
        # Whatever is unfinished has a time for its next attempt: an index of the few rows with one answers.
        query = select(func.count()).where(summaries.c.retry_at.is_not(None), summaries.c.state.in_(_UNFINISHED))
        if ref is not None:
            query = query.where(summaries.c.session_key == ref.key)
        with self.database.read() as connection:
            return int(connection.scalar(query) or 0)

    def due_later(self, ref: SessionRef) -> bool:
        """Whether a summary waits for another attempt, or for a remake."""
        query = select(summaries.c.id).where(summaries.c.session_key == ref.key, summaries.c.retry_at.is_not(None))
        with self.database.read() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def leased_by_others(self, ref: SessionRef, *, owner: str, now: float) -> int:
        """Summaries of a session that somebody else is making right now."""
        query = (
            select(func.count())
            .select_from(summaries)
            .where(
                summaries.c.session_key == ref.key,
                summaries.c.retry_at.is_not(None),
                summaries.c.lease_until > now,
                summaries.c.lease_owner != owner,
            )
        )
        with self.database.read() as connection:
            return int(connection.scalar(query) or 0)

    # The life of a summary

    def claim(
        self, ref: SessionRef, plan: SummaryPlan, *, owner: str, now: float, lease_seconds: float
    ) -> Summary | None:
        """Reserve what a plan covers and lease it to `owner`; `None` when somebody else was first."""
        with self.database.write() as connection:
            values = _reserve(connection, ref, plan) if lock_session(connection, ref.key) is not None else None
            if values is None:
                connection.rollback()
                return None
            values |= {
                "id": plan.id,
                "session_key": ref.key,
                "level": plan.level,
                "track": packed(plan.track) if plan.track is not None else None,
                "state": SummaryState.GENERATING,
                "strategy": plan.strategy,
                "source_digest": "",
                "created_at": now,
                "attempts": 1,
                "lease_owner": owner,
                "lease_until": now + lease_seconds,
                "retry_at": now + lease_seconds,
            }
            connection.execute(insert(summaries).values(values))
            row = connection.execute(select(summaries).where(summaries.c.id == plan.id)).mappings().one()
            return rows.summary(row)

    def lease(self, summary: Summary, *, owner: str, now: float, lease_seconds: float) -> bool:
        """Take over a summary that is due. A finished one keeps its text and state while it is made again.

        `False` when somebody else took it since `summary` was read.
        """
        with self.database.write() as connection:
            lock_session_of_summary(connection, summary.id)
            done = connection.execute(
                update(summaries)
                .where(
                    summaries.c.id == summary.id,
                    # Whoever leases counts an attempt: a copy from before that is out of date.
                    summaries.c.attempts == summary.attempts,
                    or_(summaries.c.lease_until.is_(None), summaries.c.lease_until <= now),
                )
                .values(
                    state=_unless_finished(SummaryState.GENERATING),
                    touched=False,
                    attempts=summaries.c.attempts + 1,
                    lease_owner=owner,
                    lease_until=now + lease_seconds,
                    retry_at=now + lease_seconds,
                )
            )
            return done.rowcount == 1

    def commit(self, ref: SessionRef, summary: Summary, written: Written, *, owner: str, now: float) -> bool:
        """Make a leased summary count, with its index rows, in one step; `False` when the lease was lost."""
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            mine = (summaries.c.id == summary.id, summaries.c.session_key == ref.key, summaries.c.lease_owner == owner)
            row = connection.execute(select(summaries).where(*mine)).mappings().one_or_none()
            if row is None:
                return False
            finished, touched = SummaryState(row["state"]).finished, bool(row["touched"])
            text = storable(written.text)
            facts = [dataclasses.replace(fact, text=storable(fact.text)) for fact in written.facts]
            connection.execute(
                update(summaries)
                .where(summaries.c.id == summary.id)
                .values(
                    state=row["state"] if finished else SummaryState.ACTIVE,
                    text=text,
                    text_digest=digest_of_summary(text, facts),
                    facts=rows.facts_to_json(facts),
                    tokens=written.tokens,
                    degraded=written.degraded,
                    # Whoever edited a source while this was written touched it: the text is out of date already.
                    stale=touched,
                    touched=False,
                    error=storable(written.error) if written.error is not None else None,
                    model=storable(written.model),
                    source_digest=written.source_digest,
                    kept_identifiers=written.kept_identifiers,
                    calls=summaries.c.calls + written.spent.calls,
                    input_tokens=summaries.c.input_tokens + written.spent.input_tokens,
                    output_tokens=summaries.c.output_tokens + written.spent.output_tokens,
                    seconds=summaries.c.seconds + written.spent.seconds,
                    created_at=now,
                    lease_owner=None,
                    lease_until=None,
                    retry_at=now if touched else (written.retry_at if written.degraded else None),
                )
            )
            if summary.level > 1:
                _supersede(connection, summary.id)
            if finished:
                # Its words changed where they already stand in a view: the levels above were made from the old ones.
                advance_epoch(connection, ref.key)
                if row["parent_id"] is not None:
                    connection.execute(
                        update(summaries)
                        .where(summaries.c.id == row["parent_id"])
                        .values(stale=True, touched=True, retry_at=now)
                    )
            if summary.level == 1 and not finished and _comes_late(connection, ref, summary):
                advance_epoch(connection, ref.key)
            _index_summary(connection, ref, summary, written)
            return True

    def fail(self, summary: Summary, *, owner: str, error: str, retry_at: float, spent: Spent) -> None:
        """Give a lease back after an attempt that failed. A finished summary keeps its text."""
        with self.database.write() as connection:
            lock_session_of_summary(connection, summary.id)
            connection.execute(
                update(summaries)
                .where(summaries.c.id == summary.id, summaries.c.lease_owner == owner)
                .values(
                    state=_unless_finished(SummaryState.FAILED),
                    error=storable(error),
                    retry_at=retry_at,
                    lease_owner=None,
                    lease_until=None,
                    calls=summaries.c.calls + spent.calls,
                    input_tokens=summaries.c.input_tokens + spent.input_tokens,
                    output_tokens=summaries.c.output_tokens + spent.output_tokens,
                    seconds=summaries.c.seconds + spent.seconds,
                )
            )

    def release(self, *, owner: str, now: float) -> None:
        """Give back every lease of an owner that ends: others need not wait until they run out."""
        with self.database.write() as connection:
            connection.execute(
                update(summaries)
                .where(summaries.c.lease_owner == owner)
                .values(lease_owner=None, lease_until=None, retry_at=now)
            )

    def archive(self, ref: SessionRef) -> None:
        """The session was closed: its highest summaries are archived."""
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            connection.execute(
                update(summaries)
                .where(summaries.c.session_key == ref.key, summaries.c.state == SummaryState.ACTIVE)
                .values(state=SummaryState.ARCHIVED)
            )

    # Reading

    def roots(self, ref: SessionRef, *, limit: int) -> list[Summary]:
        """Finished summaries that no finished one covers, in order; the newest `limit` of them."""
        query = (
            select(summaries)
            .where(summaries.c.session_key == ref.key, summaries.c.state.in_(_ROOT))
            .order_by(summaries.c.last_seq.desc())
            .limit(limit)
        )
        return sorted(self._read(query), key=lambda one: (one.first_seq, one.last_seq))

    def children(self, summary_ids: Sequence[str]) -> dict[str, list[Summary]]:
        """The finished summaries right below each of these, in order."""
        found: dict[str, list[Summary]] = {one: [] for one in summary_ids}
        for part in chunks(list(found)):
            query = select(summaries).where(summaries.c.parent_id.in_(part), summaries.c.state.in_(_FINISHED))
            for summary in sorted(self._read(query), key=lambda one: (one.first_seq, one.last_seq)):
                found[summary.parent_id or ""].append(summary)
        return found

    def by_id(self, ref: SessionRef, summary_ids: Sequence[str]) -> list[Summary]:
        """These summaries of the session, in the order asked for; what is not there is left out."""
        found: dict[str, Summary] = {}
        ids = list(dict.fromkeys(summary_ids))
        for part in chunks(ids):
            query = select(summaries).where(summaries.c.session_key == ref.key, summaries.c.id.in_(part))
            found |= {summary.id: summary for summary in self._read(query)}
        return [found[one] for one in ids if one in found]

    def by_prefix(self, ref: SessionRef, summary_id: str) -> list[Summary]:
        """The summary whose id begins so: views show the first characters. Several where those are too few."""
        safe = "".join(one for one in summary_id if one.isalnum())
        if not safe:
            return []
        query = select(summaries).where(
            summaries.c.session_key == ref.key, summaries.c.id.like(f"{safe}%"), summaries.c.state.in_(_FINISHED)
        )
        return self._read(query.limit(2))

    def height(self, ref: SessionRef) -> int:
        """Levels there are, messages included: 1 for a session without summaries."""
        query = select(func.max(summaries.c.level)).where(summaries.c.session_key == ref.key)
        with self.database.read() as connection:
            return int(connection.scalar(query) or 0) + 1

    def all(self, ref: SessionRef) -> list[Summary]:
        """Every summary of a session, by level and place. For inspection: grows with the session."""
        query = select(summaries).where(summaries.c.session_key == ref.key)
        return self._read(query.order_by(summaries.c.level, summaries.c.first_seq))

    def borders(self, ref: SessionRef, *, track: str, after: int, limit: int) -> list[tuple[str, int, int]]:
        """Finished level-1 summaries of a track that end behind `after`, as (id, first seq, last seq), in order."""
        query = (
            select(summaries.c.id, summaries.c.first_seq, summaries.c.last_seq)
            .where(
                summaries.c.session_key == ref.key,
                summaries.c.level == 1,
                summaries.c.track == packed(track),
                summaries.c.last_seq > after,
                summaries.c.state.in_(_FINISHED),
            )
            .order_by(summaries.c.last_seq)
            .limit(limit)
        )
        with self.database.read() as connection:
            return [(row.id, row.first_seq, row.last_seq) for row in connection.execute(query)]

    def last_border(self, ref: SessionRef, *, track: str, before: int) -> tuple[str, int, int] | None:
        """The newest finished level-1 summary of a track that ends before `before`, as (id, first seq, last seq)."""
        query = (
            select(summaries.c.id, summaries.c.first_seq, summaries.c.last_seq)
            .where(
                summaries.c.session_key == ref.key,
                summaries.c.level == 1,
                summaries.c.track == packed(track),
                summaries.c.last_seq < before,
                summaries.c.state.in_(_FINISHED),
            )
            .order_by(summaries.c.last_seq.desc())
            .limit(1)
        )
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
        return (row.id, row.first_seq, row.last_seq) if row is not None else None

    def level_1_between(self, ref: SessionRef, *, after: int, up_to: int) -> list[Summary]:
        """Finished level-1 summaries of any track that end behind `after` and not behind `up_to`, in order."""
        query = (
            select(summaries)
            .where(
                summaries.c.session_key == ref.key,
                summaries.c.level == 1,
                summaries.c.last_seq > after,
                summaries.c.last_seq <= up_to,
                summaries.c.state.in_(_FINISHED),
            )
            .order_by(summaries.c.first_seq)
        )
        return self._read(query)

    def newest(self, ref: SessionRef, *, level: int, up_to: int, limit: int) -> list[Summary]:
        """Finished summaries of a level that end at `up_to` or before, newest first."""
        query = (
            select(summaries)
            .where(
                summaries.c.session_key == ref.key,
                summaries.c.level == level,
                summaries.c.last_seq <= up_to,
                summaries.c.state.in_(_FINISHED),
            )
            .order_by(summaries.c.last_seq.desc())
            .limit(limit)
        )
        return self._read(query)

    def level_1_of_others(self, ref: SessionRef, *, track: str, after: int, limit: int) -> list[str]:
        """Ids of finished level-1 summaries of other tracks that end behind `after`, in order."""
        query = (
            select(summaries.c.id)
            .where(
                summaries.c.session_key == ref.key,
                summaries.c.level == 1,
                summaries.c.track != packed(track),
                summaries.c.last_seq > after,
                summaries.c.state.in_(_FINISHED),
            )
            .order_by(summaries.c.last_seq)
            .limit(limit)
        )
        with self.database.read() as connection:
            return list(connection.scalars(query))

    def uncondensed(self, ref: SessionRef, *, track: str, up_to: int) -> list[tuple[int, int, int]]:
        """Spans of a track that no finished summary stands for, as (first seq, last seq, messages), in order.

        Messages that no summary has taken are one span; each unfinished level-1 summary is one more.
        """
        free = select(func.min(entries.c.seq), func.max(entries.c.seq), func.count()).where(
            entries.c.session_key == ref.key,
            entries.c.track == packed(track),
            entries.c.summary_id.is_(None),
            entries.c.seq <= up_to,
        )
        unfinished = select(summaries.c.first_seq, summaries.c.last_seq, summaries.c.entry_count).where(
            summaries.c.session_key == ref.key,
            summaries.c.level == 1,
            summaries.c.track == packed(track),
            summaries.c.first_seq <= up_to,
            summaries.c.state.in_(_UNFINISHED),
        )
        with self.database.read() as connection:
            first, last, count = connection.execute(free).one()
            spans = [(first, last, count)] if count else []
            spans += [(row.first_seq, row.last_seq, row.entry_count) for row in connection.execute(unfinished)]
        return sorted(spans)

    def first_uncondensed(self, ref: SessionRef, *, track: str, after: int) -> int | None:
        """The first message of a track behind `after` that no finished summary stands for."""
        free = select(func.min(entries.c.seq)).where(
            entries.c.session_key == ref.key,
            entries.c.track == packed(track),
            entries.c.summary_id.is_(None),
            entries.c.seq > after,
        )
        unfinished = select(func.min(summaries.c.first_seq)).where(
            summaries.c.session_key == ref.key,
            summaries.c.level == 1,
            summaries.c.track == packed(track),
            summaries.c.first_seq > after,
            summaries.c.state.in_(_UNFINISHED),
        )
        with self.database.read() as connection:
            found = [connection.scalar(free), connection.scalar(unfinished)]
        return min((one for one in found if one is not None), default=None)

    def root_figures(self, ref: SessionRef) -> tuple[int, int]:
        """Tokens of the messages that the highest finished summaries stand for, and tokens of those summaries."""
        covered = (
            select(func.coalesce(func.sum(summaries.c.source_tokens), 0))
            .where(summaries.c.session_key == ref.key, summaries.c.level == 1, summaries.c.state.in_(_FINISHED))
            .scalar_subquery()
        )
        standing = select(func.coalesce(func.sum(summaries.c.tokens), 0)).where(
            summaries.c.session_key == ref.key, summaries.c.state.in_(_ROOT)
        )
        with self.database.read() as connection:
            return int(connection.scalar(select(covered)) or 0), int(connection.scalar(standing) or 0)

    def level_figures(self, ref: SessionRef) -> list[dict[str, Any]]:
        """Sums per level over the finished summaries of a session, lowest level first."""
        query = (
            select(
                summaries.c.level,
                func.count().label("summaries"),
                func.sum(summaries.c.tokens).label("tokens"),
                func.sum(summaries.c.source_tokens).label("source_tokens"),
                func.sum(summaries.c.calls).label("calls"),
                func.sum(summaries.c.input_tokens).label("input_tokens"),
                func.sum(summaries.c.output_tokens).label("output_tokens"),
                func.sum(summaries.c.seconds).label("seconds"),
                func.sum(summaries.c.degraded.cast(summaries.c.level.type)).label("degraded"),
                func.sum(summaries.c.stale.cast(summaries.c.level.type)).label("stale"),
                func.avg(summaries.c.kept_identifiers).label("kept_identifiers"),
            )
            .where(summaries.c.session_key == ref.key, summaries.c.state.in_(_FINISHED))
            .group_by(summaries.c.level)
            .order_by(summaries.c.level)
        )
        with self.database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _read(self, query: Any) -> list[Summary]:  # noqa: ANN401 - any select of summaries
        with self.database.read() as connection:
            return [rows.summary(row) for row in connection.execute(query).mappings()]


def _unless_finished(state: SummaryState) -> ColumnElement[str]:
    return case((summaries.c.state.in_(_FINISHED), summaries.c.state), else_=state.value)


def _reserve(connection: Connection, ref: SessionRef, plan: SummaryPlan) -> dict[str, Any] | None:
    """Take what a plan covers, all or nothing, and say what that is in the columns of `ltm_summaries`."""
    if plan.level == 1:
        return _reserve_entries(connection, ref, plan) if plan.source_seqs else None
    return _reserve_summaries(connection, ref, plan) if plan.source_ids else None


def _reserve_entries(connection: Connection, ref: SessionRef, plan: SummaryPlan) -> dict[str, Any] | None:
    taken = 0
    for part in chunks(list(plan.source_seqs)):
        free = (entries.c.session_key == ref.key, entries.c.seq.in_(part), entries.c.summary_id.is_(None))
        taken += connection.execute(update(entries).where(*free).values(summary_id=plan.id)).rowcount
    if taken != len(plan.source_seqs):
        return None
    query = select(entries.c.message_id, entries.c.seq, entries.c.at, entries.c.tokens).where(
        entries.c.session_key == ref.key, entries.c.summary_id == plan.id
    )
    found = connection.execute(query.order_by(entries.c.seq)).all()
    return {
        "sources": rows.names_to_json([unpacked(row.message_id) for row in found]),
        "first_seq": found[0].seq,
        "last_seq": found[-1].seq,
        "entry_count": len(found),
        "first_at": min(row.at for row in found),
        "last_at": max(row.at for row in found),
        "source_tokens": sum(row.tokens for row in found),
    }


def _reserve_summaries(connection: Connection, ref: SessionRef, plan: SummaryPlan) -> dict[str, Any] | None:
    taken = 0
    for part in chunks(list(plan.source_ids)):
        free = (
            summaries.c.session_key == ref.key,
            summaries.c.id.in_(part),
            summaries.c.level == plan.level - 1,
            summaries.c.parent_id.is_(None),
            summaries.c.state.in_(_ROOT),
        )
        taken += connection.execute(update(summaries).where(*free).values(parent_id=plan.id)).rowcount
    if taken != len(plan.source_ids):
        return None
    query = select(summaries).where(summaries.c.parent_id == plan.id).order_by(summaries.c.first_seq)
    found = connection.execute(query).mappings().all()
    return {
        "sources": rows.names_to_json([row["id"] for row in found]),
        "first_seq": min(row["first_seq"] for row in found),
        "last_seq": max(row["last_seq"] for row in found),
        "entry_count": sum(row["entry_count"] for row in found),
        "first_at": min(row["first_at"] for row in found),
        "last_at": max(row["last_at"] for row in found),
        "source_tokens": sum(row["tokens"] for row in found),
    }


def _comes_late(connection: Connection, ref: SessionRef, summary: Summary) -> bool:
    """Whether a later part of the track is condensed already: a view may have passed this one by."""
    later = select(summaries.c.id).where(
        summaries.c.session_key == ref.key,
        summaries.c.level == 1,
        summaries.c.track == packed(summary.track or ""),
        summaries.c.last_seq > summary.last_seq,
        summaries.c.state.in_(_FINISHED),
    )
    return connection.execute(later.limit(1)).first() is not None


def _supersede(connection: Connection, parent_id: str) -> None:
    connection.execute(
        update(summaries)
        .where(summaries.c.parent_id == parent_id, summaries.c.state.in_(_ROOT))
        .values(state=SummaryState.SUPERSEDED)
    )


def _index_summary(connection: Connection, ref: SessionRef, summary: Summary, written: Written) -> None:
    drop_passages(connection, passages.c.summary_id == summary.id)
    found = rows.passage_values(
        ref.key,
        written.passages,
        level=summary.level,
        seq=summary.last_seq,
        summary_id=summary.id,
        track=summary.track or "",
        kind="summary",
        at=summary.last_at,
    )
    insert_all(connection, passages, found)
