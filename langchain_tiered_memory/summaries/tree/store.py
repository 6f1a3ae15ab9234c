"""The summary tree: planned, leased, committed and read, one transaction a method.

What a summary covers is recorded twice: in its own `sources`, and as `summary_id` or `parent_id` of each thing it
covers. The second is reserved when the summary is planned, by an update that only takes what nobody else has; so no
message is ever under two summaries, and two processes can never make the same summary.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection, and_, bindparam, case, func, insert, literal, or_, select, true, update

from langchain_tiered_memory.sql.rows import (
    advance_epoch,
    insert_all,
    lock_session,
    lock_session_of_summary,
    names_to_json,
)
from langchain_tiered_memory.sql.schema import (
    beside_index,
    entries,
    packed,
    passages,
    plans,
    sessions,
    storable,
    summaries,
    unpacked,
)
from langchain_tiered_memory.summaries.facts.reading import READER_VERSION
from langchain_tiered_memory.summaries.facts.rows import take_up, write_facts
from langchain_tiered_memory.summaries.tree.reads import TreeReads
from langchain_tiered_memory.transcript import derived_rows
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.transcript.derived_rows import drop_passages
from langchain_tiered_memory.transcript.outbox import write_down
from langchain_tiered_memory.types.drafts import SummaryPlan, Written, counter_mark, digest_of_summary
from langchain_tiered_memory.types.records import FINISHED, ROOT, SessionRef, Spent, Summary, SummaryState, Verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import BindParameter, ColumnElement, Select

    from langchain_tiered_memory.reports import Event
    from langchain_tiered_memory.types.outcomes import FailureReason


REFUSED: tuple[Verdict, ...] = ("wrong", "incomplete")
"""Verdicts of a person that have a summary made again."""
_REFUSED_BY_A_PERSON = summaries.c.verdict.in_(REFUSED)
_UNFINISHED = (SummaryState.PENDING, SummaryState.GENERATING, SummaryState.FAILED)

_GIVEN_BACK: dict[str, Any] = {"lease_owner": None, "lease_until": None}

# Statements that are asked at every turn are made once: making one takes longer than answering it.
_FIRST_WAITING_TRACK = select(func.min(entries.c.track)).where(
    entries.c.session_key == bindparam("session"), entries.c.summary_id.is_(None)
)
_NEXT_WAITING_TRACK = _FIRST_WAITING_TRACK.where(entries.c.track > bindparam("after"))
# Whatever is unfinished has a time for its next attempt: an index of the few rows with one answers.
_UNFINISHED_OF_ALL = select(func.count()).where(summaries.c.retry_at.is_not(None), summaries.c.state.in_(_UNFINISHED))
_UNFINISHED_OF_SESSION = _UNFINISHED_OF_ALL.where(summaries.c.session_key == bindparam("session"))
_LESSEES = select(summaries.c.lease_owner).where(
    summaries.c.session_key == bindparam("session"),
    summaries.c.retry_at.is_not(None),
    summaries.c.lease_until > bindparam("now"),
)
_HELD = select(summaries).where(
    summaries.c.id == bindparam("summary"),
    summaries.c.session_key == bindparam("session"),
    summaries.c.lease_owner == bindparam("owner"),
)
_COMMITTED = (
    update(summaries)
    .where(summaries.c.id == bindparam("summary"))
    .values({name: summaries.c[name] + bindparam(f"more_{name}") for name in asdict(Spent())})
)
_PASSED_BY = (
    select(plans.c.name)
    .where(plans.c.session_key == bindparam("session"), plans.c.border >= bindparam("last"))
    .limit(1)
)


_BY_RULES = summaries.c.by_rules.is_(True)
"""Of a summary that a model is yet to write: a condition, as the index of them has it."""


class Tree(TreeReads):
    """Reads and writes summaries."""

    def next_waiting_track(self, ref: SessionRef, *, after: str | None) -> str | None:
        """The first track, behind `after` in the database's own order, that has messages without a summary."""
        with self.database.read() as connection:
            if after is None:
                found = connection.scalar(_FIRST_WAITING_TRACK, {"session": ref.key})
            else:
                found = connection.scalar(_NEXT_WAITING_TRACK, {"session": ref.key, "after": packed(after)})
        return unpacked(found) if found is not None else None

    def due(self, ref: SessionRef, *, now: float, remake_stale: bool) -> Summary | None:
        """A planned, failed, abandoned, degraded or (if asked) stale summary whose time has come, lowest first.

        What rules wrote until a model does is not among them (see `ready`), unless they are to write it again.
        """
        return next(iter(self._read(_due(remake_stale=remake_stale), session=ref.key, now=now)), None)

    def unfinished(self, ref: SessionRef | None = None, *, track: str | None = None) -> int:
        """Summaries that somebody works on or that wait for another attempt; of a session, or of one track of it."""
        query, named = _UNFINISHED_OF_ALL, {}
        if ref is not None:
            query, named = _UNFINISHED_OF_SESSION, {"session": ref.key}
        if track is not None:
            query = query.where(summaries.c.track == packed(track))
        return self._count(query, named)

    def due_later(self, ref: SessionRef, *, remake_stale: bool = True, by_model: bool = False) -> bool:
        """Whether a summary waits for another attempt, or for a remake: `due` will give one some time.

        `by_model`: there is a model for what rules wrote and a view wants.
        """
        wanted = _wanted(remake_stale=remake_stale)
        if by_model:
            wanted = or_(wanted, and_(_BY_RULES, summaries.c.wanted.is_(True)))
        query = select(summaries.c.id).where(
            summaries.c.session_key == ref.key, summaries.c.retry_at.is_not(None), wanted
        )
        with self.database.read() as connection:
            return connection.execute(query.limit(1)).first() is not None

    def lessees(self, ref: SessionRef, *, now: float) -> set[str]:
        """Who is making a summary of a session right now."""
        with self.database.read() as connection:
            return set(connection.scalars(_LESSEES, {"session": ref.key, "now": now}))

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
            return derived_rows.summary(row)

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
                    summaries.c.retry_at <= now,  # an attempt that did not count leaves their number as it was
                    or_(summaries.c.lease_until.is_(None), summaries.c.lease_until <= now),
                )
                .values(state=_unless_finished(SummaryState.GENERATING), **_leased(owner, now + lease_seconds))
            )
            return done.rowcount == 1

    def commit(
        self,
        ref: SessionRef,
        summary: Summary,
        written: Written,
        *,
        owner: str,
        now: float,
        event: Event | None = None,
        follows: Collection[str] = (),
    ) -> bool:
        """Make a leased summary count, with its index rows and event, in one step; `False` when the lease was lost.

        `follows` are the summaries above that the same hand is about to write from this text.
        """
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            mine = {"summary": summary.id, "session": ref.key, "owner": owner}
            row = connection.execute(_HELD, mine).mappings().one_or_none()
            if row is None:
                return False
            finished, touched = row["state"] in FINISHED, bool(row["touched"])
            # A view that has its border behind it shows what rules wrote: a model is to write it.
            passed_by = {"session": ref.key, "last": summary.last_seq}
            late = summary.level == 1 and not finished and connection.scalar(_PASSED_BY, passed_by) is not None
            wanted = written.by_rules and (late or (summary.level > 1 and bool(row["wanted"])))
            text = storable(written.text)
            connection.execute(
                _COMMITTED,
                {
                    "summary": summary.id,
                    "state": row["state"] if finished else SummaryState.ACTIVE,
                    "text": text,
                    "text_digest": digest_of_summary(text),
                    # What was read before the edit is out of date with it: it is read again.
                    "facts_read": 0 if touched and summary.level == 1 else READER_VERSION,
                    "tokens": written.tokens,
                    "counter": counter_mark(written.counter) if written.counter else None,
                    "degraded": written.degraded,
                    # Whoever edited a source while this was written touched it: the text is out of date already.
                    "stale": touched,
                    "touched": False,
                    "by_rules": written.by_rules,
                    "wanted": wanted,
                    "attempts": 0 if written.by_rules else row["attempts"],
                    "error": storable(written.error) if written.error is not None else None,
                    "reason": written.reason,
                    "model": storable(written.model),
                    "source_digest": written.source_digest,
                    "kept_identifiers": written.kept_identifiers,
                    "information_loss": written.information_loss,
                    "from_tools": written.from_tools,
                    "beside": names_to_json(written.beside),
                    **{f"more_{name}": count for name, count in asdict(written.spent).items()},
                    "created_at": now,
                    **_GIVEN_BACK,
                    "retry_at": now if touched or wanted else (written.retry_at if written.degraded else None),
                },
            )
            if summary.level > 1:
                below = and_(summaries.c.parent_id == summary.id, summaries.c.state.in_(ROOT))
                connection.execute(update(summaries).where(below).values(state=SummaryState.SUPERSEDED))
            if finished:
                # Its words changed where they may stand in a view, and what stands above it is marked as out of date:
                # what rules wrote mostly stands in none yet.
                if not row["by_rules"] or _is_shown(connection, ref.key, summary.id, row["parent_id"]):
                    advance_epoch(connection, ref.key)
                remake = row["verdict"] in REFUSED or (row["wanted"] and not row["by_rules"])
                _outdate_parent(connection, row["parent_id"], now=now, follows=follows, remake=remake)
            if late:
                advance_epoch(connection, ref.key)
            if summary.level == 1:
                write_facts(connection, ref.key, summary.id, () if touched else written.facts)
            elif not finished:
                take_up(connection, ref.key, written.taken_up)
            drop_passages(connection, passages.c.summary_id == summary.id)
            insert_all(connection, passages, derived_rows.summary_passages(ref.key, summary, written.passages))
            write_down(connection, event, ref.key)
            return True

    def fail(
        self,
        summary: Summary,
        *,
        owner: str,
        error: str,
        retry_at: float,
        spent: Spent,
        reason: FailureReason | None = None,
        is_attempt: bool = True,
        degrades: bool = False,
    ) -> None:
        """Give a lease back after an attempt that failed. A finished summary keeps its text.

        Nothing happens where the lease was lost. Where it counts as no attempt, the summary waits as if it were new;
        where it `degrades`, what rules wrote stands in for a model from now on.
        """
        waits = SummaryState.FAILED if is_attempt else SummaryState.PENDING
        with self.database.write() as connection:
            key = lock_session_of_summary(connection, summary.id)
            if degrades and not summary.degraded and key is not None and _is_shown(connection, key, summary.id):
                advance_epoch(connection, key)  # it is marked as provisional
            mine = and_(summaries.c.id == summary.id, summaries.c.lease_owner == owner)
            became = {
                "state": _unless_finished(waits),
                "error": storable(error),
                "reason": reason,
                "attempts": summaries.c.attempts - (0 if is_attempt else 1),
                "degraded": true() if degrades else summaries.c.degraded,
                "retry_at": retry_at,
            }
            took = {name: summaries.c[name] + count for name, count in asdict(spent).items()}
            connection.execute(update(summaries).where(mine).values(**became, **took, **_GIVEN_BACK))

    def judge(
        self,
        ref: SessionRef,
        summary_id: str,
        verdict: Verdict,
        *,
        note: str | None,
        by_model: bool,
        now: float,
        owner: str | None,
        lease_seconds: float,
    ) -> Summary | None:
        """Write down what a person calls a finished summary; one that is wrong or incomplete is to be made again.

        `by_model` says whether a model is there to rewrite what rules wrote. With an `owner` it is leased to them,
        whoever had it: they have its next text. `None` where it is not there, or not finished.
        """
        values: dict[str, Any] = {
            "verdict": verdict,
            "verdict_note": storable(note) if note is not None else None,
            "verdict_writer": summaries.c.model,
        }
        if verdict in REFUSED:
            wanted = or_(summaries.c.wanted, literal(by_model))
            values |= derived_rows.outdated(now) | {"wanted": and_(_BY_RULES, wanted)}
        if owner is not None:
            values |= _leased(owner, now + lease_seconds)
        mine = and_(summaries.c.id == summary_id, summaries.c.session_key == ref.key, summaries.c.state.in_(FINISHED))
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            connection.execute(update(summaries).where(mine).values(values))
            if verdict in REFUSED and _is_shown(connection, ref.key, summary_id):
                advance_epoch(connection, ref.key)  # it is marked as out of date
            row = connection.execute(select(summaries).where(mine)).mappings().one_or_none()
            return derived_rows.summary(row) if row is not None else None

    def release(self, *, owner: str, now: float) -> None:
        """Give back every lease of an owner that ends: others need not wait until they run out."""
        # Whatever is leased has a time for its next attempt: an index of the few rows with one answers.
        mine = and_(summaries.c.retry_at.is_not(None), summaries.c.lease_owner == owner)
        with self.database.write() as connection:
            for key in connection.scalars(
                select(summaries.c.session_key).where(mine).distinct().order_by(summaries.c.session_key)
            ).all():
                lock_session(connection, key)
            connection.execute(update(summaries).where(mine).values(**_GIVEN_BACK, retry_at=now))

    def archive(self, ref: SessionRef) -> None:
        """The session was closed: its highest summaries are archived, unless it was opened again meanwhile."""
        closed = select(sessions.c.key).where(sessions.c.key == ref.key, sessions.c.ended_at.is_not(None))
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            if connection.scalar(closed) is None:
                return
            connection.execute(
                update(summaries)
                .where(summaries.c.session_key == ref.key, summaries.c.state == SummaryState.ACTIVE)
                .values(state=SummaryState.ARCHIVED)
            )

    # What rules wrote until a model does.

    def want(self, ref: SessionRef, *, level: int, track: str, up_to: int, now: float) -> int:
        """Have a model write the summaries from a level on that end at `up_to` or before. Returns how many are new."""
        mine = and_(
            summaries.c.session_key == ref.key,
            or_(and_(*_of_level(ref, level=level, track=track)), summaries.c.level > level),
            summaries.c.wanted.is_(False),
            summaries.c.last_seq <= up_to,
            _BY_RULES,
        )
        with self.database.read() as connection:
            if connection.execute(select(summaries.c.id).where(mine).limit(1)).first() is None:
                return 0
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            return connection.execute(update(summaries).where(mine).values(wanted=True, retry_at=now)).rowcount

    def ready(
        self, ref: SessionRef, *, now: float, every: bool = False, above: int = 0, limit: int | None = None
    ) -> list[Summary]:
        """What a model shall write now, `above` a level, lowest first: what it merges is in a model's words.

        With `every` all that rules wrote are wanted, not only what a view needs.
        """
        ready = and_(_BY_RULES, _is_free(now), ~_merges("by_rules"), summaries.c.level > above)
        query = select(summaries).where(summaries.c.session_key == ref.key, ready)
        if not every:
            query = query.where(summaries.c.wanted.is_(True))
        return self._read(query.order_by(summaries.c.level, summaries.c.first_seq).limit(limit))

    def by_rules_from(
        self, ref: SessionRef, *, level: int, track: str, first_seq: int, now: float, limit: int
    ) -> list[tuple[Summary, bool]]:
        """Summaries of a level that rules wrote, from a message on, in order; and whether each is wanted."""
        query = (
            select(summaries)
            .where(
                *_of_level(ref, level=level, track=track), summaries.c.first_seq >= first_seq, _BY_RULES, _is_free(now)
            )
            .order_by(summaries.c.first_seq)
            .limit(limit)
        )
        with self.database.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [(derived_rows.summary(row), bool(row["wanted"])) for row in rows]

    def lease_together(
        self, ref: SessionRef, chosen: Sequence[Summary], *, owner: str, now: float, lease_seconds: float
    ) -> list[Summary]:
        """Take several that rules wrote, lower levels first, to have a model write them in one call.

        Gives those that were still to be had; none that merges one of the others which somebody else has.
        """
        ids, taken = [one.id for one in chosen], list[str]()
        mine = and_(summaries.c.session_key == ref.key, summaries.c.id.in_(ids))
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            free = set(connection.scalars(select(summaries.c.id).where(mine, _BY_RULES, _is_free(now))))
            for one in chosen:
                if one.id in free and free.issuperset(under for under in one.sources if under in ids):
                    taken.append(one.id)
                else:
                    free.discard(one.id)
            ours = and_(summaries.c.session_key == ref.key, summaries.c.id.in_(taken))
            connection.execute(update(summaries).where(ours).values(wanted=True, **_leased(owner, now + lease_seconds)))
            rows = connection.execute(select(summaries).where(ours)).mappings().all()
        found = {row["id"]: derived_rows.summary(row) for row in rows}
        return [found[one] for one in taken]

    def give_back(self, summary: Summary, *, owner: str, now: float) -> None:
        """Leave a leased summary of a higher level as rules wrote it. Made anew by them where what is below changed."""
        mine = and_(summaries.c.id == summary.id, summaries.c.lease_owner == owner)
        again = case((summaries.c.stale.is_(True), now), else_=None)
        left = {"wanted": False, "attempts": summaries.c.attempts - 1, "retry_at": again, **_GIVEN_BACK}
        with self.database.write() as connection:
            lock_session_of_summary(connection, summary.id)
            connection.execute(update(summaries).where(mine).values(left))


