"""The schema's history: an append-only list of named steps, each applied once and recorded.

Add a step at the end for every change; never edit one that was released. A new table, column or index needs a name
alone: an older database gets what it lacks of the present schema first, and then come the steps that change rows. A
database that has more steps than this list was written by a later version and is refused.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    CreateTable,
    MetaData,
    UniqueConstraint,
    and_,
    func,
    insert,
    inspect,
    literal_column,
    select,
    update,
)
from sqlalchemy.schema import CreateColumn

from langchain_tiered_memory.errors import NewerSchemaError, NotOurDatabaseError
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.types.drafts import digest_of_summary

Step: TypeAlias = Callable[[Connection], None]

# The `ascii` tokenizer takes every non-ASCII character as part of a term; with the punctuation added, only white
# space and quotes end one, so that the index holds exactly the terms that our own analysis wrote.
_FTS_TABLE = r"""
CREATE VIRTUAL TABLE ltm_passages_fts USING fts5(
    scope, terms, content='ltm_passages', content_rowid='id',
    tokenize="ascii tokenchars '_./-@#+$%~={}[],;?^`\:&|!()<>*'"
)
"""
_FTS_TRIGGERS = (
    """
    CREATE TRIGGER ltm_passages_ai AFTER INSERT ON ltm_passages BEGIN
        INSERT INTO ltm_passages_fts(rowid, scope, terms) VALUES (new.id, new.scope, new.terms);
    END
    """,
    """
    CREATE TRIGGER ltm_passages_ad AFTER DELETE ON ltm_passages BEGIN
        INSERT INTO ltm_passages_fts(ltm_passages_fts, rowid, scope, terms)
        VALUES ('delete', old.id, old.scope, old.terms);
    END
    """,
)
_TSV_COLUMN = """
ALTER TABLE ltm_passages ADD COLUMN tsv tsvector GENERATED ALWAYS AS
(array_to_tsvector(array_remove(string_to_array(scope || ' ' || terms, ' '), ''))) STORED
"""


def _first_schema(connection: Connection) -> None:
    schema.metadata.create_all(connection)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_FTS_TABLE)
        for trigger in _FTS_TRIGGERS:
            connection.exec_driver_sql(trigger)
    else:
        connection.exec_driver_sql(_TSV_COLUMN)
        connection.exec_driver_sql("CREATE INDEX ltm_passages_tsv ON ltm_passages USING gin (tsv)")
    connection.execute(insert(schema.meta).values(name="identity", value=uuid.uuid4().hex))


def _complete(connection: Connection) -> None:
    """Give a database of an earlier schema the tables, columns and indexes of the present one that it lacks."""
    schema.metadata.create_all(connection)
    for table in schema.metadata.sorted_tables:
        present = {column["name"] for column in inspect(connection).get_columns(table.name)}
        for column in table.columns:
            if column.name not in present and column.computed is None:
                added = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {added}")
    _make_ids_unique_per_track(connection)
    for table in schema.metadata.sorted_tables:
        for index in sorted(table.indexes, key=lambda one: str(one.name)):
            index.create(connection, checkfirst=True)


def _make_ids_unique_per_track(connection: Connection) -> None:
    """A message's id was unique in its session before the third schema.

    SQLite cannot change a constraint of a table: the table is made anew, and its rows are copied.
    """
    table = schema.entries
    (wanted,) = (
        [column.name for column in one.columns]
        for one in table.constraints
        if isinstance(one, UniqueConstraint) and one.name == schema.ENTRY_ID
    )
    present = {one["name"]: one["column_names"] for one in inspect(connection).get_unique_constraints(table.name)}
    if present.get(schema.ENTRY_ID) == wanted:
        return
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(
            f"ALTER TABLE {table.name} DROP CONSTRAINT {schema.ENTRY_ID}, "
            f"ADD CONSTRAINT {schema.ENTRY_ID} UNIQUE ({', '.join(wanted)})"
        )
        return
    rebuilt = table.to_metadata(MetaData(), name=f"{table.name}_rebuilt")
    kept = ", ".join(one.name for one in table.columns if one.computed is None)
    connection.execute(CreateTable(rebuilt))
    connection.exec_driver_sql(
        f"INSERT INTO {rebuilt.name} ({kept}) SELECT {kept} FROM {table.name} ORDER BY session_key, seq"
    )
    connection.exec_driver_sql(f"DROP TABLE {table.name}")
    connection.exec_driver_sql(f"ALTER TABLE {rebuilt.name} RENAME TO {table.name}")


def _soundness(connection: Connection) -> None:
    """A mark stands for the list of calls without a result. What is forgotten is known by digests with a key.

    Messages and summaries of before have no mark of a counter, and no seal.
    """
    entries = schema.entries
    connection.execute(update(entries).where(entries.c.open_calls.is_not(None)).values(open_calls=schema.WAITS))
    connection.execute(insert(schema.meta).values(name=schema.FORGETTING_KEY, value=secrets.token_hex(32)))


def _scopes(connection: Connection) -> None:
    """Tasks are named on their track; messages that were given a kind are found without a walk through all others."""
    for index in schema.entries.indexes:
        if index.name == schema.KINDS_INDEX:
            # Of two equal ones SQLite's planner takes the newest: the index over all messages must be older.
            index.drop(connection, checkfirst=True)
            index.create(connection)
    tasks = schema.tasks.c
    for row in connection.execute(select(tasks.session_key, tasks.task_digest, tasks.track, tasks.task_id)).all():
        if row.task_digest != schema.digest_of(schema.unpacked(row.task_id)):
            continue  # damaged: `verify` names it
        mine = and_(tasks.session_key == row.session_key, tasks.task_digest == row.task_digest)
        digest = schema.digest_of_task(schema.unpacked(row.track), schema.unpacked(row.task_id))
        connection.execute(update(schema.tasks).where(mine).values(task_digest=digest))


def _without_copies(connection: Connection) -> None:
    """Which calls have no result follows from the messages, and facts are rows: nothing else tells of either."""
    connection.exec_driver_sql("DROP TABLE IF EXISTS ltm_open_calls")
    summaries = schema.summaries
    if "facts" not in {column["name"] for column in inspect(connection).get_columns(summaries.name)}:
        return
    listed: ColumnElement[str] = literal_column("facts")
    for row in connection.execute(select(summaries.c.id, summaries.c.text).where(listed != "[]")).all():
        mine = {"text_digest": digest_of_summary(row.text), "counter": None}
        connection.execute(update(summaries).where(summaries.c.id == row.id).values(mine))
    connection.exec_driver_sql(f"UPDATE {summaries.name} SET facts = '[]' WHERE facts <> '[]'")
    driver: Any = connection.dialect.dbapi
    if connection.dialect.name != "sqlite" or driver.sqlite_version_info >= _DROPS_COLUMNS:
        connection.exec_driver_sql(f"ALTER TABLE {summaries.name} DROP COLUMN facts")


_DROPS_COLUMNS = (3, 35)
"""Of SQLite's versions. In an older one the column stays, empty."""

