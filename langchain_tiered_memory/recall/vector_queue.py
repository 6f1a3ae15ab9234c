"""Queue of passages to embed or to remove: kept in SQL, so that no crash and no outage loses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, case, delete, func, select, update

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import insert_if_absent, lock_every_session, lock_sessions_of_passages, upsert
from langchain_tiered_memory.sql.schema import entries, meta, passages, removed_vectors, summaries, unpacked
from langchain_tiered_memory.transcript.append import chunks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.types.records import SessionRef


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRow:
    """What the vector index needs to know of a passage."""

    id: int
    text: str
    """What to embed."""
    metadata: Mapping[str, str | int | float]
    """`session` (int), `level` (int), `seq` (int), `track` (str), `at` (float), `kind` (str)."""


class VectorQueue(Room):
    """Reads and settles the queue."""

    def pending(
        self,
        *,
        limit: int,
        ref: SessionRef | None = None,
        newest_first: bool = False,
        before: int | None = None,
    ) -> list[VectorRow]:
        """Passages without a vector, with the text to embed: of messages only those before the `seq` `before`."""
        query = (
            _WITH_TEXTS.where(_IS_PENDING)
            .order_by(passages.c.id.desc() if newest_first else passages.c.id)
            .limit(limit)
        )
        if ref is not None:
            query = query.where(passages.c.session_key == ref.key)
        if before is not None:
            query = query.where((passages.c.level > 0) | (passages.c.seq < before))
        return self._records(query, _vector_row)

    def count(self, *, ref: SessionRef | None = None) -> int:
        """How many passages have no vector."""
        query = select(func.count()).select_from(passages).where(_IS_PENDING)
        if ref is not None:
            query = query.where(passages.c.session_key == ref.key)
        return self._count(query)

    def settle(self, ids: Sequence[int], *, fingerprint: str) -> None:
        """Note that these passages are in the index of that embedder.

        What was forgotten while it was embedded is noted for removal again: its vector came after the removal.
        """
        with self.database.write() as connection:
            for part in chunks(list(dict.fromkeys(ids))):
                lock_sessions_of_passages(connection, part)
                connection.execute(update(passages).where(passages.c.id.in_(part)).values(vector=fingerprint[:32]))
                there = set(connection.scalars(select(passages.c.id).where(passages.c.id.in_(part))))
                gone = [{"passage_id": one} for one in part if one not in there]
                if gone:
                    connection.execute(insert_if_absent(connection, removed_vectors), gone)

    def unsettle(self, ids: Sequence[int]) -> None:
        """Note that these passages are in no index after all."""
        with self.database.write() as connection:
            for part in chunks(list(ids)):
                connection.execute(update(passages).where(passages.c.id.in_(part)).values(vector=None))

    def forgotten(self, *, limit: int) -> list[int]:
        """Vectors of passages that are no more."""
        with self.database.read() as connection:
            return list(connection.scalars(select(removed_vectors.c.passage_id).limit(limit)))

    def settle_forgotten(self, ids: Sequence[int]) -> None:
        """Note that these vectors are gone."""
        with self.database.write() as connection:
            for part in chunks(sorted(set(ids))):
                connection.execute(delete(removed_vectors).where(removed_vectors.c.passage_id.in_(part)))

    def reset(self) -> None:
        """Note that the index holds nothing: every passage is to be embedded again."""
        with self.database.write() as connection:
            lock_every_session(connection)
            connection.execute(update(passages).where(passages.c.vector.is_not(None)).values(vector=None))
            connection.execute(delete(removed_vectors))

    def count_settled(self, *, fingerprint: str) -> int:
        """How many passages should be in that embedder's index."""
        query = select(func.count()).select_from(passages).where(passages.c.vector == fingerprint[:32])
        return self._count(query)

    def has_settled_beyond(self, ref: SessionRef, *, fingerprint: str, level: int, known: int) -> bool:
        """Whether more than `known` passages of a session's level should be in that embedder's index."""
        query = select(passages.c.id).where(
            passages.c.session_key == ref.key, passages.c.level == level, passages.c.vector == fingerprint[:32]
        )
        with self.database.read() as connection:
            return connection.execute(query.offset(known).limit(1)).first() is not None

    def settled(self, *, fingerprint: str) -> list[int]:
        """Ids of passages that should be in that embedder's index, in order."""
        query = select(passages.c.id).where(passages.c.vector == fingerprint[:32]).order_by(passages.c.id)
        with self.database.read() as connection:
            return list(connection.scalars(query))

    def embedder(self) -> str | None:
        """Fingerprint of the embedder whose vectors the index holds."""
        with self.database.read() as connection:
            return connection.scalar(select(meta.c.value).where(meta.c.name == "embedder"))

    def set_embedder(self, fingerprint: str) -> None:
        """Note whose vectors the index holds from now on."""
        with self.database.write() as connection:
            values = {"name": "embedder", "value": fingerprint}
            connection.execute(upsert(connection, meta, key=("name",), values=values))


_LENGTH = case((passages.c.stop > passages.c.start, passages.c.stop - passages.c.start), else_=0)
_PART = (passages.c.start + 1, _LENGTH)
_SPOKEN_IN = and_(
    passages.c.level == 0, entries.c.session_key == passages.c.session_key, entries.c.seq == passages.c.seq
)
_IS_PENDING = passages.c.vector.is_(None)
_WITH_TEXTS = (
    select(
        passages,
        entries.c.name.label("speaker"),
        entries.c.role,
        func.coalesce(func.substr(entries.c.text, *_PART), func.substr(summaries.c.text, *_PART), "").label("said"),
    )
    .outerjoin(entries, _SPOKEN_IN)
    .outerjoin(summaries, summaries.c.id == passages.c.summary_id)
)
"""Passages with who speaks in them, and what they say."""


def _vector_row(row: RowMapping) -> VectorRow:
    columns = ("id", "session_key", "level", "seq", "summary_id", "start", "stop", "at")
    check(passages, {name: row[name] for name in columns})
    speaker = unpacked(row["speaker"]) if row["speaker"] is not None else row["role"]
    return VectorRow(
        id=row["id"],
        text=f"{speaker}: {row['said']}" if speaker else str(row["said"]),
        metadata={
            "session": row["session_key"],
            "level": row["level"],
            "seq": row["seq"],
            "track": unpacked(row["track"]),
            "at": row["at"],
            "kind": unpacked(row["kind"] or ""),
        },
    )
