"""What can go wrong, one family under `TieredMemoryError`. Each message says what happened and what to do."""

from __future__ import annotations

import difflib
import os
import sys
import sysconfig
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.scrubbing import scrubbed
from langchain_tiered_memory.types.outcomes import FailureReason, Refused
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails


def explain_validation(error: ValidationError, fields: str = "") -> str:
    """What pydantic found wrong, as one sentence in this package's words.

    Args:
        error: As pydantic raised it.
        fields: The names that would have been known, for whoever misspelt one.
    """
    found = [_explain_fault(fault, fields) for fault in error.errors(include_url=False)]
    return "; ".join(dict.fromkeys(found))


def _explain_fault(fault: ErrorDetails, fields: str) -> str:
    place = ".".join(map(str, fault["loc"]))
    given = repr(fault.get("input"))
    given = given if len(given) <= _SHOWN_CHARACTERS else f"{given[:_SHOWN_CHARACTERS]}..."
    if fault["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place, fields.split(", "), n=1)
        known = f"did you mean {near[0]!r}?" if near else f"known are {fields}"
        return f"there is no {place!r}" + (f": {known}" if fields else "")
    if fault["type"] == "missing":
        return f"{place} is missing"
    said = fault["msg"].removeprefix("Value error, ").replace("Input should be", "must be").partition(", unable")[0]
    return f"{place} {said}, not {given}" if said.startswith("must") else f"{place}: {said}" if place else said


_SHOWN_CHARACTERS = 80
"""Of a value that cannot be used: enough to recognise it."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn, and point at the line of the program that called this package, through whatever library it did so.

    Args:
        message: What to say.
        category: The class of the warning.
    """
    frame, level = _outermost(sys._getframe(1))  # noqa: SLF001 - `inspect.currentframe`, the same, may be `None`
    awaiting = _awaiting.get()
    if awaiting is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        warnings.warn_explicit(message, category, *awaiting, registry=_warned)
    else:
        warnings.warn(message, category, stacklevel=level + 1)


@contextmanager
def noted_caller() -> Iterator[None]:
    """Remember the line that awaits a call, for what warns in a task or thread that is begun here."""
    frame, _ = _outermost(sys._getframe(2))  # noqa: SLF001 - as above; the first is `contextlib`'s
    token = _awaiting.set((frame.f_code.co_filename, frame.f_lineno))
    try:
        yield
    finally:
        _awaiting.reset(token)


def _outermost(frame: FrameType) -> tuple[FrameType, int]:
    """The first frame, from this one on, that is no library's, and which one it is; the last where all are."""
    level = 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame, level = frame.f_back, level + 1
    return frame, level


_awaiting: ContextVar[tuple[str, int] | None] = ContextVar("_awaiting", default=None)
_warned: dict[str | tuple[str, type[Warning], int], int] = {}
"""As modules have one, so that a place warns once."""


_LIBRARIES = (
    f"{Path(__file__).parent}{os.sep}",
    *(f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    "<frozen",
)
"""How the names of files begin that no caller of this package wrote."""


class ReducedFunctionWarning(UserWarning):
    """This memory works with less than it could: search by words alone, or estimated counts. Said once in a program."""


class TieredMemoryError(Exception):
    """Base of everything this package raises on purpose.

    Its words may repeat those of a provider, a driver or a server: keys and passwords in them are hidden.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(scrubbed(one) if isinstance(one, str) else one for one in args))


class InvalidInputError(TieredMemoryError, ValueError):
    """A message, id, time or query that cannot be taken. Nothing was written."""


class ArgumentError(InvalidInputError, TypeError):
    """An argument of a verb that is of the wrong kind, is missing, or that nobody knows. Nothing was done."""


class UnknownMessageError(InvalidInputError):
    """A message of a type that LangChain does not define; or a stored one that is damaged and cannot be read."""


class MixedOwnersError(InvalidInputError):
    """A session was opened for another user than the one it belongs to."""


class NotFoundError(InvalidInputError, KeyError):
    """An id that is not in this session."""

    def __str__(self) -> str:
        """The message itself: `KeyError` would quote it."""
        return str(self.args[0]) if self.args else ""


class BudgetError(TieredMemoryError, ValueError):
    """A budget that cannot hold what must be shown; the message says what takes the room."""


class ContextOverflowError(BudgetError):
    """The window overflowed, and neither pruning nor the last checkpoint could make the request fit.

    Args:
        message: What takes the room, and what to do.
        checkpoint_id: The emergency checkpoint that holds the run's state; `None` where checkpoints are off.
    """

    def __init__(self, message: str, *, checkpoint_id: str | None = None) -> None:
        super().__init__(message)
        self.checkpoint_id = checkpoint_id


class SettingsError(TieredMemoryError, ValueError):
    """A setting, model or store that cannot be used."""


class SectionError(SettingsError):
    """A section of contexts whose name or share cannot be used, or that cannot take a built-in one's place."""


class StorageError(TieredMemoryError):
    """The database said no. What was acknowledged before is safe; what this call carried was not written.

    `OutcomeUnknownError` alone leaves open whether it was.
    """


class NewerSchemaError(StorageError):
    """The database was written by a later version of this package."""


class OlderSchemaError(StorageError):
    """The database was written by an earlier version of this package, and was opened for reading alone."""


class NotOurDatabaseError(StorageError):
    """A file or schema that is something else, or is damaged."""


class KeyNeededError(NotOurDatabaseError):
    """An encrypted file without its key: none was given, or the function that gives it failed."""


class WrongKeyError(NotOurDatabaseError):
    """An encrypted file that does not open with the key that was given."""


class NotEncryptedError(NotOurDatabaseError):
    """A plain file for which a key was given."""


class DamagedRowError(StorageError):
    """A stored row that cannot be read. Views go on without it; `doctor()` makes again what is derived.

    Args:
        table: Which table.
        row: Its key there, as text.
        column: The column that cannot be read.
        why: What is wrong with it.
    """

    def __init__(self, table: str, row: str, column: str, why: str) -> None:
        super().__init__(
            f"{table} {row}: its {column} {why}; verify() names all that is damaged, doctor() makes again what can be"
        )
        self.table = table
        self.row = row
        self.column = column
        self.why = why


class DatabaseReplacedError(StorageError):
    """The SQLite file, or its write-ahead log, was removed or replaced while it was open: close, and open again."""


class ReadOnlyError(StorageError):
    """A write to a memory that was opened with `read_only=True`, or to a place where nobody may write."""


class StorageFullError(StorageError):
    """No room is left on the disk."""


class StorageUnreachableError(StorageError):
    """The database server cannot be reached, or the connection to it broke."""


class OutcomeUnknownError(StorageUnreachableError):
    """The connection broke during a commit, and the server cannot be asked what became of it.

    The call may have been written, or not; made again, it writes messages that have ids only once.
    """


class StorageBusyError(StorageError):
    """The database stayed locked longer than the busy timeout."""


class ForkedError(StorageError):
    """This process was forked in the middle of another thread's work, so that going on here would hang."""


class LockTimeoutError(StorageBusyError):
    """PostgreSQL gave no lock within `busy_seconds`, or within a `lock_timeout` of its own."""


class StatementTimeoutError(StorageBusyError):
    """PostgreSQL ended a statement that took longer than its `statement_timeout`, or that somebody cancelled."""


class StorageConflictError(StorageBusyError):
    """Others changed the same thing at the same time, such as in a deadlock, for longer than the busy timeout."""


class TooManyConnectionsError(StorageBusyError):
    """PostgreSQL had no connection left within `busy_seconds`."""


class IndexUnavailableError(TieredMemoryError):
    """Chroma cannot be reached or read. The transcript and the text index are not affected."""

    def __init__(self, message: str, *, is_silent: bool = False) -> None:
        super().__init__(message)
        self.is_silent = is_silent
        """Whether it gave no answer in time: another try would cost as long."""


class EmbedderMismatchError(TieredMemoryError):
    """The vector index was built by another embedder; `rebuild_index()` makes it anew."""


class CondensationError(TieredMemoryError):
    """A summary could not be made; the messages it would have covered are untouched.

    Args:
        message: What happened.
        spent: What the failed calls took.
        reason: Which of the ways to fail it was.
        retry_after_seconds: When it may be tried again, where the failure knows; such a wait counts as no attempt.
        refused: Answers that came and were not taken, in their order.
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
    """A checkpoint that is not there, or whose contents do not match its checksum."""


class FileRefusedError(InvalidInputError):
    """A file that a run may not open: outside of its folders, the memory's own, no regular file, or unreadable."""


class FileTooLargeError(FileRefusedError):
    """A file larger than `tiers.largest_bytes`."""


class FileChangingError(FileRefusedError):
    """A file that was written to while it was read, each time: no reading of it is what it ever was."""


class FileGoneError(NotFoundError):
    """A file that is neither on the disk nor kept."""


class PinLimitError(InvalidInputError):
    """One more pinned file than the hot tier may hold. Nothing was changed: unpin another, or raise the limit."""


class DamagedFileError(StorageError):
    """A kept content that is not what its checksum says. The file is read from the disk again where it is there."""


class ClosedError(TieredMemoryError):
    """The memory was used after `close()`."""
