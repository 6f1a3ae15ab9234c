"""Stores outcomes of condensation decisions, written together with the plan of their view."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.runs.plans import write_plan
from langchain_tiered_memory.runs.store import locked_session
from langchain_tiered_memory.sql import rows
from langchain_tiered_memory.sql.column_forms import check, read_json
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import lock_session
from langchain_tiered_memory.sql.schema import digest_of, entries, outcomes, packed, plans, storable, unpacked
from langchain_tiered_memory.transcript.outbox import write_down
from langchain_tiered_memory.types.outcomes import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import RowMapping

    from langchain_tiered_memory.reports import Event
    from langchain_tiered_memory.sql.column_forms import Columns
    from langchain_tiered_memory.types.records import SessionRef


def cut_outcomes(connection: Connection, key: int, *, since: int, message_ids: Collection[str]) -> None:
    """Take out of outcomes whatever may quote or name forgotten messages: ids of others and figures stay.

    An outcome before `since`, the oldest of the messages, knows none of them.
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
    stored = dataclasses.asdict(outcome)
    del stored["undone_at"]  # has a column
    stored["track"] = packed(outcome.track)
    stored["left_out"] = [dataclasses.asdict(one) | {"what": packed(one.what)} for one in outcome.left_out]
    mine = outcomes.c.session_key == ref.key
    connection.execute(
        insert(outcomes).values(
            id=outcome.id,
            session_key=ref.key,
            view=digest_of(view_name),
            kind=str(outcome.kind),
            at=outcome.at,
            last_seq=outcome.last_seq,
            payload=json.dumps(stored),
            plan_before=None if plan_before is None else storable(plan_before),
            plan_after=None if plan_after is None else storable(plan_after),
        )
    )
    newest_to_go = select(outcomes.c.key).where(mine).order_by(outcomes.c.key.desc()).limit(1).offset(keep)
    connection.execute(delete(outcomes).where(mine, outcomes.c.key <= newest_to_go.scalar_subquery()))


def outcome_of(row: Columns) -> Outcome:
    """A row of `ltm_outcomes`.

    Raises:
        DamagedRowError: when a column cannot be read.
    """
    check(outcomes, {"undone_at": row["undone_at"]})
    stored: Outcome = rows.from_json(outcomes, row, "payload", Outcome)
    left_out = tuple(dataclasses.replace(one, what=unpacked(one.what)) for one in stored.left_out)
    return dataclasses.replace(stored, track=unpacked(stored.track), left_out=left_out, undone_at=row["undone_at"])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOutcome:
    """An outcome with what it did to its view."""

    outcome: Outcome
    plan_before: str | None
    """`None` where the view had no plan, and where a message that it may speak of was forgotten."""
    plan_after: str | None
    """`None` where the view was not changed, and as above."""


