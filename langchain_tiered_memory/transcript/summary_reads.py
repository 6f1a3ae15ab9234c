"""Summaries are read: the cover, what stands below or by which id, and figures over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, func, select

from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import of_track
from langchain_tiered_memory.sql.schema import beside_index, summaries
from langchain_tiered_memory.transcript import derived_rows
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.records import SessionRef, Summary, SummaryState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, FromClause


FINISHED = (SummaryState.ACTIVE, SummaryState.SUPERSEDED, SummaryState.ARCHIVED)
ROOT = (SummaryState.ACTIVE, SummaryState.ARCHIVED)

_MOST_OF_SPAN = 500
"""Of one span: a line that a view shows tells of a few."""

_SUMMED = ("tokens", "source_tokens", "calls", "input_tokens", "output_tokens", "seconds")
_BY_ID = select(summaries).where(
    beside_index(summaries.c.session_key) == bindparam("session"), summaries.c.id.in_(bindparam("ids", expanding=True))
)
_ROOTS = (
    select(summaries)
    .where(summaries.c.session_key == bindparam("session"), summaries.c.state.in_(ROOT))
    .order_by(summaries.c.last_seq.desc())
    .limit(bindparam("most"))
)
_CHILDREN = select(summaries).where(
    summaries.c.parent_id.in_(bindparam("parents", expanding=True)), summaries.c.state.in_(FINISHED)
)
_HIGHEST = select(func.max(summaries.c.level)).where(summaries.c.session_key == bindparam("session"))


class SummaryReads(Room):
    """Reads summaries of any level."""

    def roots(self, ref: SessionRef, *, limit: int) -> list[Summary]:
        """Finished summaries that no finished one covers, in order; the newest `limit` of them."""
        return sorted(self._read(_ROOTS, session=ref.key, most=limit), key=lambda one: (one.first_seq, one.last_seq))

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
        return self._count(_HIGHEST, {"session": ref.key}) + 1

    def all(self, ref: SessionRef) -> list[Summary]:
        """Every summary of a session, by level and place. For inspection: grows with the session."""
        query = select(summaries).where(summaries.c.session_key == ref.key)
        return self._read(query.order_by(summaries.c.level, summaries.c.first_seq))

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

    def _read(self, query: Any, **named: Any) -> list[Summary]:  # noqa: ANN401 - any select of summaries
        return self._records(query, derived_rows.summary, named)
