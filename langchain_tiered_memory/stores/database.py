"""The door to SQL: opens SQLite (one file in WAL mode, or memory) and PostgreSQL, and gives out transactions.

A transaction is short and never held across a model call. What a driver says becomes an error of ours, with a remedy.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import weakref
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import StaticPool

from langchain_tiered_memory.errors import (
    ClosedError,
    SettingsError,
    StorageBusyError,
    StorageError,
)
from langchain_tiered_memory.stores import schema
from langchain_tiered_memory.stores.driver_errors import storage_error
from langchain_tiered_memory.stores.migrations import migrate, missing_steps, refuse_foreign_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

_MIGRATION_LOCK = 7161717
"""PostgreSQL's advisory lock for migrations: any number that other programs are unlikely to take."""
_PASSWORD = re.compile(r"(?<=://)[^/@]*@")


def _url_of(where: str | Path | None) -> URL:
    if where is None or where == ":memory:":
        return URL.create("sqlite")
    if isinstance(where, Path) or "://" not in where:
        return URL.create("sqlite", database=str(Path(where).expanduser().resolve()))
    try:
        url = make_url(where)
    except (ArgumentError, ValueError) as error:
        msg = f"{_PASSWORD.sub('***@', where)!r} is no database URL: give a path, or a sqlite or postgresql URL"
        raise SettingsError(msg) from error
    backend = url.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        return url.set(drivername="sqlite")
    msg = f"{url.drivername!r} is not supported: give a path, or a sqlite or postgresql URL"
    raise SettingsError(msg)