class Outcomes(Room):
    """Reads and writes outcomes. Each method is one transaction."""

    def swap(
        self,
        ref: SessionRef,
        view_name: str,
        plan_json: str,
        *,
        border: int,
        now: float,
        outcome: Outcome,
        plan_before: str | None,
        keep: int,
        event: Event | None = None,
    ) -> bool:
        """Give a view its new plan and write down what that was, with its event: both or neither.

        `ref` has the epoch that the plan was made under; summaries stand in it up to the message `border`. Of the
        session's outcomes the `keep` newest are kept. `False` when the epoch moved on or the session was removed:
        nothing was written then.
        """
        with self.database.write() as connection:
            session = lock_session(connection, ref.key)
            if session is None or session["epoch"] != ref.epoch:
                return False
            write_plan(connection, ref, digest_of(view_name), plan_json, now=now, border=border)
            insert_outcome(
                connection, ref, view_name, outcome, plan_before=plan_before, plan_after=plan_json, keep=keep
            )
            write_down(connection, event, ref.key)
        return True

    def add(self, ref: SessionRef, view_name: str, outcome: Outcome, *, keep: int, event: Event | None = None) -> bool:
        """Write down an outcome that changed no plan, and its event; `False` when the session was removed."""
        with self.database.write() as connection:
            if lock_session(connection, ref.key) is None:
                return False
            insert_outcome(connection, ref, view_name, outcome, plan_before=None, plan_after=None, keep=keep)
            write_down(connection, event, ref.key)
        return True

    def read(
        self, ref: SessionRef, *, limit: int, kinds: Collection[str] | None = None, track: str | None = None
    ) -> list[Outcome]:
        """The last outcomes of a session, of all its views or of those of one track, newest first."""
        query = select(outcomes).where(outcomes.c.session_key == ref.key)
        if kinds is not None:
            query = query.where(outcomes.c.kind.in_([str(kind) for kind in kinds]))
        with self.database.read() as connection:
            newest = query.order_by(outcomes.c.key.desc())
            if track is None:
                newest = newest.limit(limit)
            found = readable(connection, connection.execute(newest).mappings(), outcome_of)
        # The track stands in the payload alone; few outcomes of a session are kept.
        return [one for one in found if track in (None, one.track)][:limit]

    def get(self, ref: SessionRef, outcome_id: str) -> StoredOutcome:
        """An outcome with the plans before and after it.

        Raises:
            NotFoundError: when the session has no such outcome.
            DamagedRowError: when it cannot be read.
        """
        with self.database.read() as connection:
            row = _row(connection, ref, outcome_id)
        return StoredOutcome(outcome=outcome_of(row), plan_before=row["plan_before"], plan_after=row["plan_after"])

    def undo(self, ref: SessionRef, outcome_id: str, *, now: float, plan_before: str | None = None) -> bool:
        """Give a view back the plan that it had before an outcome, or `plan_before`; `False` when it was undone before.

        Raises:
            NotFoundError: when the session has no such outcome, or was removed.
            InvalidInputError: when the view's plan is another by now; nothing was changed then.
        """
        with self.database.write() as connection:
            session = locked_session(connection, ref)
            row = _row(connection, ref, outcome_id)
            if row["undone_at"] is not None:
                return False
            mine = and_(plans.c.session_key == ref.key, plans.c.name == row["view"], plans.c.epoch == session["epoch"])
            present = connection.scalar(select(plans.c.payload).where(mine))
            if row["plan_after"] is None or present != row["plan_after"]:
                msg = (
                    f"{outcome_id!r} cannot be undone: its view shows something else by now. Only the last "
                    "condensation of a view can be undone, while nothing it shows was edited, pinned or forgotten"
                )
                raise InvalidInputError(msg)
            restored = plan_before if plan_before is not None else row["plan_before"]
            if restored is None:
                connection.execute(delete(plans).where(mine))
            else:
                there = dataclasses.replace(ref, epoch=session["epoch"])
                write_plan(connection, there, row["view"], restored, now=now, border=_border_of(restored))
            connection.execute(update(outcomes).where(outcomes.c.key == row["key"]).values(undone_at=now))
        return True

    def assistant_calls(self, ref: SessionRef, track: str, *, after: int) -> int:
        """How many messages of the assistant a track has behind a number."""
        mine = and_(entries.c.session_key == ref.key, entries.c.track == packed(track))
        return self._count(select(func.count()).where(mine, entries.c.role == "assistant", entries.c.seq > after))


def _row(connection: Connection, ref: SessionRef, outcome_id: str) -> RowMapping:
    query = select(outcomes).where(outcomes.c.session_key == ref.key, outcomes.c.id == packed(outcome_id))
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        msg = (
            f"the session {ref.session_id!r} has no outcome {outcome_id!r}: it never existed, or newer ones replaced it"
        )
        raise NotFoundError(msg)
    return row


def _border_of(plan: str) -> int:
    """The border in a plan's own JSON; 0 where it has none."""
    try:
        border = read_json(plan, dict[str, Any]).get("border")
    except ValueError:
        return 0
    return border if isinstance(border, int) else 0
