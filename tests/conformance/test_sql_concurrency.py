"""Many writers at once: threads of one store, stores of many processes, and what a fork leaves."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, text

from langchain_tiered_memory.errors import StorageBusyError
from langchain_tiered_memory.sql import schema
from langchain_tiered_memory.sql.migrations import STEPS
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
    written,
)
from tests.writers import PROCESSES, start

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from pathlib import Path

    from langchain_tiered_memory.runtime import SqlStore

pytestmark = pytest.mark.slow

WRITERS, EACH = 6, 12


def write_some(where: str | Path | None, writer: int) -> int:
    """One process's work: its own messages, and one that everybody writes."""
    store = open_store(where, busy_seconds=60)
    for number in range(EACH):
        append(store, "s", incoming("shared", "shared"), incoming(f"w{writer} n{number}", f"{writer}-{number}"))
    store.database.close()
    return os.getpid()


def write_until_killed(where: str | Path, session_id: str, told: Connection) -> None:
    """Acknowledge each message that was written."""
    store = open_store(where)
    for number in range(10_000):
        append(store, session_id, incoming(f"text {number}", f"m{number}"))
        told.send(number)


def claim_some(where: str | Path | None, writer: int) -> list[str]:
    store = open_store(where, busy_seconds=60)
    won = claim_everything(store, f"owner{writer}")
    store.database.close()
    return won


def claim_everything(store: SqlStore, owner: str) -> list[str]:
    """Claim and commit pair after pair until nothing is free. Gives what was committed."""
    ref = store.transcript.find("s")
    assert ref is not None
    won = []
    while True:
        waiting = store.tree.waiting_entries(ref, track="main", limit=2)
        if not waiting:
            return won
        claimed = claim(store, ref, plan(1, *(one.seq for one in waiting)), owner=owner)
        # Only a removal of what was claimed can make the commit vain.
        if claimed is not None and store.tree.commit(ref, claimed, written(owner), owner=owner, now=NOW):
            won.append(claimed.id)


def in_threads(work: Callable[[int], object], count: int = WRITERS) -> list[object]:
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, range(count)))


def in_processes(work: Callable[..., object], where: str | Path, count: int = 3) -> list[object]:
    with ProcessPoolExecutor(count, mp_context=PROCESSES) as pool:
        return [future.result() for future in [pool.submit(work, where, number) for number in range(count)]]


def check_writers(store: SqlStore, writers: int) -> None:
    ref = store.transcript.find("s")
    assert ref is not None
    found = store.transcript.entries(ref)
    expected = {f"{writer}-{number}" for writer in range(writers) for number in range(EACH)} | {"shared"}
    assert Counter(ids(found)) == Counter(expected)
    assert [entry.seq for entry in found] == list(range(1, len(expected) + 1))
    for writer in range(writers):
        mine = [entry.id for entry in found if entry.id.startswith(f"{writer}-")]
        assert mine == [f"{writer}-{number}" for number in range(EACH)]
    kept = store.transcript.totals(ref)
    store.inspection.mend_totals(ref)
    assert store.transcript.totals(ref) == kept
    assert store.inspection.damaged_text_index() == []


def test_threads_that_write_one_session_lose_nothing(store: SqlStore) -> None:
    def work(writer: int) -> None:
        for number in range(EACH):
            append(store, "s", incoming("shared", "shared"), incoming(f"w{writer} n{number}", f"{writer}-{number}"))

    in_threads(work)
    check_writers(store, WRITERS)


@pytest.mark.migrates
def test_processes_that_open_a_new_database_at_once_and_write_one_session_lose_nothing(
    shared_where: str | Path,
) -> None:
    pids = in_processes(write_some, shared_where)
    store = open_store(shared_where)
    check_writers(store, len(pids))
    with store.database.read() as connection:
        numbers = connection.scalars(select(schema.migrations.c.number)).all()
        assert numbers == list(range(1, len(STEPS) + 1))
    store.database.close()


