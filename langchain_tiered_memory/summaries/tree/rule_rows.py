"""Rows of summaries: sources reserved for a planned one, and what rules wrote until a model does.

What a plan covers is taken all or nothing, so that nothing gets under two summaries. Of what rules wrote: which a view
wants, and leases of several at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection, and_, case, func, or_, select, update

from langchain_tiered_memory.sql.rows import lock_session, lock_session_of_summary, names_to_json
from langchain_tiered_memory.sql.schema import beside_index, entries, packed, summaries, unpacked
from langchain_tiered_memory.summaries.tree.border_reads import BorderReads
from langchain_tiered_memory.transcript import derived_rows
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.transcript.summary_reads import FINISHED, ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement

    from langchain_tiered_memory.types.drafts import SummaryPlan
    from langchain_tiered_memory.types.records import SessionRef, Summary

BY_RULES = summaries.c.by_rules.is_(True)
"""Of a summary that a model is yet to write: a condition, as the index of them has it."""


class RuleRows(BorderReads):
    """Reads and claims summaries that rules wrote until a model does."""

    def want(self, ref: SessionRef, *, level: int, track: str, up_to: int, now: float) -> int:
        """Have a model write the summaries from a level on that end at `up_to` or before. Returns how many are new."""
        mine = and_(
            summaries.c.session_key == ref.key,
            or_(and_(*_of_level(ref, level=level, track=track)), summaries.c.level > level),
            summaries.c.wanted.is_(False),
            summaries.c.last_seq <= up_to,
            BY_RULES,
        )
        with self.database.read() as connection:
            if connection.execute(select(summaries.c.id).where(mine).limit(1)).first() is None:
                return 0
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            return connection.execute(update(summaries).where(mine).values(wanted=True, retry_at=now)).rowcount

    def first_wanted(self, ref: SessionRef, *, now: float, every: bool = False) -> Summary | None:
        """The first summary that a model shall write now, lowest level first: what it merges is in a model's words.

        With `every` all that rules wrote are wanted, not only what a view needs.
        """
        ready = and_(BY_RULES, _is_free(now), ~_merges("by_rules"))
        query = select(summaries).where(summaries.c.session_key == ref.key, ready)
        if not every:
            query = query.where(summaries.c.wanted.is_(True))
        found = self._read(query.order_by(summaries.c.level, summaries.c.first_seq).limit(1))
        return found[0] if found else None

    def ready_above(self, ref: SessionRef, *, level: int, now: float, every: bool = False) -> list[Summary]:
        """Summaries above a level that a model shall write, and whose sources are in a model's words; lowest first."""
        ready = and_(summaries.c.level > level, BY_RULES, _is_free(now), ~_merges("by_rules"))
        query = select(summaries).where(summaries.c.session_key == ref.key, ready)
        query = query.order_by(summaries.c.level, summaries.c.first_seq)
        return self._read(query if every else query.where(summaries.c.wanted.is_(True)))

    def by_rules_from(
        self, ref: SessionRef, *, level: int, track: str, first_seq: int, now: float, limit: int
    ) -> list[tuple[Summary, bool]]:
        """Summaries of a level that rules wrote, from a message on, in order; and whether each is wanted."""
        query = (
            select(summaries)
            .where(
                *_of_level(ref, level=level, track=track), summaries.c.first_seq >= first_seq, BY_RULES, _is_free(now)
            )
            .order_by(summaries.c.first_seq)
            .limit(limit)
        )
        with self.database.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [(derived_rows.summary(row), bool(row["wanted"])) for row in rows]

    def lease_together(
        self, ref: SessionRef, ids: Sequence[str], *, owner: str, now: float, lease_seconds: float
    ) -> list[Summary]:
        """Take several that rules wrote, to have a model write them in one call; those that were still to be had."""
        mine = and_(summaries.c.session_key == ref.key, summaries.c.id.in_(list(ids)))
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            free = connection.scalars(select(summaries.c.id).where(mine, BY_RULES, _is_free(now))).all()
            taken = and_(mine, summaries.c.id.in_(free))
            connection.execute(update(summaries).where(taken).values(wanted=True, **leased(owner, now + lease_seconds)))
            rows = connection.execute(select(summaries).where(taken)).mappings().all()
        found = {row["id"]: derived_rows.summary(row) for row in rows}
        return [found[one] for one in ids if one in found]

    def give_back(self, summary: Summary, *, owner: str, now: float) -> None:
        """Leave a leased summary of a higher level as rules wrote it. Made anew by them where what is below changed."""
        with self.database.write() as connection:
            lock_session_of_summary(connection, summary.id)
            connection.execute(
                update(summaries)
                .where(summaries.c.id == summary.id, summaries.c.lease_owner == owner)
                .values(
                    wanted=False,
                    attempts=summaries.c.attempts - 1,
                    lease_owner=None,
                    lease_until=None,
                    retry_at=case((summaries.c.stale.is_(True), now), else_=None),
                )
            )


