"""Databases that are made as fast as can be: what a process has compiled or made once, it does not work out again.

A test opens a database of its own, and two thirds of what that took were SQLAlchemy's: the same statements compiled
for each engine, the same tables put into words for each database. What reaches the database is the same.
"""

from __future__ import annotations

import re
import secrets
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import event, insert

from langchain_tiered_memory.sql import database as databases
from langchain_tiered_memory.sql import migrations, schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Dialect, Engine

_compiled: dict[Any, Any] = {}
_tables: dict[str, list[str]] = {}
"""For each dialect the statements that made the tables of its first database."""


class _SharedStatements:
    """Compiled statements of every engine of one dialect: SQLAlchemy's keys begin with the engine's own dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._name = dialect.name

    def get(self, key: tuple[Any, ...], default: Any = None) -> Any:
        return _compiled.get((self._name, *key[1:]), default)

    def __setitem__(self, key: tuple[Any, ...], value: Any) -> None:
        _compiled[(self._name, *key[1:])] = value


def share_statements() -> None:
    """From now on each database of this process uses what any of them has compiled."""
    made_by = databases.Database._create_engine

    def create(self: databases.Database) -> Engine:
        engine = made_by(self)
        engine.update_execution_options(compiled_cache=_SharedStatements(engine.dialect))
        return engine

    databases.Database._create_engine = create  # type: ignore[method-assign]


def repeat_tables() -> None:
    """From now on an empty database is made with the statements that the migration of the first one sent."""
    databases.migrate = _repeated


@contextmanager
def migrated_anew() -> Iterator[None]:
    """Within it each database is migrated step by step: for tests of just that."""
    databases.migrate = migrations.migrate
    try:
        yield
    finally:
        databases.migrate = _repeated


def _repeated(connection: Connection, *, now: float) -> int:
    if not _is_empty(connection):
        return migrations.migrate(connection, now=now)
    sent = _tables.get(connection.dialect.name)
    if sent is None:
        return _recorded(connection, now)
    # PostgreSQL takes them in one message; SQLite's driver takes one statement at a time within a transaction.
    for statement in sent if connection.dialect.name == "sqlite" else [";".join(sent)]:
        connection.exec_driver_sql(statement)
    names = {"identity": uuid.uuid4().hex, schema.FORGETTING_KEY: secrets.token_hex(32)}
    connection.execute(insert(schema.meta), [{"name": name, "value": value} for name, value in names.items()])
    applied = [{"number": at, "name": name, "applied_at": now} for at, (name, _) in enumerate(migrations.STEPS, 1)]
    connection.execute(insert(schema.migrations), applied)
    return len(applied)


def _is_empty(connection: Connection) -> bool:
    listed = "sqlite_master" if connection.dialect.name == "sqlite" else "pg_tables WHERE schemaname = current_schema()"
    return connection.exec_driver_sql(f"SELECT count(*) FROM {listed}").scalar() == 0


def _recorded(connection: Connection, now: float) -> int:
    """Migrate, and note what made the tables: of what is inserted, all is random or says when."""
    sent: list[str] = []

    def note(_: Connection, __: Any, statement: str, *___: Any) -> None:
        if not re.match(r"\s*(SELECT|PRAGMA|INSERT|UPDATE)\b", statement, re.IGNORECASE):
            sent.append(statement)

    event.listen(connection, "before_cursor_execute", note)
    try:
        applied = migrations.migrate(connection, now=now)
    finally:
        event.remove(connection, "before_cursor_execute", note)
    _tables[connection.dialect.name] = sent
    return applied
