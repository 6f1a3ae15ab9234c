"""PostgreSQL: how its connections are made, and what became of a commit whose answer was lost.

Each transaction that writes asks for its number before it takes any lock. When the connection breaks during the commit,
the server is asked by that number, so that nothing is written twice, and nothing that was written is said to be lost.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from langchain_tiered_memory.errors import StorageConflictError, StorageError
from langchain_tiered_memory.sql.errors import storage_error
from langchain_tiered_memory.sql.retrying import is_passing, until_it_passes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import URL

Outcome = Literal["committed", "aborted", "unknown"]
_NOT_AVAILABLE = "55P03"
"""The state of what says that a lock could not be had."""
_LINES = 7161718
"""Of our advisory locks: any number that other programs are unlikely to take."""


def create_postgresql(url: URL, *, seconds: float, read_only: bool) -> Engine:
    """An engine whose connections wait `seconds` for a lock, and with `read_only` refuse to write.

    Raises:
        ModuleNotFoundError: without psycopg.
    """
    arguments = {} if "connect_timeout" in url.query else {"connect_timeout": max(2, int(seconds))}
    engine = create_engine(
        url, pool_pre_ping=True, pool_timeout=seconds, isolation_level="READ COMMITTED", connect_args=arguments
    )

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own type
        # Not in the connection's options: those are the user's, and poolers refuse them.
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {max(1, int(seconds * 1000))}")
            if read_only:
                cursor.execute("SET default_transaction_read_only = on")
        connection.commit()

    return engine


def begin_writing(connection: Connection, line: str | None) -> int:
    """The transaction's number; after waiting for one's turn where there is a `line` of writers.

    Nothing was done in it yet; hexadecimal digits name the line. A row's lock goes to whoever asks first when it is
    free, and who has waited longest may be passed over for long. An advisory lock is handed on in the order of
    asking, so a line of them bounds the wait.
    """
    if line is None:
        return int(connection.exec_driver_sql("SELECT txid_current()").scalar_one())
    place = int(line[:16], 16) ^ _LINES
    signed = place - (1 << 64) if place >= 1 << 63 else place
    return int(connection.exec_driver_sql(f"SELECT txid_current(), pg_advisory_xact_lock({signed})").scalar_one())


def vacuum(connection: Connection, tables: Sequence[str]) -> list[str]:
    """Free the dead rows of tables, waiting for nobody; each statement stands alone on that connection.

    Gives those that somebody else holds a lock of that does not go with it, such as another `VACUUM`, `ANALYZE` or
    a dump of the schema: they keep their dead rows for now.
    """
    skipped: list[str] = []

    def note(notice: Any) -> None:  # noqa: ANN401 - psycopg's `Diagnostic`
        said = notice.message_primary or ""
        if notice.sqlstate == _NOT_AVAILABLE:
            skipped.extend(table for table in tables if f'"{table}"' in said)

    driver: Any = connection.connection.driver_connection
    driver.add_notice_handler(note)
    try:
        connection.exec_driver_sql("SET client_min_messages = warning")  # a server may be set to say nothing
        connection.exec_driver_sql(f"VACUUM (SKIP_LOCKED) {', '.join(tables)}")
    finally:
        driver.remove_notice_handler(note)
    return skipped


def outcome_of(engine: Engine, number: int, *, seconds: float) -> Outcome:
    """What became of a transaction whose commit was not answered; waits for a server that starts again."""

    def ask() -> Outcome:
        try:
            with engine.connect() as connection:
                said = connection.exec_driver_sql(f"SELECT txid_status({number})").scalar_one()
        except DBAPIError as error:
            raise storage_error(error.orig, "the server") from error
        if said == "in progress":  # it has not noticed yet that nobody is there any more
            msg = "the transaction has not ended"
            raise StorageConflictError(msg)
        return "committed" if said == "committed" else "aborted" if said == "aborted" else "unknown"

    with suppress(StorageError, PoolTimeoutError):
        return until_it_passes(ask, seconds=seconds, passes=is_passing)
    return "unknown"
