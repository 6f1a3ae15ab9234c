"""Small derived state: the plan of each view, and the calibration of the counter by model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable
from langchain_tiered_memory.sql.retrying import retried
from langchain_tiered_memory.sql.schema import calibrations, digest_of, packed, plans, storable
from langchain_tiered_memory.sql.session_rows import lock_session, upsert

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from langchain_tiered_memory.sql.database import Database
    from langchain_tiered_memory.types.records import SessionRef

PLAN = select(plans.c.payload).where(
    plans.c.session_key == bindparam("session"), plans.c.name == bindparam("name"), plans.c.epoch == bindparam("epoch")
)
"""The plan of a view under an epoch."""
_KEPT_PLANS = 32
"""Plans kept for one session: one for each view and budget in use."""


@retried
@dataclass(frozen=True, slots=True)
class Plans:
    """Reads and writes view plans and calibrations."""

    database: Database

    def read(self, ref: SessionRef, name: str) -> str | None:
        """The plan of that name, if it was made under the session's present epoch."""
        named = {"session": ref.key, "name": digest_of(name), "epoch": ref.epoch}
        with self.database.read() as connection:
            return connection.scalar(PLAN, named)

    def write(self, ref: SessionRef, name: str, payload: str, *, now: float, border: int = 0) -> None:
        """Keep a plan; the oldest of too many is dropped. One made under an epoch that has passed is not kept.

        `border` says up to which message summaries stand in it: one that is finished later, of messages before that,
        makes the plan pass.
        """
        with self.database.write() as connection:
            session = lock_session(connection, ref.key)
            if session is None or session["epoch"] != ref.epoch:
                return
            write_plan(connection, ref, digest_of(name), payload, now=now, border=border)

    def kept(self, ref: SessionRef) -> list[dict[str, Any]]:
        """The rows of all plans that hold under the session's present epoch, as `Runs.restore` takes them back.

        `name` is the digest of a view's name. A plan that is damaged is left out, and told.
        """
        columns = (plans.c.name, plans.c.border, plans.c.payload, plans.c.written_at)
        query = select(*columns).where(plans.c.session_key == ref.key, plans.c.epoch == ref.epoch)
        with self.database.read() as connection:
            return readable(connection, connection.execute(query.order_by(plans.c.name)).mappings(), _plan)

    def calibration(self, model: str, counter: str) -> tuple[float, int] | None:
        """Ratio of billed to counted tokens for a model, and how many samples it rests on."""
        query = select(calibrations).where(
            calibrations.c.model == packed(model)[:200], calibrations.c.counter == packed(counter)[:100]
        )
        with self.database.read() as connection:
            found = readable(connection, connection.execute(query).mappings(), _calibration)
        return found[0] if found else None

    def set_calibration(self, model: str, counter: str, *, ratio: float, samples: int) -> None:
        """Keep a ratio."""
        named = {"model": packed(model)[:200], "counter": packed(counter)[:100]}
        learnt = {"ratio": ratio, "samples": samples}
        with self.database.write() as connection:
            write = upsert(connection, calibrations, key=("model", "counter"), values=named | learnt)
            connection.execute(write)


def _plan(row: RowMapping) -> dict[str, Any]:
    check(plans, row)
    return dict(row)


def _calibration(row: RowMapping) -> tuple[float, int]:
    check(calibrations, row)
    return row["ratio"], row["samples"]


def write_plan(connection: Connection, ref: SessionRef, name: str, payload: str, *, now: float, border: int) -> None:
    """Keep a plan in the caller's transaction, which has locked the session and found `ref.epoch` to be its epoch.

    `name` is the digest of the view's name; the oldest of too many is dropped.
    """
    mine = plans.c.session_key == ref.key
    drop_plan(connection, ref, name)
    connection.execute(
        insert(plans).values(
            session_key=ref.key,
            name=name,
            epoch=ref.epoch,
            border=border,
            payload=storable(payload),
            written_at=now,
        )
    )
    kept = select(plans.c.name).where(mine).order_by(plans.c.written_at.desc(), plans.c.name)
    old = connection.scalars(kept.offset(_KEPT_PLANS)).all()
    if old:
        connection.execute(delete(plans).where(mine, plans.c.name.in_(old)))


def drop_plan(connection: Connection, ref: SessionRef, name: str) -> None:
    """Forget the plan of a view, named by its digest."""
    connection.execute(delete(plans).where(plans.c.session_key == ref.key, plans.c.name == name))
