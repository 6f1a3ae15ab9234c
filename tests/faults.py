"""Faults at a chosen statement: what a database driver raises there, or the end of the process."""

from __future__ import annotations

import os
import signal
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import event
from sqlalchemy.exc import OperationalError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

    from langchain_tiered_memory.runtime import SqlStore


@dataclass(slots=True)
class Fault:
    """Counts the steps of transactions that write, and has one of them fail."""

    at: int | None
    """Which step, from 0; `None`: none."""
    kind: str = "full"
    steps: int = 0
    hits: list[str] = field(default_factory=list)

    def step(self, what: str) -> None:
        """One statement, or one commit."""
        number, self.steps = self.steps, self.steps + 1
        if number != self.at:
            return
        self.hits.append(what)
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OperationalError(what, None, driver_error(self.kind))


def driver_error(kind: str) -> sqlite3.OperationalError:
    """What SQLite's driver raises on a full disk, a broken one, or a locked file."""
    code, words = {
        "full": (sqlite3.SQLITE_FULL, "database or disk is full"),
        "broken": (sqlite3.SQLITE_IOERR, "disk I/O error"),
        "busy": (sqlite3.SQLITE_BUSY, "database is locked"),
    }[kind]
    error = sqlite3.OperationalError(words)
    error.sqlite_errorcode = code
    return error


@contextmanager
def faults_in(store: SqlStore, fault: Fault) -> Iterator[Fault]:
    """Have `fault` count, and strike, in every transaction of a store that writes."""
    engine = store.database.engine
    with on_engine(engine, fault):
        yield fault


@contextmanager
def on_engine(engine: Engine, fault: Fault) -> Iterator[None]:
    """The same for an engine."""

    def before(connection: Connection, _cursor: object, statement: str, *_: Any) -> None:
        if connection.get_execution_options().get("writes"):
            fault.step(statement)

    def at_commit(connection: Connection) -> None:
        if connection.get_execution_options().get("writes"):
            fault.step("COMMIT")

    event.listen(engine, "before_cursor_execute", before)
    event.listen(engine, "commit", at_commit)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", before)
        event.remove(engine, "commit", at_commit)
