"""A session with something in every table, and damage planted in any column of it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from sqlalchemy import Boolean

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.items.store import ItemDraft, Reach
from langchain_tiered_memory.reports import Event
from langchain_tiered_memory.settings import CheckpointSettings
from langchain_tiered_memory.transcript.outbox import write_down
from tests.embedders import HashingEmbeddings
from tests.file_builders import keep_in_all_tiers
from tests.memory_builders import conversation, open_memory, quick_settings, ref_of

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Column, Table

    from langchain_tiered_memory.memory import TieredMemory

ASKED = "What about the crane of order 1001?"
BUDGET = 400


def opened(where: str | Path, *, embedded: bool = False) -> TieredMemory:
    """A memory on what `filled` wrote."""
    settings = quick_settings().model_copy(update={"checkpoints": CheckpointSettings(tasks=1)})
    return open_memory(where, settings=settings, embeddings=HashingEmbeddings() if embedded else None)


def filled(where: str | Path, *, embedded: bool = False) -> None:
    """Two sessions, small ones, with something in every table that keeps something after an open."""
    with opened(where, embedded=embedded) as memory:
        session = memory.session("s", user="ann", title="The harbour")
        session.start_task("build")
        session.add_messages([HumanMessage("Forget this one.", id="f1"), HumanMessage("And keep this.", id="f2")])
        session.forget(message_ids=["f1"])
        memory.session("gone").add_messages(conversation(1, start=200))
        memory.forget(session_id="gone")
        session.add_messages(conversation(6), kind="talk")
        session.add_messages(_file_work())
        memory.session("s", track="scout").add_messages(conversation(1))
        session.add_messages([HumanMessage("What about the pilot, after all?", id="q3")])
        session.pin("a1")
        memory.flush()
        session.context(max_tokens=BUDGET)
        session.finish_task("build")
        session.start_task("ship", depends_on=["build"])
        session.phase("review")
        session.add_messages(conversation(4, start=6))
        memory.flush()
        session.context(ASKED, max_tokens=BUDGET)
        session.context(max_tokens=BUDGET)
        memory.session("other", user="bob").add_messages(conversation(2, start=100))
        memory.flush()
        store = memory.core.runtime.store
        store.windows.learn("a-model", 8000, 1.0)
        keep_in_all_tiers(store, ref_of(session))
        draft = ItemDraft(namespace=("notes", "a"), name="k", value={"text": "tea"}, fields=("text",), ttl_minutes=1e9)
        place = (draft.namespace, draft.name)
        store.items.write(Reach(user="ann"), [draft], vectors={place: [b"kept"]}, embedder="e" * 32, now=1.0)
        store.plans.set_calibration("a-model", "a-counter", ratio=1.1, samples=3)
        removed = "INSERT INTO ltm_removed_vectors (passage_id) VALUES (99999)"
        with store.database.write() as connection:
            connection.exec_driver_sql(removed)
            write_down(connection, _UNHEARD, ref_of(session).key)


_UNHEARD = Event(
    id="summary:unheard",
    name=EventName.SUMMARY_MADE,
    session_id="s",
    at=1.0,
    reason="nobody heard it",
    details={"level": 1},
)


def _file_work() -> list[Any]:
    call = {"name": "read_file", "args": {"path": "src/harbour.py"}, "id": "call_f"}
    return [
        HumanMessage("Read src/harbour.py.", id="qf"),
        AIMessage("", tool_calls=[call], id="cf"),
        ToolMessage("def harbour(): ...", tool_call_id="call_f", id="rf"),
        AIMessage("", tool_calls=[call | {"id": "call_open"}], id="co"),
    ]


@dataclass(frozen=True, slots=True)
class Damage:
    """A value that is put into one column of one row."""

    table: Table
    column: Column[Any]
    value: Any
    rank: int = 0
    """Which of the rows that `row_of` would choose."""

    def __str__(self) -> str:
        """For a failed test."""
        return f"{self.column} = {self.value!r}"


def others_for(column: Column[Any], present: Any) -> list[Any]:  # noqa: PLR0911 - a line for each type
    """Values of the same form as the present one, and not it."""
    if isinstance(present, bytes):
        return [present[:-1] + b"\x00"]
    if isinstance(present, int | float):
        return [present + 1, 0 if present else 1] if not isinstance(column.type, Boolean) else [1 - int(present)]
    if not isinstance(present, str):
        return []
    if present.startswith("["):
        return ['["other"]', "[]"]
    if '"fields"' in present:
        return [present.replace("order", "0rder")]
    if present.startswith("{"):
        return [json.dumps(json.loads(present) | {"other": 1})]
    if len(present) in (32, 64) and set(present) <= set("0123456789abcdef"):
        return ["f" * len(present)]
    return [present + "x", "other"]


def planted(path: Path, damage: Damage) -> bool:
    """Put the value there; `False` where the database refuses it, or there is no row."""
    with closing(sqlite3.connect(path)) as connection:
        try:
            where = row_of(connection, damage)
            if where is None:
                return False
            (before,) = connection.execute(
                f"SELECT {damage.column.name} FROM {damage.table.name} WHERE rowid = ?", (where,)
            ).fetchone()
            if before == damage.value and type(before) is type(damage.value):
                return False
            connection.execute(
                f"UPDATE {damage.table.name} SET {damage.column.name} = ? WHERE rowid = ?",
                (damage.value, where),
            )
            connection.commit()
        except (sqlite3.IntegrityError, sqlite3.OperationalError):
            return False
    return True


def row_of(connection: sqlite3.Connection, damage: Damage) -> int | None:
    """A row that has something in the column, else any."""
    table, column = damage.table.name, damage.column.name
    order = f"{column} IS NULL, rowid"
    if table == "ltm_entries":  # one with calls, kind and task, in the middle of its group
        order = f"{column} IS NULL, message_id <> 'a2', rowid"
    query = f"SELECT rowid FROM {table} ORDER BY {order} LIMIT 1 OFFSET {damage.rank}"
    found = connection.execute(query).fetchone()
    return found[0] if found else None


def present_value(path: Path, table: Table, column: Column[Any]) -> Any:
    """What stands in the row that is damaged."""
    with closing(sqlite3.connect(path)) as connection:
        where = row_of(connection, Damage(table, column, None))
        if where is None:
            return None
        query = f"SELECT {column.name} FROM {table.name} WHERE rowid = ?"
        return connection.execute(query, (where,)).fetchone()[0]


def count_of(path: Path, table: Table) -> int:
    """How many rows a table has."""
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(f"SELECT count(*) FROM {table.name}").fetchone()
    return int(found[0])