class Database:
    """One database and its transactions.

    Args:
        where: A path, an SQLAlchemy URL (`sqlite` or `postgresql`), or `None` for memory.
        busy_seconds: How long a write waits for a lock.
        now: Says the time, for the record of migrations.

    Raises:
        SettingsError: for a URL that cannot be used.
        StorageError: when the database cannot be opened; its subclasses say why.
    """

    def __init__(self, where: str | Path | None, *, busy_seconds: float, now: Callable[[], float]) -> None:
        url = _url_of(where)
        self.dialect: str = url.get_backend_name()
        self.in_memory = self.dialect == "sqlite" and url.database in (None, "", ":memory:")
        self.path = Path(url.database or "") if self.dialect == "sqlite" and not self.in_memory else None
        # A query string may hold a password, and nothing that a reader of an error needs.
        self.label = "the in-memory database" if self.in_memory else url.set(query={}).render_as_string()
        self._busy_seconds = busy_seconds
        self._closed = False
        self._make_locks()
        try:
            self.engine = self._create_postgresql(url) if self.dialect == "postgresql" else self._create_sqlite(url)
        except ModuleNotFoundError as error:
            msg = "PostgreSQL needs its driver: pip install 'langchain-tiered-memory[postgres]'"
            raise SettingsError(msg) from error
        # Made once: options set on each connection cost as much as the transaction itself.
        self._engine_of_writers = self.engine.execution_options(writes=True)
        try:
            self._prepare(now)
        except BaseException:
            self.engine.dispose()
            raise
        _opened.add(self)

    def _make_locks(self) -> None:
        # SQLite takes one writer at a time and lets the others poll: among the threads of a process a lock is faster
        # and nobody starves. The one connection of a database in memory cannot even be read by two threads at once.
        self._writing: threading.RLock | None = threading.RLock() if self.dialect == "sqlite" else None
        self._reading = self._writing if self.in_memory else None

    def _create_postgresql(self, url: URL) -> Engine:
        seconds = self._busy_seconds
        arguments = {} if "connect_timeout" in url.query else {"connect_timeout": max(2, int(seconds))}
        engine = create_engine(
            url,
            pool_pre_ping=True,
            pool_timeout=seconds,
            isolation_level="READ COMMITTED",
            connect_args=arguments,
        )

        @event.listens_for(engine, "connect")
        def _on_connect(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own type
            # Not in the connection's options: those are the user's, and poolers refuse them.
            with connection.cursor() as cursor:
                cursor.execute(f"SET lock_timeout = {max(1, int(seconds * 1000))}")
            connection.commit()

        return engine

    def _create_sqlite(self, url: URL) -> Engine:
        seconds = self._busy_seconds
        arguments: dict[str, Any] = {"check_same_thread": False, "timeout": seconds}
        if self.in_memory:
            engine = create_engine(url, connect_args=arguments, poolclass=StaticPool)
        else:
            engine = create_engine(url, connect_args=arguments, pool_timeout=seconds)

        @event.listens_for(engine, "connect")
        def _on_connect(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own type
            connection.isolation_level = None
            with closing(connection.cursor()) as cursor:
                for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "temp_store=MEMORY"):
                    cursor.execute(f"PRAGMA {pragma}")

        @event.listens_for(engine, "begin")
        def _on_begin(connection: Connection) -> None:
            writes = connection.get_execution_options().get("writes", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return engine

    def _prepare(self, now: Callable[[], float]) -> None:
        if self.path is not None:
            self._look_before_touching(self.path)
        with self.read() as connection:
            is_present = missing_steps(connection) == 0
        if not is_present:
            with self.write() as connection:
                if self.dialect == "postgresql":
                    # Two processes that open a new database at once must not both create its tables.
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
                migrate(connection, now=now())
        with self.read() as connection:
            self.identity = str(connection.scalar(select(schema.meta.c.value).where(schema.meta.c.name == "identity")))

    def _look_before_touching(self, path: Path) -> None:
        """Refuse what is not ours before anything, the journal mode included, is changed in it."""
        if not path.parent.is_dir():
            msg = f"the folder {path.parent} does not exist: create it, or open the memory elsewhere"
            raise StorageError(msg)
        if not path.is_file() or not path.stat().st_size:
            return
        try:
            with closing(sqlite3.connect(path, timeout=self._busy_seconds)) as connection:
                found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        except sqlite3.Error as error:
            raise storage_error(error, self.label) from error
        refuse_foreign_tables({name for (name,) in found})

    @contextmanager
    def _transaction(self, *, writes: bool, **options: Any) -> Iterator[Connection]:  # noqa: ANN401 - SQLAlchemy's own
        with self._alone(self._writing if writes else self._reading):
            engine = self._engine_of_writers if writes else self.engine
            try:
                with engine.connect() as connection:
                    if options:
                        connection.execution_options(**options)
                    with connection.begin():
                        yield connection
            except DBAPIError as error:
                raise storage_error(error.orig, self.label) from error
            except PoolTimeoutError as error:
                msg = f"{self.label}: every connection stayed in use for {self._busy_seconds} s; try again"
                raise StorageBusyError(msg) from error

    @contextmanager
    def _alone(self, lock: threading.RLock | None) -> Iterator[None]:
        if lock is not None and not lock.acquire(timeout=min(self._busy_seconds, threading.TIMEOUT_MAX)):
            msg = f"{self.label} stayed locked by another thread for {self._busy_seconds} s: try again"
            raise StorageBusyError(msg)
        try:
            if self._closed:
                msg = "the memory was closed: open it again"
                raise ClosedError(msg)
            yield
        finally:
            if lock is not None:
                lock.release()

    def read(self) -> AbstractContextManager[Connection]:
        """A transaction that only reads."""
        return self._transaction(writes=False)

    def write(self) -> AbstractContextManager[Connection]:
        """A transaction that writes: committed when its block ends, rolled back when it raises."""
        return self._transaction(writes=True)

    def outside_transaction(self) -> AbstractContextManager[Connection]:
        """A PostgreSQL connection on which each statement stands alone, as `VACUUM` wants it."""
        return self._transaction(writes=True, isolation_level="AUTOCOMMIT")

    def vacuum(self) -> bool:
        """Rewrite an SQLite file without what was deleted, and empty its write-ahead log.

        Returns:
            Whether somebody else's reading kept the log from being emptied.
        """
        with self._alone(self._writing):
            try:
                with closing(self.engine.raw_connection()) as raw, closing(raw.cursor()) as cursor:
                    cursor.execute("VACUUM")
                    cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    busy = (cursor.fetchone() or (0,))[0]
            except (DBAPIError, sqlite3.Error) as error:
                raise storage_error(getattr(error, "orig", error), self.label) from error
        return bool(busy) and not self.in_memory

    def close(self) -> None:
        """Let go of all connections. Any later use raises `ClosedError`."""
        self._closed = True
        self.engine.dispose()

    def before_fork(self) -> None:
        """Close what is idle: SQLite must not be carried across a fork, nor may two processes share a socket."""
        if not self.in_memory:
            self.engine.dispose()

    def after_fork_in_child(self) -> None:
        """Start with fresh connections and locks: what other threads of the parent held is theirs."""
        self._make_locks()
        if not self.in_memory:
            self.engine.dispose(close=False)


_opened: weakref.WeakSet[Database] = weakref.WeakSet()


def _each_before_fork() -> None:
    for database in list(_opened):
        database.before_fork()


def _each_after_fork_in_child() -> None:
    for database in list(_opened):
        database.after_fork_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_each_before_fork, after_in_child=_each_after_fork_in_child)
