"""Reserves the sources of a planned summary, all or nothing: nothing gets under two summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, func, select, update

from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.schema import beside_index, entries, summaries, unpacked
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.transcript.summary_reads import ROOT

if TYPE_CHECKING:
    from langchain_tiered_memory.types.drafts import SummaryPlan
    from langchain_tiered_memory.types.records import SessionRef


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
    return {
        "sources": rows.names_to_json([unpacked(row.message_id) for row in found]),
        "first_seq": found[0].seq,
        "last_seq": found[-1].seq,
        "entry_count": len(found),
        "first_at": min(row.at for row in found),
        "last_at": max(row.at for row in found),
        "source_tokens": sum(row.tokens for row in found),
    }


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
    found = connection.execute(query).mappings().all()
    return {
        "sources": rows.names_to_json([row["id"] for row in found]),
        "first_seq": min(row["first_seq"] for row in found),
        "last_seq": max(row["last_seq"] for row in found),
        "entry_count": sum(row["entry_count"] for row in found),
        "first_at": min(row["first_at"] for row in found),
        "last_at": max(row["last_at"] for row in found),
        "source_tokens": sum(row["tokens"] for row in found),
    }
