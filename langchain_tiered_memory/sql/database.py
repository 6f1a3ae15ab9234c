"""Opens SQLite (one file in WAL mode, or memory) and PostgreSQL, and gives out transactions.

A transaction is short and never held across a model call. What a driver says becomes an error of ours, with a remedy.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from langchain_tiered_memory.errors import (
    ClosedError,
    OlderSchemaError,
    OutcomeUnknownError,
    ReadOnlyError,
    SettingsError,
    StorageBusyError,
    StorageConflictError,
    StorageError,
    StorageUnreachableError,
)
from langchain_tiered_memory.sql import forks, schema
from langchain_tiered_memory.sql.damage import OPTION, Damage
from langchain_tiered_memory.sql.encryption import FileKey
from langchain_tiered_memory.sql.errors import storage_error
from langchain_tiered_memory.sql.migrations import STEPS, migrate, missing_steps
from langchain_tiered_memory.sql.postgresql import begin_writing, create_postgresql, outcome_of
from langchain_tiered_memory.sql.private_files import PRIVATE, too_open
from langchain_tiered_memory.sql.retrying import until_it_passes
from langchain_tiered_memory.sql.shared_reads import SharedReads
from langchain_tiered_memory.sql.sqlite_files import SqliteFile, create_sqlite
from langchain_tiered_memory.sql.urls import url_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from langchain_tiered_memory.sql.encryption import KeySource

_MIGRATION_LOCK = 7161717
"""PostgreSQL's advisory lock for migrations: any number that other programs are unlikely to take."""
# SQLite guards its memory with locks of its own: in a child, one held by a thread that is not there is held for ever.
_TRANSACTION = {
    "sqlite": forks.Section("an SQLite transaction"),
    "postgresql": forks.Section("a PostgreSQL transaction", heals=True),
}


_NO_IDENTITY = "0" * 32


def _is_in_the_way(error: BaseException) -> bool:
    """Whether others were in the way; a server that is not there is told at once, for its address may be wrong.

    Of several processes that make a new SQLite database at once, SQLite tells some that it is locked without waiting:
    to change a file to its log they would wait for each other (SQLite's documentation of `sqlite3_busy_handler`).
    """
    return type(error) in {StorageBusyError, StorageConflictError}


def _key_in(kept: str) -> bytes:
    """The key of the digests of what was forgotten; empty where it was damaged, which `verify` names."""
    try:
        return bytes.fromhex(kept)[: hashlib.blake2b.MAX_KEY_SIZE]
    except ValueError:
        return b""


