"""The schema's history: an append-only list of named steps, each applied once and recorded.

Add a step at the end for every change; never edit one that was released. A database that has more steps than this
list was written by a later version and is refused.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TypeAlias

from sqlalchemy import Connection, func, insert, inspect, select

from langchain_tiered_memory.errors import NewerSchemaError, NotOurDatabaseError
from langchain_tiered_memory.stores import schema

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


def _guard(connection: Connection) -> None:
    """Runs, tasks, checkpoints, outcomes, touched files and learnt windows; three columns of summaries.

    A database that was made just now has them already: the first step makes the whole present schema.
    """
    present = {column["name"] for column in inspect(connection).get_columns(schema.summaries.name)}
    for column in ("information_loss FLOAT", "reason VARCHAR(32)", "from_tools BOOLEAN DEFAULT false NOT NULL"):
        if column.split()[0] not in present:
            connection.exec_driver_sql(f"ALTER TABLE {schema.summaries.name} ADD COLUMN {column}")
    new = (schema.runs, schema.tasks, schema.checkpoints, schema.outcomes, schema.files, schema.windows)
    schema.metadata.create_all(connection, tables=new, checkfirst=True)


STEPS: tuple[tuple[str, Step], ...] = (("first schema", _first_schema), ("guard", _guard))
"""Name and step, oldest first."""


def refuse_foreign_tables(present: set[str]) -> None:
    """Refuse an SQLite file of another program.

    Raises:
        NotOurDatabaseError: when there are tables, and ours are not among them.
    """
    if present and schema.migrations.name not in present:
        msg = (
            f"this SQLite file belongs to another program (it has the table {min(present)!r} and none of ours): "
            "give the memory a file of its own"
        )
        raise NotOurDatabaseError(msg)


def missing_steps(connection: Connection) -> int:
    """How many steps the database lacks: 0 when it is up to date.

    Raises:
        NewerSchemaError: when a later version of the package wrote the database.
    """
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
    for number, (name, step) in enumerate(STEPS[first:], start=first + 1):
        step(connection)
        connection.execute(insert(schema.migrations).values(number=number, name=name, applied_at=now))
    return missing
