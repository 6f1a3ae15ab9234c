"""What a database driver says, as an error of ours with a remedy. Judged by code: messages may be in any language."""

from __future__ import annotations

import sqlite3

from langchain_tiered_memory.errors import NotOurDatabaseError, StorageBusyError, StorageError

_BUSY, _FOREIGN, _FULL, _UNWRITABLE, _GONE = "busy", "foreign", "full", "unwritable", "gone"

_ANSWERS: dict[str | None, tuple[type[StorageError], str]] = {
    _BUSY: (
        StorageBusyError,
        "{where} stayed locked: {said}. Somebody else holds a long transaction; try again, or raise busy_seconds.",
    ),
    _FOREIGN: (
        NotOurDatabaseError,
        "{where} is no database of ours, or is damaged: {said}. Restore it from a copy, or open another one.",
    ),
    _FULL: (
        StorageError,
        "no room left for {where}: {said}. Nothing of this call was written; free space and retry.",
    ),
    _UNWRITABLE: (
        StorageError,
        "{where} cannot be opened for writing: {said}. Check that its folder exists and who may write there.",
    ),
    _GONE: (StorageError, "{where} cannot be reached: {said}. Check that the server runs, then retry."),
    None: (StorageError, "{where}: {said}"),
}
"""By kind: the error, and what it says."""

_SQLITE = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_CORRUPT: _FOREIGN,
    sqlite3.SQLITE_NOTADB: _FOREIGN,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _UNWRITABLE,
    sqlite3.SQLITE_CANTOPEN: _UNWRITABLE,
    sqlite3.SQLITE_PERM: _UNWRITABLE,
}
_POSTGRESQL = {
    "55P03": _BUSY,  # lock_not_available
    "40P01": _BUSY,  # deadlock_detected
    "40001": _BUSY,  # serialization_failure
    "53300": _BUSY,  # too_many_connections
    "53100": _FULL,  # disk_full
    "25006": _UNWRITABLE,  # read_only_sql_transaction
    "42501": _UNWRITABLE,  # insufficient_privilege
}
_POSTGRESQL_CLASSES = {"08": _GONE, "57": _GONE}  # connection exceptions; the operator's intervention


def storage_error(error: BaseException | None, where: str) -> StorageError:
    """The error to raise for what a driver raised while it used the database `where`."""
    said = " ".join(str(error).split()) or type(error).__name__
    if "no such module: fts5" in said:
        return StorageError(f"{where}: this Python's SQLite was built without FTS5. Use a build that has it.")
    error_type, words = _ANSWERS[_kind(error)]
    return error_type(words.format(where=where, said=said))


def _kind(error: BaseException | None) -> str | None:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE.get(code & 0xFF)
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return _POSTGRESQL.get(state) or _POSTGRESQL_CLASSES.get(state[:2])
    # A connection that breaks or never comes about has no state: all that psycopg calls operational is of that kind.
    return _GONE if type(error).__name__ == "OperationalError" and not isinstance(error, sqlite3.Error) else None
