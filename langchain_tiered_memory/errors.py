"""The errors of this package, all under `TieredMemoryError`. Each message says what happened and what to do."""

from __future__ import annotations

import difflib
import os
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.scrubbing import scrubbed
from langchain_tiered_memory.types.outcomes import FailureReason, Refused
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


def explain_validation(error: ValidationError, fields: str = "") -> str:
    """What pydantic found wrong, as one sentence in this package's words.

    Args:
        error: The error that pydantic raised.
        fields: The known names, to suggest one for a misspelt name.
    """
    found = [_explain_fault(fault, fields) for fault in error.errors(include_url=False)]
    return "; ".join(dict.fromkeys(found))


def _explain_fault(fault: ErrorDetails, fields: str) -> str:
    place = ".".join(map(str, fault["loc"]))
    given = repr(fault.get("input"))
    given = given if len(given) <= SHOWN_CHARACTERS else f"{given[:SHOWN_CHARACTERS]}..."
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place, fields.split(", "), n=1)
        known = f"did you mean {near[0]!r}?" if near else f"known are {fields}"
        return f"there is no {place!r}" + (f": {known}" if fields else "")
    if fault["type"] == "missing":
        return f"{place} is missing"
    said = fault["msg"].removeprefix("Value error, ").replace("Input should be", "must be").partition(", unable")[0]
    return f"{place} {said}, not {given}" if said.startswith("must") else f"{place}: {said}" if place else said


SHOWN_CHARACTERS = 80
"""Characters of a refused value that an error shows: enough to recognise it."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, and point at the line of the program that called this package, directly or through other libraries.

    Args:
        message: The text of the warning.
        category: The class of the warning.
    """
    frame, level = sys._getframe(1), 2  # noqa: SLF001 - `inspect.currentframe`, the same, may be `None`
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