def leased(owner: str, until: float) -> dict[str, Any]:
    """The columns of a row that somebody takes, to make it or make it again."""
    again = {"touched": False, "attempts": summaries.c.attempts + 1}
    return {**again, "lease_owner": owner, "lease_until": until, "retry_at": until}


def outdated_by_rules() -> ColumnElement[bool]:
    """Of a higher level, what rules wrote from texts that were written anew since: they write it again, at no cost.

    Not where what is below is out of date itself: it would only be told again. Nor where a model is to write it next.
    """
    is_next = and_(summaries.c.wanted.is_(True), ~_merges("by_rules"))
    return and_(BY_RULES, summaries.c.level > 1, summaries.c.stale.is_(True), ~_merges("stale"), ~is_next)


def _merges(mark: Literal["by_rules", "stale"]) -> ColumnElement[bool]:
    """Whether something below is still in the words of rules, or out of date itself."""
    below = summaries.alias("below")
    return select(below.c.id).where(below.c.parent_id == summaries.c.id, below.c[mark].is_(True)).exists()


def _of_level(ref: SessionRef, *, level: int, track: str) -> tuple[ColumnElement[bool], ...]:
    """Summaries of a level; above the first they have no track of their own."""
    own = (summaries.c.track == packed(track),) if level == 1 else ()
    return (summaries.c.session_key == ref.key, summaries.c.level == level, *own)


def _is_free(now: float) -> ColumnElement[bool]:
    """Finished, in nobody's hands, and not waiting for another attempt."""
    return and_(
        summaries.c.state.in_(FINISHED),
        or_(summaries.c.lease_until.is_(None), summaries.c.lease_until <= now),
        or_(summaries.c.retry_at.is_(None), summaries.c.retry_at <= now),
    )


def reserve(connection: Connection, ref: SessionRef, plan: SummaryPlan) -> dict[str, Any] | None:
    """Take what a plan covers, all or nothing, and say what that is in the columns of `ltm_summaries`."""
    if plan.level == 1:
        return _reserve_entries(connection, ref, plan) if plan.source_seqs else None
    return _reserve_summaries(connection, ref, plan) if plan.source_ids else None


def _reserve_entries(connection: Connection, ref: SessionRef, plan: SummaryPlan) -> dict[str, Any] | None:
    taken = 0
    for part in chunks(list(plan.source_seqs)):
        # Found by their numbers, not among all that no summary has: that may be a long history that was brought in.
        is_free = func.coalesce(entries.c.summary_id, "") == ""
        free = (entries.c.session_key == ref.key, entries.c.seq.in_(part), is_free)
        taken += connection.execute(update(entries).where(*free).values(summary_id=plan.id)).rowcount
    if taken != len(plan.source_seqs):
        return None
    query = select(entries.c.message_id, entries.c.seq, entries.c.at, entries.c.tokens)
    mine = query.where(entries.c.summary_id == plan.id, beside_index(entries.c.session_key) == ref.key)
    found = sorted(connection.execute(mine).all(), key=lambda row: row.seq)
    return _covering([(unpacked(row.message_id), row.seq, row.seq, 1, row.at, row.at, row.tokens) for row in found])


def _reserve_summaries(connection: Connection, ref: SessionRef, plan: SummaryPlan) -> dict[str, Any] | None:
    taken = 0
    for part in chunks(list(plan.source_ids)):
        free = (
            beside_index(summaries.c.session_key) == ref.key,
            summaries.c.id.in_(part),
            summaries.c.level == plan.level - 1,
            func.coalesce(summaries.c.parent_id, "") == "",
            summaries.c.state.in_(ROOT),
        )
        taken += connection.execute(update(summaries).where(*free).values(parent_id=plan.id)).rowcount
    if taken != len(plan.source_ids):
        return None
    query = select(summaries).where(summaries.c.parent_id == plan.id).order_by(summaries.c.first_seq)
    names = ("id", "first_seq", "last_seq", "entry_count", "first_at", "last_at", "tokens")
    found = connection.execute(query).mappings().all()
    return _covering([tuple(row[name] for name in names) for row in found])


def _covering(found: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Columns of what stands for these: id, first and last number, messages, first and last time, tokens of each."""
    ids, first_seqs, last_seqs, counts, first_times, last_times, tokens = zip(*found, strict=True)
    return {
        "sources": names_to_json(list(ids)),
        "first_seq": min(first_seqs),
        "last_seq": max(last_seqs),
        "entry_count": sum(counts),
        "first_at": min(first_times),
        "last_at": max(last_times),
        "source_tokens": sum(tokens),
    }
