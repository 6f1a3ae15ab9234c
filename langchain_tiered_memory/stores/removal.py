"""The one way to remove: messages, sessions or a user's sessions, with everything that was derived from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, and_, delete, func, select, update

from langchain_tiered_memory.drafts import Removed
from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.records import SessionRef, SummaryState
from langchain_tiered_memory.stores import rows
from langchain_tiered_memory.stores.ancestry import ancestors
from langchain_tiered_memory.stores.appending import chunks, unanswered
from langchain_tiered_memory.stores.checkpoints import drop_checkpoints_since
from langchain_tiered_memory.stores.file_rows import drop_touches
from langchain_tiered_memory.stores.index_rows import drop_passages
from langchain_tiered_memory.stores.outcome_rows import cut_outcomes
from langchain_tiered_memory.stores.schema import (
    checkpoints,
    digest_of,
    entries,
    files,
    outcomes,
    passages,
    plans,
    revisions,
    runs,
    sessions,
    summaries,
    tasks,
    unpacked,
)
from langchain_tiered_memory.stores.session_rows import advance_epoch, lock_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.stores.database import Database

_OF_A_RUN = (plans, runs, tasks, checkpoints, outcomes, files)
"""Tables whose rows go with their session, uncounted."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Removes, and makes the bytes go too where the database can."""

    database: Database

    def messages(self, ref: SessionRef, message_ids: Sequence[str]) -> Removed:
        """Remove messages, their revisions, every summary above them, all index rows, and the files they touched.

        What those summaries covered besides is free to be summarised again; calls that lost their results are open
        again. Checkpoints that were made when one of them was there go too, for they hold words of the view; outcomes
        of that time lose what may quote or name them, and can no longer be undone.
        """
        removed = Removed()
        with self.database.write() as connection:
            lock_session(connection, ref.key)
            for part in chunks(list(dict.fromkeys(digest_of(one) for one in message_ids))):
                removed += _remove_messages(connection, ref, part)
            connection.execute(delete(plans).where(plans.c.session_key == ref.key))
            advance_epoch(connection, ref.key)
        return removed

    def session(self, ref: SessionRef) -> Removed:
        """Remove a session whole."""
        counts: dict[str, int] = {}
        with self.database.write() as connection:
            # Whoever appends at this moment comes before the removal, or makes the session anew after it.
            is_there = lock_session(connection, ref.key) is not None
            index_rows, _ = drop_passages(connection, passages.c.session_key == ref.key)
            for name, table in (("entries", entries), ("revisions", revisions), ("summaries", summaries)):
                counts[name] = connection.execute(delete(table).where(table.c.session_key == ref.key)).rowcount
            for table in _OF_A_RUN:
                connection.execute(delete(table).where(table.c.session_key == ref.key))
            connection.execute(delete(sessions).where(sessions.c.key == ref.key))
        return Removed(
            entries=counts["entries"],
            revisions=counts["revisions"],
            summaries=counts["summaries"],
            passages=index_rows,
            session_ids=(ref.session_id,) if is_there else (),
        )

    def erase_traces(self) -> tuple[str, ...]:
        """Make removed rows leave no bytes behind; returns the places where that cannot be promised."""
        if self.database.dialect != "sqlite":
            with self.database.outside_transaction() as connection:
                connection.exec_driver_sql(
                    "VACUUM ltm_sessions, ltm_entries, ltm_revisions, ltm_passages, ltm_summaries, "
                    + ", ".join(table.name for table in _OF_A_RUN)
                )
            return ("PostgreSQL: dead rows in data files until they are overwritten, the log, replicas and backups",)
        with self.database.write() as connection:
            connection.exec_driver_sql("INSERT INTO ltm_passages_fts(ltm_passages_fts) VALUES ('optimize')")
        try:
            busy = self.database.vacuum()
        except StorageError as error:
            return (f"SQLite: free pages and the write-ahead log, for another process holds the file ({error})",)
        return ("SQLite: the write-ahead log, for another process reads it",) if busy else ()


def uproot(connection: Connection, summary_ids: Sequence[str]) -> tuple[int, int]:
    """Remove summaries and everything above them; what they covered is free again.

    Returns:
        How many summaries went, and how many index rows.
    """
    above = ancestors(connection, summary_ids)
    index_rows = 0
    for part in chunks(above):
        index_rows += drop_passages(connection, passages.c.summary_id.in_(part))[0]
        connection.execute(update(entries).where(entries.c.summary_id.in_(part)).values(summary_id=None))
        below = summaries.c.parent_id.in_(part)
        superseded = and_(below, summaries.c.state == SummaryState.SUPERSEDED)
        connection.execute(update(summaries).where(superseded).values(state=SummaryState.ACTIVE))
        connection.execute(update(summaries).where(below).values(parent_id=None))
    for part in chunks(above):
        connection.execute(delete(summaries).where(summaries.c.id.in_(part)))
    return len(above), index_rows


def _remove_messages(connection: Connection, ref: SessionRef, digests: Sequence[str]) -> Removed:
    mine = and_(entries.c.session_key == ref.key, entries.c.id_digest.in_(list(digests)))
    columns = (entries.c.seq, entries.c.message_id, entries.c.tokens, entries.c.summary_id, entries.c.group_seq)
    found = connection.execute(select(*columns).where(mine)).all()
    if not found:
        return Removed()
    seqs = [row.seq for row in found]
    # Those of one summary are many: each is named once.
    covering = list(dict.fromkeys(row.summary_id for row in found if row.summary_id is not None))
    gone_summaries, index_rows = uproot(connection, covering)
    gone, terms = drop_passages(
        connection, and_(passages.c.session_key == ref.key, passages.c.level == 0, passages.c.seq.in_(seqs))
    )
    old = connection.execute(
        delete(revisions).where(revisions.c.session_key == ref.key, revisions.c.seq.in_(seqs))
    ).rowcount
    connection.execute(delete(entries).where(mine))
    drop_touches(connection, ref.key, seqs)
    drop_checkpoints_since(connection, ref.key, min(seqs))
    cut_outcomes(connection, ref.key, since=min(seqs), message_ids=[unpacked(row.message_id) for row in found])
    _open_again(connection, ref, {row.group_seq for row in found} - set(seqs))
    newest = select(func.max(entries.c.at)).where(entries.c.session_key == ref.key).scalar_subquery()
    connection.execute(
        update(sessions)
        .where(sessions.c.key == ref.key)
        .values(
            entries=sessions.c.entries - len(seqs),
            tokens=sessions.c.tokens - sum(row.tokens for row in found),
            passages=sessions.c.passages - gone,
            terms=sessions.c.terms - terms,
            last_at=newest,
        )
    )
    return Removed(entries=len(seqs), revisions=old, summaries=gone_summaries, passages=index_rows + gone)


def _open_again(connection: Connection, ref: SessionRef, heads: set[int]) -> None:
    """Say anew which calls of these messages have no result."""
    for head in sorted(heads):
        mine = and_(entries.c.session_key == ref.key, entries.c.seq == head)
        calls = connection.scalar(select(entries.c.calls).where(mine))
        if calls:
            left = unanswered(connection, ref.key, head, rows.names_from_json(calls))
            connection.execute(update(entries).where(mine).values(open_calls=left))
