"""Where a track is condensed and where it is not yet: borders of level-1 summaries, and what waits between them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from langchain_tiered_memory.drafts import WaitingEntry
from langchain_tiered_memory.stores.schema import entries, packed, summaries, tasks
from langchain_tiered_memory.stores.summary_reads import FINISHED, SummaryReads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from langchain_tiered_memory.records import SessionRef, Summary


@dataclass(frozen=True, slots=True)
class BorderReads(SummaryReads):
    """Reads level-1 summaries by their place in the session, and the messages that none stands for."""

    def waiting_entries(self, ref: SessionRef, *, track: str, limit: int) -> list[WaitingEntry]:
        """The oldest messages of a track that no summary has taken, and where among them a task was finished."""
        query = (
            select(
                entries.c.seq, entries.c.group_seq, entries.c.tokens, entries.c.at, entries.c.open_calls.is_not(None)
            )
            .where(entries.c.session_key == ref.key, entries.c.summary_id.is_(None), entries.c.track == packed(track))
            .order_by(entries.c.seq)
            .limit(limit)
        )
        with self.database.read() as connection:
            found = connection.execute(query).all()
            more = len(found) == limit
            ends = _task_ends(connection, ref, track=track, seqs=[row.seq for row in found], more=more)
        return [
            WaitingEntry(seq=seq, group=group, tokens=tokens, at=at, waits=bool(waits), ends_task=seq in ends)
            for seq, group, tokens, at, waits in found
        ]

    def borders(self, ref: SessionRef, *, track: str, after: int, limit: int) -> list[tuple[str, int, int]]:
        """Finished level-1 summaries of a track that end behind `after`, as (id, first seq, last seq), in order."""
        query = (
            select(summaries.c.id, summaries.c.first_seq, summaries.c.last_seq)
            .where(
                summaries.c.session_key == ref.key,
                summaries.c.level == 1,
                summaries.c.track == packed(track),
                summaries.c.last_seq > after,
                summaries.c.state.in_(FINISHED),
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
                summaries.c.state.in_(FINISHED),
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
                summaries.c.state.in_(FINISHED),
            )
            .order_by(summaries.c.first_seq)
        )
        return self._read(query)

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
            summaries.c.unfinished.is_(True),
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
            summaries.c.unfinished.is_(True),
        )
        with self.database.read() as connection:
            found = [connection.scalar(free), connection.scalar(unfinished)]
        return min((one for one in found if one is not None), default=None)

    def first_unfinished(self, ref: SessionRef, *, track: str, after: int) -> Summary | None:
        """The first level-1 summary of a track behind `after` that is planned, in the making, or failed."""
        query = (
            select(summaries)
            .where(
                summaries.c.session_key == ref.key,
                summaries.c.level == 1,
                summaries.c.track == packed(track),
                summaries.c.first_seq > after,
                summaries.c.unfinished.is_(True),
            )
            .order_by(summaries.c.first_seq)
            .limit(1)
        )
        found = self._read(query)
        return found[0] if found else None

    def newest(self, ref: SessionRef, *, level: int, up_to: int, limit: int) -> list[Summary]:
        """Finished summaries of a level that end at `up_to` or before, newest first."""
        query = (
            select(summaries)
            .where(
                summaries.c.session_key == ref.key,
                summaries.c.level == level,
                summaries.c.last_seq <= up_to,
                summaries.c.state.in_(FINISHED),
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
                summaries.c.state.in_(FINISHED),
            )
            .order_by(summaries.c.last_seq)
            .limit(limit)
        )
        with self.database.read() as connection:
            return list(connection.scalars(query))


def _task_ends(
    connection: Connection, ref: SessionRef, *, track: str, seqs: Sequence[int], more: bool
) -> frozenset[int]:
    """Which of these messages of a track were the last ones before a task was finished.

    A task may have been finished behind the last of them. With `more`, a message that was not read may stand between.
    """
    if not seqs:
        return frozenset()
    query = select(tasks.c.last_seq).where(
        tasks.c.session_key == ref.key,
        tasks.c.track == packed(track),
        tasks.c.state == "finished",
        tasks.c.last_seq >= seqs[0],
    )
    if more:
        query = query.where(tasks.c.last_seq <= seqs[-1])
    return frozenset(seqs[bisect_right(seqs, last_seq) - 1] for last_seq in connection.scalars(query))
