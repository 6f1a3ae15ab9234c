"""Optional writes of a reading journey, which a read-only or full database may skip: plans, zones, outcomes.

Where the disk is full, somebody holds the lock or nobody may write, reading goes on: such a write is left out, and
that is reported. After one that failed none is tried for a while, so that a request waits for a lock at most once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.events import EventName

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.runtime import Runtime

P = ParamSpec("P")
T = TypeVar("T")

_PAUSE_SECONDS = 5.0
"""At least so long after a write failed; and as long as it may have waited for a lock."""


def write_if_possible(
    runtime: Runtime, session_id: str | None, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T | None:
    """Make a write and give its answer; `None` where it cannot be made now."""
    if not may_write(runtime):
        return None
    try:
        return call(*args, **kwargs)
    except StorageError as error:
        note_unwritten(runtime, session_id, error)
        return None


def may_write(runtime: Runtime) -> bool:
    """Whether a derived write is worth a try: not in a memory that only reads, nor just after one failed."""
    database = runtime.store.database
    if database.read_only and database.unwritable_because is None:
        return False
    return not runtime.view_cache.writes_paused(runtime.monotonic())


def note_unwritten(runtime: Runtime, session_id: str | None, error: StorageError) -> None:
    """Report that a derived write could not be made, and try none for a while."""
    seconds = max(_PAUSE_SECONDS, runtime.store.database.busy_seconds)
    runtime.view_cache.pause_writes(runtime.monotonic() + seconds)
    runtime.report(
        EventName.VIEW_NOT_WRITTEN,
        f"what was read is complete, what was derived from it could not be kept, and is not tried again for "
        f"{seconds:g} s: {error}",
        session_id=session_id,
        error=type(error).__name__,
    )