def test_threads_that_claim_the_same_work_each_get_their_own(store: SqlStore) -> None:
    ref = session_with(store, 60)
    won = [one for many in in_threads(lambda n: claim_everything(store, f"o{n}")) for one in many]  # type: ignore[attr-defined]
    check_claims(store, won, 60)
    assert store.tree.unfinished(ref) == 0


def test_processes_that_claim_the_same_work_each_get_their_own(shared_where: str | Path) -> None:
    store = open_store(shared_where)
    session_with(store, 60)
    won = [one for many in in_processes(claim_some, shared_where) for one in many]  # type: ignore[attr-defined]
    check_claims(store, won, 60)
    store.database.close()


def check_claims(store: SqlStore, won: list[str], messages: int) -> None:
    ref = store.transcript.find("s")
    assert ref is not None
    assert len(won) == len(set(won))
    made = store.tree.all(ref)
    assert sorted(won) == sorted(ids(made))
    covered = [source for summary in made for source in summary.sources]
    assert sorted(covered) == sorted(f"m{n}" for n in range(1, messages + 1))


def test_one_of_many_takes_over_a_lease_and_one_of_many_commits(store: SqlStore) -> None:
    ref = session_with(store, 2)
    claim(store, ref, plan(1, 1, 2), owner="gone", lease_seconds=1)
    due = store.tree.due(ref, now=NOW + 5, remake_stale=False)
    assert due is not None

    def work(number: int) -> bool:
        owner = f"o{number}"
        if not store.tree.lease(due, owner=owner, now=NOW + 5, lease_seconds=9):
            return False
        return store.tree.commit(ref, due, written(owner), owner=owner, now=NOW + 5)

    assert in_threads(work).count(True) == 1


def test_appends_edits_claims_commits_and_removals_at_once_leave_a_sound_store(store: SqlStore) -> None:
    session_with(store, 40)
    stop = threading.Event()

    def edit(_: int) -> None:
        for number in range(30):
            append(store, "s", incoming(f"edited {number}", f"m{number % 40 + 1}"))
        stop.set()

    def tend(number: int) -> None:
        ref = store.transcript.find("s")
        while ref is not None and not stop.is_set():
            due = store.tree.due(ref, now=NOW + 5, remake_stale=True)
            if due is not None and store.tree.lease(due, owner=f"o{number}", now=NOW + 5, lease_seconds=99):
                store.tree.commit(ref, due, written("again"), owner=f"o{number}", now=NOW + 5)
            claim_everything(store, f"o{number}")
            below = store.tree.waiting_summaries(ref, level=1, limit=3)
            parent = claim(store, ref, plan(2, *below), owner=f"o{number}")
            if parent is not None:
                store.tree.commit(ref, parent, written("above"), owner=f"o{number}", now=NOW)

    def forget(_: int) -> None:
        ref = store.transcript.find("s")
        assert ref is not None
        for number in range(40, 20, -1):
            forget_messages(store, ref, [f"m{number}"])
            store.vector_queue.settle([row.id for row in store.vector_queue.pending(limit=50)], fingerprint="f")

    in_threads(lambda n: (edit, forget, tend, tend)[n](n), 4)
    ref = store.transcript.find("s")
    assert ref is not None
    kept = store.transcript.totals(ref)
    store.inspection.mend_totals(ref)
    assert store.transcript.totals(ref) == kept
    assert store.inspection.orphan_passages() == []
    summaries = {one.id: one for one in store.tree.all(ref)}
    entries = store.transcript.entries(ref)
    for summary in summaries.values():
        below = (
            {entry.id for entry in entries if entry.summary_id == summary.id}
            if summary.level == 1
            else {one.id for one in summaries.values() if one.parent_id == summary.id}
        )
        assert below == set(summary.sources)


