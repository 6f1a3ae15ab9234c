"""Reading everything, page by page, for `verify()`; and writing what mends it, for `doctor()` and `rebuild_index()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, func, select, text, update

from langchain_tiered_memory.errors import DamagedRowError, NotOurDatabaseError, StorageError
from langchain_tiered_memory.forgetting.row_removal import uproot
from langchain_tiered_memory.sql import entry_rows
from langchain_tiered_memory.sql.column_forms import damage_in
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import ROWS_AT_ONCE, advance_epoch, insert_all, lock_every_session, lock_session
from langchain_tiered_memory.sql.schema import entries, passages, summaries
from langchain_tiered_memory.summaries.facts.rows import stand_anew
from langchain_tiered_memory.transcript import derived_rows
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.transcript.derived_rows import (
    count_anew,
    drop_passages,
    passage_values,
    summary_passages,
    totals_of,
    write_touches,
)
from langchain_tiered_memory.types.drafts import FileTouch, counter_mark
from langchain_tiered_memory.types.records import Draft, Entry, PassageDraft, SessionRef, Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import Connection, Executable, RowMapping, Table

    from langchain_tiered_memory.maintenance.remedies import Fault

_DERIVED = ("role", "name", "text", "tokens", "counter", "calls", "answers")
"""Columns of a message that follow from its payload."""


class Inspection(Room):
    """Looks at rows as they are; judges nothing."""

    def look(self, *checks: Callable[[Connection], Iterable[Fault]]) -> list[Fault]:
        """What these checks find, in one state of the database."""
        with self.database.read() as connection:
            return [found for check in checks for found in check(connection)]

    def change(self, changes: Sequence[Executable]) -> None:
        """Change rows, together or not at all; what cannot be done leaves its fault, which is named again."""
        try:
            with self.database.write() as connection:
                for one in changes:
                    connection.execute(one)
        except StorageError as error:  # another row has that key already
            self.database.damage.note(DamagedRowError("a row", "", "key", f"cannot be repaired: {error}"))

    def seal(self, ref: SessionRef) -> None:
        """Seal the messages of a session that have no seal: those from before seals, and those that lost theirs."""
        mine = and_(entries.c.session_key == ref.key, entries.c.seal.is_(None))
        with self.database.write() as connection:
            session = lock_session(connection, ref.key)
            if session is None:
                return
            for row in connection.execute(select(entries).where(mine)).mappings().all():
                if not any(damage_in(entries, row)):
                    sealed = {"seal": entry_rows.seal_of_row(session["digest"], row)}
                    connection.execute(update(entries).where(mine, entries.c.seq == row["seq"]).values(sealed))

    def counted_pages(self, ref: SessionRef) -> Iterator[list[tuple[Entry, int | None]]]:
        """A session's messages, each with the mark of what counted it, a page at a time; damaged ones left out."""
        after: int | None = 0
        while after is not None:
            page, after = self.counted_page(ref, after)
            if page:
                yield page

    def counted_page(self, ref: SessionRef, after: int) -> tuple[list[tuple[Entry, int | None]], int | None]:
        """One of `counted_pages`, and the number after which the next one begins; `None` behind the last.

        A broken connection is tried anew for each, as for any read that is no generator.
        """
        mine = and_(entries.c.session_key == ref.key, entries.c.seq > after)
        query = select(entries).where(mine).order_by(entries.c.seq).limit(ROWS_AT_ONCE)
        with self.database.read() as connection:
            found = connection.execute(query).mappings().all()
            page = readable(connection, found, lambda row: (entry_rows.entry(row), row["counter"]))
        return page, found[-1]["seq"] if found and isinstance(found[-1]["seq"], int) else None

    def summary_rows(self, ref: SessionRef) -> list[tuple[Summary, RowMapping]]:
        """A session's summaries, each with its row."""
        query = select(summaries).where(summaries.c.session_key == ref.key)
        query = query.order_by(summaries.c.level, summaries.c.first_seq)
        return self._records(query, lambda row: (derived_rows.summary(row), row))

    def entries_under(self, ref: SessionRef, summary_ids: Sequence[str]) -> list[Entry]:
        """The messages that say that they stand under these summaries; as many as fit one `IN (...)`."""
        mine = and_(entries.c.session_key == ref.key, entries.c.summary_id.in_(list(summary_ids)))
        return self._records(select(entries).where(mine), entry_rows.entry)

    def passages_of(
        self, ref: SessionRef, *, seqs: Sequence[int] = (), summary_ids: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Index rows of these entries and of these summaries, in order, as `passage_values` gives them."""
        of_entries = and_(passages.c.session_key == ref.key, passages.c.level == 0)
        wanted = [and_(of_entries, passages.c.seq.in_(part)) for part in chunks(list(seqs))]
        wanted += [passages.c.summary_id.in_(part) for part in chunks(list(summary_ids))]
        query = select(*(column for column in passages.c if column.name not in ("id", "vector")))
        query = query.order_by(passages.c.level, passages.c.seq, passages.c.part)
        with self.database.read() as connection:
            return [dict(row) for which in wanted for row in connection.execute(query.where(which)).mappings()]

    def mend_touches(self, ref: SessionRef, entry: Entry, touches: Sequence[FileTouch]) -> None:
        """Write anew which files a message touched."""
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            write_touches(connection, ref.key, track=entry.track, seq=entry.seq, at=entry.at, touches=touches)

    def orphan_passages(self) -> list[int]:
        """Index rows whose message or summary does not exist."""
        entry_gone = and_(passages.c.level == 0, entries.c.seq.is_(None))
        summary_gone = and_(passages.c.level > 0, summaries.c.id.is_(None))
        query = (
            select(passages.c.id)
            .outerjoin(entries, and_(entries.c.session_key == passages.c.session_key, entries.c.seq == passages.c.seq))
            .outerjoin(summaries, summaries.c.id == passages.c.summary_id)
            .where(entry_gone | summary_gone)
        )
        with self.database.read() as connection:
            return list(connection.scalars(query))

    def count(self, table: Table) -> int:
        """All rows of a table."""
        return self._count(select(func.count()).select_from(table))

    def damaged_database(self) -> str | None:
        """What the database's own check says is wrong with its file, or `None`."""
        if self.database.dialect != "sqlite":
            return None
        with self.database.read() as connection:
            said = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA quick_check")]
        return None if said == ["ok"] else "; ".join(said)

    def damaged_text_index(self) -> list[int] | None:
        """Passages that the full-text index does not hold as their rows say; `None` when it is damaged as a whole.

        SQLite's own check of the index needs a write: where the database is only read, each passage is looked for, and
        what the index says of it is not compared.
        """
        if self.database.dialect != "sqlite":
            query = text(
                "SELECT id FROM ltm_passages WHERE tsv IS DISTINCT FROM "
                "array_to_tsvector(array_remove(string_to_array(scope || ' ' || terms, ' '), ''))"
            )
            with self.database.read() as connection:
                return list(connection.scalars(query))
        missing = text(
            "SELECT p.id FROM ltm_passages p LEFT JOIN ltm_passages_fts_docsize d ON d.id = p.id WHERE d.id IS NULL "
            "UNION SELECT d.id FROM ltm_passages_fts_docsize d LEFT JOIN ltm_passages p ON p.id = d.id "
            "WHERE p.id IS NULL"
        )
        with self.database.read() as connection:
            found = list(connection.scalars(missing))
        if found or self.database.read_only:
            return found
        try:
            with self.database.write() as connection:
                connection.exec_driver_sql(
                    "INSERT INTO ltm_passages_fts(ltm_passages_fts, rank) VALUES ('integrity-check', 1)"
                )
        except NotOurDatabaseError:
            return None
        return []

    def rebuild_text_index(self) -> None:
        """Make the full-text index anew from the index rows."""
        with self.database.write() as connection:
            if self.database.dialect == "sqlite":
                connection.exec_driver_sql("INSERT INTO ltm_passages_fts(ltm_passages_fts) VALUES ('rebuild')")
            else:
                connection.exec_driver_sql("REINDEX INDEX ltm_passages_tsv")

    def replace_passages(self, ref: SessionRef, owner: Entry | Summary, drafts: Sequence[PassageDraft]) -> None:
        """Write an owner's index rows anew."""
        condition = passages.c.summary_id == owner.id
        if isinstance(owner, Entry):
            condition = and_(passages.c.session_key == ref.key, passages.c.level == 0, passages.c.seq == owner.seq)
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            drop_passages(connection, condition)
            insert_all(connection, passages, index_rows(ref, owner, drafts))

    def drop_orphan_passages(self, ids: Sequence[int]) -> None:
        """Remove index rows without an owner."""
        with self.database.write() as connection:
            lock_every_session(connection)
            for part in chunks(list(ids)):
                drop_passages(connection, passages.c.id.in_(part))

    def totals(self, ref: SessionRef) -> dict[str, Any]:
        """A session's running figures, counted anew."""
        with self.database.read() as connection:
            return totals_of(connection, ref.key)

    def mend_totals(self, ref: SessionRef) -> None:
        """Write a session's running figures anew."""
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            count_anew(connection, ref.key)

    def mend_entry(self, ref: SessionRef, seq: int, draft: Draft) -> None:
        """Write what was derived from a message anew."""
        derived = entry_rows.entry_values(draft)
        values = {name: derived[name] for name in _DERIVED}
        mine = and_(entries.c.session_key == ref.key, entries.c.seq == seq)
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            if connection.scalar(select(entries.c.revision).where(mine)):
                del values["answers"]  # an edited message answers the call that it answered before
            connection.execute(update(entries).where(mine).values(values))

    def recount_summary(self, summary: Summary, *, tokens: int, counter: str) -> None:
        """Write a summary's tokens anew."""
        with self.database.write() as connection:
            counted = {"tokens": tokens, "counter": counter_mark(counter)}
            connection.execute(update(summaries).where(summaries.c.id == summary.id).values(counted))

    def discard_summaries(self, ids: Sequence[str]) -> None:
        """Remove summaries that cannot be trusted, and all above them; what they covered is free again."""
        with self.database.write() as connection:
            lock_every_session(connection)
            owners: set[int] = set()
            for part in chunks(list(dict.fromkeys(ids))):
                query = select(summaries.c.session_key).where(summaries.c.id.in_(part))
                owners |= set(connection.scalars(query))
                uproot(connection, part)
            for key in sorted(owners):
                stand_anew(connection, key)
                advance_epoch(connection, key)


def index_rows(ref: SessionRef, owner: Entry | Summary, drafts: Sequence[PassageDraft]) -> list[dict[str, Any]]:
    """The index rows that a message or a summary should have."""
    if isinstance(owner, Entry):
        place: dict[str, Any] = {"track": owner.track, "kind": owner.kind, "at": owner.at}
        return passage_values(ref.key, drafts, seq=owner.seq, **place)
    return summary_passages(ref.key, owner, drafts)
