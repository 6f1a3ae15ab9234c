"""Which summaries stand above others: walked upward in SQL, one level a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, select, update

from langchain_tiered_memory.sql.schema import summaries

if TYPE_CHECKING:
    from collections.abc import Sequence


def ancestors(connection: Connection, summary_ids: Sequence[str]) -> list[str]:
    """The given summaries and everything above them, lowest first. A damaged parent is no summary, and left out."""
    found = dict.fromkeys(summary_ids)
    level = list(found)
    while level:
        query = select(summaries.c.parent_id).where(summaries.c.id.in_(level), summaries.c.parent_id.is_not(None))
        level = [one for one in dict.fromkeys(connection.scalars(query)) if isinstance(one, str) and one not in found]
        found |= dict.fromkeys(level)
    return list(found)


def mark_ancestors_stale(connection: Connection, summary_ids: Sequence[str], *, now: float) -> None:
    """Mark summaries and everything above them as made from an older text; due for a remake at once.

    `touched` says the same to whoever is making one at this moment: its text will be stale when it is committed.
    """
    connection.execute(
        update(summaries)
        .where(summaries.c.id.in_(ancestors(connection, summary_ids)))
        .values(stale=True, touched=True, retry_at=now)
    )


def read_again(connection: Connection, summary_id: str) -> None:
    """Say that the facts of a summary's messages are to be read again."""
    connection.execute(update(summaries).where(summaries.c.id == summary_id).values(facts_read=0))
