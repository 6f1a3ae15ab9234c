"""One SQLite file: how it is made, opened, and known again while it is open.

- A file is made by us, empty and with its mode, before SQLite opens it: SQLite gives its log the same mode.
- A file that is removed or replaced while it is open goes on taking writes that nobody will ever find. So each
  connection remembers which files it opened (device and inode: the database, its log, the log's index), and a write
  compares them before it commits. Later connections never make a file anew.
- Reading alone leaves no byte in the folder. SQLite's own read of a database in WAL mode makes two files beside it; a
  database without a log, which nobody has open, is read as an immutable file instead. Should somebody write to it
  meanwhile, which is seen by its size, time and log, the read is made again.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import QueuePool, StaticPool

from langchain_tiered_memory.errors import (
    DatabaseReplacedError,
    KeyNeededError,
    NotEncryptedError,
    SettingsError,
    StorageConflictError,
    StorageError,
)
from langchain_tiered_memory.sql.encryption import FileKey, driver_of, refusal
from langchain_tiered_memory.sql.errors import storage_error
from langchain_tiered_memory.sql.migrations import refuse_foreign_tables
from langchain_tiered_memory.sql.private_files import create_file

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from langchain_tiered_memory.sql.encryption import KeySource

_SUFFIXES = ("", "-wal", "-shm")
"""Of the database, its log and the log's index."""
_OPEN: WeakSet[SqliteFile] = WeakSet()
"""The files that this process has open."""
_PRAGMAS = ("synchronous=FULL", "secure_delete=ON", "temp_store=MEMORY")


@dataclass(frozen=True, slots=True)
class Look:
    """What a file looks like from outside."""

    stamp: tuple[int, ...]
    """Device, inode, size and time of the last change."""
    is_quiet: bool
    """Whether nobody has it open to write, and nothing waits in a log or a journal: the file is all there is."""


_as_text = partial(str, encoding="utf-8", errors="replace")
"""Reads a text of SQLite. One damaged byte must not keep a whole query from being read: it becomes U+FFFD."""


