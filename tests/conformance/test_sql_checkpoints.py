"""What checkpoints must do on every database: whole or not at all, checked when read, the newest few kept."""

from __future__ import annotations

import dataclasses
import hashlib
import zlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from langchain_tiered_memory.errors import CheckpointError, NotFoundError, StorageError
from langchain_tiered_memory.sql import schema
from tests.run_builders import ODD, checkpoint, examined, state, task
from tests.store_builders import NOW, forget_session, open_store, session_with

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef
    from langchain_tiered_memory.types.runs import MemoryCheckpoint


def write(store: SqlStore, ref: SessionRef, *, keep: int = 20, **changes: object) -> MemoryCheckpoint:
    return store.checkpoints.write(ref, checkpoint(**changes), keep=keep)


def change_payload(store: SqlStore, checkpoint_id: str, payload: bytes) -> None:
    """Plant a fault: other bytes below the checksum."""
    with store.database.write() as connection:
        mine = schema.checkpoints.c.id == checkpoint_id
        connection.execute(update(schema.checkpoints).where(mine).values(payload=payload))


def test_a_checkpoint_comes_back_as_it_was_written(store: SqlStore) -> None:
    ref = session_with(store, 3)
    odd = task(ODD, track=ODD, depends_on=(ODD,), finished_at=NOW, last_seq=3, number=1, state="finished")
    made = checkpoint(
        session_id=ODD,
        track=ODD,
        reasons=(ODD, "mine"),
        tasks=(odd,),
        file_checksums={ODD: "1" * 64},
        state=state(phase=ODD, tasks=(odd, task()), pinned_ids=(ODD,), last_seq=3, last_message_id=ODD),
        langgraph_checkpoint_id=ODD,
    )
    kept = store.checkpoints.write(ref, made, keep=3)
    assert len(kept.digest) == 64
    assert dataclasses.replace(kept, digest="") == made
    assert store.checkpoints.read(ref) == kept
    assert store.checkpoints.read(ref, made.id) == kept


def test_a_checkpoint_without_an_id_gets_one(store: SqlStore) -> None:
    ref = session_with(store, 1)
    assert len(write(store, ref, id="").id) == 32


def test_the_list_of_checkpoints_tells_of_them_newest_first_without_their_contents(store: SqlStore) -> None:
    ref = session_with(store, 3)
    first = write(store, ref, at=NOW + 9, state=state(last_seq=2))
    second = write(store, ref, at=NOW, reasons=("danger", ODD), langgraph_checkpoint_id="1ef-a", track=ODD)
    newest, oldest = store.checkpoints.infos(ref)
    assert (newest.id, oldest.id) == (second.id, first.id)
    assert (newest.reasons, newest.langgraph_checkpoint_id, newest.track) == (("danger", ODD), "1ef-a", ODD)
    assert (oldest.last_seq, oldest.at, oldest.langgraph_checkpoint_id) == (2, NOW + 9, None)
    assert oldest.stored_bytes > 100
    assert store.checkpoints.read(ref) == second


def test_only_the_newest_checkpoints_of_each_session_are_kept(store: SqlStore) -> None:
    ref, other = session_with(store, 1), session_with(store, 1, "other")
    theirs = write(store, other)
    made = [write(store, ref, keep=3).id for _ in range(5)]
    assert [info.id for info in store.checkpoints.infos(ref)] == made[:1:-1]
    assert [info.id for info in store.checkpoints.infos(other)] == [theirs.id]
    write(store, ref, keep=1)
    assert len(store.checkpoints.infos(ref)) == 1


def test_the_run_knows_its_newest_checkpoint(store: SqlStore) -> None:
    ref = session_with(store, 3)
    write(store, ref, at=NOW + 5, state=state(last_seq=2))
    run = store.runs.read(ref)
    assert (run.checkpoint_at, run.checkpoint_seq) == (NOW + 5, 2)


def test_what_is_not_there_or_belongs_to_another_session_is_an_error_that_says_so(store: SqlStore) -> None:
    ref, other = session_with(store, 1), session_with(store, 1, "other")
    with pytest.raises(CheckpointError, match="any checkpoint"):
        store.checkpoints.read(ref)
    made = write(store, other)
    with pytest.raises(CheckpointError, match=made.id):
        store.checkpoints.read(ref, made.id)


def test_a_session_that_was_removed_takes_no_checkpoint(store: SqlStore) -> None:
    ref = session_with(store, 1)
    forget_session(store, ref)
    with pytest.raises(NotFoundError, match="removed"):
        write(store, ref)


@pytest.mark.parametrize("fault", ["bits", "cut", "empty", "another"])
def test_a_damaged_checkpoint_is_noticed(store: SqlStore, fault: str) -> None:
    ref = session_with(store, 1)
    whole, damaged = write(store, ref), write(store, ref)
    with store.database.read() as connection:
        rows = connection.execute(select(schema.checkpoints.c.payload).order_by(schema.checkpoints.c.key))
        first, payload = (bytes(one) for one in rows.scalars())
    middle = len(payload) // 2
    changed = {
        "bits": payload[:middle] + bytes([payload[middle] ^ 4]) + payload[middle + 1 :],
        "cut": payload[:middle],
        "empty": b"",
        "another": first,
    }[fault]
    change_payload(store, damaged.id, changed)
    with pytest.raises(CheckpointError, match="damaged"):
        store.checkpoints.read(ref, damaged.id)
    assert store.checkpoints.read(ref, whole.id) == whole
    found = dict(examined(store, ref))
    assert found[whole.id] is None
    assert "damaged" in (found[damaged.id] or "")


def test_a_checkpoint_of_a_later_version_is_refused(store: SqlStore) -> None:
    ref = session_with(store, 1)
    made = write(store, ref)
    said = b'{"v":99}'
    with store.database.write() as connection:
        digest = hashlib.sha256(said).hexdigest()
        connection.execute(update(schema.checkpoints).values(payload=zlib.compress(said), digest=digest))
    with pytest.raises(CheckpointError, match="another version"):
        store.checkpoints.read(ref, made.id)


def test_a_database_that_says_no_keeps_what_was_there_whole(store: SqlStore) -> None:
    if store.database.dialect != "sqlite":
        pytest.skip("the fault is planted in SQLite's own language")
    ref = session_with(store, 2)
    kept = [write(store, ref, keep=2) for _ in range(2)]
    run = store.runs.read(ref)
    for fault in (
        "BEFORE INSERT ON ltm_checkpoints",
        "AFTER INSERT ON ltm_checkpoints",
        "BEFORE DELETE ON ltm_checkpoints",
        "BEFORE UPDATE ON ltm_runs",
    ):
        with store.database.write() as connection:
            connection.exec_driver_sql(
                f"CREATE TRIGGER fault {fault} BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        with pytest.raises(StorageError):
            write(store, ref, keep=2)
        with store.database.write() as connection:
            connection.exec_driver_sql("DROP TRIGGER fault")
        assert [info.id for info in store.checkpoints.infos(ref)] == [kept[1].id, kept[0].id]
        assert store.runs.read(ref) == run
        assert all(wrong is None for _, wrong in examined(store, ref))
    write(store, ref, keep=2)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(project=st.dictionaries(st.text(), plain, max_size=4), name=st.text(max_size=40))
def test_any_json_and_any_name_come_back_equal(project: dict[str, object], name: str) -> None:
    store = open_store()
    ref = session_with(store, 1)
    made = write(store, ref, project_state=project, track=name[:9], state=state(phase=name, tasks=(task(name),)))
    assert store.checkpoints.read(ref) == made
    store.database.close()
