"""A pause and the end of a task end a chunk, whoever looks: the store tells where, the worker looks when it is due."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from sqlalchemy import insert

from langchain_tiered_memory.settings import LevelSettings
from langchain_tiered_memory.sql.schema import digest_of, packed, tasks
from tests.memory_builders import open_memory, quick_settings, ref_of, store_of, summaries_of
from tests.store_builders import append, claim, incoming, plan, session_with

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import SqlStore
    from langchain_tiered_memory.types.records import SessionRef

FAR_AWAY = (LevelSettings(messages=100, strategy="detailed", target_ratio=0.5, max_tokens=200),)


def finished(store: SqlStore, ref: SessionRef, task_id: str, *, last_seq: int | None, track: str = "main") -> None:
    with store.database.write() as connection:
        connection.execute(
            insert(tasks).values(
                session_key=ref.key, task_digest=digest_of(task_id), task_id=packed(task_id), track=packed(track),
                state="active" if last_seq is None else "finished", started_at=0.0, first_seq=1, finished_at=1.0,
                last_seq=last_seq, number=1,
            )
        )  # fmt: skip


def ends(store: SqlStore, ref: SessionRef, *, track: str = "main", limit: int = 50) -> list[int]:
    return [one.seq for one in store.tree.waiting_entries(ref, track=track, limit=limit) if one.ends_task]


def test_a_task_ends_behind_its_last_message(store: SqlStore) -> None:
    ref = session_with(store, 6)
    finished(store, ref, "a", last_seq=2)
    finished(store, ref, "b", last_seq=6)
    finished(store, ref, "still active", last_seq=None)
    assert ends(store, ref) == [2, 6]


def test_a_task_ends_behind_the_last_message_of_its_own_track(store: SqlStore) -> None:
    ref = session_with(store, 2)
    append(store, "s", incoming("beside", "x3", track="helper"), incoming("again", "x4"))
    finished(store, ref, "a", last_seq=3)
    assert ends(store, ref) == [2]
    assert ends(store, ref, track="helper") == []
    finished(store, ref, "b", last_seq=4, track="helper")
    assert ends(store, ref, track="helper") == [3]


def test_a_task_that_ended_before_what_waits_ends_nothing_again(store: SqlStore) -> None:
    ref = session_with(store, 6)
    finished(store, ref, "a", last_seq=2)
    assert claim(store, ref, plan(1, 1, 2, 3)) is not None
    assert ends(store, ref) == []


def test_where_not_all_was_read_a_later_end_is_left_for_later(store: SqlStore) -> None:
    ref = session_with(store, 6)
    finished(store, ref, "a", last_seq=5)
    assert ends(store, ref, limit=4) == []
    assert ends(store, ref, limit=5) == [5]


def test_a_finished_task_is_condensed_whether_or_not_a_trigger_holds() -> None:
    with open_memory(settings=quick_settings(levels=FAR_AWAY)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Count the ships in the harbour."), AIMessage("There are 17 ships.")])
        finished(store_of(memory), ref_of(session), "count", last_seq=2)
        session.add_messages([HumanMessage("Now the cranes.")])
        session.flush()
        assert [(one.first_seq, one.last_seq) for one in summaries_of(session)] == [(1, 2)]


def test_a_pause_is_condensed_when_the_next_message_comes() -> None:
    with open_memory(settings=quick_settings(levels=FAR_AWAY, idle_seconds=600)) as memory:
        session = memory.session("s")
        at = [1000.0, 1010.0, 5000.0]
        texts = ["Count the ships in the harbour.", "Please name them all.", "Good evening to everybody."]
        for text, when in zip(texts, at, strict=True):
            session.add_messages([HumanMessage(text)], at=when)
        session.flush()
        first = summaries_of(session)[0]
        assert (first.first_seq, first.last_seq) == (1, 2)


@pytest.mark.slow
def test_the_worker_looks_again_when_nobody_speaks_any_more() -> None:
    settings = quick_settings(levels=FAR_AWAY, idle_seconds=0.2, background=True)
    with open_memory(settings=settings) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Count the ships in the harbour."), AIMessage("There are 17 ships.")])
        for _ in range(1000):
            if any(one.state.finished for one in summaries_of(session)):
                break
            time.sleep(0.02)
        assert [(one.first_seq, one.last_seq) for one in summaries_of(session)] == [(1, 2)]
