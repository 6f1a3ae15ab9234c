"""Rows of `ltm_outcomes`: written, read, and rid of what may quote a forgotten message; in the caller's transaction."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from sqlalchemy import Connection, and_, delete, insert, select, update

from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import check, read_json
from langchain_tiered_memory.sql.schema import digest_of, outcomes, packed, storable, unpacked
from langchain_tiered_memory.types.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.types.records import SessionRef


def cut_outcomes(connection: Connection, key: int, *, since: int, message_ids: Collection[str]) -> None:
    """Take out of outcomes whatever may quote or name forgotten messages: ids of others and figures stay.

    Args:
        connection: The transaction.
        key: The session.
        since: The oldest of the messages: an outcome before it knows none of them.
        message_ids: Their ids.
    """
    mine = and_(outcomes.c.session_key == key, outcomes.c.last_seq >= since)
    gone = {packed(one) for one in message_ids}
    for row in connection.execute(select(outcomes.c.key, outcomes.c.payload).where(mine)).all():
        try:
            read_json(row.payload, Outcome)
        except ValueError:
            # What cannot be read cannot be rid of a name: it goes whole.
            connection.execute(delete(outcomes).where(outcomes.c.key == row.key))
            continue
        stored = json.loads(row.payload)
        stored["error"] = None
        stored["left_out"] = [one for one in stored["left_out"] if one["what"] not in gone]
        # A plan names files that its messages touched.
        values = {"payload": json.dumps(stored), "plan_before": None, "plan_after": None}
        connection.execute(update(outcomes).where(outcomes.c.key == row.key).values(values))


def insert_outcome(
    connection: Connection,
    ref: SessionRef,
    view_name: str,
    outcome: Outcome,
    *,
    plan_before: str | None,
    plan_after: str | None,
    keep: int,
) -> None:
    """Write an outcome down; of the session's only the `keep` newest stay."""
    mine = outcomes.c.session_key == ref.key
    connection.execute(
        insert(outcomes).values(
            id=outcome.id,
            session_key=ref.key,
            view=digest_of(view_name),
            kind=str(outcome.kind),
            at=outcome.at,
            last_seq=outcome.last_seq,
            payload=_payload(outcome),
            plan_before=None if plan_before is None else storable(plan_before),
            plan_after=None if plan_after is None else storable(plan_after),
        )
    )
    kept = select(outcomes.c.key).where(mine).order_by(outcomes.c.key.desc()).limit(1).offset(keep)
    oldest_to_go = connection.scalar(kept)
    if oldest_to_go is not None:
        connection.execute(delete(outcomes).where(mine, outcomes.c.key <= oldest_to_go))


def _payload(outcome: Outcome) -> str:
    stored = dataclasses.asdict(outcome)
    del stored["undone_at"]  # has a column
    stored["track"] = packed(outcome.track)
    stored["left_out"] = [dataclasses.asdict(one) | {"what": packed(one.what)} for one in outcome.left_out]
    return json.dumps(stored)


def outcome_of(row: Columns) -> Outcome:
    """A row of `ltm_outcomes`.

    Raises:
        DamagedRowError: when a column cannot be read.
    """
    check(outcomes, {"undone_at": row["undone_at"]})
    stored: Outcome = rows.from_json(outcomes, row, "payload", Outcome)
    left_out = tuple(dataclasses.replace(one, what=unpacked(one.what)) for one in stored.left_out)
    return dataclasses.replace(stored, track=unpacked(stored.track), left_out=left_out, undone_at=row["undone_at"])
