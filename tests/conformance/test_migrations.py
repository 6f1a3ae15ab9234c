"""The schema's history: from blank, from every kept old file, and from the future.

When a step is added, run `python -m tests.conformance.test_migrations` once before the release and keep the file that
it writes under `tests/assets/`, one for each schema that was ever released; the tests below then open it for ever.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine, event, inspect, select, text, update

from langchain_tiered_memory.errors import NewerSchemaError
from langchain_tiered_memory.items.store import ItemDraft, Reach
from langchain_tiered_memory.reports import Event
from langchain_tiered_memory.sql import migrations, schema
from langchain_tiered_memory.transcript.outbox import write_down
from langchain_tiered_memory.types.drafts import digest_of_summary
from tests.file_builders import keep_in_all_tiers
from tests.run_builders import checkpoint, outcome, touching
from tests.spread import EXHAUSTIVE, drawn
from tests.store_builders import (
    append,
    claim,
    fact,
    forget_messages,
    ids,
    incoming,
    open_calls,
    open_store,
    plan,
    session_with,
    summarised,
    waiting,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef

pytestmark = pytest.mark.migrates
ASSETS = Path(__file__).parents[1] / "assets"
KEPT = sorted(ASSETS.glob("schema_*.sqlite"), key=lambda path: int(path.stem.removeprefix("schema_")))


def build_kept_file(path: Path) -> None:
    """A small database with something in every table."""
    store = open_store(path)
    ref = session_with(store, 6)
    one = summarised(store, ref, 1, 1, 2)
    two = summarised(store, ref, 1, 3, 4, facts=[fact(3, "the kept port is 8080", subject="port")])
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
    keep_in_all_tiers(store, ref)
    draft = ItemDraft(namespace=("kept", "ann"), name="tea", value={"likes": "kept tea"}, fields=("$",))
    place = (draft.namespace, draft.name)
    store.items.write(Reach(user="ann"), [draft], vectors={place: [b"kept"]}, embedder="e" * 32, now=1.0)
    assert store.tree.judge(
        ref, one.id, "wrong", note="kept note", by_model=False, now=1.0, owner=None, lease_seconds=1.0
    )
    store.vector_queue.set_embedder("embedder")
    forget_messages(store, ref, ["m6"])
    store.removal.mark([store.removal.begin({}, now=1.0)], now=1.0)
    with store.database.write() as connection:
        write_down(connection, Event(id="e1", name="summary_made", session_id="s", at=1.0, reason="kept"), ref.key)
    store.removal.erase_traces()
    store.database.close()
    with closing(sqlite3.connect(path)) as connection:
        for smaller in ("PRAGMA journal_mode=DELETE", "PRAGMA page_size=512", "VACUUM"):
            connection.execute(smaller)


def check_kept_files(store: SqlStore, ref: SessionRef) -> None:
    """What there is since the fifth schema."""
    files = store.kept_files.files(ref)
    assert [sum(file.tier == tier for file in files) for tier in ("hot", "warm", "cold")] == [2, 30, 8]
    assert (files[0].path, files[0].pinned) == ("f39.py", True)
    assert all(b"kept_" in (store.kept_files.content(ref, file.path) or b"") for file in files)


def check_kept_run(store: SqlStore, ref: SessionRef) -> None:
    """What there is since the second schema."""
    assert [one.path for one in store.files.latest(ref, track="main", limit=9)] == ["kept.py"]
    assert store.runs.current_task(ref, "main") == "kept task"
    assert store.runs.read(ref).zones == {"view": "warning"}
    assert store.windows.read("model") == 4096
    assert store.checkpoints.read(ref).conversation[0]["type"] == "human"
    assert store.outcomes.read(ref, limit=9)[0].id == "d" * 32


def check_kept_soundness(store: SqlStore, ref: SessionRef) -> None:
    """What there is since the third schema."""
    assert store.tombstones.named(ref.session_id, ["m5", "m6"]) == {"m6"}
    assert [one.id for one in store.outbox.left_over()] == ["e1"]
    assert list(open_calls(store, ref).values()) == [("c",)]


def check_kept_facts(store: SqlStore, ref: SessionRef) -> None:
    """What there is since the fourth schema."""
    assert [(one.text, one.sources) for one in store.facts.best(ref, 9)] == [("the kept port is 8080", (3,))]


def check_kept_items(store: SqlStore) -> None:
    """What there is since the seventh schema."""
    reach = Reach(user="ann")
    (item,) = store.items.below(reach, ("kept",), now=2.0)
    assert (item.namespace, item.name, item.value) == (("kept", "ann"), "tea", {"likes": "kept tea"})
    assert list(store.items.vectors(reach, (), embedder="e" * 32, now=2.0)) == [[(item.key, b"kept")]]
    assert store.items.below(Reach(user="bob"), (), now=2.0) == []


def check_kept_verdict(store: SqlStore, ref: SessionRef) -> None:
    """What there is since the eighth schema."""
    assert store.tree.verdicts(ref) == [(1, "tests", "wrong", 1)]
    assert [one.verdict_note for one in store.tree.all(ref) if one.verdict] == ["kept note"]


def check_kept_content(path: Path, *, number: int) -> None:
    store = open_store(path)
    ref = store.transcript.find("s")
    assert ref is not None
    assert ids(store.transcript.entries(ref)) == ["m1", "m2", "m3", "m4", "m5", "call"]
    assert store.transcript.entries(ref)[0].text == "edited"
    assert len(store.transcript.revisions(ref, "m1")) == 1
    assert [root.text for root in store.tree.roots(ref, limit=9)] == ["kept summary"]
    assert [hit.seq for hit in store.text_index.find([ref], {"word3": 1.0}, limit=9)] == [3]
    assert ids([*waiting(store, ref, track="main")]) == ["call"]
    assert store.plans.calibration("model", "counter") == (1.1, 3)
    assert store.inspection.damaged_text_index() == []
    if number > 1:
        check_kept_run(store, ref)
    if number > 2:
        check_kept_soundness(store, ref)
    if number > 3:
        check_kept_facts(store, ref)
    if number > 4:
        check_kept_files(store, ref)
    if number > 6:
        check_kept_items(store)
    if number > 7:
        check_kept_verdict(store, ref)
    assert store.facts.unread_count(ref) == (1 if number > 3 else 3)  # one has an edited message
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


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_an_old_file_gets_the_tables_columns_and_indexes_that_a_new_one_has(kept: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    shutil.copy(kept, old)

    def objects(path: Path) -> set[tuple[str, ...]]:
        store = open_store(path)
        with store.database.read() as connection:
            found = described(connection)
        store.database.close()
        with closing(sqlite3.connect(path)) as raw:
            return found | set(raw.execute("SELECT type, name FROM sqlite_master"))

    assert objects(old) == objects(new)


def described(connection: Connection) -> set[tuple[str, ...]]:
    """Columns, indexes and constraints of our tables, whatever their order."""
    looked = inspect(connection)
    found: set[tuple[str, ...]] = set()
    for name in set(schema.metadata.tables) & set(looked.get_table_names()):
        for one in looked.get_columns(name):
            found.add((name, one["name"], str(one["type"]), str(one["nullable"])))
        for index in looked.get_indexes(name):
            found.add((name, str(index["name"]), str(index["column_names"]), str(index["unique"])))
        for unique in looked.get_unique_constraints(name):
            found.add((name, str(unique["name"]), str(unique["column_names"])))
        found.add((name, str(looked.get_pk_constraint(name)["constrained_columns"])))
    return found


BACK_TO_THE_SECOND_SCHEMA = (
    "DROP TABLE ltm_facts",
    "ALTER TABLE ltm_summaries DROP COLUMN facts_read",
    "DROP TABLE ltm_events, ltm_forgotten, ltm_forgotten_sessions, ltm_removals, ltm_removal_targets",
    "ALTER TABLE ltm_sessions DROP COLUMN begun_by, DROP COLUMN checkpointer, DROP COLUMN forgotten",
    (
        "ALTER TABLE ltm_entries DROP COLUMN counter, DROP COLUMN seal, DROP CONSTRAINT ltm_entries_id, "
        "ADD CONSTRAINT ltm_entries_id UNIQUE (session_key, id_digest)"
    ),
    "ALTER TABLE ltm_summaries DROP COLUMN counter",
    "UPDATE ltm_entries SET open_calls = calls WHERE open_calls IS NOT NULL",
    "DELETE FROM ltm_meta WHERE name = 'forgetting_key'",
    "DELETE FROM ltm_migrations WHERE number > 2",
)


def test_a_postgresql_database_of_the_second_schema_gets_what_a_new_one_has(postgres_url: str) -> None:
    store = open_store(postgres_url)
    ref = session_with(store, 2)
    append(store, "s", touching(("kept.py", "write"), message_id="call", calls=("c",)))
    with store.database.read() as connection:
        new = described(connection)
    with store.database.write() as connection:
        for statement in BACK_TO_THE_SECOND_SCHEMA:
            connection.execute(text(statement))
        assert described(connection) != new
    store.database.close()
    store = open_store(postgres_url)
    with store.database.read() as connection:
        assert described(connection) == new
    assert ids(store.transcript.entries(ref)) == ["m1", "m2", "call"]
    assert list(open_calls(store, ref).values()) == [("c",)]
    assert len(store.database.forgetting_key) > 0
    store.database.close()


def entries_objects(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT sql FROM sqlite_master WHERE tbl_name = 'ltm_entries' AND sql IS NOT NULL")
        return sorted(" ".join(sql.replace('"', "").split()) for (sql,) in found)


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: path.stem)
def test_messages_of_an_old_file_are_in_the_table_that_a_new_one_has_and_their_ids_are_of_their_track(
    kept: Path, tmp_path: Path
) -> None:
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    shutil.copy(kept, old)
    open_store(new).database.close()
    store = open_store(old)
    with closing(sqlite3.connect(kept)) as connection:
        there = [name for _, name, *_ in connection.execute("PRAGMA table_info(ltm_entries)") if name != "open_calls"]
        query = f"SELECT {', '.join(there)}, open_calls IS NULL FROM ltm_entries ORDER BY seq"
        before = connection.execute(query).fetchall()
    with store.database.read() as connection:
        assert [tuple(row) for row in connection.execute(text(query))] == before
    ref = append(store, "s", incoming("elsewhere", "m2", track="sub")).ref
    assert [one.text for one in store.transcript.by_id(ref, ["m2"])] == ["word2 common", "elsewhere"]
    store.database.close()
    assert entries_objects(old) == entries_objects(new)


@pytest.mark.slow
def test_an_upgrade_that_fails_at_any_statement_is_done_whole_or_not_at_all_and_the_next_one_does_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(ASSETS / "schema_2.sqlite", path)
    open_store(tmp_path / "new.db").database.close()
    before, after = entries_objects(path), entries_objects(tmp_path / "new.db")
    assert before != after
    statement, stride = 0, 1 if EXHAUSTIVE else 3
    failed = drawn("an upgrade that fails") % stride
    done: list[bool] = []

    def fail(*_: object) -> None:
        nonlocal statement
        statement += 1
        if statement == failed + 1:
            raise RuntimeError

    event.listen(Engine, "before_cursor_execute", fail)
    try:
        while True:
            statement = 0
            try:
                open_store(path).database.close()
            except RuntimeError:
                failed += stride
                done.append(entries_objects(path) == after)
                assert done[-1] or entries_objects(path) == before
            else:
                break
    finally:
        event.remove(Engine, "before_cursor_execute", fail)
    assert done == sorted(done), "what is done stays done"
    assert (done.count(False) + 1) * stride > len(before)
    check_kept_content(path, number=2)


def test_a_file_built_today_holds_what_the_kept_ones_hold(tmp_path: Path) -> None:
    build_kept_file(tmp_path / "memory.db")
    check_kept_content(tmp_path / "memory.db", number=len(migrations.STEPS))


def test_a_newer_schema_is_refused_and_left_as_it_was(shared_where: str | Path) -> None:
    store = open_store(shared_where)
    session_with(store, 1)
    with store.database.write() as connection:
        connection.execute(update(schema.migrations).values(number=schema.migrations.c.number + 99))
    store.database.close()
    with pytest.raises(NewerSchemaError, match=rf"has schema {99 + len(migrations.STEPS)}.*upgrade the package"):
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


def test_lists_of_unanswered_calls_become_marks_and_late_results_still_join_their_call(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(ASSETS / "schema_2.sqlite", path)
    with closing(sqlite3.connect(path)) as raw, raw:
        session_id, seq, track, calls = raw.execute(
            "SELECT session_id, seq, track, open_calls FROM ltm_entries JOIN ltm_sessions ON key = session_key"
            " WHERE open_calls IS NOT NULL LIMIT 1"
        ).fetchone()
    call = json.loads(calls)[0]
    store = open_store(path)
    ref = store.transcript.find(session_id)
    assert ref is not None
    assert open_calls(store, ref)[seq] == (call,)
    append(store, session_id, incoming("late", "late", role="tool", answers=call, track=track))
    assert store.transcript.by_id(ref, ["late"])[0].group == seq
    assert seq not in open_calls(store, ref)
    assert waiting(store, ref, track=track) == ()
    store.database.close()


def test_facts_that_were_listed_on_a_summary_leave_it_and_its_text_alone_is_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(ASSETS / "schema_3.sqlite", path)
    listed = '[{"kind": "number", "text": "The port is 8080.", "seq": 1, "at": 1.0, "subject": "port"}]'
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE ltm_summaries SET facts = ?, text_digest = 'of both', counter = 7", (listed,))
    store = open_store(path)
    ref = store.transcript.find("s")
    assert ref is not None
    for summary, row in store.inspection.summary_rows(ref):
        assert (row["text_digest"], row["counter"]) == (digest_of_summary(summary.text), None)
    store.database.close()
    assert b"The port is 8080." not in path.read_bytes()


if __name__ == "__main__":
    ASSETS.mkdir(exist_ok=True)
    target = ASSETS / f"schema_{len(migrations.STEPS)}.sqlite"
    if target.exists():
        sys.exit(f"{target} is there already: a released schema is never written again")
    build_kept_file(target)
