"""What measures one request: transactions and statements, the processor's time, and which functions run."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

import langchain_tiered_memory
from langchain_tiered_memory.errors import TieredMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

PACKAGE_FOLDER = str(Path(langchain_tiered_memory.__file__).parent)
_NO_STATEMENTS = ("BEGIN", "COMMIT", "ROLLBACK", "PRAGMA", "SAVEPOINT", "RELEASE")
_WRITES = ("INSERT", "UPDATE", "DELETE", "BEGIN IMMEDIATE")


class SqlTally:
    """Counts transactions and statements of every SQLAlchemy engine in the process."""

    def __init__(self) -> None:
        self.statements = 0
        self.reads = 0
        self.writes = 0
        self._open: dict[int, bool] = {}
        """Whether a connection's transaction has written."""
        event.listen(Engine, "begin", self._begun)
        event.listen(Engine, "before_cursor_execute", self._executed)
        event.listen(Engine, "commit", self._ended)
        event.listen(Engine, "rollback", self._ended)

    def now(self) -> tuple[int, int, int]:
        """Reading transactions, writing ones and statements so far."""
        return self.reads, self.writes, self.statements

    def _begun(self, connection: Connection) -> None:
        self._open.setdefault(id(connection), False)

    def _executed(self, connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        said = statement.lstrip().upper()
        self._open[id(connection)] = self._open.get(id(connection), False) or said.startswith(_WRITES)
        if not said.startswith(_NO_STATEMENTS):
            self.statements += 1

    def _ended(self, connection: Connection) -> None:
        if self._open.pop(id(connection), False):
            self.writes += 1
        else:
            self.reads += 1


class _Trace:
    """Which functions of the package run, in this thread and in those that are started meanwhile."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, str]] = set()
        self.calls = 0

    def __call__(self, frame: FrameType, kind: str, _: object) -> None:
        code = frame.f_code
        if kind == "call" and code.co_filename.startswith(PACKAGE_FOLDER) and not code.co_name.startswith("<"):
            self.seen.add((code.co_filename, code.co_qualname))
            self.calls += 1

    @property
    def row(self) -> dict[str, int]:
        """Files, functions and calls."""
        return {"files": len({file for file, _ in self.seen}), "functions": len(self.seen), "calls": self.calls}


@contextmanager
def traced(into: list[dict[str, int]] | None) -> Iterator[None]:
    """Note into a list what runs meanwhile; with `None` note nothing."""
    if into is None:
        yield
        return
    trace = _Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        into.append(trace.row)


@dataclass(slots=True)
class Measured:
    """One way to ask, request by request."""

    cpu_ms: list[float] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    statements: list[int] = field(default_factory=list)
    refused: int = 0
    """Requests that raised an error of the package's own: no context could be made."""


class Asker:
    """Measures one request after the other."""

    def __init__(self, tally: SqlTally) -> None:
        self.found = Measured()
        self._tally = tally

    def request(self, _: int, call: Callable[[], object]) -> None:
        """See `ask`; how many requests follow is of no matter."""
        self.ask(call)

    def ask(self, request: Callable[[], object]) -> None:
        """Make one request and note what it took."""
        before, began = self._tally.now(), time.process_time()
        try:
            request()
        except TieredMemoryError:
            self.found.refused += 1
            return
        self.found.cpu_ms.append(1000 * (time.process_time() - began))
        lists = (self.found.reads, self.found.writes, self.found.statements)
        for counts, since, until in zip(lists, before, self._tally.now(), strict=True):
            counts.append(until - since)
