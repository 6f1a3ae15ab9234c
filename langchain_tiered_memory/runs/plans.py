"""Small derived state: the plan of each view; by model, the calibration of the counter and the window learnt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Table, and_, bindparam, delete, insert, literal, select, update

from langchain_tiered_memory.sql.column_forms import check
from langchain_tiered_memory.sql.damage import readable, readable_or
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.rows import insert_if_absent, lock_session, upsert
from langchain_tiered_memory.sql.schema import calibrations, digest_of, packed, plans, storable, windows

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from langchain_tiered_memory.types.records import SessionRef


_CALIBRATION = select(calibrations).where(
    calibrations.c.model == bindparam("model"), calibrations.c.counter == bindparam("counter")
)
KEPT_VIEWS = 32
"""Views and budgets in use of which a session keeps plan and zone."""


class Plans(Room):
    """Reads and writes view plans and calibrations."""

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
        return self._records(query.order_by(plans.c.name), _plan)

    def calibration(self, model: str, counter: str) -> tuple[float, int] | None:
        """Ratio of billed to counted tokens for a model, and how many samples it rests on."""
        with self.database.read() as connection:
            named = _named(model, counter)
            found = readable(connection, connection.execute(_CALIBRATION, named).mappings(), _calibration)
        return found[0] if found else None

    def set_calibration(self, model: str, counter: str, *, ratio: float, samples: int) -> None:
        """Keep a ratio."""
        values = {**_named(model, counter), "ratio": ratio, "samples": samples}
        with self.database.write() as connection:
            connection.execute(upsert(connection, calibrations, key=("model", "counter"), values=values))


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
    values = {"epoch": ref.epoch, "border": border, "payload": storable(payload), "written_at": now}
    mine = plans.c.session_key == ref.key
    if connection.execute(update(plans).where(mine, plans.c.name == name).values(values)).rowcount:
        return
    connection.execute(insert(plans).values(session_key=ref.key, name=name, **values))
    newest = select(plans.c.name).where(mine).order_by(plans.c.written_at.desc(), plans.c.name)
    connection.execute(delete(plans).where(mine, plans.c.name.in_(newest.offset(KEPT_VIEWS))))


_MAX_NAME_CHARS, _MAX_COUNTER_CHARS = 200, 100


class Windows(Room):
    """Reads and writes what was learnt, by the model's name."""

    def learn(self, model: str, tokens: int, now: float) -> None:
        """A request showed that the window is at most `tokens`: of several such figures the smallest counts."""
        name = _name(model)
        with self.database.write() as connection:
            learnt = {"model": name, "tokens": tokens, "learned_at": now}
            connection.execute(insert_if_absent(connection, windows).values(learnt))
            smaller = update(windows).where(windows.c.model == name, windows.c.tokens > tokens)
            connection.execute(smaller.values(tokens=tokens, learned_at=now))

    def confirm(self, model: str, tokens: int) -> None:
        """A request of `tokens` was answered: a window that was learnt to be smaller is at least that large."""
        name = _name(model)
        if (known := self.read(model)) is None or known >= tokens:
            return  # nearly always: no write transaction for it
        with self.database.write() as connection:
            larger = update(windows).where(windows.c.model == name, windows.c.tokens < tokens)
            connection.execute(larger.values(tokens=tokens))

    def read(self, model: str) -> int | None:
        """The window in tokens; `None` where nothing was learnt."""
        return self.of_model(model, "")[0]

    def of_model(self, model: str, counter: str) -> tuple[int | None, float]:
        """As `read`, with the ratio of `Plans.calibration`, 1 where nothing was learnt of it either."""
        named = _named(model, counter)
        with self.database.read() as connection:
            row = connection.execute(_LEARNT, named).mappings().one()
            tokens = readable_or(connection, lambda: _sound(windows, row, "tokens"), None)
            ratio = readable_or(connection, lambda: _sound(calibrations, row, "ratio"), None)
        return tokens, 1.0 if ratio is None else ratio


_ONCE = select(literal(1).label("once")).subquery()
_LEARNT = select(windows.c.tokens, calibrations.c.ratio).select_from(
    _ONCE.outerjoin(windows, windows.c.model == bindparam("model")).outerjoin(
        calibrations, and_(calibrations.c.model == bindparam("model"), calibrations.c.counter == bindparam("counter"))
    )
)


def _sound(table: Table, row: RowMapping, column: str) -> Any:  # noqa: ANN401 - of the column's type
    value = row[column]
    if value is not None:
        check(table, {column: value})
    return value


def _name(model: str) -> str:
    return packed(model)[:_MAX_NAME_CHARS]


def _named(model: str, counter: str) -> dict[str, str]:
    return {"model": _name(model), "counter": packed(counter)[:_MAX_COUNTER_CHARS]}
