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
        failed: BaseException | None = None
        try:
            yield
        except BaseException as error:
            failed = error
            raise
        finally:
            self._mine.blocks -= 1
            if not self._mine.blocks:
                self.end(failed)

    def connection(self) -> Connection | None:
        """The connection that this thread's reads share, begun where it is not yet; `None` outside of a block."""
        mine = self._mine
        if mine.blocks and mine.connection is None:
            transaction = self._begin()
            mine.connection = transaction.__enter__()
            mine.transaction = transaction
        return mine.connection

    def end(self, error: BaseException | None = None) -> None:
        """End it. What was read was read, even where that fails; of two errors the first is the one to be told."""
        with suppress(StorageError):
            self.fail(error)

    def fail(self, error: BaseException | None) -> None:
        """End this thread's shared transaction because a read failed: what is run again gets another one.

        Raises:
            StorageError: what the error means.
        """
        transaction, self._mine.transaction, self._mine.connection = self._mine.transaction, None, None
        if transaction is not None:
            transaction.__exit__(*(type(error), error, error.__traceback__) if error is not None else (None,) * 3)

    def forget(self) -> None:
        """Let go of what the parent of a forked process holds, without touching it."""
        self._mine = _OfThread()