@cache
def _due(*, remake_stale: bool) -> Select[Any]:
    now: BindParameter[float] = bindparam("now")
    return (
        select(summaries)
        .where(
            summaries.c.session_key == bindparam("session"),
            summaries.c.retry_at <= now,
            or_(summaries.c.lease_until.is_(None), summaries.c.lease_until <= now),
            _wanted(remake_stale=remake_stale),
        )
        .order_by(summaries.c.level, summaries.c.first_seq)
        .limit(1)
    )


def _wanted(*, remake_stale: bool) -> ColumnElement[bool]:
    """What somebody shall make, or make again, one by one."""
    degraded = and_(summaries.c.degraded.is_(True), summaries.c.by_rules.is_(False))
    wanted = or_(summaries.c.state.in_(_UNFINISHED), degraded, _outdated_by_rules())
    waits = and_(summaries.c.by_rules.is_(True), summaries.c.wanted.is_(True))
    outdated: ColumnElement[bool] = summaries.c.stale.is_(True)
    if not remake_stale:  # but what a person called wrong is made again, with all that stands above it
        outdated = and_(outdated, or_(_REFUSED_BY_A_PERSON, summaries.c.wanted.is_(True)))
    return or_(wanted, and_(outdated, ~waits))


def _unless_finished(state: SummaryState) -> ColumnElement[str]:
    return case((summaries.c.state.in_(FINISHED), summaries.c.state), else_=state.value)


