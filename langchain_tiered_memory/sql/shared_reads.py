"""One read transaction that a thread's reads share, so that a request sees one snapshot of the database."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy import Connection


class _OfThread(threading.local):
    """What one thread holds."""

    blocks: int = 0
    """How many blocks it is in."""
    transaction: AbstractContextManager[Connection] | None = None
    connection: Connection | None = None


class SharedReads:
    """The read transaction that the reads of one thread share for a while, so that a request sees one snapshot.

    It belongs to a thread, and never to a context that other threads copy: a connection serves one at a time. It is
    begun by the first read, and ended before anything is written, before somebody else's code is waited for, and with
    its block; the next read begins another.

    Args:
        begin: Gives a transaction that sees one state of the database.
    """

    def __init__(self, begin: Callable[[], AbstractContextManager[Connection]]) -> None:
        self._begin = begin
        self._mine = _OfThread()

    @contextmanager
    def block(self) -> Iterator[None]:
        """Let this thread's reads share a transaction until the outermost block ends."""
        self._mine.blocks += 1
        try:
            yield
        except BaseException as error:
            self._leave(error)
            raise
        else:
            self._leave(None)

    def _leave(self, error: BaseException | None) -> None:
        self._mine.blocks -= 1
        if self._mine.blocks:
            return
        if error is None:
            self.end()
        else:
            with suppress(StorageError):  # the error that came first is the one to be told
                self.fail(error)

    def connection(self) -> Connection | None:
        """The connection that this thread's reads share, begun where it is not yet; `None` outside of a block."""
        mine = self._mine
        if mine.blocks and mine.connection is None:
            transaction = self._begin()
            mine.connection = transaction.__enter__()
            mine.transaction = transaction
        return mine.connection

    def end(self) -> None:
        """End this thread's shared transaction. What was read was read, even where ending it fails."""
        transaction = self._taken()
        if transaction is not None:
            with suppress(StorageError):
                transaction.__exit__(None, None, None)

    def fail(self, error: BaseException) -> None:
        """End it because a read failed: what is run again gets another one.

        Raises:
            StorageError: what the error means.
        """
        transaction = self._taken()
        if transaction is not None:
            transaction.__exit__(type(error), error, error.__traceback__)

    def forget(self) -> None:
        """Let go of what the parent of a forked process holds, without touching it."""
        self._mine = _OfThread()

    def _taken(self) -> AbstractContextManager[Connection] | None:
        transaction, self._mine.transaction, self._mine.connection = self._mine.transaction, None, None
        return transaction
