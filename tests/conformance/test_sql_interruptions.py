"""PostgreSQL breaks off, runs full or makes everybody wait: what is tried again, and what is said."""

from __future__ import annotations

import itertools
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from sqlalchemy import create_engine, event, select, text

from langchain_tiered_memory.errors import (
    LockTimeoutError,
    OutcomeUnknownError,
    StatementTimeoutError,
    StorageBusyError,
    StorageConflictError,
    StorageUnreachableError,
    TooManyConnectionsError,
)
from langchain_tiered_memory.maintenance import inspection
from langchain_tiered_memory.sql.errors import storage_error
from langchain_tiered_memory.sql.retrying import Room
from langchain_tiered_memory.sql.schema import calibrations, digest_of, entries, runs
from tests.run_builders import checkpoint, examined
from tests.servers import postgres_server
from tests.spread import spread
from tests.store_builders import append, forget_messages, ids, incoming, open_store, session_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection

    from langchain_tiered_memory.runtime import SqlStore
    from tests.servers import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
LOST = "the connection is lost"


@pytest.fixture
def pg(postgres_url: str) -> Iterator[SqlStore]:
    """An empty store on PostgreSQL."""
    store = open_store(postgres_url)
    try:
        yield store
    finally:
        store.database.close()


def break_at(store: SqlStore, number: int) -> list[str]:
    """Have the server end the connection before one statement of a write; gives what was broken off."""
    broken: list[str] = []
    steps = itertools.count()

    def before(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if connection.get_execution_options().get("writes") and next(steps) == number:
            broken.append(statement)
            _end_backend(connection)

    event.listen(store.database.engine, "before_cursor_execute", before)
    return broken


def _end_backend(connection: Connection) -> None:
    raw: Any = connection.connection.dbapi_connection
    other = create_engine(connection.engine.url, isolation_level="AUTOCOMMIT")
    with other.connect() as killer:
        killer.execute(text(f"SELECT pg_terminate_backend({raw.info.backend_pid}, 5000)"))
    other.dispose()


WRITES: dict[str, Callable[[SqlStore, Any], object]] = {
    "append": lambda store, _: append(store, "s", incoming("new", "new"), incoming("edited", "m1")),
    "pin": lambda store, ref: store.transcript.set_pin(ref, "m2", pinned=True),
    "task": lambda store, ref: store.runs.start_task(ref, "main", "t", now=1.0),
    "finish": lambda store, ref: store.runs.finish_task(ref, "kept", 2.0),
    "plan": lambda store, ref: store.plans.write(ref, "view", "{}", now=1.0),
    "calibration": lambda store, _: store.plans.set_calibration("model", "counter", ratio=1.1, samples=3),
    "forget": lambda store, ref: forget_messages(store, ref, ["m3"]),
}


def state_of(store: SqlStore) -> list[Any]:
    """What these writes change, for comparing."""
    with store.database.read() as connection:
        columns = (entries.c.message_id, entries.c.seq, entries.c.revision, entries.c.pinned, entries.c.text)
        found: list[Any] = [tuple(row) for row in connection.execute(select(*columns).order_by(entries.c.seq))]
        found += connection.execute(select(runs.c.finished_tasks)).scalars().all()
        found += connection.execute(select(calibrations.c.samples)).scalars().all()
    ref = store.transcript.find("s")
    assert ref is not None
    totals = store.transcript.totals(ref)
    return [*found, *(totals[name] for name in ("entries", "tokens", "terms", "next_seq", "epoch"))]


def prepared(store: SqlStore) -> Any:
    ref = session_with(store, 4)
    store.runs.start_task(ref, "main", "kept", now=1.0)
    return ref


@pytest.mark.parametrize("write", WRITES)
def test_a_write_whose_connection_breaks_at_any_statement_is_made_once(
    postgres: PostgresServer, pg: SqlStore, write: str
) -> None:
    statements: list[str] = []

    def note(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if connection.get_execution_options().get("writes"):
            statements.append(statement)

    ref = prepared(pg)
    event.listen(pg.database.engine, "before_cursor_execute", note)
    WRITES[write](pg, ref)
    expected, count = state_of(pg), len(statements)
    assert count >= 2
    for number in spread(count, 8):
        url = postgres.new_database()
        store = open_store(url)
        ref = prepared(store)
        broken = break_at(store, number)
        WRITES[write](store, ref)
        assert len(broken) == 1
        assert state_of(store) == expected
        store.database.close()
        postgres.drop(url)


@pytest.mark.parametrize("landed", [True, False], ids=["that was made", "that was not made"])
@pytest.mark.parametrize("write", WRITES)
def test_a_commit_without_an_answer_is_looked_up_and_never_made_twice(
    pg: SqlStore,
    postgres_url: str,
    write: str,
    landed: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ref = prepared(pg)
    dialect: Any = pg.database.engine.dialect
    commit, cut = dialect.do_commit, []

    def cut_off(fairy: Any) -> None:
        raw = fairy.dbapi_connection
        if raw.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS and not cut and is_write(raw):
            cut.append(1)
            if landed:
                raw.commit()
            else:
                raw.rollback()
            raw.close()
            raise psycopg.OperationalError(LOST)
        commit(fairy)

    def is_write(raw: Any) -> bool:
        return raw.execute("SELECT txid_current_if_assigned()").fetchone()[0] is not None

    monkeypatch.setattr(dialect, "do_commit", cut_off)
    WRITES[write](pg, ref)
    monkeypatch.undo()
    assert cut
    # As if nothing had happened: the same on a store of its own.
    found = state_of(pg)
    pg.database.close()
    with psycopg.connect(postgres_url.replace("postgresql+psycopg", "postgresql"), autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    other = open_store(postgres_url)
    WRITES[write](other, prepared(other))
    assert found == state_of(other)
    other.database.close()


def test_a_commit_that_nobody_can_look_up_says_so_and_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    own = postgres_server()
    try:
        store = open_store(own.new_database(), busy_seconds=1)
        session_with(store, 1)
        dialect: Any = store.database.engine.dialect

        def lost(fairy: Any) -> None:
            own.stop()
            fairy.dbapi_connection.close()
            raise psycopg.OperationalError(LOST)

        monkeypatch.setattr(dialect, "do_commit", lost)
        with pytest.raises(OutcomeUnknownError, match="is not known"):
            store.plans.set_calibration("model", "counter", ratio=1.1, samples=3)
        store.database.close()
    finally:
        own.remove()


def test_a_write_waits_for_a_server_that_starts_again() -> None:
    own = postgres_server()
    try:
        store = open_store(own.new_database(), busy_seconds=60)
        ref = session_with(store, 2)
        own.stop()
        done: list[object] = []
        writer = threading.Thread(target=lambda: done.append(append(store, "s", incoming("after", "after"))))
        writer.start()
        own.start()
        writer.join(60)
        assert done
        assert ids(store.transcript.entries(ref)) == ["m1", "m2", "after"]
        store.database.close()
    finally:
        own.remove()


@pytest.mark.parametrize("at", [1, 2])
def test_a_long_read_whose_connection_breaks_on_the_way_goes_on_where_it_was(
    pg: SqlStore, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setattr(inspection, "ROWS_AT_ONCE", 3)
    ref = session_with(pg, 7)
    for _ in range(3):
        pg.checkpoints.write(ref, checkpoint(), keep=5)
    expected = [one.id for page in pg.inspection.counted_pages(ref) for one, _ in page]
    for read in (
        lambda: [one.id for page in pg.inspection.counted_pages(ref) for one, _ in page],
        lambda: [why for _, why in examined(pg, ref)],
    ):
        steps = itertools.count()

        def before(connection: Connection, *_: object, steps: Any = steps) -> None:
            if next(steps) == at:
                _end_backend(connection)

        event.listen(pg.database.engine, "before_cursor_execute", before)
        assert read() in (expected, [None] * 3)
        event.remove(pg.database.engine, "before_cursor_execute", before)
        assert next(steps) > at, "it was broken off"


def test_what_one_method_asks_of_another_is_not_waited_for_twice(pg: SqlStore) -> None:
    calls: dict[str, int] = {"outer": 0, "inner": 0}

    class Nested(Room):
        def outer(self) -> None:
            calls["outer"] += 1
            self.inner()

        def inner(self) -> None:
            calls["inner"] += 1
            raise StorageConflictError(LOST)

    pg.database.busy_seconds = 0.3
    with pytest.raises(StorageConflictError, match=LOST):
        Nested(pg.database).outer()
    assert calls["inner"] == calls["outer"] > 1


def test_of_two_writes_in_a_deadlock_both_are_made(pg: SqlStore, postgres_url: str) -> None:
    one, two = session_with(pg, 1, "one"), session_with(pg, 1, "two")
    stranger = create_engine(postgres_url)
    locked, waiting = threading.Event(), threading.Event()
    row = "SELECT 1 FROM ltm_sessions WHERE key = {} FOR UPDATE"
    attempts: list[int] = []

    def in_the_other_order() -> None:
        with stranger.connect() as connection, connection.begin():
            # Whoever looks for a circle first is the one that PostgreSQL ends.
            connection.execute(text("SET LOCAL deadlock_timeout = '30s'"))
            connection.execute(text(row.format(two.key)))
            locked.set()
            waiting.wait(10)
            connection.execute(text(row.format(one.key)))

    class Both(Room):
        def lock(self) -> str:
            with self.database.write() as connection:
                attempts.append(1)
                connection.execute(text(row.format(one.key)))
                waiting.set()
                connection.execute(text(row.format(two.key)))
            return "made"

    other = threading.Thread(target=in_the_other_order)
    other.start()
    assert locked.wait(10)
    assert Both(pg.database).lock() == "made"
    other.join(30)
    assert not other.is_alive()
    assert len(attempts) > 1, "there was no deadlock"
    stranger.dispose()


def test_too_many_clients_have_words_of_their_own() -> None:
    own = postgres_server()
    try:
        url = own.new_database()
        store = open_store(url, busy_seconds=1)
        session_with(store, 1)
        store.database.engine.dispose()
        with ExitStack() as held:
            _fill_up(held, url)
            with pytest.raises(TooManyConnectionsError, match="max_connections"):
                append(store, "s", incoming())
        append(store, "s", incoming("room again", "again"))
        store.database.close()
    finally:
        own.remove()


def _fill_up(held: ExitStack, url: str) -> None:
    plain = url.replace("postgresql+psycopg", "postgresql")
    while True:
        try:
            held.enter_context(psycopg.connect(plain))
        except psycopg.OperationalError:
            return


def test_a_statement_timeout_and_a_lock_timeout_have_words_of_their_own(pg: SqlStore, postgres_url: str) -> None:
    ref = session_with(pg, 1)
    with pytest.raises(StatementTimeoutError, match="statement_timeout"), pg.database.read() as connection:  # noqa: PT012 - one transaction
        connection.execute(text("SET LOCAL statement_timeout = '50ms'"))
        connection.execute(text("SELECT pg_sleep(5)"))
    quick = open_store(postgres_url, busy_seconds=0.3)
    with pg.database.write() as connection:
        connection.execute(text(f"SELECT 1 FROM ltm_sessions WHERE key = {ref.key} FOR UPDATE"))
        with pytest.raises(LockTimeoutError, match="gave no lock in time"):
            append(quick, "s", incoming())
    quick.database.close()


def test_a_server_that_stays_away_is_given_up_within_the_time_of_the_settings() -> None:
    own = postgres_server()
    try:
        store = open_store(own.new_database(), busy_seconds=0.5)
        session_with(store, 1)
        own.stop()
        with pytest.raises(StorageUnreachableError, match="cannot be reached"):
            append(store, "s", incoming())
        store.database.close()
    finally:
        own.remove()


class _Said(Exception):  # noqa: N818 - as a driver would raise it
    def __init__(self, words: str, sqlstate: str | None) -> None:
        super().__init__(words)
        self.sqlstate = sqlstate


class OperationalError(Exception):
    """What psycopg raises where no connection came about: it has no code."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (_Said("x", "40P01"), StorageConflictError),
        (_Said("x", "40001"), StorageConflictError),
        (_Said("x", "57014"), StatementTimeoutError),
        (_Said("x", "55P03"), LockTimeoutError),
        (_Said("x", "53300"), TooManyConnectionsError),
        (_Said("x", "57P01"), StorageUnreachableError),
        (OperationalError("FATAL: sorry, too many clients already"), TooManyConnectionsError),
        (OperationalError("FATAL: remaining connection slots are reserved"), TooManyConnectionsError),
        (OperationalError("connection refused"), StorageUnreachableError),
    ],
)
def test_each_way_to_be_refused_has_its_type(error: Exception, expected: type[Exception]) -> None:
    found = storage_error(error, "the server")
    assert type(found) is expected
    assert isinstance(found, StorageBusyError) or expected is StorageUnreachableError


def test_writers_of_one_session_come_to_it_in_the_order_in_which_they_asked(pg: SqlStore, postgres_url: str) -> None:
    ref = session_with(pg, 1)
    waiters = 8
    engine = create_engine(postgres_url)
    threads = []
    with pg.database.write(line=digest_of("s")) as connection:
        connection.execute(text(f"UPDATE ltm_sessions SET title = 'held' WHERE key = {ref.key}"))
        for number in range(waiters):
            threads.append(
                threading.Thread(target=append, args=(pg, "s", incoming(f"from {number}", f"w{number}")), daemon=True)
            )
            threads[-1].start()
            _until_waiting(engine, number + 1)
    for one in threads:
        one.join(30)
    assert ids(pg.transcript.entries(ref)) == ["m1", *(f"w{number}" for number in range(waiters))]
    engine.dispose()


def _until_waiting(engine: Any, count: int) -> None:
    query = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory'")
    while True:
        with engine.connect() as connection:
            if connection.execute(query).scalar_one() >= count:
                return