def _is_shown(connection: Connection, session_key: int, *summary_ids: str | None) -> bool:
    """Whether a view's plan names one of them, whole, in short or as a headline."""
    named = or_(*(plans.c.payload.contains(one) for one in summary_ids if one is not None))
    shown = select(plans.c.name).where(plans.c.session_key == session_key, named)
    return connection.execute(shown.limit(1)).first() is not None


def _outdate_parent(
    connection: Connection, parent_id: str | None, *, now: float, follows: Collection[str], remake: bool
) -> None:
    """What stands above was made from the old words. Who is about to write it from the new ones has not missed them.

    With `remake` it is made again whatever the settings say: rules do that in any case.
    """
    if parent_id is None:
        return
    marks: dict[str, Any] = {"stale": True} if parent_id in follows else derived_rows.outdated(now)
    if remake:
        marks["wanted"] = or_(summaries.c.wanted, ~_BY_RULES)
    connection.execute(update(summaries).where(summaries.c.id == parent_id).values(marks))


def _leased(owner: str, until: float) -> dict[str, Any]:
    """The columns of a row that somebody takes, to make it or make it again."""
    again = {"touched": False, "attempts": summaries.c.attempts + 1}
    return {**again, "lease_owner": owner, "lease_until": until, "retry_at": until}


