"""Transactions that were rolled back through no fault of their own are run again, within `busy_seconds`.

Each method of a store's room is one transaction without other effects, so one that is known not to have been committed
may run again, whatever it writes. A commit whose outcome is not known never does (`postgresql.py` asks the server what
became of it).
"""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from tenacity import Retrying, retry_if_exception, stop_before_delay, wait_random_exponential

from langchain_tiered_memory.errors import (
    OutcomeUnknownError,
    StorageConflictError,
    StorageUnreachableError,
    TooManyConnectionsError,
)
from langchain_tiered_memory.sql.damage import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import RowMapping, Select

    from langchain_tiered_memory.sql.database import Database

T = TypeVar("T")
Record = TypeVar("Record")

_PASSING = (StorageUnreachableError, StorageConflictError, TooManyConnectionsError)
_FIRST_WAIT_SECONDS = 0.05
_LONGEST_WAIT_SECONDS = 2.0


def is_passing(error: BaseException) -> bool:
    """Whether the transaction that raised it was rolled back, and may well succeed when it is run again."""
    return isinstance(error, _PASSING) and not isinstance(error, OutcomeUnknownError)


def until_it_passes(call: Callable[[], T], *, seconds: float, passes: Callable[[BaseException], bool]) -> T:
    """Call again and again, with growing pauses, while what it raises is passing; the last error is raised as it is."""
    attempts = Retrying(
        retry=retry_if_exception(passes),
        stop=stop_before_delay(seconds),
        wait=wait_random_exponential(multiplier=_FIRST_WAIT_SECONDS, max=_LONGEST_WAIT_SECONDS),
        reraise=True,
    )
    return attempts(call)


class Room:
    """A part of the store. Each public method runs again when its transaction was rolled back for a passing reason.

    Generators are left alone, for they have given something out already: what they read from is a method of its own.
    """

    __slots__ = ("database",)

    def __init__(self, database: Database) -> None:
        self.database = database

    def __init_subclass__(cls) -> None:
        """Have the methods of a room run again."""
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and not name.startswith("_") and not inspect.isgeneratorfunction(method):
                setattr(cls, name, _retried(method))

    def _count(self, query: Select[Any], named: Mapping[str, Any] | None = None) -> int:
        """The number that a query gives; 0 for none."""
        with self.database.read() as connection:
            return int(connection.scalar(query, named) or 0)

    def _records(
        self, query: Select[Any], read: Callable[[RowMapping], Record], named: Mapping[str, Any] | None = None
    ) -> list[Record]:
        """What `read` makes of the rows that a query gives; damaged ones are left out, and noted."""
        with self.database.read() as connection:
            return readable(connection, connection.execute(query, named).mappings(), read)


_retrying: ContextVar[object] = ContextVar("_retrying", default=None)
"""The database whose transactions a method further out runs again: one that it calls would double the time."""


def _retried(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - a method of any kind
        if _retrying.get() is self.database:
            return method(self, *args, **kwargs)
        within = _retrying.set(self.database)
        try:
            return method(self, *args, **kwargs)
        except _PASSING as error:
            if not is_passing(error):
                raise
            seconds: float = self.database.busy_seconds
            return until_it_passes(lambda: method(self, *args, **kwargs), seconds=seconds, passes=is_passing)
        finally:
            _retrying.reset(within)

    return run