class Database(forks.AtFork):
    """One database and its transactions.

    Args:
        where: A path, an SQLAlchemy URL (`sqlite` or `postgresql`), or `None` for memory.
        busy_seconds: How long a write waits for a lock.
        now: Says the time, for the record of migrations.
        read_only: Whether nothing may be written: not to the database, and beside an SQLite file nothing but what its
            own reading needs.
        file_mode: Of an SQLite file that is made; `None`: as the umask has it.
        encryption_key: Gives the key of an SQLite file that is encrypted.

    Raises:
        SettingsError: for a URL that cannot be used, and for a key without an SQLite file.
        StorageError: when the database cannot be opened; its subclasses say why.
    """

    def __init__(
        self,
        where: str | Path | None,
        *,
        busy_seconds: float,
        now: Callable[[], float],
        read_only: bool = False,
        file_mode: int | None = PRIVATE,
        encryption_key: KeySource | None = None,
    ) -> None:
        self._url = url_of(where)
        self.dialect: str = self._url.get_backend_name()
        self.in_memory = self.dialect == "sqlite" and self._url.database in (None, "", ":memory:")
        is_file = self.dialect == "sqlite" and not self.in_memory
        self.path = Path(self._url.database or "").resolve() if is_file else None
        # A query string may hold a password, and nothing that a reader of an error needs.
        self.label = "the in-memory database" if self.in_memory else self._url.set(query={}).render_as_string()
        self.busy_seconds = busy_seconds
        self.file_mode = file_mode
        self.unwritable_because: str | None = None
        """Why it can only be read, where nobody asked for that."""
        self._closed = False
        self._shared = SharedReads(lambda: self._transaction(writes=False, is_snapshot=True))
        if read_only and self.in_memory:
            msg = "an in-memory database is empty when it is opened: read_only needs a path or a URL"
            raise SettingsError(msg)
        if encryption_key is not None and self.path is None:
            msg = (
                f"a key encrypts an SQLite file, and {self.label} is not one. PostgreSQL is encrypted where it runs "
                "(its disk, or the server's own means); an in-memory database ends with the process"
            )
            raise SettingsError(msg)
        self._key = FileKey(encryption_key) if encryption_key is not None else None
        self._make_locks()
        try:
            self._open(now, read_only=read_only)
        except ReadOnlyError as error:
            if read_only or self.path is None or not self.path.is_file():
                raise
            self._open(now, read_only=True)
            self.unwritable_because = str(error)

    def _open(self, now: Callable[[], float], *, read_only: bool) -> None:
        self.read_only = read_only
        self._file = (
            SqliteFile(
                self.path,
                label=self.label,
                busy_seconds=self.busy_seconds,
                mode=self.file_mode,
                read_only=read_only,
                key=self._key,
            )
            if self.path is not None
            else None
        )
        self._driver_errors = (sqlite3.Error if self._file is None else self._file.driver.Error,)
        try:
            self.engine = self._create_engine()
        except ModuleNotFoundError as error:
            msg = "PostgreSQL needs its driver: `pip install 'psycopg[binary]'`"
            raise SettingsError(msg) from error
        forks.tell(self)
        # Made once: options set on each connection cost as much as the transaction itself.
        self.damage = Damage()
        self._engine_of_readers = self.engine.execution_options(**{OPTION: self.damage})
        self._engine_of_writers = self._engine_of_readers.execution_options(writes=True)
        # SQLite's reads see one state in any case.
        one_state = {"isolation_level": "REPEATABLE READ"} if self.dialect == "postgresql" else {}
        self._engine_of_snapshots = self._engine_of_readers.execution_options(**one_state)
        try:
            until_it_passes(lambda: self._prepare(now), seconds=self.busy_seconds, passes=_is_in_the_way)
        except BaseException:
            self._let_go()
            raise

    def _make_locks(self) -> None:
        # SQLite takes one writer at a time and lets the others poll: among the threads of a process a lock is faster
        # and nobody starves. The one connection of a database in memory cannot even be read by two threads at once.
        self._writing: threading.RLock | None = threading.RLock() if self.dialect == "sqlite" else None
        self._reading = self._writing if self.in_memory else None

    def _create_engine(self) -> Engine:
        if self.dialect == "postgresql":
            return create_postgresql(self._url, seconds=self.busy_seconds, read_only=self.read_only)
        return create_sqlite(self._file, seconds=self.busy_seconds)

    def _prepare(self, now: Callable[[], float]) -> None:
        if self._file is not None:
            with _TRANSACTION["sqlite"]:
                self._file.prepare()
        with self.read() as connection:
            missing = missing_steps(connection)
        if missing == len(STEPS) and self.read_only:
            msg = f"{self.label} holds no memory yet: opening it to write, or `tiered-memory import`, makes one"
            raise StorageError(msg)
        if missing and self.read_only:
            msg = (
                f"{self.label} has schema {len(STEPS) - missing}, this version of langchain-tiered-memory needs "
                f"{len(STEPS)}, and it was opened read-only: open it once without read_only, where it can be written, "
                "to upgrade it"
            )
            raise OlderSchemaError(msg)
        if missing:
            with self.write() as connection:
                if self.dialect == "postgresql":
                    # Two processes that open a new database at once must not both create its tables.
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
                migrate(connection, now=now())
        with self.read() as connection:
            kept = {row.name: row.value for row in connection.execute(select(schema.meta))}
        # Where that row is damaged, which `verify()` names, vectors are made anew under a name of nobody else's.
        self.identity = str(kept.get("identity", _NO_IDENTITY))
        self.forgetting_key = _key_in(kept.get(schema.FORGETTING_KEY, ""))

    @contextmanager
    def _transaction(self, *, writes: bool, line: str | None = None, is_snapshot: bool = False) -> Iterator[Connection]:
        engine = self._engine_of_snapshots if is_snapshot else self._engine_of_readers
        engine = self._engine_of_writers if writes else engine
        number, is_ending = 0, False
        with self._alone(self._writing if writes else self._reading):
            try:
                with self._errors_of_driver(), engine.connect() as connection, connection.begin():
                    if writes and self.dialect == "postgresql":
                        number = begin_writing(connection, line)
                    yield connection
                    if writes and self._file is not None:
                        self._file.confirm(connection.info)
                    is_ending = True
            except StorageUnreachableError as error:
                if not (is_ending and number):
                    raise
                self._look_after_commit(number, error)
            finally:
                damaged = self.damage.noted()
        for one in damaged:
            self.damage.tell(one)

    def _look_after_commit(self, number: int, error: StorageError) -> None:
        """Go on where a commit that was not answered was made after all; else raise why it was not."""
        became = outcome_of(self.engine, number, seconds=self.busy_seconds)
        if became == "aborted":
            raise error
        if became == "unknown":
            msg = f"{error} It broke during a commit: whether this call was written is not known. You can repeat it"
            raise OutcomeUnknownError(msg) from error

    @contextmanager
    def _errors_of_driver(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, *self._driver_errors) as error:
            raise self._error_of(error) from error
        except PoolTimeoutError as error:
            msg = f"{self.label}: every connection stayed in use for {self.busy_seconds} s; try again"
            raise StorageBusyError(msg) from error

    def _error_of(self, error: Exception) -> StorageError:
        """The error to raise for what the driver, or SQLAlchemy around it, raised."""
        said: BaseException | None = getattr(error, "orig", error)
        if self._file is None or said is None:
            return storage_error(said, self.label)
        found = self._file.error_of(said)
        if isinstance(found, StorageConflictError):  # connections that have the key of before
            self.engine.dispose()
        return found

    @contextmanager
    def _unchanged(self, file: SqliteFile) -> Iterator[Connection]:
        """A read of a file that was opened for reading alone, made only while it is what the connection takes it for.

        Raises:
            StorageConflictError: when somebody wrote to it meanwhile: what was read may be neither old nor new.
        """
        look = file.look()
        if look != file.seen:
            self.engine.dispose()
            file.seen = look
        try:
            with self._transaction(writes=False) as connection:
                yield connection
        except StorageError as error:
            if file.has_changed_since(look):
                raise file.changed() from error
            raise
        if file.has_changed_since(look):
            raise file.changed()

    @contextmanager
    def _alone(self, lock: threading.RLock | None) -> Iterator[None]:
        if lock is not None and not lock.acquire(timeout=min(self.busy_seconds, threading.TIMEOUT_MAX)):
            msg = f"{self.label} stayed locked by another thread for {self.busy_seconds} s: try again"
            raise StorageBusyError(msg)
        try:
            self._require_open()
            with _TRANSACTION[self.dialect]:
                yield
        finally:
            if lock is not None:
                lock.release()

    def _require_open(self) -> None:
        if self._closed:
            msg = "the memory was closed: open it again"
            raise ClosedError(msg)

    @property
    def is_encrypted(self) -> bool:
        """Whether the file has a key."""
        return self._key is not None

    def read(self) -> AbstractContextManager[Connection]:
        """A transaction that only reads; within a `snapshot`, the one that its thread's reads share."""
        if self.read_only and self._file is not None:
            return self._unchanged(self._file)
        connection = self._shared.connection()
        return self._transaction(writes=False) if connection is None else self._joined(connection)

    @contextmanager
    def _joined(self, connection: Connection) -> Iterator[Connection]:
        """A read within the shared transaction, which ends where the read fails: it may be run again in another."""
        self._require_open()
        try:
            yield connection
        except DBAPIError as error:
            self._shared.fail(error)
            raise self._error_of(error) from error
        except BaseException as error:
            if connection.invalidated:  # Ctrl-C within a statement: nothing but a rollback can be done with it
                self._shared.fail(error)
            raise

    def snapshot(self) -> AbstractContextManager[None]:
        """Within it, what this thread reads is of one state of the database, in one transaction.

        Whoever writes, or calls `end_snapshot`, sees a later state from then on. A flow must not wait within it: the
        thread may go on with something else. A file that was opened for reading alone is read piece by piece, for
        each read of it is looked over by itself.
        """
        return nullcontext() if self.read_only and self._file is not None else self._shared.block()

    def end_snapshot(self) -> None:
        """Hold no read transaction in this thread while something else is waited for; the next read begins one."""
        self._shared.end()

    def write(self, *, line: str | None = None) -> AbstractContextManager[Connection]:
        """A transaction that writes: committed when its block ends, rolled back when it raises.

        Args:
            line: Hexadecimal digits that name what many want to write at once: on PostgreSQL its writers then come to
                it in the order in which they asked.
        """
        self.require_writable()
        self._shared.end()
        return self._transaction(writes=True, line=line)

    def require_writable(self) -> None:
        """Go on where this database may be written to."""
        if self.unwritable_because is not None:
            raise ReadOnlyError(self.unwritable_because)
        if self.read_only:
            msg = f"{self.label} was opened with read_only=True: nothing was written; open it without to write"
            raise ReadOnlyError(msg)

    @contextmanager
    def outside_transaction(self) -> Iterator[Connection]:
        """A PostgreSQL connection on which each statement stands alone, as `VACUUM` wants it."""
        self.require_writable()
        self._shared.end()
        with self._alone(None), self._errors_of_driver(), self.engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def open_to_others(self) -> list[tuple[Path, str, str]]:
        """Files of the database, and embedded Chroma's folder beside it, that are open to more people than `file_mode`.

        Each with the mode that it has and the one that it would have.
        """
        if self.path is None or self.file_mode is None:
            return []
        beside = [self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-shm", ".chroma")]
        return too_open(beside, self.file_mode)

    def vacuum(self) -> bool:
        """Rewrite an SQLite file without what was deleted, and empty its write-ahead log.

        Returns:
            Whether somebody else's reading kept the log from being emptied.
        """
        self.require_writable()
        self._shared.end()
        with (
            self._alone(self._writing),
            self._errors_of_driver(),
            closing(self.engine.raw_connection()) as raw,
            closing(raw.cursor()) as cursor,
        ):
            cursor.execute("VACUUM")
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            busy = (cursor.fetchone() or (0,))[0]
        return bool(busy) and not self.in_memory

    def rotate_key(self, ask: KeySource) -> bool:
        """Encrypt the file with another key. See `SqliteFile.rotate_key`."""
        self.require_writable()
        self._shared.end()
        if self._file is None:
            msg = f"{self.label} is not a file with a key"
            raise SettingsError(msg)
        with self._alone(self._writing):
            try:
                return self._file.rotate_key(ask)
            finally:
                self.engine.dispose()

    def close(self) -> None:
        """Let go of all connections. Any later use raises `ClosedError`."""
        self._closed = True
        self._shared.end()
        self._let_go()

    def _let_go(self) -> None:
        self.engine.dispose()
        if self._file is not None:
            self._file.close()

    def before_fork(self) -> None:
        """Close what is idle: SQLite must not be carried across a fork, nor may two processes share a socket."""
        self._shared.end()
        if not self.in_memory:
            self.engine.dispose()

    def after_fork_in_child(self) -> None:
        """Start with fresh connections and locks: what other threads of the parent held is theirs."""
        self._make_locks()
        self._shared.forget()
        if not self.in_memory:
            self.engine.dispose(close=False)
