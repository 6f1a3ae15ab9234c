"""What touched files and learnt windows must do on every database."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_tiered_memory.maintenance.relations import of_session
from tests.run_builders import ODD, touching
from tests.store_builders import NOW, append, forget_messages, forget_session, incoming, open_store, session_with

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef


def latest(store: SqlStore, ref: SessionRef, **changes: object) -> list[tuple[str, str, int]]:
    options: dict[str, object] = {"track": None, "limit": 99} | changes
    found = store.files.latest(ref, **options)  # type: ignore[arg-type]
    return [(one.path, one.operation, one.seq) for one in found]


def orphan_touches(store: SqlStore, ref: SessionRef) -> list[str]:
    """Messages that are gone while the files that they touched are still noted."""
    found = store.inspection.look(partial(of_session, ref=ref))
    return [one.problem.what for one in found if one.problem.kind == "orphan_file_access"]


def test_each_path_comes_once_by_its_latest_access(store: SqlStore) -> None:
    ref = append(
        store,
        "s",
        touching(("a.py", "read"), (ODD, "list")),
        incoming("nothing"),
        touching(("b.py", "search")),
        touching(("a.py", "search"), at=NOW + 77),
    ).ref
    assert latest(store, ref) == [("a.py", "read", 4), ("b.py", "search", 3), (ODD, "list", 1)]
    newest = store.files.latest(ref, track=None, limit=1)[0]
    assert (newest.tool, newest.at) == ("search_file", NOW + 77), "as far as was looked"
    assert latest(store, ref, limit=2) == latest(store, ref)[:2]


def test_a_file_that_was_ever_written_stays_a_written_one(store: SqlStore) -> None:
    ref = append(
        store,
        "s",
        touching(("a", "write"), ("a", "read")),
        touching(("b", "read"), ("b", "write")),
        touching(("a", "read")),
        touching(("c", "read"), ("c", "list")),
    ).ref
    assert latest(store, ref) == [("c", "list", 4), ("a", "write", 3), ("b", "write", 2)]


def test_files_are_told_apart_by_track_and_by_session(store: SqlStore) -> None:
    ref = append(store, "s", touching(("a", "write")), touching(("a", "read"), track="other")).ref
    append(store, "elsewhere", touching(("z", "read")))
    assert latest(store, ref, track="main") == [("a", "write", 1)]
    assert latest(store, ref, track="other") == [("a", "read", 2)]
    assert latest(store, ref) == [("a", "write", 2)]


def test_what_worked_on_files_is_found_on_a_track_and_on_all(store: SqlStore) -> None:
    ref = append(
        store,
        "s",
        touching(("a", "read")),
        touching(("a", "search")),
        touching(("b", "write"), track="other"),
        touching(("a", "write"), ("c", "read")),
    ).ref
    assert store.files.worked_on(ref, track="main", limit=9) == [4, 1]
    assert store.files.worked_on(ref, track=None, limit=9) == [4, 3, 1]
    assert store.files.worked_on(ref, track=None, limit=1, before=4) == [3]
    assert latest(store, ref, off={4}) == [("b", "write", 3), ("a", "read", 2)]


def test_an_edit_touches_what_it_touches_now(store: SqlStore) -> None:
    ref = append(store, "s", touching(("a", "read"), ("b", "read"), message_id="m")).ref
    item = touching(("b", "write"), ("c", "read"), message_id="m")
    append(store, "s", type(item)(draft=incoming("edited", "m").draft, passages=item.passages, touches=item.touches))
    assert latest(store, ref) == [("b", "write", 1), ("c", "read", 1)]
    append(store, "s", incoming("edited again", "m"))
    assert latest(store, ref) == []


def test_what_a_forgotten_message_touched_is_forgotten(store: SqlStore) -> None:
    ref = append(store, "s", touching(("a", "write"), message_id="m"), touching(("a", "read"), ("b", "read"))).ref
    forget_messages(store, ref, ["m"])
    assert latest(store, ref) == [("a", "read", 2), ("b", "read", 2)]
    assert orphan_touches(store, ref) == []
    forget_session(store, ref)
    assert latest(store, ref) == []


def test_a_file_written_long_before_thousands_of_accesses_is_known_as_written(store: SqlStore) -> None:
    ref = append(store, "s", touching(("old", "write")), touching(("gone", "read"))).ref
    append(store, "s", *(touching((f"f{number % 7}", "read")) for number in range(2100)), touching(("old", "read")))
    found = latest(store, ref)
    assert found[0] == ("old", "write", 2103)
    assert len(found) == 8
    assert "gone" not in {path for path, _, _ in found}


touches = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["read", "write", "search", "list"])), max_size=4)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(said=st.lists(touches, max_size=10), limit=st.integers(1, 5))
def test_the_latest_files_are_those_a_walk_through_all_accesses_finds(
    said: list[list[tuple[str, str]]], limit: int
) -> None:
    store = open_store()
    ref = session_with(store, 1)
    append(store, "s", *(touching(*some) for some in said))
    seqs: dict[str, int] = {}
    operations: dict[str, str] = {}
    for seq, some in enumerate(said, start=2):
        here: dict[str, str] = {}
        for path, operation in some:
            here[path] = "write" if here.get(path) == "write" else operation  # a message has one row of a file
        for path, operation in here.items():
            seqs[path] = seq
            known = operations.get(path)
            operations[path] = known if known in ("write", "read") and operation != "write" else operation
    wanted = sorted(seqs, key=lambda path: -seqs[path])
    found = latest(store, ref, limit=limit)
    assert {seq for _, _, seq in found} >= {seqs[path] for path in wanted[:limit]} - {
        seqs[path] for path in wanted[limit:]
    }
    assert len(found) == min(limit, len(wanted))
    assert all((operations[path], seqs[path]) == (operation, seq) for path, operation, seq in found)
    store.database.close()


def test_of_learnt_windows_the_smallest_counts_until_a_larger_request_is_answered(store: SqlStore) -> None:
    model = "m\0" + "x" * 500
    assert store.windows.read(model) is None
    store.windows.confirm(model, 10**6)
    assert store.windows.read(model) is None
    for tokens in (8000, 9000, 7000):
        store.windows.learn(model, tokens, NOW)
    assert store.windows.read(model) == 7000
    store.windows.confirm(model, 5000)
    assert store.windows.read(model) == 7000
    store.windows.confirm(model, 7500)
    assert store.windows.read(model) == 7500
    store.windows.learn(model, 7200, NOW)
    assert store.windows.read(model) == 7200
    assert store.windows.read("another") is None


@pytest.mark.parametrize("seq", [2])
def test_files_noted_of_a_message_that_is_gone_are_named(store: SqlStore, seq: int) -> None:
    ref = append(store, "s", touching(("a", "read")), touching(("b", "read"))).ref
    with store.database.write() as connection:
        connection.exec_driver_sql(f"DELETE FROM ltm_entries WHERE seq = {seq}")
    assert orphan_touches(store, ref) == [f"s/{seq}"]
