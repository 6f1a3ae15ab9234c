"""The schema's history: from blank, from every kept old file, and from the future.

When a step is added, run `python -m tests.conformance.test_migrations` once before the release and keep the file that
it writes under `tests/assets/`, one for each schema that was ever released; the tests below then open it for ever.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import inspect, select, text, update

from langchain_tiered_memory.errors import NewerSchemaError
from langchain_tiered_memory.stores import migrations, schema
from tests.run_builders import checkpoint, outcome, touching
from tests.store_builders import append, claim, ids, incoming, open_store, plan, session_with, summarised

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from langchain_tiered_memory.records import SessionRef
    from langchain_tiered_memory.stores.sql import SqlStore

ASSETS = Path(__file__).parents[1] / "assets"
KEPT = sorted(ASSETS.glob("schema_*.sqlite"))


def build_kept_file(path: Path) -> None:
    """A small database with something in every table."""
    store = open_store(path)
    ref = session_with(store, 6)
    one, two = summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)
    summarised(store, ref, 2, one, two, text="kept summary")
    claim(store, ref, plan(1, 5, 6))
    ref = append(
        store,
        "s",
        touching(("kept.py", "write"), message_id="call", calls=("c",)),
        incoming("edited", "m1"),
        user="ann",
    ).ref
    store.plans.write(ref, "view", "{}", now=1.0)
    store.plans.set_calibration("model", "counter", ratio=1.1, samples=3)
    store.runs.start_task(ref, "main", "kept task", now=1.0)
    store.runs.set_zone(ref, "view", "warning", 1.0)
    store.checkpoints.write(ref, checkpoint(id="c" * 32), keep=3)
    store.outcomes.swap(ref, "view", "{}", border=0, now=1.0, outcome=outcome(id="d" * 32), plan_before=None, keep=3)
    store.windows.learn("model", 4096, 1.0)
    store.vector_queue.set_embedder("embedder")
    store.removal.messages(ref, ["m6"])
    store.removal.erase_traces()
    store.database.close()
    with closing(sqlite3.connect(path)) as connection:
        for smaller in ("PRAGMA journal_mode=DELETE", "PRAGMA page_size=512", "VACUUM"):
            connection.execute(smaller)


def check_kept_run(store: SqlStore, ref: SessionRef) -> None:
    """What there is since the second schema."""
    assert [one.path for one in store.files.latest(ref, track="main", limit=9)] == ["kept.py"]
    assert store.runs.current_task(ref, "main") == "kept task"
    assert store.runs.read(ref).zones == {"view": "warning"}
    assert store.windows.read("model") == 4096
    assert store.checkpoints.read(ref).conversation[0]["type"] == "human"
    assert store.outcomes.read(ref, limit=9)[0].id == "d" * 32


def check_kept_content(path: Path, *, number: int) -> None:
    store = open_store(path)
    ref = store.transcript.find("s")
    assert ref is not None
    assert ids(store.transcript.entries(ref)) == ["m1", "m2", "m3", "m4", "m5", "call"]
    assert store.transcript.entries(ref)[0].text == "edited"
    assert len(store.transcript.revisions(ref, "m1")) == 1
    assert [root.text for root in store.tree.roots(ref, limit=9)] == ["kept summary"]
    assert [hit.seq for hit in store.text_index.find(ref, {"word3": 1.0}, limit=9)] == [3]
    assert ids(store.transcript.waiting_heads(ref, track="main")) == ["call"]
    assert store.plans.calibration("model", "counter") == (1.1, 3)
    assert store.inspection.damaged_text_index() == []
    if number > 1:
        check_kept_run(store, ref)
    store.runs.start_task(ref, "main", "new task", now=2.0)
    store.checkpoints.write(ref, checkpoint(id="e" * 32), keep=3)
    assert store.checkpoints.read(ref).id == "e" * 32
    kept = store.transcript.totals(ref)
    store.inspection.mend_totals(ref)
    assert store.transcript.totals(ref) == kept
    append(store, "s", incoming("new", "new"))
    assert store.transcript.entries(ref)[-1].id == "new"
    store.database.close()


def test_a_blank_database_gets_every_step_once_and_opening_again_changes_nothing(shared_where: str | Path) -> None:
    for _ in range(2):
        store = open_store(shared_where)
        with store.database.read() as connection:
            applied = connection.execute(select(schema.migrations.c.number, schema.migrations.c.name)).all()
            assert [tuple(row) for row in applied] == [
                (number, name) for number, (name, _) in enumerate(migrations.STEPS, 1)
            ]
        store.database.close()


def test_the_tables_in_the_database_are_those_of_the_schema(shared_where: str | Path) -> None:
    store = open_store(shared_where)
    with store.database.read() as connection:
        looked = inspect(connection)
        assert set(schema.metadata.tables) <= set(looked.get_table_names())
        for table in schema.metadata.tables.values():
            kept = {column["name"] for column in looked.get_columns(table.name)} - {"tsv"}
            assert kept == {column.name for column in table.columns}
    store.database.close()


def test_there_is_a_kept_file_for_every_schema() -> None:
    assert [path.stem for path in KEPT] == [f"schema_{number}" for number in range(1, len(migrations.STEPS) + 1)]


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_a_kept_old_file_is_brought_up_to_date_with_all_that_it_holds(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(kept, path)
    check_kept_content(path, number=int(kept.stem.removeprefix("schema_")))


def test_a_file_of_the_first_schema_gets_the_tables_and_indexes_that_a_new_one_has(tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    shutil.copy(ASSETS / "schema_1.sqlite", old)

    def objects(path: Path) -> set[tuple[str, str]]:
        open_store(path).database.close()
        with closing(sqlite3.connect(path)) as connection:
            return set(connection.execute("SELECT type, name FROM sqlite_master"))

    assert objects(old) == objects(new)


def test_a_file_built_today_holds_what_the_kept_ones_hold(tmp_path: Path) -> None:
    build_kept_file(tmp_path / "memory.db")
    check_kept_content(tmp_path / "memory.db", number=len(migrations.STEPS))


def test_a_newer_schema_is_refused_and_left_as_it_was(shared_where: str | Path) -> None:
    store = open_store(shared_where)
    session_with(store, 1)
    with store.database.write() as connection:
        connection.execute(update(schema.migrations).values(number=schema.migrations.c.number + 97))
    store.database.close()
    with pytest.raises(NewerSchemaError, match=r"has schema 99.*upgrade the package"):
        open_store(shared_where)


def test_a_later_step_is_applied_once_to_a_database_that_has_the_earlier_ones(
    shared_where: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = session_with(open_store(shared_where), 2)

    def step(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE ltm_plans ADD COLUMN note TEXT"))

    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, ("a note", step)))
    for _ in range(2):
        store = open_store(shared_where)
        assert ids(store.transcript.entries(ref)) == ["m1", "m2"]
        with store.database.read() as connection:
            assert len(connection.execute(select(schema.migrations)).all()) == len(migrations.STEPS)
        store.database.close()


def test_a_step_that_fails_leaves_the_database_as_it_was(
    shared_where: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = session_with(open_store(shared_where), 2)

    def step(connection: Connection) -> None:
        connection.execute(text("ALTER TABLE ltm_plans ADD COLUMN note TEXT"))
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(migrations, "STEPS", (*migrations.STEPS, ("broken", step)))
        with pytest.raises(RuntimeError):
            open_store(shared_where)
    store = open_store(shared_where)
    assert ids(store.transcript.entries(ref)) == ["m1", "m2"]
    with store.database.read() as connection:
        assert "note" not in {column["name"] for column in inspect(connection).get_columns("ltm_plans")}
    store.database.close()


if __name__ == "__main__":
    ASSETS.mkdir(exist_ok=True)
    target = ASSETS / f"schema_{len(migrations.STEPS)}.sqlite"
    if target.exists():
        sys.exit(f"{target} is there already: a released schema is never written again")
    build_kept_file(target)
