"""Summaries are read: the cover, what stands below or by which id, borders of level 1 and what waits between them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, func, or_, select, true

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import of_track
from langchain_tiered_memory.sql.schema import beside_index, entries, packed, summaries, tasks
from langchain_tiered_memory.summaries.marks import RULES
from langchain_tiered_memory.summaries.tree.cover import Node
from langchain_tiered_memory.transcript import derived_rows
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.drafts import WaitingEntry
from langchain_tiered_memory.types.records import FINISHED, ROOT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import ColumnElement, Connection, FromClause, RowMapping, Select

    from langchain_tiered_memory.types.records import SessionRef, Summary

_DEEPEST = 1_000
"""A level above it is damaged: a tree of so many stands for more messages than there are."""
_MOST_OF_SPAN = 500
"""Of one span: a line that a view shows tells of a few."""

_SPAN = ("first_seq", "last_seq", "entry_count")
_SUMMED = ("tokens", "source_tokens", "calls", "input_tokens", "output_tokens", "seconds")
_BY_ID = select(summaries).where(
    beside_index(summaries.c.session_key) == bindparam("session"), summaries.c.id.in_(bindparam("ids", expanding=True))
)
_CHILDREN = select(summaries).where(
    summaries.c.parent_id.in_(bindparam("parents", expanding=True)), summaries.c.state.in_(FINISHED)
)
_LEAST_CHUNK_TOKENS = 20
"""Of the messages under one summary: two short ones. Bounds how many summaries are looked at."""

# Statements that are asked at every turn are made once: making one takes longer than answering it.
_FREE = and_(
    entries.c.session_key == bindparam("session"), entries.c.track == bindparam("track"), entries.c.summary_id.is_(None)
)
_HAS_OPEN_CALLS = entries.c.waits.is_(True).label("has_open_calls")
_WAITING_ENTRIES = (
    select(entries.c.seq, entries.c.group_seq, entries.c.tokens, entries.c.at, _HAS_OPEN_CALLS)
    .where(_FREE)
    .order_by(entries.c.seq)
    .limit(bindparam("most"))
)
_TASK_ENDS = select(tasks.c.task_digest, tasks.c.last_seq).where(
    tasks.c.session_key == bindparam("session"),
    tasks.c.track == bindparam("track"),
    tasks.c.state == "finished",
    tasks.c.last_seq >= bindparam("first"),
)
_TASK_ENDS_WITHIN = _TASK_ENDS.where(tasks.c.last_seq <= bindparam("last"))
_BOUNDS = {
    "level": summaries.c.level == bindparam("level"),
    "track": and_(summaries.c.level == 1, summaries.c.track == bindparam("track")),
    "after": summaries.c.last_seq > bindparam("after"),
    "before": summaries.c.last_seq < bindparam("before"),
    "up_to": summaries.c.last_seq <= bindparam("up_to"),
    "begins_after": summaries.c.first_seq > bindparam("begins_after"),
}
_OF_TRACK = and_(summaries.c.session_key == bindparam("session"), _BOUNDS["track"])
_WHICH = {
    "all": true(),
    "finished": summaries.c.state.in_(FINISHED),
    "highest": summaries.c.state.in_(ROOT),
    "not merged": summaries.c.parent_id.is_(None),
    "unfinished": summaries.c.unfinished.is_(True),
}
_BORDER = ("id", "first_seq", "last_seq")


@cache
def _chosen(which: str, by: str, bounds: frozenset[str], columns: tuple[str, ...] = ()) -> Select[Any]:
    """Summaries of a session within bounds, in the order of a column, the last ones first where it has a minus."""
    asked = select(*(summaries.c[name] for name in columns)) if columns else select(summaries)
    within = (_BOUNDS[name] for name in sorted(bounds - {"limit"}))
    found = asked.where(summaries.c.session_key == bindparam("session"), _WHICH[which], *within)
    column = summaries.c[by.removeprefix("-")]
    found = found.order_by(column.desc() if by.startswith("-") else column)
    return found.limit(bindparam("limit")) if "limit" in bounds else found


_FREE_UP_TO = select(func.min(entries.c.seq), func.max(entries.c.seq), func.count()).where(
    _FREE, entries.c.seq <= bindparam("up_to")
)
_UNFINISHED_UP_TO = select(*(summaries.c[name] for name in _SPAN)).where(
    _OF_TRACK, summaries.c.first_seq <= bindparam("up_to"), summaries.c.unfinished.is_(True)
)
_FIRST_FREE = select(func.min(entries.c.seq)).where(_FREE, entries.c.seq > bindparam("after"))
_FIRST_UNFINISHED = select(func.min(summaries.c.first_seq)).where(
    _OF_TRACK, summaries.c.first_seq > bindparam("after"), summaries.c.unfinished.is_(True)
)
_FIRST_UNCONDENSED = select(_FIRST_FREE.scalar_subquery(), _FIRST_UNFINISHED.scalar_subquery())
_WRITTEN = (
    _chosen("finished", "last_seq", frozenset({"level"}), ("id",))
    .where(summaries.c.degraded.is_(False), or_(summaries.c.model.is_(None), summaries.c.model != RULES))
    .limit(1)
)
_CONDENSED = _chosen("finished", "-last_seq", frozenset({"level", "up_to", "limit"}), ("source_tokens",)).subquery()
_CONDENSED_TOKENS = select(func.coalesce(func.sum(_CONDENSED.c.source_tokens), 0))


class TreeReads(Room):
    """Reads summaries, and what waits for one."""

    def roots(self, ref: SessionRef, *, limit: int) -> list[Summary]:
        """Finished summaries that no finished one covers, in order; the newest `limit` of them."""
        found = self._chosen(ref, "highest", "-last_seq", limit=limit)
        return sorted(found, key=lambda one: (one.first_seq, one.last_seq))

    def children(self, summary_ids: Sequence[str]) -> dict[str, list[Summary]]:
        """The finished summaries right below each of these, in order."""
        found: dict[str, list[Summary]] = {one: [] for one in summary_ids}
        for part in chunks(list(found)):
            below = self._read(_CHILDREN, parents=part)
            for summary in sorted(below, key=lambda one: (one.first_seq, one.last_seq)):
                found[summary.parent_id or ""].append(summary)
        return found

    def by_id(self, ref: SessionRef, summary_ids: Sequence[str]) -> list[Summary]:
        """These summaries of the session, in the order asked for; what is not there is left out."""
        found: dict[str, Summary] = {}
        ids = list(dict.fromkeys(summary_ids))
        for part in chunks(ids):
            found |= {summary.id: summary for summary in self._read(_BY_ID, session=ref.key, ids=part)}
        return [found[one] for one in ids if one in found]

    def by_prefix(self, ref: SessionRef, summary_id: str, *, track: str | None = None) -> list[Summary]:
        """The summary whose id begins so: views show the first characters. Several where those are too few.

        With a `track` only its own: none that merges several.
        """
        if not summary_id.isalnum():  # ids are hexadecimal
            return []
        begins = func.substr(summaries.c.id, 1, len(summary_id)) == summary_id  # `LIKE` refuses long patterns
        query = select(summaries).where(*of_track(summaries, ref, track), begins, summaries.c.state.in_(FINISHED))
        return self._read(query.limit(2))

    def of_span(self, ref: SessionRef, first_seq: int, last_seq: int, *, track: str | None = None) -> list[Summary]:
        """The highest finished summaries that stand for nothing but messages of a span, in order.

        That is one where a view shows it by its span, and several where it tells of neighbours in one line. With a
        `track` only its own: none that merges several.
        """

        def told_within(table: FromClause) -> tuple[ColumnElement[bool], ...]:
            within = table.c.state.in_(FINISHED), table.c.first_seq >= first_seq, table.c.last_seq <= last_seq
            return *of_track(table, ref, track), *within

        above = summaries.alias("above")
        is_told_above = select(above.c.id).where(above.c.id == summaries.c.parent_id, *told_within(above)).exists()
        query = select(summaries).where(*told_within(summaries), ~is_told_above)
        return self._read(query.order_by(summaries.c.first_seq, summaries.c.last_seq).limit(_MOST_OF_SPAN))

    def height(self, ref: SessionRef) -> int:
        """Levels there are, messages included: 1 for a session without summaries."""
        mine = summaries.c.session_key == ref.key, summaries.c.level <= _DEEPEST
        return self._count(select(func.max(summaries.c.level)).where(*mine)) + 1

    def all(self, ref: SessionRef) -> list[Summary]:
        """Every summary of a session, by level and place. For inspection: grows with the session."""
        return sorted(self._chosen(ref, "all", "first_seq"), key=lambda one: one.level)

    def waiting_summaries(self, ref: SessionRef, *, level: int, limit: int) -> list[Summary]:
        """The oldest summaries of a level that no higher one has taken, finished or not."""
        return self._chosen(ref, "not merged", "first_seq", level=level, limit=limit)

    def root_figures(self, ref: SessionRef, *, track: str | None = None) -> tuple[int, int]:
        """Tokens of the messages that the highest finished summaries stand for, and tokens of those summaries."""
        mine = of_track(summaries, ref, track)
        covered = func.coalesce(func.sum(summaries.c.source_tokens), 0)
        standing = func.coalesce(func.sum(summaries.c.tokens), 0)
        finished = select(covered).where(*mine, summaries.c.level == 1, summaries.c.state.in_(FINISHED))
        roots = select(standing).where(*mine, summaries.c.state.in_(ROOT))
        with self.database.read() as connection:
            row = connection.execute(select(finished.scalar_subquery(), roots.scalar_subquery())).one()
            return int(row[0]), int(row[1])

    def level_figures(self, ref: SessionRef, *, track: str | None = None) -> list[dict[str, Any]]:
        """Sums per level over the finished summaries of a session, or of one track of it alone, lowest level first."""
        query = (
            select(
                summaries.c.level,
                func.count().label("summaries"),
                *(func.sum(summaries.c[name]).label(name) for name in _SUMMED),
                *(
                    func.sum(summaries.c[name].cast(summaries.c.level.type)).label(name)
                    for name in ("degraded", "stale")
                ),
                *(func.avg(summaries.c[name]).label(name) for name in ("kept_identifiers", "information_loss")),
            )
            .where(*of_track(summaries, ref, track), summaries.c.state.in_(FINISHED))
            .group_by(summaries.c.level)
            .order_by(summaries.c.level)
        )
        with self.database.read() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def verdicts(self, ref: SessionRef, *, track: str | None = None) -> list[tuple[int, str, str, int]]:
        """What people called summaries of a session, or of one track of it: level, writer, verdict, and how often."""
        row = (summaries.c.level, func.coalesce(summaries.c.verdict_writer, ""), summaries.c.verdict)
        query = select(*row, func.count()).where(*of_track(summaries, ref, track), summaries.c.verdict.is_not(None))
        with self.database.read() as connection:
            return [tuple(one) for one in connection.execute(query.group_by(*row).order_by(*row))]

    def _read(self, query: Select[Any], **named: Any) -> list[Summary]:  # noqa: ANN401 - values of any column
        return self._records(query, derived_rows.summary, named)

    def _chosen(self, ref: SessionRef, which: str, by: str, **bounds: Any) -> list[Summary]:  # noqa: ANN401 - as above
        return self._read(_chosen(which, by, frozenset(bounds)), session=ref.key, **bounds)

    def waiting_entries(self, ref: SessionRef, *, track: str, limit: int) -> list[WaitingEntry]:
        """The oldest messages of a track that no summary has taken, and where among them a task was finished."""
        asked = {"session": ref.key, "track": packed(track), "most": limit}
        with self.database.read() as connection:
            read = connection.execute(_WAITING_ENTRIES, asked).mappings().all()
            found = readable(connection, read, _waiting_entry)
            more = len(read) == limit
            ends = _task_ends(connection, ref, track=track, seqs=[one.seq for one in found], more=more)
        return [replace(one, ends_task=True) if one.seq in ends else one for one in found]

    def borders(self, ref: SessionRef, *, track: str, after: int, limit: int) -> list[tuple[str, int, int]]:
        """Finished level-1 summaries of a track that end behind `after`, as (id, first seq, last seq), in order."""
        asked = {"track": packed(track), "after": after, "limit": limit}
        query = _chosen("finished", "last_seq", frozenset(asked), _BORDER)
        return self._records(query, _border, asked | {"session": ref.key})

    def last_border(self, ref: SessionRef, *, track: str, before: int) -> tuple[str, int, int] | None:
        """The newest finished level-1 summary of a track that ends before `before`, as (id, first seq, last seq)."""
        asked = {"track": packed(track), "before": before, "limit": 1}
        query = _chosen("finished", "-last_seq", frozenset(asked), _BORDER)
        return next(iter(self._records(query, _border, asked | {"session": ref.key})), None)

    def level_1_between(self, ref: SessionRef, *, after: int, up_to: int) -> list[Summary]:
        """Finished level-1 summaries of any track that end behind `after` and not behind `up_to`, in order."""
        return self._chosen(ref, "finished", "first_seq", level=1, after=after, up_to=up_to)

    def uncondensed(self, ref: SessionRef, *, track: str, up_to: int) -> list[tuple[int, int, int]]:
        """Spans of a track that no finished summary stands for, as (first seq, last seq, messages), in order.

        Messages that no summary has taken are one span; each unfinished level-1 summary is one more.
        """
        asked = {"session": ref.key, "track": packed(track), "up_to": up_to}
        with self.database.read() as connection:
            first, last, count = connection.execute(_FREE_UP_TO, asked).one()
            spans = [(first, last, count)] if count and isinstance(first, int) and isinstance(last, int) else []
            spans += readable(connection, connection.execute(_UNFINISHED_UP_TO, asked).mappings(), _span)
        return sorted(spans)

    def roots_before(self, ref: SessionRef, *, up_to: int, without: Collection[str]) -> list[Node]:
        """Of the highest finished summaries those that end at `up_to` or before, as headlines without their text.

        For what a cover has no room to tell one by one: reading their texts would take as long as there are of them.
        """
        query = _chosen("highest", "first_seq", frozenset({"up_to"}), ("id", "level", *_SPAN))
        found = self._records(query, _headline, {"session": ref.key, "up_to": up_to})
        return sorted((one for one in found if one.id not in without), key=lambda one: (one.first_seq, one.last_seq))

    def condensed_tokens(self, ref: SessionRef, *, up_to: int, enough: int) -> int:
        """Tokens of the messages that finished summaries of level 1 stand for, up to a border; or `enough`, if more."""
        asked = {"session": ref.key, "level": 1, "up_to": up_to, "limit": enough // _LEAST_CHUNK_TOKENS + 1}
        with self.database.read() as connection:
            return min(int(connection.scalar(_CONDENSED_TOKENS, asked) or 0), enough)

    def first_uncondensed(self, ref: SessionRef, *, track: str, after: int) -> int | None:
        """The first message of a track behind `after` that no finished summary stands for."""
        asked = {"session": ref.key, "track": packed(track), "after": after}
        with self.database.read() as connection:
            found = connection.execute(_FIRST_UNCONDENSED, asked).one()
        return min((one for one in found if isinstance(one, int)), default=None)

    def has_written(self, ref: SessionRef) -> bool:
        """Whether a level-1 summary is there that says more than its messages' own sentences."""
        with self.database.read() as connection:
            return connection.scalar(_WRITTEN, {"session": ref.key, "level": 1}) is not None

    def first_unfinished(self, ref: SessionRef, *, track: str, after: int) -> Summary | None:
        """The first level-1 summary of a track behind `after` that is planned, in the making, or failed."""
        asked = {"track": packed(track), "begins_after": after, "limit": 1}
        return next(iter(self._chosen(ref, "unfinished", "first_seq", **asked)), None)

    def newest(self, ref: SessionRef, *, level: int, up_to: int, limit: int) -> list[Summary]:
        """Finished summaries of a level that end at `up_to` or before, newest first."""
        return self._chosen(ref, "finished", "-last_seq", level=level, up_to=up_to, limit=limit)


