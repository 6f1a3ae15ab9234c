"""What the vector queue, the plans and the inspection must do on every database."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import LargeBinary, delete, select, text, type_coerce, update

from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.types.records import PassageDraft
from tests.store_builders import (
    NOW,
    append,
    claim,
    forget_messages,
    forget_session,
    ids,
    incoming,
    open_store,
    plan,
    session_with,
    summarised,
)

if TYPE_CHECKING:
    from langchain_tiered_memory.errors import DamagedRowError
    from langchain_tiered_memory.runtime import SqlStore


def test_passages_wait_with_what_to_embed_until_they_are_settled(store: SqlStore) -> None:
    ref = append(store, "s", incoming("hello world", name="A\0nn", kind="k"), incoming("bye", role="tool")).ref
    other = append(store, "other", incoming("elsewhere")).ref
    summary = summarised(store, ref, 1, 1, 2, text="they met")
    rows = store.vector_queue.pending(limit=9)
    assert [row.text for row in rows] == ["A\0nn: hello world", "tool: bye", "user: elsewhere", "they met"]
    assert rows[0].metadata == {
        "session": ref.key,
        "level": 0,
        "seq": 1,
        "track": "main",
        "at": store.transcript.entries(ref)[0].at,
        "kind": "k",
    }
    assert (rows[3].metadata["level"], rows[3].metadata["seq"]) == (1, summary.last_seq)
    assert [row.text for row in store.vector_queue.pending(limit=2, newest_first=True)] == [
        "they met",
        "user: elsewhere",
    ]
    assert [row.text for row in store.vector_queue.pending(limit=9, ref=other)] == ["user: elsewhere"]
    assert [row.text for row in store.vector_queue.pending(limit=9, ref=ref, before=2)] == [
        "A\0nn: hello world",
        "they met",
    ]
    assert (store.vector_queue.count(), store.vector_queue.count(ref=ref)) == (4, 3)
    store.vector_queue.settle([rows[0].id, rows[3].id], fingerprint="f" * 50)
    assert [row.id for row in store.vector_queue.pending(limit=9)] == [rows[1].id, rows[2].id]
    assert store.vector_queue.settled(fingerprint="f" * 50) == [rows[0].id, rows[3].id]


def test_only_a_passage_of_a_long_message_is_embedded(store: SqlStore) -> None:
    item = incoming("\N{GRINNING FACE} one. two. three.", "m")
    parts = (PassageDraft(part=0, start=0, stop=6, terms="one"), PassageDraft(part=1, start=7, stop=11, terms="two"))
    append(store, "s", type(item)(draft=item.draft, passages=parts))
    rows = store.vector_queue.pending(limit=9)
    assert [row.text for row in rows] == ["user: \N{GRINNING FACE} one.", "user: two."]


def test_vectors_of_what_was_removed_or_rewritten_are_to_be_forgotten(store: SqlStore) -> None:
    ref = session_with(store, 3)
    first, second, third = (row.id for row in store.vector_queue.pending(limit=9))
    append(store, "s", incoming("edited", "m1"))
    forget_messages(store, ref, ["m2"])
    assert sorted(store.vector_queue.forgotten(limit=9)) == [first, second]
    store.vector_queue.settle_forgotten([first, second])
    assert store.vector_queue.forgotten(limit=9) == []
    forget_session(store, ref)
    assert len(store.vector_queue.forgotten(limit=9)) == 2
    assert third in store.vector_queue.forgotten(limit=9)


def test_a_vector_that_comes_after_its_passage_was_forgotten_is_to_be_forgotten_again(store: SqlStore) -> None:
    ref = session_with(store, 2)
    being_embedded = [row.id for row in store.vector_queue.pending(limit=9)]
    forget_messages(store, ref, ["m1"])
    store.vector_queue.settle_forgotten(store.vector_queue.forgotten(limit=9))
    store.vector_queue.settle(being_embedded, fingerprint="f")
    assert store.vector_queue.forgotten(limit=9) == [being_embedded[0]]
    assert store.vector_queue.settled(fingerprint="f") == [being_embedded[1]]


def test_a_reset_puts_everything_back_into_the_queue(store: SqlStore) -> None:
    ref = session_with(store, 3)
    store.vector_queue.settle([row.id for row in store.vector_queue.pending(limit=9)], fingerprint="f")
    forget_messages(store, ref, ["m1"])
    store.vector_queue.reset()
    assert (store.vector_queue.count(), store.vector_queue.forgotten(limit=9)) == (2, [])


def test_the_embedder_is_remembered(store: SqlStore) -> None:
    assert store.vector_queue.embedder() is None
    store.vector_queue.set_embedder("one")
    store.vector_queue.set_embedder("two")
    assert store.vector_queue.embedder() == "two"


def test_a_plan_holds_for_its_epoch(store: SqlStore) -> None:
    ref = session_with(store, 1)
    odd = "view \0 \ud800" + "x" * 5000
    store.plans.write(ref, odd, "{}", now=NOW)
    store.plans.write(ref, odd, '{"a": 1}', now=NOW)
    assert store.transcript.kept_view(ref, odd).plan == '{"a": 1}'
    assert store.transcript.kept_view(ref, "other").plan is None
    edited = append(store, "s", incoming("edited", "m1")).ref
    assert store.transcript.kept_view(edited, odd).plan is None
    store.plans.write(ref, odd, "late", now=NOW)
    assert store.transcript.kept_view(edited, odd).plan is None
    store.plans.write(edited, odd, "new", now=NOW)
    assert store.transcript.kept_view(edited, odd).plan == "new"


def test_a_plan_for_a_session_that_was_removed_is_not_kept(store: SqlStore) -> None:
    ref = session_with(store, 1)
    forget_session(store, ref)
    store.plans.write(ref, "view", "secret", now=NOW)
    with store.database.read() as connection:
        assert connection.execute(select(schema.plans)).all() == []


def test_the_oldest_of_too_many_plans_is_dropped(store: SqlStore) -> None:
    ref = session_with(store, 1)
    for number in range(40):
        store.plans.write(ref, f"view{number}", "{}", now=NOW + number)
    kept = [number for number in range(40) if store.transcript.kept_view(ref, f"view{number}").plan is not None]
    assert kept == list(range(8, 40))


@pytest.mark.parametrize("payload", [b"\xff\xfe", b"{}", "[", "[1]"], ids=repr)
def test_a_damaged_plan_is_left_out_of_what_a_checkpoint_keeps_and_told(payload: str | bytes) -> None:
    store = open_store()
    ref = session_with(store, 1)
    for name in ("sound", "damaged"):
        store.plans.write(ref, name, "{}", now=NOW)
    with store.database.write() as connection:
        damaged = schema.plans.c.name == schema.digest_of("damaged")
        connection.execute(
            update(schema.plans)
            .where(damaged)
            .values(payload=payload if isinstance(payload, str) else type_coerce(payload, LargeBinary))
        )
    told: list[DamagedRowError] = []
    store.database.damage.tell = told.append
    assert [row["name"] for row in store.plans.kept(ref)] == [schema.digest_of("sound")]
    assert [(error.table, error.column) for error in told] == [("ltm_plans", "payload")]
    store.database.close()


def test_a_calibration_is_kept_by_model_and_counter(store: SqlStore) -> None:
    long = "m" * 500
    assert store.plans.calibration(long, "c") is None
    store.plans.set_calibration(long, "c", ratio=1.5, samples=2)
    store.plans.set_calibration(long, "c", ratio=1.25, samples=3)
    store.plans.set_calibration("mod\0el", "c", ratio=0.5, samples=1)
    assert store.plans.calibration(long, "c") == (1.25, 3)
    assert store.plans.calibration("mod\0el", "c") == (0.5, 1)
    assert store.windows.of_model("mod\0el", "c") == (None, 0.5)
    store.windows.learn("mod\0el", 900, 0.0)
    assert store.windows.of_model("mod\0el", "c") == (900, 0.5)


def test_the_inspection_reads_everything(store: SqlStore) -> None:
    ref = session_with(store, 1100)
    summary = summarised(store, ref, 1, 1, 2)
    pages = list(store.inspection.counted_pages(ref))
    assert [len(page) for page in pages] == [500, 500, 100]
    assert [one.seq for page in pages for one, _ in page] == list(range(1, 1101))
    assert store.transcript.sessions() == [ref]
    assert len(store.inspection.passages_of(ref, seqs=range(1, 1101))) == 1100
    assert [one["summary_id"] for one in store.inspection.passages_of(ref, summary_ids=[summary.id])] == [summary.id]
    assert store.inspection.passages_of(ref) == []
    assert store.inspection.count(schema.passages) == 1101
    assert store.inspection.damaged_database() is None
    assert store.inspection.damaged_text_index() == []
    assert store.inspection.orphan_passages() == []


def test_a_summary_that_a_view_has_passed_by_makes_its_plan_pass(store: SqlStore) -> None:
    ref = session_with(store, 40)
    store.plans.write(ref, "view", "{}", now=NOW, border=20)
    summarised(store, ref, 1, *range(21, 31))
    assert store.transcript.kept_view(ref, "view").plan == "{}"
    summarised(store, ref, 1, *range(11, 21))
    found = store.transcript.find(ref.session_id)
    assert found is not None
    assert store.transcript.kept_view(found, "view").plan is None


def test_planted_faults_are_found_and_mended(store: SqlStore) -> None:
    ref = session_with(store, 6)
    one = summarised(store, ref, 1, 1, 2)
    with store.database.write() as connection:
        connection.execute(delete(schema.entries).where(schema.entries.c.seq == 6))
        connection.execute(update(schema.sessions).values(tokens=999, terms=7, passages=1, entries=0, last_at=None))
    (orphan,) = store.inspection.orphan_passages()
    store.inspection.drop_orphan_passages([orphan])
    counted = replace(incoming(store.transcript.by_seq(ref, [3])[0].text).draft, tokens=50)
    store.inspection.mend_entry(ref, 3, counted)
    entry = store.transcript.by_seq(ref, [4])[0]
    store.inspection.replace_passages(ref, entry, [PassageDraft(part=0, start=0, stop=2, terms="mended twice")])
    store.inspection.replace_passages(ref, one, [PassageDraft(part=0, start=0, stop=2, terms="new")])
    store.inspection.mend_totals(ref)
    totals = store.transcript.totals(ref)
    assert (totals["entries"], totals["tokens"], totals["passages"], totals["terms"]) == (5, 58, 5, 10)
    assert totals["last_at"] == store.transcript.by_seq(ref, [5])[0].at
    assert [hit.seq for hit in store.text_index.find([ref], {"mended": 1.0}, limit=9)] == [4]
    (hit,) = store.text_index.find([ref], {"new": 1.0}, level=1, limit=9)
    assert [passage.summary_id for passage in store.text_index.by_id(ref, [hit.id])] == [one.id]
    assert store.inspection.orphan_passages() == []
    assert store.inspection.damaged_text_index() == []


def test_a_damaged_text_index_is_found_and_rebuilt(store: SqlStore) -> None:
    ref = session_with(store, 3)
    if store.database.dialect == "sqlite":
        statement = (
            "INSERT INTO ltm_passages_fts(ltm_passages_fts, rowid, scope, terms) "
            "SELECT 'delete', id, scope, terms FROM ltm_passages WHERE seq = 2"
        )
        with store.database.write() as connection:
            connection.execute(text(statement))
        damaged = store.inspection.damaged_text_index()
        assert damaged is not None
        assert len(damaged) == 1
        with store.database.write() as connection:
            connection.execute(text("UPDATE ltm_passages SET terms = 'planted' WHERE seq = 3"))
            connection.execute(text("INSERT INTO ltm_passages_fts(ltm_passages_fts) VALUES ('rebuild')"))
            connection.execute(text("UPDATE ltm_passages SET terms = 'word3 common' WHERE seq = 3"))
        assert store.inspection.damaged_text_index() is None
    store.inspection.rebuild_text_index()
    assert store.inspection.damaged_text_index() == []
    assert [hit.seq for hit in store.text_index.find([ref], {"common": 1.0}, limit=9)] == [3, 2, 1]


def test_a_discarded_summary_takes_those_above_it_along_and_frees_what_they_covered(store: SqlStore) -> None:
    ref = session_with(store, 6)
    one, two = summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)
    summarised(store, ref, 2, one, two)
    store.inspection.discard_summaries([one.id])
    assert ids(store.tree.all(ref)) == [two.id]
    assert ids(store.tree.roots(ref, limit=9)) == [two.id]
    assert [waiting.seq for waiting in store.tree.waiting_entries(ref, track="main", limit=9)] == [1, 2, 5, 6]
    assert store.text_index.find([ref], {"summary": 1.0}, level=2, limit=9) == []
    moved = store.transcript.find("s")
    assert moved is not None
    assert moved.epoch > ref.epoch
    assert claim(store, ref, plan(2, two)) is not None