STEPS: tuple[tuple[str, Step | None], ...] = (
    ("first schema", _first_schema),
    ("guard", None),
    ("soundness", _soundness),
    ("facts", None),
    ("long runs", None),
    ("scopes and statements", _scopes),
    ("across sessions", None),
    ("verdicts", None),
    ("joined notes", None),
    ("written beside", None),
    ("without copies", _without_copies),
)
"""Name and step, oldest first; `None` for a step that only added what `_complete` reads from the present schema."""


def refuse_foreign_tables(present: set[str]) -> None:
    """Refuse an SQLite file of another program."""
    if present and schema.migrations.name not in present:
        msg = (
            f"this SQLite file belongs to another program (it has the table {min(present)!r} and none of ours): "
            "give the memory a file of its own"
        )
        raise NotOurDatabaseError(msg)


def missing_steps(connection: Connection) -> int:
    """How many steps the database lacks: 0 when it is up to date."""
    if not inspect(connection).has_table(schema.migrations.name):
        return len(STEPS)
    applied = int(connection.scalar(select(func.coalesce(func.max(schema.migrations.c.number), 0))) or 0)
    if applied > len(STEPS):
        msg = (
            f"the database has schema {applied}, this version of langchain-tiered-memory knows {len(STEPS)}: "
            "upgrade the package, or open another database"
        )
        raise NewerSchemaError(msg)
    return len(STEPS) - applied


def migrate(connection: Connection, *, now: float) -> int:
    """Bring the database to the present schema.

    Returns:
        How many steps were applied: 0 on a database that was up to date.

    Raises:
        NewerSchemaError: when a later version of the package wrote the database.
        NotOurDatabaseError: when an SQLite file holds another program's tables.
    """
    if connection.dialect.name == "sqlite":
        refuse_foreign_tables(set(inspect(connection).get_table_names()))
    missing = missing_steps(connection)
    schema.migrations.create(connection, checkfirst=True)
    first = len(STEPS) - missing
    if first and missing:
        _complete(connection)
    for number, (name, step) in enumerate(STEPS[first:], start=first + 1):
        if step is not None:
            step(connection)
        connection.execute(insert(schema.migrations).values(number=number, name=name, applied_at=now))
    return missing
