"""Deletes passages and queues their vectors for removal: the one place that does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, func, select

from langchain_tiered_memory.sql.schema import passages, removed_vectors
from langchain_tiered_memory.sql.session_rows import insert_if_absent

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement

TERM_COUNT = func.length(passages.c.terms) - func.length(func.replace(passages.c.terms, " ", "")) + 1
"""Terms of one passage, counted by the database as `terms.count(" ") + 1` counts them here."""


def drop_passages(connection: Connection, condition: ColumnElement[bool]) -> tuple[int, int]:
    """Remove passages and note their vectors for removal. Returns how many, and how many terms they had."""
    count, terms = connection.execute(
        select(func.count(), func.coalesce(func.sum(TERM_COUNT), 0)).where(condition)
    ).one()
    if count:
        noted = select(passages.c.id).where(condition)
        connection.execute(insert_if_absent(connection, removed_vectors).from_select(["passage_id"], noted))
        connection.execute(delete(passages).where(condition))
    return int(count), int(terms)