def _outdated_by_rules() -> ColumnElement[bool]:
    """Of a higher level, what rules wrote from texts that were written anew since: they write it again, at no cost.

    Not where what is below is out of date itself: it would only be told again. Nor where a model is to write it next.
    """
    is_next = and_(summaries.c.wanted.is_(True), ~_merges("by_rules"))
    return and_(_BY_RULES, summaries.c.level > 1, summaries.c.stale.is_(True), ~_merges("stale"), ~is_next)


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


def _reserve(connection: Connection, ref: SessionRef, plan: SummaryPlan) -> dict[str, Any] | None:
    """Take what a plan covers, all or nothing, and say what that is in the columns of `ltm_summaries`."""
    wanted: list[Any] = list(plan.source_seqs if plan.level == 1 else plan.source_ids)
    taken = 0
    for part in chunks(wanted):
        if plan.level == 1:
            # Found by their numbers, not among all that no summary has: that may be a long history that was brought in.
            is_free = func.coalesce(entries.c.summary_id, "") == ""
            free = and_(entries.c.session_key == ref.key, entries.c.seq.in_(part), is_free)
            take = update(entries).where(free).values(summary_id=plan.id)
        else:
            free = and_(
                beside_index(summaries.c.session_key) == ref.key,
                summaries.c.id.in_(part),
                summaries.c.level == plan.level - 1,
                func.coalesce(summaries.c.parent_id, "") == "",
                summaries.c.state.in_(ROOT),
            )
            take = update(summaries).where(free).values(parent_id=plan.id)
        taken += connection.execute(take).rowcount
    if not wanted or taken != len(wanted):
        return None
    if plan.level == 1:
        query = select(entries.c.message_id, entries.c.seq, entries.c.at, entries.c.tokens)
        mine = query.where(entries.c.summary_id == plan.id, beside_index(entries.c.session_key) == ref.key)
        found = sorted(connection.execute(mine).all(), key=lambda row: row.seq)
        return _covering([(unpacked(row.message_id), row.seq, row.seq, 1, row.at, row.at, row.tokens) for row in found])
    names = ("id", "first_seq", "last_seq", "entry_count", "first_at", "last_at", "tokens")
    below = select(*(summaries.c[name] for name in names)).where(summaries.c.parent_id == plan.id)
    return _covering(connection.execute(below.order_by(summaries.c.first_seq)).all())


def _covering(found: Sequence[Sequence[Any]]) -> dict[str, Any]:
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