def _waiting_entry(row: RowMapping) -> WaitingEntry:
    check(entries, row)
    return WaitingEntry(
        seq=row["seq"], group=row["group_seq"], tokens=row["tokens"], at=row["at"], waits=bool(row["has_open_calls"])
    )


def _border(row: RowMapping) -> tuple[str, int, int]:
    check(summaries, {name: row[name] for name in ("first_seq", "last_seq")})
    return row["id"], row["first_seq"], row["last_seq"]


def _headline(row: RowMapping) -> Node:
    check(summaries, row)
    return Node(**row, tokens=0, resolution="headline")


def _span(row: RowMapping) -> tuple[int, int, int]:
    check(summaries, row)
    return row["first_seq"], row["last_seq"], row["entry_count"]


def _task_ends(
    connection: Connection, ref: SessionRef, *, track: str, seqs: Sequence[int], more: bool
) -> frozenset[int]:
    """Which of these messages of a track were the last ones before a task was finished.

    A task may have been finished behind the last of them. With `more`, a message that was not read may stand between.
    """
    if not seqs:
        return frozenset()
    asked = {"session": ref.key, "track": packed(track), "first": seqs[0]}
    if more:
        found = connection.execute(_TASK_ENDS_WITHIN, asked | {"last": seqs[-1]})
    else:
        found = connection.execute(_TASK_ENDS, asked)
    ends = readable(connection, found.mappings(), _last_seq)
    return frozenset(seqs[bisect_right(seqs, last_seq) - 1] for last_seq in ends)


def _last_seq(row: RowMapping) -> int:
    check(tasks, {"last_seq": row["last_seq"]})
    return int(row["last_seq"])