_LIBRARIES = (
    f"{Path(__file__).parent}{os.sep}",
    *(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    "<frozen",
)
"""Prefixes of file names that belong to libraries, not to the calling program."""


class ReducedFunctionWarning(UserWarning):
    """Something is missing on this machine, so search is by words alone or counts are estimates. Shown once."""


class TieredMemoryError(Exception):
    """The base class of all errors of this package.

    A message may quote a provider, a driver or a server. Keys and passwords in it are hidden.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(scrubbed(one) if isinstance(one, str) else one for one in args))


class InvalidInputError(TieredMemoryError, ValueError):
    """A message, id, time or query cannot be used. Nothing was written."""


class ArgumentError(InvalidInputError, TypeError):
    """An argument has the wrong type, is missing, or is unknown. Nothing was done."""


class UnknownMessageError(InvalidInputError):
    """LangChain does not define this type of message, or a stored message is damaged and cannot be read."""


class MixedOwnersError(InvalidInputError):
    """A session was opened for another user than the one it belongs to."""


class NotFoundError(InvalidInputError, KeyError):
    """The session has nothing with this id."""

    def __str__(self) -> str:
        """The message itself, which `KeyError` would quote."""
        return str(self.args[0]) if self.args else ""


class BudgetError(TieredMemoryError, ValueError):
    """The budget cannot hold what must be shown. The message says what takes the room."""


class ContextOverflowError(BudgetError):
    """The window overflowed, and neither pruning nor the last checkpoint could make the request fit.

    Args:
        message: What takes the room, and what to do.
        checkpoint_id: The emergency checkpoint with the state of the run. `None` if checkpoints are off.
    """

    def __init__(self, message: str, *, checkpoint_id: str | None = None) -> None:
        super().__init__(message)
        self.checkpoint_id = checkpoint_id


class SettingsError(TieredMemoryError, ValueError):
    """A setting, model or store cannot be used."""


class SectionError(SettingsError):
    """The name or share of a context section cannot be used, or it cannot replace a built-in section."""


class StorageError(TieredMemoryError):
    """The database refused. Earlier calls are safe, and this call wrote nothing.

    Only `OutcomeUnknownError` leaves open whether it did.
    """


class NewerSchemaError(StorageError):
    """The database was written by a later version of this package."""


class OlderSchemaError(StorageError):
    """The database was written by an earlier version of this package and opened read-only, so it cannot be upgraded."""


class NotOurDatabaseError(StorageError):
    """The file or schema is not a database of this package, or is damaged."""


class KeyNeededError(NotOurDatabaseError):
    """The file is encrypted, and no key was given, or the function that returns it failed."""


class WrongKeyError(NotOurDatabaseError):
    """The encrypted file does not open with this key."""


class NotEncryptedError(NotOurDatabaseError):
    """A key was given, but the file is not encrypted."""


class DamagedRowError(StorageError):
    """A stored row cannot be read. Views leave it out. `doctor()` repairs derived rows.

    Args:
        table: The table.
        row: The key of the row, as text.
        column: The column that cannot be read.
        why: What is wrong with it.
    """

    def __init__(self, table: str, row: str, column: str, why: str) -> None:
        super().__init__(f"{table} {row}: its {column} {why}; verify() lists all damage, doctor() repairs what it can")
        self.table = table
        self.row = row
        self.column = column
        self.why = why


class DatabaseReplacedError(StorageError):
    """The SQLite file or its write-ahead log was removed or replaced while open. Close the memory and open it again."""


class ReadOnlyError(StorageError):
    """The memory was opened with `read_only=True`, or the file cannot be written."""


class StorageFullError(StorageError):
    """The disk is full."""


class StorageUnreachableError(StorageError):
    """The database server cannot be reached, or the connection to it broke."""


class OutcomeUnknownError(StorageUnreachableError):
    """The connection broke during a commit, and the server cannot be asked whether it succeeded.

    Messages with ids are written only once, so the call can be repeated.
    """


class StorageBusyError(StorageError):
    """The database stayed locked longer than the busy timeout."""


class ForkedError(StorageError):
    """This process was forked while another thread was at work, so it would hang here."""


class LockTimeoutError(StorageBusyError):
    """PostgreSQL gave no lock within `busy_seconds`, or within a `lock_timeout` of its own."""


class StatementTimeoutError(StorageBusyError):
    """PostgreSQL ended a statement that exceeded `statement_timeout` or was cancelled."""


class StorageConflictError(StorageBusyError):
    """Other writers changed the same rows for longer than the busy timeout, for instance in a deadlock."""


class TooManyConnectionsError(StorageBusyError):
    """PostgreSQL had no connection left within `busy_seconds`."""


class IndexUnavailableError(TieredMemoryError):
    """Chroma cannot be reached or read. The transcript and the text index are not affected."""

    def __init__(self, message: str, *, is_silent: bool = False) -> None:
        super().__init__(message)
        self.is_silent = is_silent
        """Whether it gave no answer in time. Another try would take as long."""


class EmbedderMismatchError(TieredMemoryError):
    """The vector index was built with another embedder. `rebuild_index()` builds it again."""


class CondensationError(TieredMemoryError):
    """A summary could not be written. Its messages are unchanged.

    Args:
        message: What happened.
        spent: What the failed calls consumed.
        reason: The kind of failure.
        retry_after_seconds: When to try again, if the failure says so. Such a wait does not count as an attempt.
        refused: Answers that were rejected, in order.
    """

    def __init__(
        self,
        message: str,
        *,
        spent: Spent | None = None,
        reason: FailureReason = FailureReason.MODEL_ERROR,
        retry_after_seconds: float | None = None,
        refused: Sequence[Refused] = (),
    ) -> None:
        super().__init__(message)
        self.refused = tuple(refused)
        self.spent = spent if spent is not None else Spent()
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds


class CheckpointError(TieredMemoryError):
    """The checkpoint does not exist, or its contents do not match its checksum."""


class FileRefusedError(InvalidInputError):
    """A run may not open this file: it is outside its folders, the memory's own, not a regular file, or unreadable."""


class FileTooLargeError(FileRefusedError):
    """The file is larger than `tiers.largest_bytes`."""


class FileChangingError(FileRefusedError):
    """The file was written to during each of several reads, so no read gave a consistent content."""


class FileGoneError(NotFoundError):
    """The file is neither on disk nor kept."""


class PinLimitError(InvalidInputError):
    """The hot tier holds no more pinned files. Nothing was changed. Unpin one, or raise the limit."""


class DamagedFileError(StorageError):
    """A kept content does not match its checksum. If the file is still on disk, it is read again from there."""


class ClosedError(TieredMemoryError):
    """The memory was used after `close()`."""