def test_a_session_that_is_removed_while_it_is_written_to_is_whole_or_gone(store: SqlStore) -> None:
    def work(number: int) -> None:
        for step in range(15):
            if number == 0:
                ref = store.transcript.find("s")
                if ref is not None:
                    forget_session(store, ref)
            else:
                append(store, "s", incoming("x", f"{number}-{step}"))

    append(store, "kept", incoming("y", "k"))
    in_threads(work, 4)
    kept = store.transcript.find("kept")
    assert kept is not None
    with store.database.read() as connection:
        alive = set(connection.scalars(select(schema.sessions.c.key)))
        for table in (schema.entries, schema.passages):
            there = set(connection.scalars(select(table.c.session_key)))
            assert {kept.key} <= there <= alive
    for ref in store.transcript.sessions():
        totals = store.transcript.totals(ref)
        store.inspection.mend_totals(ref)
        assert store.transcript.totals(ref) == totals


def test_more_threads_than_connections_wait_for_their_turn(store: SqlStore) -> None:
    ref = session_with(store, 5)
    assert in_threads(lambda _: len(store.transcript.entries(ref)), 40) == [5] * 40


def test_a_writer_that_is_kept_waiting_too_long_is_told(shared_where: str | Path) -> None:
    first, second = open_store(shared_where), open_store(shared_where, busy_seconds=0.2)
    ref = session_with(first, 1)
    with first.database.write() as connection:
        connection.execute(select(schema.sessions).with_for_update()).all()
        with pytest.raises(StorageBusyError, match="busy_seconds"):
            append(second, "s", incoming())
        assert ids(second.transcript.entries(ref)) == ["m1"], "reading goes on"
        opened = open_store(shared_where, busy_seconds=0.2)
        opened.database.close()
    append(second, "s", incoming("later", "m2"))
    assert ids(first.transcript.entries(ref)) == ["m1", "m2"]
    first.database.close()
    second.database.close()


def test_a_thread_that_is_kept_waiting_by_another_is_told(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db", busy_seconds=0.2)
    session_with(store, 1)
    with ThreadPoolExecutor(1) as pool, store.database.write():
        waiting = pool.submit(append, store, "s", incoming())
        assert isinstance(waiting.exception(), StorageBusyError)
        assert "another thread" in str(waiting.exception())
    append(store, "s", incoming())
    store.database.close()


def test_a_transaction_that_fails_leaves_the_store_usable(store: SqlStore) -> None:
    ref = session_with(store, 1)

    def fail() -> None:
        with store.database.write() as connection:
            connection.execute(text("UPDATE ltm_entries SET tokens = 77"))
            raise RuntimeError

    for _ in range(20):
        with pytest.raises(RuntimeError):
            fail()
    assert store.transcript.entries(ref)[0].tokens == 2
    append(store, "s", incoming())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_and_its_parent_both_go_on(shared_where: str | Path) -> None:
    store = open_store(shared_where)
    ref = session_with(store, 2)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            append(store, "s", incoming("of the child", "child"))
            code = 0 if len(store.transcript.entries(ref)) >= 3 else 2
        finally:
            os._exit(code)
    append(store, "s", incoming("of the parent", "parent"))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert set(ids(store.transcript.entries(ref))) == {"m1", "m2", "child", "parent"}
    store.database.close()


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no SIGKILL")
def test_a_process_that_is_killed_loses_no_message_that_it_acknowledged(shared_where: str | Path) -> None:
    open_store(shared_where).database.close()
    for number in range(3):
        process, told = start(write_until_killed, shared_where, f"s{number}")
        acknowledged = -1
        while acknowledged < 25:
            acknowledged = told.recv()
        process.kill()
        process.join()
        with suppress(EOFError):
            while True:
                acknowledged = told.recv()
        told.close()
        store = open_store(shared_where)
        ref = store.transcript.find(f"s{number}")
        assert ref is not None
        found = ids(store.transcript.entries(ref))
        assert found[: acknowledged + 1] == [f"m{n}" for n in range(acknowledged + 1)]
        assert store.inspection.damaged_database() is None
        assert store.inspection.damaged_text_index() == []
        forget_session(store, ref)
        store.database.close()
