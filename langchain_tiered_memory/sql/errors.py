"""What a database driver says, as an error of ours with a remedy. Judged by code: messages may be in any language."""

from __future__ import annotations

import errno
import re
import sqlite3

from langchain_tiered_memory.errors import (
    LockTimeoutError,
    NotOurDatabaseError,
    ReadOnlyError,
    StatementTimeoutError,
    StorageBusyError,
    StorageConflictError,
    StorageError,
    StorageFullError,
    StorageUnreachableError,
    TooManyConnectionsError,
)

_WORDS: dict[type[StorageError], str] = {
    StorageBusyError: (
        "{where} stayed locked: {said}. Somebody else holds a long transaction; try again, or raise busy_seconds."
    ),
    LockTimeoutError: (
        "{where} gave no lock in time: {said}. Somebody else holds a long transaction; try again, or raise "
        "busy_seconds."
    ),
    StatementTimeoutError: (
        "{where} ended a statement that took too long: {said}. Raise the server's or the role's statement_timeout, or "
        "find what holds it up."
    ),
    StorageConflictError: (
        "{where}: others changed the same rows at the same time: {said}. Nothing of this call was written; try again."
    ),
    TooManyConnectionsError: (
        "{where} takes no further connection: {said}. Raise the server's max_connections, share one memory among "
        "threads instead of opening many, or put a pooler in front."
    ),
    NotOurDatabaseError: (
        "{where} is not a database of this package, or is damaged: {said}. Restore it from a copy, or open another one."
    ),
    StorageFullError: "no room left for {where}: {said}. Nothing of this call was written; free space and retry.",
    ReadOnlyError: (
        "{where} cannot be opened for writing: {said}. Check that its folder exists and who may write there."
    ),
    StorageUnreachableError: "{where} cannot be reached: {said}. Check that the server runs, then retry.",
    StorageError: "{where}: {said}",
}
"""By error: what it says."""

_SQLITE: dict[int, type[StorageError]] = {
    sqlite3.SQLITE_BUSY: StorageBusyError,
    sqlite3.SQLITE_LOCKED: StorageBusyError,
    sqlite3.SQLITE_CORRUPT: NotOurDatabaseError,
    sqlite3.SQLITE_NOTADB: NotOurDatabaseError,
    sqlite3.SQLITE_FULL: StorageFullError,
    sqlite3.SQLITE_READONLY: ReadOnlyError,
    sqlite3.SQLITE_CANTOPEN: ReadOnlyError,
    sqlite3.SQLITE_PERM: ReadOnlyError,
    sqlite3.SQLITE_IOERR_SHMSIZE: StorageFullError,  # the log's index could not be made as large as it has to be
}
"""By extended code, or by the plain one that is its last byte."""
_POSTGRESQL: dict[str, type[StorageError]] = {
    "55P03": LockTimeoutError,  # lock_not_available
    "40P01": StorageConflictError,  # deadlock_detected
    "40001": StorageConflictError,  # serialization_failure
    "53300": TooManyConnectionsError,  # too_many_connections
    "53100": StorageFullError,  # disk_full
    "25006": ReadOnlyError,  # read_only_sql_transaction
    "42501": ReadOnlyError,  # insufficient_privilege
    "57014": StatementTimeoutError,  # query_canceled
    "25P04": StatementTimeoutError,  # transaction_timeout
    "25P03": StorageUnreachableError,  # idle_in_transaction_session_timeout: the connection is gone
    "08": StorageUnreachableError,  # connection exceptions
    "57": StorageUnreachableError,  # the operator's intervention
}
"""By state, or by the class that it begins with."""
_SYSTEM: dict[int, type[StorageError]] = {
    errno.ENOSPC: StorageFullError,
    errno.EDQUOT: StorageFullError,
    errno.EACCES: ReadOnlyError,
    errno.EPERM: ReadOnlyError,
    errno.EROFS: ReadOnlyError,
}
_NO_CONNECTION_LEFT = re.compile(r"too many (clients|connections)|remaining connection slots|no more connections")
"""A connection that never came about has no code, so here words must do. In another language it counts as unreachable,
which is as true, and tried again just so."""


def storage_error(error: BaseException | None, where: str) -> StorageError:
    """The error to raise for what a driver, or the system, raised while it used the database `where`."""
    said = " ".join(str(error).split()) or type(error).__name__
    if "no such module: fts5" in said:
        return StorageError(f"{where}: this Python's SQLite was built without FTS5. Use a build that has it.")
    error_type = _type_of(error, said)
    return error_type(_WORDS[error_type].format(where=where, said=said))


def _type_of(error: BaseException | None, said: str) -> type[StorageError]:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE.get(code) or _SQLITE.get(code & 0xFF, StorageError)
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return _POSTGRESQL.get(state) or _POSTGRESQL.get(state[:2], StorageError)
    if isinstance(error, OSError):
        return _SYSTEM.get(error.errno or 0, StorageError)
    # A connection that breaks or never comes about has no state: all that psycopg calls operational is of that kind.
    if type(error).__name__ != "OperationalError" or isinstance(error, sqlite3.Error):
        return StorageError
    return TooManyConnectionsError if _NO_CONNECTION_LEFT.search(said) else StorageUnreachableError
