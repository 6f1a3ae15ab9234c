"""What every turn asks of SQLite goes through an index: no table is read from end to end, nothing is sorted whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event

from langchain_tiered_memory.types.records import Spent
from tests.store_builders import (
    NOW,
    append,
    claim,
    fact,
    forget_messages,
    incoming,
    open_store,
    plan,
    session_with,
    summarised,
    written,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef, Summary

MANY = list(range(1, 301))
MANY_IDS = [f"m{number}" for number in MANY]
STATED = fact(5, "The port is now 8443.", subject="port")

HOT_READS: dict[str, Callable[[SqlStore, SessionRef, Summary], object]] = {
    "find": lambda s, _r, _: s.transcript.find("s"),
    "recent entries": lambda s, r, _: s.transcript.entries(r, track="main", after=20),
    "entries of all tracks": lambda s, r, _: s.transcript.entries(r, after=20, up_to=30),
    "last user messages": lambda s, r, _: s.transcript.entries(
        r, track="main", roles=["user"], newest_first=True, limit=3
    ),
    "first user message": lambda s, r, _: s.transcript.entries(r, track="main", roles=["user"], limit=1),
    "entries by number": lambda s, r, _: s.transcript.by_seq(r, MANY),
    "entries by id": lambda s, r, _: s.transcript.by_id(r, MANY_IDS),
    "groups": lambda s, r, _: s.transcript.groups_of(r, MANY),
    "musts": lambda s, r, _: s.transcript.required(
        r, track="main", off=frozenset({2}), opening=3, users=3, newest=3, worked_on=3
    ),
    "head": lambda s, _r, _: s.transcript.head("s", track="main", seq=2, ids=["a", "b"]),
    "written summaries": lambda s, r, _: s.tree.has_written(r),
    "of a model": lambda s, _r, _: s.windows.of_model("m", "c"),
    "kept view": lambda s, r, _: s.transcript.kept_view(r, "view"),
    "totals": lambda s, r, _: s.transcript.totals(r),
    "next waiting track": lambda s, r, _: s.tree.next_waiting_track(r, after="a"),
    "waiting entries": lambda s, r, _: s.tree.waiting_entries(r, track="main", limit=64),
    "waiting summaries": lambda s, r, _: s.tree.waiting_summaries(r, level=1, limit=64),
    "roots": lambda s, r, _: s.tree.roots(r, limit=50),
    "children": lambda s, _r, one: s.tree.children([one.id, *MANY_IDS]),
    "summaries by id": lambda s, r, one: s.tree.by_id(r, [one.id, *MANY_IDS]),
    "due": lambda s, r, _: s.tree.due(r, now=NOW, remake_stale=True),
    "unfinished": lambda s, r, _: s.tree.unfinished(r),
    "borders": lambda s, r, _: s.tree.borders(r, track="main", after=3, limit=9),
    "last border": lambda s, r, _: s.tree.last_border(r, track="main", before=9),
    "level 1 between": lambda s, r, _: s.tree.level_1_between(r, after=3, up_to=9),
    "due later": lambda s, r, _: s.tree.due_later(r, remake_stale=False),
    "who has leases": lambda s, r, _: s.tree.lessees(r, now=NOW),
    "newest summaries": lambda s, r, _: s.tree.newest(r, level=1, up_to=30, limit=3),
    "first uncondensed": lambda s, r, _: s.tree.first_uncondensed(r, track="main", after=3),
    "uncondensed": lambda s, r, _: s.tree.uncondensed(r, track="main", up_to=30),
    "facts": lambda s, r, _: s.facts.candidates(r, up_to=30, limit=9),
    "facts of a branch": lambda s, r, _: s.facts.candidates(r, up_to=30, without=[1, 2], limit=9),
    "best facts": lambda s, r, _: s.facts.best(r, 9),
    "facts of a span": lambda s, r, _: s.facts.for_span(r, 1, 4, limit=9),
    "facts of summaries": lambda s, r, one: s.facts.of_summaries(r, [one.id, *MANY_IDS]),
    "facts to read": lambda s, r, _: s.facts.unread(r, 4),
    "calibration": lambda s, _r, _: s.plans.calibration("m", "c"),
    "term statistics": lambda s, r, _: s.text_index.statistics([r], ["word1"]),
    "term statistics of summaries": lambda s, r, _: s.text_index.statistics([r], ["word1"], level=1),
    "text search": lambda s, r, _: s.text_index.find([r], {"word1": 1.0}, limit=9),
    "passages by id": lambda s, r, _: s.text_index.by_id(r, MANY),
    "passages of entries": lambda s, r, _: s.text_index.said(r, MANY),
    "vectors to make": lambda s, _r, _: s.vector_queue.pending(limit=9),
    "vectors to make for a session": lambda s, r, _: s.vector_queue.pending(limit=9, ref=r, newest_first=True),
    "vectors to forget": lambda s, _r, _: s.vector_queue.forgotten(limit=9),
}
HOT_WRITES: dict[str, Callable[[SqlStore, SessionRef, Summary], object]] = {
    "append": lambda s, _r, _: append(s, "s", incoming("new", "new"), incoming("r", "r", answers="c")),
    "edit": lambda s, _r, _: append(s, "s", incoming("edited", "m1")),
    "pin": lambda s, r, _: s.transcript.set_pin(r, "m1", pinned=True),
    "claim": lambda s, r, _: claim(s, r, plan(1, *range(10, 35))),
    "claim above": lambda s, r, _: claim(s, r, plan(3, *MANY_IDS)),
    "commit": lambda s, r, one: s.tree.commit(r, one, written("x", facts=(STATED,)), owner="w", now=NOW),
    "facts read": lambda s, r, one: s.facts.replace(r, one, [STATED]),
    "lease": lambda s, _r, one: s.tree.lease(one, owner="w", now=NOW + 99, lease_seconds=9),
    "fail": lambda s, _r, one: s.tree.fail(one, owner="w", error="x", retry_at=NOW, spent=Spent()),
    "plan": lambda s, r, _: s.plans.write(r, "view", "{}", now=NOW),
    "settle": lambda s, _r, _: s.vector_queue.settle(MANY, fingerprint="f"),
    "remove": lambda s, r, _: forget_messages(s, r, MANY_IDS),
}
MAY_SORT = {
    "append": "the active tasks of a track, for the current one: few",
    "edit": "as an append",
    "roots": "few: those of two states",
    "facts of a span": "as many as one summary stands for",
    "facts of summaries": "as many as some chunks have",
    "facts to read": "few: those that wait",
    "children": "few",
    "due": "few: those with a time for their next attempt",
    "claim": "as many as one summary covers",
    "plan": "at most as many as are kept",
    "text search": "the candidates are ranked",
    "level 1 between": "as many as stand between two borders",
    "settle": "the sessions of one batch",
}
MAY_SCAN = (
    "SCAN ltm_passages_fts VIRTUAL TABLE INDEX",  # FTS5's own way of saying that its index is asked
    "SCAN ltm_passages USING INDEX ltm_passages_queue",  # in the order of the queue; a LIMIT ends it
    "SCAN ltm_removed_vectors",  # the same
    "SCAN ltm_removals",  # those of the last day: few
    "SCAN anon_",  # a result within the query
    "SCAN waiting",  # the tracks found so far, of a query that asks for the next one
    "SCAN (subquery",
    "SCAN CONSTANT ROW",
)
MAY_WALK_A_SESSION = {
    "entries of all tracks": "in its order; a LIMIT or a border ends it",
    "vectors to make for a session": "in the order of its queue; a LIMIT ends it",
    "plan": "few are kept",
    "commit": "its plans, of which few are kept; its facts, for which of them hold follows from all",
    "facts read": "as a commit",
    "edit": "its facts, where the message states one",
    "facts of a branch": "its facts, where one of them is off the branch",
    "remove": "its plans, its facts, and the newest of its times; what is left of it is counted",
}
PARTIAL_INDEXES = {
    "unanswered calls": "ltm_entries_open",
    "append": "ltm_entries_open",
    "pins": "ltm_entries_pinned",
    "musts": "ltm_entries_open",
    "next waiting track": "ltm_entries_uncovered",
    "waiting entries": "ltm_entries_uncovered",
    "first uncondensed": "ltm_entries_uncovered",
    "uncondensed": "ltm_entries_uncovered",
    "facts to read": "ltm_summaries_unread",
    "due": "ltm_summaries_unsettled",
    "unfinished": "ltm_summaries_unsettled",
    "due later": "ltm_summaries_unsettled",
    "leases of others": "ltm_summaries_unsettled",
    "vectors to make": "ltm_passages_queue",
    "vectors to make for a session": "ltm_passages_pending",
}
"""Small indexes that stay small however long the history is: the planner must prefer them."""


@pytest.fixture
def prepared(tmp_path: Path) -> Iterator[tuple[SqlStore, SessionRef, Summary]]:
    yield from some_of_everything(tmp_path / "memory.db")


@pytest.fixture(scope="module")
def only_read(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqlStore, SessionRef, Summary]]:
    yield from some_of_everything(tmp_path_factory.mktemp("read") / "memory.db")


def some_of_everything(where: Path) -> Iterator[tuple[SqlStore, SessionRef, Summary]]:
    """A session with some of everything. No statistics were gathered, as nobody runs ANALYZE."""
    store = open_store(where)
    for name in ("s", "other"):
        ref = session_with(store, 40, name)
        one = summarised(store, ref, 1, 1, 2, facts=[fact(1, "The port is 8080.", subject="port")])
        two = summarised(store, ref, 1, 3, 4)
        summarised(store, ref, 2, one, two)
        append(store, name, incoming("call", "call", calls=("c",)), incoming("edited", "m3"))
        being_made = claim(store, ref, plan(1, 5, 6))
    found = store.transcript.find("other")
    assert found is not None
    assert being_made is not None
    mine = store.transcript.find("s")
    assert mine is not None
    yield store, mine, next(one for one in store.tree.all(mine) if not one.state.finished)
    store.database.close()


def plans_of(store: SqlStore, use: Callable[[], object]) -> list[tuple[str, str]]:
    """Each statement that `use` runs, with a line of SQLite's plan for it."""
    statements: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        statements.append((statement, parameters))

    event.listen(store.database.engine, "before_cursor_execute", note)
    use()
    event.remove(store.database.engine, "before_cursor_execute", note)
    found = []
    with store.database.read() as connection:
        for statement, parameters in statements:
            if statement.lstrip().upper().startswith(("SELECT", "WITH", "UPDATE", "DELETE", "INSERT")):
                values = parameters[0] if isinstance(parameters, list) else parameters
                lines = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
                found += [(statement, str(line[3])) for line in lines]
    return found


@pytest.mark.parametrize("name", HOT_READS)
def test_a_hot_read_uses_an_index(only_read: tuple[SqlStore, SessionRef, Summary], name: str) -> None:
    check(plans_of(only_read[0], lambda: HOT_READS[name](*only_read)), name)


@pytest.mark.parametrize("name", HOT_WRITES)
def test_a_hot_write_uses_an_index(prepared: tuple[SqlStore, SessionRef, Summary], name: str) -> None:
    check(plans_of(prepared[0], lambda: HOT_WRITES[name](*prepared)), name)


def check(plans: list[tuple[str, str]], name: str) -> None:
    assert plans
    for statement, line in plans:
        if name.endswith("uncondensed") and "ltm_summaries" in line:
            assert "ltm_summaries_unfinished" in line
        if line.startswith("SCAN"):
            assert line.startswith(MAY_SCAN), f"{line}\n{statement}"
        if line.endswith("(session_key=?)"):
            assert name in MAY_WALK_A_SESSION, f"{line}\n{statement}"
        if "TEMP B-TREE" in line:
            assert name in MAY_SORT, f"{line}\n{statement}"
    if name in PARTIAL_INDEXES:
        assert any(PARTIAL_INDEXES[name] in line for _, line in plans), plans
