"""What can go wrong, one family. Each message says what happened and what to do.

TieredMemoryError
├── InvalidInputError (ValueError)      a message, id, time or query that cannot be taken
│   ├── UnknownMessageError             a message type nobody here knows
│   ├── MixedOwnersError                a session opened for another user than its own
│   └── NotFoundError (KeyError)        an id that is not in this session
├── BudgetError (ValueError)            a budget that cannot hold what must be shown
│   └── ContextOverflowError            nothing could make the request fit; everything is saved
├── SettingsError (ValueError)          a setting, model or store that cannot be used
├── StorageError                        the database said no
│   ├── NewerSchemaError                written by a later version of this package
│   ├── NotOurDatabaseError             a file or schema that is something else
│   └── StorageBusyError                locked by somebody for too long
├── IndexUnavailableError               Chroma cannot be reached or read; the transcript is fine
├── EmbedderMismatchError               the index was built by another embedder
├── CondensationError                   a summary could not be made
├── CheckpointError                     a checkpoint that is not there, or is damaged
└── ClosedError                         used after `close()`
"""

from __future__ import annotations

from langchain_tiered_memory.outcomes import FailureReason
from langchain_tiered_memory.records import Spent


class TieredMemoryError(Exception):
    """Base of everything this package raises on purpose."""


class InvalidInputError(TieredMemoryError, ValueError):
    """A message, id, time or query that cannot be taken. Nothing was written."""


class UnknownMessageError(InvalidInputError):
    """A message of a type that LangChain does not define. Nothing was written."""


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


class StorageError(TieredMemoryError):
    """The database said no. What was acknowledged before is safe; what this call carried was not written."""


class NewerSchemaError(StorageError):
    """The database was written by a later version of this package."""


class NotOurDatabaseError(StorageError):
    """A file or schema that is something else, or is damaged."""


class StorageBusyError(StorageError):
    """The database stayed locked longer than the busy timeout."""


class IndexUnavailableError(TieredMemoryError):
    """Chroma cannot be reached or read. The transcript and the text index are not affected."""


class EmbedderMismatchError(TieredMemoryError):
    """The vector index was built by another embedder; `rebuild_index()` makes it anew."""


class CondensationError(TieredMemoryError):
    """A summary could not be made; the messages it would have covered are untouched.

    Args:
        message: What happened.
        spent: What the failed calls took.
        reason: Which of the ways to fail it was.
        retry_after_seconds: When it may be tried again, where the failure knows; such a wait counts as no attempt.
    """

    def __init__(
        self,
        message: str,
        *,
        spent: Spent | None = None,
        reason: FailureReason = FailureReason.MODEL_ERROR,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.spent = spent if spent is not None else Spent()
        self.reason = reason
        self.retry_after_seconds = retry_after_seconds


class CheckpointError(TieredMemoryError):
    """A checkpoint that is not there, or whose contents do not match its checksum."""


class ClosedError(TieredMemoryError):
    """The memory was used after `close()`."""
