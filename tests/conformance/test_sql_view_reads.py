"""What a context reads at once is what the small reads give one by one, on every database, in one transaction."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import event, text

from langchain_tiered_memory.types.drafts import FileTouch
from tests.store_builders import (
    NOW,
    append,
    forget_session,
    ids,
    incoming,
    open_store,
    session_with,
    summarised,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.transcript.entry_reads import MustEntries
    from langchain_tiered_memory.types.drafts import Incoming
    from langchain_tiered_memory.types.records import SessionRef

ROLES = ("user", "user", "assistant", "system", "tool")
TRACKS = ("main", "side")
READS: dict[str, Callable[[SqlStore, SessionRef], object]] = {
    "musts": lambda s, r: required(s, r, off=frozenset({1, 2})),
    "kept view": lambda s, r: s.transcript.kept_view(r, "view"),
    "viewed": lambda s, r: s.transcript.viewed(r, track="main", after=20, limit=5, groups=(3, 9), seqs=(1, 31)),
}
MOST_STATEMENTS = {"musts": 6, "kept view": 2, "viewed": 1}


def required(store: SqlStore, ref: SessionRef, **changes: Any) -> MustEntries:
    """What must be shown of the main track, by the usual numbers."""
    options: dict[str, Any] = {
        "track": "main",
        "off": frozenset(),
        "opening": 3,
        "users": 3,
        "newest": 3,
        "worked_on": 3,
    }
    return store.transcript.required(ref, **options | changes)


def said(message_id: str, role: str = "user", **changes: object) -> Incoming:
    """A message of some role."""
    return incoming(f"text of {message_id}", message_id, role=role, **changes)


def with_some_of_everything(store: SqlStore) -> SessionRef:
    """A session with summaries, pins, open calls and a second track that waits; and another session beside it."""
    for name in ("other", "s"):
        ref = session_with(store, 30, name)
        append(store, name, said("call", "assistant", calls=("c",)), said("aside", track="side"))
        summarised(store, ref, 1, 1, 2)
        store.transcript.set_pin(ref, "m4", pinned=True)
    found = store.transcript.find("s")
    assert found is not None
    store.plans.write(found, "view", "{}", now=NOW)
    return found


@dataclass(kw_only=True)
class Log:
    """What reached the database."""

    transactions: int = 0
    statements: list[tuple[str, Any]] = field(default_factory=list)


@contextmanager
def logged(store: SqlStore) -> Iterator[Log]:
    """Note transactions and selects."""
    log, engine = Log(), store.database.engine

    def begun(_connection: object) -> None:
        log.transactions += 1

    def executed(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        if statement.lstrip()[:6].upper() == "SELECT":
            log.statements.append((statement, parameters))

    event.listen(engine, "begin", begun)
    event.listen(engine, "before_cursor_execute", executed)
    yield log
    event.remove(engine, "begin", begun)
    event.remove(engine, "before_cursor_execute", executed)


def test_the_musts_are_the_opening_the_pins_the_last_words_and_the_open_calls(store: SqlStore) -> None:
    told = [said(f"s{n}", "system") for n in range(1, 5)] + [said("goal"), said("late", "system")]
    told += [said("call", "assistant", calls=("c",)), said("u1"), said("a1", "assistant"), said("u2"), said("u3")]
    ref = append(store, "s", *told, said("aside", track="side"), said("a3", "assistant")).ref
    for pinned in ("a1", "aside", "s4"):
        store.transcript.set_pin(ref, pinned, pinned=True)
    found = required(store, ref)
    assert ids([*found.opening]) == ["s1", "s2", "s3", "goal"]
    assert ids([*found.pinned]) == ["s4", "a1", "aside"], "pins hold on every track"
    assert ids([*found.users]) == ["u1", "u2", "u3"]
    assert ids([*found.newest]) == ["u2", "u3", "a3"]
    assert ids([*found.waiting]) == ["call"]


def test_what_is_off_the_branch_is_as_if_it_were_not_there(store: SqlStore) -> None:
    ref = append(
        store,
        "s",
        said("s1", "system"),
        said("u1"),
        said("s2", "system"),
        said("u2"),
        said("call", "assistant", calls=("c",)),
        said("u3"),
        said("u4"),
    ).ref
    store.transcript.set_pin(ref, "u1", pinned=True)
    found = required(store, ref, off=frozenset({2, 5, 7}), users=2, newest=2)
    assert ids([*found.opening]) == ["s1", "s2", "u2"]
    assert ids([*found.users]) == ["u2", "u3"]
    assert ids([*found.newest]) == ["u2", "u3"]
    assert (found.pinned, found.waiting) == ((), ())


def test_a_track_without_a_user_has_no_opening(store: SqlStore) -> None:
    ref = append(store, "s", said("s1", "system"), said("a1", "assistant"), said("u1", track="side")).ref
    found = required(store, ref)
    assert (found.opening, found.users) == ((), ())
    assert ids([*found.newest]) == ["s1", "a1"]


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(ROLES), st.sampled_from(TRACKS), st.booleans()), max_size=14),
    st.frozensets(st.integers(1, 14), max_size=6),
    st.integers(1, 4),
)
def test_the_musts_are_what_the_small_reads_give_one_by_one(
    told: list[tuple[str, str, bool]], off: frozenset[int], count: int
) -> None:
    store = open_store()
    items = [
        said(f"m{n}", role, track=track, calls=(f"c{n}",) if waits and role == "assistant" else ())
        for n, (role, track, waits) in enumerate(told)
    ]
    ref = append(store, "s", *items).ref
    reads = store.transcript

    def on(found: list[Any]) -> tuple[Any, ...]:
        return tuple(entry for entry in found if entry.seq not in off)

    found = required(store, ref, off=off, opening=2, users=count, newest=count)
    users = on(reads.entries(ref, track="main", roles=["user"]))
    systems = reads.entries(ref, track="main", roles=["system"], up_to=users[0].seq, limit=2) if users else []
    assert found.opening == (*on(systems), *users[:1])
    assert found.users == users[-count:]
    assert found.newest == on(reads.entries(ref, track="main"))[-count:]
    assert found.waiting == on([one for one in reads.entries(ref, track="main") if one.calls])
    store.database.close()


def test_a_kept_view_is_its_plan_of_this_epoch_and_the_size_of_the_session(store: SqlStore) -> None:
    ref = with_some_of_everything(store)
    found = store.transcript.kept_view(ref, "view")
    assert (found.plan, found.tokens) == ("{}", store.transcript.totals(ref)["tokens"])
    store.transcript.set_pin(ref, "m5", pinned=True)
    moved = store.transcript.find("s")
    assert moved is not None
    assert store.transcript.kept_view(moved, "view").plan is None


def test_what_a_view_shows_is_its_newest_messages_its_groups_and_those_it_quotes(store: SqlStore) -> None:
    ref, reads = with_some_of_everything(store), store.transcript
    newest, of_groups, by_number = reads.viewed(ref, track="main", after=20, limit=5, groups=(3, 9), seqs=(1, 32, 99))
    assert newest == reads.entries(ref, track="main", after=20, limit=5, newest_first=True)
    assert of_groups == reads.groups_of(ref, (3, 9))
    assert by_number == reads.by_seq(ref, (1, 32, 99))
    assert reads.viewed(ref, track="none", after=0, limit=5, groups=(), seqs=()) == ([], [], [])


def test_a_session_that_is_not_there_gives_nothing(store: SqlStore) -> None:
    ref = with_some_of_everything(store)
    forget_session(store, ref)
    assert required(store, ref) == type(required(store, ref))()
    found = store.transcript.kept_view(ref, "view")
    assert (found.plan, found.tokens) == (None, 0)


@pytest.mark.parametrize("name", READS)
def test_each_is_one_transaction_of_few_statements(store: SqlStore, name: str) -> None:
    ref = with_some_of_everything(store)
    with logged(store) as log:
        READS[name](store, ref)
    assert log.transactions == 1
    assert len(log.statements) <= MOST_STATEMENTS[name], log.statements


@pytest.mark.parametrize("name", READS)
@pytest.mark.postgres
def test_each_statement_can_be_answered_from_an_index_on_postgresql(postgres_url: str, name: str) -> None:
    store = open_store(postgres_url)
    ref = with_some_of_everything(store)
    with logged(store) as log:
        READS[name](store, ref)
    with store.database.read() as connection:
        # A table of few rows is read from end to end whatever its indexes: unless that is made dear.
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        for statement, parameters in log.statements:
            lines = "\n".join(line for (line,) in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters))
            assert "Seq Scan" not in lines, f"{lines}\n{statement}"
            assert "Index" in lines, f"{lines}\n{statement}"
    store.database.close()


def test_the_head_of_a_track_tells_of_that_track_alone(store: SqlStore) -> None:
    assert store.transcript.head("s", track="main", seq=1, ids=[]) is None
    append(store, "s", said("a"), said("b", track="side"))
    head = store.transcript.head("s", track="main", seq=1, ids=["b", "c"])
    assert head is not None
    assert head.ref == store.transcript.find("s")
    assert (head.last_seq, head.named, head.has_ids) == (2, "a", False)
    beside = store.transcript.head("s", track="side", seq=1, ids=["b"])
    assert beside is not None
    assert (beside.named, beside.has_ids) == (None, True)


def test_what_must_be_shown_tells_whether_others_spoke_and_what_was_worked_on(store: SqlStore) -> None:
    touched = (FileTouch(path="a.py", operation="write", tool="edit"),)
    append(store, "s", said("a"), *(replace(said(one), touches=touched) for one in ("b", "c", "d", "e")))
    ref = store.transcript.find("s")
    assert ref is not None
    alone = required(store, ref)
    assert (alone.has_other_tracks, alone.worked_on) == (False, (5, 4, 3))
    append(store, "s", said("f", track="side"))
    assert required(store, ref).has_other_tracks
    assert required(store, ref, track="side").has_other_tracks


def test_the_figures_of_one_write_tell_what_it_followed(store: SqlStore) -> None:
    append(store, "s", said("a"), said("b"))
    found = append(store, "s", said("c"), said("a"))
    assert (found.behind, found.new, found.ref) == (2, 1, store.transcript.find("s"))