class SqliteFile:
    """An SQLite file that a memory is kept in; with `mode` where it is made here, or (`None`) as the umask has it.

    Raises:
        SettingsError: when a `key` is given, and what encrypts is not installed.
    """

    def __init__(
        self, path: Path, *, label: str, busy_seconds: float, mode: int | None, read_only: bool, key: FileKey | None
    ) -> None:
        self.path = path
        self.driver = driver_of(key)
        self._key = key
        self.read_only = read_only
        self._label = label
        self._busy_seconds = busy_seconds
        self._mode = mode
        self._identity: tuple[int, int] | None = None
        """Device and inode of the file that was opened first."""
        self.seen = Look(stamp=(), is_quiet=False)
        """What the file looked like when the connections in the pool were made; where it is only read."""

    def prepare(self) -> None:
        """Refuse what is not ours before anything in it is changed, the journal mode included; make what is missing.

        Raises:
            NotOurDatabaseError: when it is something else.
            StorageError: when it cannot be read or made.
        """
        if not self.path.parent.is_dir():
            msg = f"the folder {self.path.parent} does not exist: create it, or open the memory elsewhere"
            raise StorageError(msg)
        self._require_one_driver()
        if self.read_only and not self.path.exists():
            msg = f"there is no database at {self.path} to read: open it without read_only to create one"
            raise StorageError(msg)
        if not self.read_only and not self.path.exists():
            self._make()
        if not self.path.is_file():
            return
        if self._key is not None and not self.read_only and not self.path.stat().st_size:
            # The salt is written before anything else; who comes second, with another, finds the first one's.
            with suppress(self.driver.Error), closing(self._connect(self._uri())) as connection:
                connection.execute("PRAGMA journal_mode=WAL").fetchall()
        if not self.path.stat().st_size:
            return
        self.seen = self.look()
        try:
            with closing(self._connect(self._uri())) as connection:
                found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        except self.driver.Error as error:
            if self.read_only and self.has_changed_since(self.seen):
                raise self.changed() from error
            raise self.error_of(error) from error
        refuse_foreign_tables({name for (name,) in found})

    def close(self) -> None:
        """It is open here no longer."""
        _OPEN.discard(self)

    def _require_one_driver(self) -> None:
        """Go on where this process has the file open as it is opened now: with a key, or without one.

        With and without are two libraries. One that closes a file takes the locks of the other from it.
        """
        if any(other.path == self.path and other.driver is not self.driver for other in list(_OPEN)):
            so, what = ("without", NotEncryptedError) if self._key is not None else ("with", KeyNeededError)
            msg = f"{self._label} is open in this process {so} a key: open it {so} a key here too, or close it first"
            raise what(msg)
        _OPEN.add(self)

    def error_of(self, error: BaseException) -> StorageError:
        """The error to raise for what the driver raised."""
        refused = refusal(error, self.path, self._key)
        if refused is not None and self._key is not None:
            self._key.ask_again()
            with suppress(self.driver.Error), closing(self._connect(self._uri())) as connection:
                connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
                msg = f"{self._label} was given a new key by another process: try again"
                return StorageConflictError(msg)
        return refused or storage_error(error, self._label)

    def rotate_key(self, ask: KeySource) -> bool:
        """Encrypt the file with another key; connections in the pool still have the old one.

        Returns:
            Whether nothing under the old key is left; somebody's reading may keep some of it in the log.

        Raises:
            SettingsError: when the file is not encrypted, or the new key cannot be used.
            StorageError: when it cannot be written. The old key opens it then.
        """
        if self._key is None:
            msg = f"{self._label} is not encrypted: `tiered-memory encrypt` makes an encrypted copy"
            raise SettingsError(msg)
        new, old = FileKey(ask), self._key
        try:
            with closing(self.connect()) as connection:
                new.rekey(connection)
        except self.driver.Error as error:
            raise self.error_of(error) from error
        self._key = new
        try:  # SQLCipher says that it rekeyed even where it could write nothing
            connection = self.connect()
        except BaseException as error:
            self._key = old
            if not isinstance(error, self.driver.Error):
                raise
            msg = f"{self._label} could not be written with the new key (is the disk full?): the old key opens it"
            raise StorageError(msg) from error
        with closing(connection):
            try:
                busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except self.driver.Error:  # the new key holds; what the log has stays there
                busy = 1
        return not busy

    def connect(self) -> sqlite3.Connection:
        """A connection for the pool."""
        if self._identity is not None and self._file_id("") != self._identity:
            raise self._replaced()
        connection = self._connect(self._uri())
        try:
            connection.isolation_level = None
            connection.text_factory = _as_text
            pragmas = ("query_only=ON", *_PRAGMAS) if self.read_only else ("journal_mode=WAL", *_PRAGMAS)
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}").fetchall()
            # A first read opens the log, so that it can be known again.
            connection.execute("PRAGMA schema_version").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection

    def identify(self, record: dict[Any, Any]) -> None:
        """Remember in a connection's own record which files it has open.

        Raises:
            DatabaseReplacedError: when it is another file than the one that was opened first.
        """
        found = record["files"] = [self._file_id(suffix) for suffix in _SUFFIXES]
        if self._identity is None:
            self._identity = found[0]
        elif found[0] != self._identity:
            raise self._replaced()

    def confirm(self, record: dict[Any, Any]) -> None:
        """Say that what a connection has open is what others will find.

        Raises:
            DatabaseReplacedError: when the file, its log or the log's index was removed or replaced.
        """
        for suffix, mine in zip(_SUFFIXES, record["files"], strict=True):
            if mine is not None and self._file_id(suffix) != mine:
                raise self._replaced(suffix)

    def look(self) -> Look:
        """Its `stat`, and whether used."""
        try:
            status = self.path.stat()
        except OSError:
            return Look(stamp=(), is_quiet=False)
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        return Look(stamp=stamp, is_quiet=not self._is_in_use())

    def has_changed_since(self, look: Look) -> bool:
        """Whether somebody wrote to what connections take for immutable."""
        return (look.is_quiet or self.seen.is_quiet) and self.look() != look

    def changed(self) -> StorageConflictError:
        """The error for a read during which somebody wrote."""
        msg = f"{self._label} was written to by another process while it was read: try again"
        return StorageConflictError(msg)

    def _is_in_use(self) -> bool:
        """Whether there is a log with something in it, a journal, or the index that whoever has the log open keeps."""
        for suffix, matters in (("-wal", 1), ("-journal", 1), ("-shm", 0)):
            try:
                size = self._beside(suffix).stat().st_size
            except OSError:
                continue
            if size >= matters:
                return True
        return False

    def _make(self) -> None:
        try:
            if self._mode is not None:
                create_file(self.path, self._mode)
            else:
                self.path.touch()
        except OSError as error:
            raise storage_error(error, self._label) from error

    def _uri(self) -> str:
        """As SQLite opens it: never made by SQLite itself, for a file that is missing was taken away."""
        if not self.read_only:
            return f"{self.path.as_uri()}?mode=rw"
        return f"{self.path.as_uri()}?mode=ro" + ("&immutable=1" if self.seen.is_quiet else "")

    def _connect(self, uri: str) -> sqlite3.Connection:
        connection: sqlite3.Connection = self.driver.connect(
            uri, uri=True, timeout=self._busy_seconds, check_same_thread=False
        )
        if self._key is not None:
            try:
                self._key.unlock(connection, self.path)
            except BaseException:
                connection.close()
                raise
        return connection

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix) if suffix else self.path

    def _file_id(self, suffix: str) -> tuple[int, int] | None:
        try:
            status = os.stat(self._beside(suffix))  # noqa: PTH116 - at every write: twice as fast as a Path's own
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _replaced(self, suffix: str = "") -> DatabaseReplacedError:
        what = "the write-ahead log of " if suffix else ""
        msg = (
            f"{what}{self._label} was removed or replaced while it was open; anything written now would be lost. "
            "Nothing of this call was written. Put the file back, or close this memory and open it again; what only "
            "the removed file has can still be read from this memory until then"
        )
        return DatabaseReplacedError(msg)


def create_sqlite(file: SqliteFile | None, *, seconds: float) -> Engine:
    """An engine for a file, or with `None` for a database in memory. Whoever means to write takes the lock at once."""
    if file is None:
        engine = create_engine("sqlite://", connect_args={"check_same_thread": False}, poolclass=StaticPool)
    else:
        engine = create_engine(
            "sqlite://", creator=file.connect, module=file.driver, poolclass=QueuePool, pool_timeout=seconds
        )

    @event.listens_for(engine, "connect")
    def _on_connect(connection: Any, record: Any) -> None:  # noqa: ANN401 - the driver's and the pool's own types
        if file is not None:
            file.identify(record.info)
            return
        connection.isolation_level = None
        connection.text_factory = _as_text
        with closing(connection.cursor()) as cursor:
            cursor.execute("PRAGMA secure_delete=ON")

    @event.listens_for(engine, "begin")
    def _on_begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
