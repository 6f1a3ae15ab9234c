"""Rows of `ltm_outcomes`: written, read, and rid of what may quote a forgotten message; in the caller's transaction."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, delete, insert, select, update

from langchain_tiered_memory.outcomes import FailureReason, Outcome, OutcomeKind
from langchain_tiered_memory.records import LeftOut, Spent
from langchain_tiered_memory.stores.schema import digest_of, outcomes, packed, storable, unpacked

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.records import SessionRef


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


def outcome_of(row: RowMapping) -> Outcome:
    """A row of `ltm_outcomes`."""
    stored: dict[str, Any] = json.loads(row["payload"])
    reason = stored["reason"]
    return Outcome(
        **(
            stored
            | {
                "kind": OutcomeKind(stored["kind"]),
                "reason": FailureReason(reason) if reason is not None else None,
                "track": unpacked(stored["track"]),
                "summary_ids": tuple(stored["summary_ids"]),
                "left_out": tuple(LeftOut(**(one | {"what": unpacked(one["what"])})) for one in stored["left_out"]),
                "steps": tuple(stored["steps"]),
                "spent": Spent(**stored["spent"]),
                "undone_at": row["undone_at"],
            }
        )
    )
