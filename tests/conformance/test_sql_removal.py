"""Forgetting: what must go, what must stay, and that no byte of it remains in SQLite's files."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, text

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.reports import Event
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.transcript.outbox import write_down
from langchain_tiered_memory.types.drafts import FileTouch, Incoming
from langchain_tiered_memory.types.outcomes import OutcomeKind
from langchain_tiered_memory.types.records import Fact, LeftOut, SummaryState
from tests.run_builders import checkpoint, outcome, state, touching
from tests.store_builders import (
    NOW,
    append,
    claim,
    forget_messages,
    forget_session,
    ids,
    incoming,
    open_calls,
    open_store,
    plan,
    session_with,
    summarised,
    waiting,
    written,
)

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef


def test_a_removed_message_takes_all_above_it_and_frees_its_siblings(store: SqlStore) -> None:
    ref = session_with(store, 8)
    one, two, three = (summarised(store, ref, 1, first, first + 1) for first in (1, 3, 5))
    top = summarised(store, ref, 2, one, two)
    append(store, "s", incoming("edited words here", "m1"))
    removed = forget_messages(store, ref, ["m1", "nobody"])
    assert removed == Counter(entries=1, revisions=1, summaries=2, passages=3)
    assert ids(store.transcript.entries(ref)) == [f"m{n}" for n in range(2, 9)]
    assert ids(store.tree.all(ref)) == [two.id, three.id]
    assert {found.state for found in store.tree.all(ref)} == {SummaryState.ACTIVE}
    assert store.tree.by_id(ref, [top.id, one.id]) == []
    assert [one.seq for one in store.tree.waiting_entries(ref, track="main", limit=9)] == [2, 7, 8]
    assert ids(store.tree.waiting_summaries(ref, level=1, limit=9)) == [two.id, three.id]
    assert claim(store, ref, plan(2, two, three)) is not None


def test_what_a_call_wrote_that_read_a_message_goes_with_it_and_of_older_texts_what_may_have_been(
    store: SqlStore,
) -> None:
    ref = session_with(store, 60)
    found = [summarised(store, ref, 1, n, n + 1, beside=("other",)) for n in range(1, 60, 2)]
    beside = summarised(store, ref, 2, *found[3:5], beside=(found[0].id,))
    forget_messages(store, ref, ["m1"])
    left = ids(store.tree.all(ref))
    assert left == ids(found[1:])
    assert beside.id not in left
    with store.database.write() as connection:
        connection.execute(schema.summaries.update().values(beside=None))
    by_rules = store.tree.by_id(ref, [found[20].id])[0]
    with store.database.write() as connection:
        mine = schema.summaries.c.id == by_rules.id
        connection.execute(schema.summaries.update().where(mine).values(model="extractive"))
    forget_messages(store, ref, ["m31"])
    assert ids(store.tree.all(ref)) == ids([*found[1:4], found[20], *found[28:]])


@pytest.mark.parametrize(
    ("told", "goes"),
    [
        ("Ann lives in Oslo.", False),
        ("Bea was named.", True),
        ("Ann has the flu.", True),
        ("Ann is here. It is the flu season.", False),
        ("## Decisions\nThe 3 of 14 Nov 2023.", False),
        ("Vault 4,711 was opened.", True),
    ],
)
def test_what_only_forgotten_messages_say_together_goes_from_other_texts(
    store: SqlStore,
    told: str,
    goes: bool,  # noqa: FBT001
) -> None:
    said = [
        "Ann lives in Oslo",
        "the flu is about",
        "Ann has the flu, Bea says; 3 decisions on 14 Nov, vault 4711",
        "x",
    ]
    items = [incoming(text, f"m{n}", terms=" ".join(analyse(text)), at=NOW) for n, text in enumerate(said, 1)]
    ref = append(store, "s", *items).ref
    other = summarised(store, ref, 1, 4, text=told)
    forget_messages(store, ref, ["m3"])
    assert (ids(store.tree.all(ref)) == []) is goes
    assert goes or store.tree.all(ref)[0].id == other.id


def test_a_message_is_removed_from_the_track_that_is_meant_and_stays_on_others(store: SqlStore) -> None:
    ref = append(store, "s", incoming("on main", "1"), incoming("on sub", "1", track="sub")).ref
    append(store, "s", incoming("of sub alone", "2", track="sub"))
    assert forget_messages(store, ref, ["1"], track="sub")["entries"] == 1
    assert [(one.track, one.text) for one in store.transcript.entries(ref)] == [
        ("main", "on main"),
        ("sub", "of sub alone"),
    ]
    assert forget_messages(store, ref, ["2"], track="main")["entries"] == 1, "no other track has it"
    append(store, "s", incoming("a", "3", track="a"), incoming("b", "3", track="b"))
    with pytest.raises(InvalidInputError, match=r"several tracks.*'a', 'b'"):
        forget_messages(store, ref, ["1", "3"], track="main")
    assert [one.text for one in store.transcript.entries(ref)] == ["on main", "a", "b"]


def test_totals_plans_and_epoch_follow_a_removal(store: SqlStore) -> None:
    ref = session_with(store, 3)
    store.plans.write(ref, "view", "{}", now=NOW)
    forget_messages(store, ref, ["m3"])
    after = store.transcript.find("s")
    assert after is not None
    assert after.epoch == ref.epoch + 1
    assert store.transcript.kept_view(after, "view").plan is None
    totals = store.transcript.totals(ref)
    assert (totals["entries"], totals["tokens"], totals["passages"], totals["terms"]) == (2, 4, 2, 4)
    assert totals["last_at"] == store.transcript.entries(ref)[-1].at
    forget_messages(store, ref, ["m1", "m2"])
    assert store.transcript.totals(ref)["last_at"] is None


def test_numbers_of_removed_messages_are_not_given_again(store: SqlStore) -> None:
    ref = session_with(store, 3)
    forget_messages(store, ref, ["m3"])
    append(store, "s", incoming("again", "m3"))
    assert [entry.seq for entry in store.transcript.entries(ref)] == [1, 2, 4]


def test_a_call_whose_result_was_removed_waits_again(store: SqlStore) -> None:
    ref = append(
        store,
        "s",
        incoming("call", "h", calls=("a", "b")),
        incoming("1", "r1", answers="a"),
        incoming("2", "r2", answers="b"),
    ).ref
    assert waiting(store, ref, track="main") == ()
    forget_messages(store, ref, ["r2"])
    assert open_calls(store, ref) == {1: ("b",)}
    append(store, "s", incoming("2 again", "r3", answers="b"))
    assert store.transcript.by_id(ref, ["r3"])[0].group == 1
    forget_messages(store, ref, ["h"])
    assert ids(store.transcript.entries(ref)) == ["r1", "r3"]


def test_a_summary_that_is_being_made_of_what_was_removed_comes_to_nothing(store: SqlStore) -> None:
    ref = session_with(store, 4)
    children = summarised(store, ref, 1, 1, 2), summarised(store, ref, 1, 3, 4)
    parent = claim(store, ref, plan(2, *children))
    assert parent is not None
    forget_messages(store, ref, ["m1"])
    assert not store.tree.commit(ref, parent, written("secret"), owner="w", now=NOW)
    assert ids(store.tree.roots(ref, limit=9)) == [children[1].id]
    assert store.text_index.find([ref], {"secret": 1.0}, level=2, limit=9) == []


def test_a_removed_session_leaves_no_row_and_others_whole(store: SqlStore) -> None:
    ref, other = session_with(store, 4), session_with(store, 4, "other")
    summarised(store, ref, 1, 1, 2)
    append(store, "s", incoming("edited", "m1"))
    store.plans.write(ref, "view", "{}", now=NOW)
    for one in (ref, other):
        append(store, one.session_id, touching(("a.py", "read")))
        store.runs.start_task(one, "main", "t", now=NOW)
        store.checkpoints.write(one, checkpoint(), keep=3)
        told = Event(id=one.session_id, name="outcome", session_id=one.session_id, at=NOW, reason="r", details={})
        store.outcomes.add(one, "view", outcome(OutcomeKind.FAILED), keep=3, event=told)
    assert forget_session(store, ref) == Counter(entries=5, revisions=1, summaries=1, passages=6, checkpoints=1)
    assert forget_session(store, ref) == Counter()
    assert store.transcript.find("s") is None
    with store.database.read() as connection:
        of_sessions = [table for table in schema.metadata.tables.values() if "session_key" in table.c]
        assert len(of_sessions) == 16
        for table in of_sessions:
            keys = set(connection.scalars(select(table.c.session_key)))
            assert keys <= {other.key}
    assert len(store.transcript.entries(other)) == 5
    assert store.inspection.damaged_text_index() == []
    again = append(store, "s", incoming("word1 common", "new")).ref
    assert again.key != ref.key
    assert [(one.id, one.seq) for one in store.transcript.entries(again)] == [("new", 6)]
    assert again.epoch > ref.epoch


def test_a_removed_message_takes_the_checkpoints_that_were_made_when_it_was_there(store: SqlStore) -> None:
    ref = session_with(store, 5)
    for seq in (1, 2, 3, 5):
        store.checkpoints.write(ref, checkpoint(at=NOW + seq, state=state(last_seq=seq)), keep=9)
    forget_messages(store, ref, ["m5", "m3"])
    assert [info.last_seq for info in store.checkpoints.infos(ref)] == [2, 1]
    run = store.runs.read(ref)
    assert (run.checkpoint_at, run.checkpoint_seq) == (NOW + 2, 2)
    forget_messages(store, ref, ["m1"])
    assert store.checkpoints.infos(ref) == []
    assert store.runs.read(ref).checkpoint_at is None


@pytest.mark.slow
def test_events_that_nobody_was_told_of_stay_until_their_session_is_forgotten(store: SqlStore) -> None:
    ref = session_with(store, 2)
    with store.database.write() as connection:
        event = Event(name="summary_made", at=NOW, session_id="s", reason="a reason", id="e1")
        write_down(connection, event, ref.key)
    forget_messages(store, ref, ["m1", "m2"])
    assert store.transcript.entries(ref) == []
    assert ids(store.outbox.left_over()) == ["e1"]
    forget_session(store, ref)
    assert store.outbox.left_over() == []


def test_thousands_of_messages_are_removed_at_once(store: SqlStore) -> None:
    ref = session_with(store, 1300)
    for first in range(1, 1300, 2):
        claim(store, ref, plan(1, first, first + 1))
    assert forget_messages(store, ref, [f"m{n}" for n in range(1, 1300)])["summaries"] == 650
    assert ids(store.transcript.entries(ref)) == ["m1300"]
    assert store.transcript.totals(ref)["entries"] == 1


@pytest.mark.postgres
def test_on_postgresql_the_receipt_says_what_may_remain(postgres_url: str) -> None:
    store = open_store(postgres_url)
    ref = session_with(store, 3)
    forget_session(store, ref)
    (remains,) = store.removal.erase_traces()
    assert "PostgreSQL" in remains
    store.database.close()


SECRETS = tuple(
    f"{place}secret"
    for place in (
        "text term payload revision summary fact plan owner title name kind track id error path tool quote".split()  # noqa: SIM905
    )
)


NOISE = hashlib.sha512(b"what zlib cannot make smaller").hexdigest() * 40
CHECKPOINT = checkpoint(conversation=({"data": {"content": NOISE}},), state=state(last_seq=41))
"""Compressed words are no words: what is looked for is a piece of what zlib made of them."""


def compressed_piece(store: SqlStore) -> bytes:
    """A piece from the middle of the newest checkpoint as it is stored."""
    with store.database.read() as connection:
        payload = bytes(connection.execute(select(schema.checkpoints.c.payload)).scalars().all()[-1])
    return payload[100:132]


def planted(store: SqlStore, session_id: str = "s") -> SessionRef:
    """A session with each secret in another place, among others that stay."""
    session_with(store, 300, "kept")
    session_with(store, 40, session_id)
    secret = incoming(
        "textsecret", "idsecret", terms="textsecret termsecret", name="namesecret",
        kind="kindsecret", track="tracksecret", payload='{"x": "payloadsecret"}',
    )  # fmt: skip
    touch = FileTouch(path="pathsecret", operation="read", tool="toolsecret")
    secret = Incoming(draft=secret.draft, passages=secret.passages, touches=(touch,))
    first = incoming("revisionsecret", "idsecret", track="tracksecret", payload='"revisionsecret"')
    ref = append(store, session_id, first, secret, title="titlesecret", user="ownersecret").ref
    assert store.transcript.revisions(ref, "idsecret") == ['"revisionsecret"']
    claimed = claim(store, ref, plan(1, 1, 41))
    assert claimed is not None
    fact = Fact(kind="decision", text="factsecret", seq=41, at=NOW)
    said = written("summarysecret", facts=(fact,), error="errorsecret")
    assert store.tree.commit(ref, claimed, said, owner="w", now=NOW)
    summarised(store, ref, 2, claimed, text="summarysecret again")
    found = store.transcript.find(session_id)
    assert found is not None
    store.plans.write(found, "view", '"plansecret"', now=NOW)
    left = (LeftOut(what="idsecret", reason="slid"), LeftOut(what="m2", reason="slid"))
    made = outcome(last_seq=41, error="it says quotesecret", left_out=left)
    swap = store.outcomes.swap
    assert swap(found, "view", '"plansecret"', border=0, now=NOW, outcome=made, plan_before='"pathsecret"', keep=9)
    store.checkpoints.write(found, CHECKPOINT, keep=9)
    session_with(store, 20, "later")
    return found


def traces(where: Path) -> dict[str, list[str]]:
    """Secrets that stand in any file of the database, by file."""
    found: dict[str, list[str]] = {}
    for path in sorted(where.parent.iterdir()):
        content = path.read_bytes().lower()
        mine = [secret for secret in SECRETS if secret.lower().encode() in content]
        mine += [secret for secret in SECRETS if secret.lower().encode("utf-16-le") in content]
        if mine:
            found[path.name] = mine
    return found


class TestTraces:
    """Only on SQLite's files, in a folder of their own."""

    @pytest.fixture
    def where(self, tmp_path: Path) -> Path:
        folder = tmp_path / "alone"
        folder.mkdir()
        return folder / "memory.db"

    @pytest.fixture
    def store(self, where: Path) -> SqlStore:
        return open_store(where, busy_seconds=0.3)

    def test_a_removed_message_leaves_no_byte_behind(self, store: SqlStore, where: Path) -> None:
        ref = planted(store)
        assert set(itertools.chain.from_iterable(traces(where).values())) == set(SECRETS)
        piece = compressed_piece(store)
        forget_messages(store, ref, ["idsecret"])
        store.vector_queue.settle_forgotten(store.vector_queue.forgotten(limit=99))
        assert store.removal.erase_traces() == ()
        left = set(itertools.chain.from_iterable(traces(where).values()))
        assert left == {"ownersecret", "titlesecret"}, "the session itself stays"
        assert not any(piece in path.read_bytes() for path in where.parent.iterdir())
        assert store.checkpoints.infos(ref) == []
        assert [one.what for one in store.outcomes.read(ref, limit=1)[0].left_out] == ["m2"]

    def test_a_removed_session_leaves_no_byte_behind(self, store: SqlStore, where: Path) -> None:
        forget_session(store, planted(store))
        assert store.removal.erase_traces() == ()
        assert traces(where) == {}

    def test_an_idle_connection_of_somebody_else_does_not_keep_traces(self, store: SqlStore, where: Path) -> None:
        somebody = open_store(where)
        ref = planted(store)
        assert len(somebody.transcript.entries(ref)) == 41
        forget_session(store, ref)
        assert store.removal.erase_traces() == ()
        assert traces(where) == {}
        assert len(somebody.transcript.sessions()) == 2

    def test_somebody_elses_open_read_is_named_as_what_may_keep_traces(self, store: SqlStore, where: Path) -> None:
        somebody = open_store(where)
        ref = planted(store)
        with somebody.database.read() as connection:
            connection.execute(text("SELECT count(*) FROM ltm_entries")).all()
            forget_session(store, ref)
            (remains,) = store.removal.erase_traces()
        assert "SQLite" in remains
        assert store.removal.erase_traces() == ()
        assert traces(where) == {}

    def test_a_message_written_edited_and_removed_in_a_fresh_database_leaves_nothing(
        self, store: SqlStore, where: Path
    ) -> None:
        ref = append(store, "s", incoming("textsecret", "a"), incoming("termsecret", "a"), incoming("kept")).ref
        forget_messages(store, ref, ["a"])
        assert store.removal.erase_traces() == ()
        assert traces(where) == {}

    def test_words_that_were_edited_away_within_one_call_leave_nothing(self, store: SqlStore, where: Path) -> None:
        first, silent = incoming("textsecret", "a"), incoming("", "a", terms="")
        ref = append(store, "s", first, silent).ref
        forget_messages(store, ref, ["a"])
        assert store.removal.erase_traces() == ()
        assert traces(where) == {}
