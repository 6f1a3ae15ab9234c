"""What a thread reads within a snapshot is of one state of the database, and nothing is held longer than that."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event

from langchain_tiered_memory.errors import ClosedError
from tests.store_builders import append, incoming, open_store, session_with, summarised

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[SqlStore, SqlStore]]:
    """Two connections' worth of one database."""
    where = request.getfixturevalue("postgres_url") if request.param == "postgresql" else tmp_path / "memory.db"
    with ExitStack() as opened:
        stores = open_store(where), open_store(where)
        for one in stores:
            opened.callback(one.database.close)
        yield stores


def count(store: SqlStore, ref: SessionRef) -> int:
    """Messages that a read finds now."""
    return len(store.transcript.entries(ref))


def test_a_write_by_another_connection_is_seen_by_no_read_of_a_snapshot_and_by_the_next_one(
    two: tuple[SqlStore, SqlStore],
) -> None:
    mine, other = two
    ref = session_with(mine, 3)
    with mine.database.snapshot():
        assert count(mine, ref) == 3
        append(other, "s", incoming("one more", "new"))
        assert count(mine, ref) == 3
        assert mine.transcript.totals(ref)["entries"] == 3
        assert len(mine.transcript.by_id(ref, ["new"])) == 0
    assert count(mine, ref) == 4


def test_the_figures_of_the_roots_are_of_one_state(two: tuple[SqlStore, SqlStore]) -> None:
    mine, other = two
    ref = session_with(mine, 8)
    summarised(mine, ref, 1, 1, 2)
    before = mine.tree.root_figures(ref)
    first: list[str] = []

    def condense_more(connection: object, cursor: object, statement: str, *_: object) -> None:
        del connection, cursor
        if "sum(" in statement and not first:
            first.append(statement)
            summarised(other, ref, 1, 3, 4)

    event.listen(mine.database.engine, "after_cursor_execute", condense_more)
    during = mine.tree.root_figures(ref)
    after = mine.tree.root_figures(ref)
    assert after[0] > before[0]
    assert after[1] > before[1]
    assert first
    assert during in (before, after)


def test_the_reads_of_a_snapshot_are_one_transaction_nested_snapshots_included(two: tuple[SqlStore, SqlStore]) -> None:
    mine, _ = two
    ref = session_with(mine, 3)
    begun: list[object] = []
    event.listen(mine.database.engine, "begin", begun.append)
    with mine.database.snapshot():
        count(mine, ref)
        with mine.database.snapshot():
            count(mine, ref)
        count(mine, ref)
    assert len(begun) == 1
    count(mine, ref)
    assert len(begun) == 2


def test_a_write_of_ones_own_ends_the_snapshot_and_is_seen_behind_it(two: tuple[SqlStore, SqlStore]) -> None:
    mine, _ = two
    ref = session_with(mine, 3)
    with mine.database.snapshot():
        assert count(mine, ref) == 3
        append(mine, "s", incoming("one more", "new"))
        assert count(mine, ref) == 4


def test_a_snapshot_that_is_ended_before_a_wait_is_begun_anew_by_the_next_read(two: tuple[SqlStore, SqlStore]) -> None:
    mine, other = two
    ref = session_with(mine, 3)
    with mine.database.snapshot():
        assert count(mine, ref) == 3
        append(other, "s", incoming("one more", "new"))
        mine.database.end_snapshot()
        assert count(mine, ref) == 4


def test_another_thread_reads_for_itself(two: tuple[SqlStore, SqlStore]) -> None:
    mine, other = two
    ref = session_with(mine, 3)
    seen: list[int] = []
    with mine.database.snapshot():
        assert count(mine, ref) == 3
        append(other, "s", incoming("one more", "new"))
        thread = threading.Thread(target=lambda: seen.append(count(mine, ref)))
        thread.start()
        thread.join()
        assert count(mine, ref) == 3
    assert seen == [4]


def test_nothing_stays_checked_out_behind_a_snapshot_that_broke_off(two: tuple[SqlStore, SqlStore]) -> None:
    mine, _ = two
    ref = session_with(mine, 3)
    with pytest.raises(KeyError), mine.database.snapshot():  # noqa: PT012 - the read comes first
        count(mine, ref)
        raise KeyError
    assert mine.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined] - a queue of connections
    assert count(mine, ref) == 3


def test_a_snapshot_of_a_closed_database_reads_nothing(two: tuple[SqlStore, SqlStore]) -> None:
    mine, _ = two
    ref = session_with(mine, 3)
    with mine.database.snapshot():
        count(mine, ref)
        mine.database.close()
        with pytest.raises(ClosedError):
            count(mine, ref)


def test_a_database_in_memory_takes_a_write_in_the_middle_of_a_snapshot() -> None:
    store = open_store(None)
    ref = session_with(store, 3)
    with store.database.snapshot():
        assert count(store, ref) == 3
        append(store, "s", incoming("one more", "new"))
        assert count(store, ref) == 4
    store.database.close()


@pytest.mark.parametrize("place", ["before_cursor_execute", "after_cursor_execute", "commit", "rollback"])
def test_an_interrupt_in_the_middle_of_a_snapshot_is_what_is_raised_and_the_next_one_works(
    two: tuple[SqlStore, SqlStore], place: str
) -> None:
    mine, _ = two
    ref = session_with(mine, 3)

    def interrupt(*_: object) -> None:
        event.remove(mine.database.engine, place, interrupt)
        raise KeyboardInterrupt

    def reads() -> None:
        with mine.database.snapshot():
            count(mine, ref)
            event.listen(mine.database.engine, place, interrupt)
            count(mine, ref)
            if place == "rollback":
                msg = "somebody else's error"
                raise LookupError(msg)

    with pytest.raises(KeyboardInterrupt):
        reads()
    with mine.database.snapshot():
        assert count(mine, ref) == 3
    append(mine, "s", incoming("one more", "new"))
    assert count(mine, ref) == 4


def test_a_write_goes_on_after_an_interrupt_that_was_caught_within_the_snapshot(
    two: tuple[SqlStore, SqlStore],
) -> None:
    mine, _ = two
    ref = session_with(mine, 3)

    def interrupt(*_: object) -> None:
        event.remove(mine.database.engine, "before_cursor_execute", interrupt)
        raise KeyboardInterrupt

    with mine.database.snapshot():
        count(mine, ref)
        event.listen(mine.database.engine, "before_cursor_execute", interrupt)
        with pytest.raises(KeyboardInterrupt):
            count(mine, ref)
        append(mine, "s", incoming("one more", "new"))
        assert count(mine, ref) == 4
