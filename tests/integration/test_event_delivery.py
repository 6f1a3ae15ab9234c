"""What stands for something in the database is told at least once, and always under the same id."""

from __future__ import annotations

import multiprocessing
import os
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select
from sqlalchemy.event import listen

from langchain_tiered_memory.runtime import Runtime
from langchain_tiered_memory.sql.schema import events as events_table
from langchain_tiered_memory.transcript import outbox
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import conversation, open_memory, ref_of, store_of, summaries_of

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.reports import Event

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("call_style", CALL_STYLES)


def kept(memory: TieredMemory) -> list[str]:
    with store_of(memory).database.read() as connection:
        return list(connection.scalars(select(events_table.c.id).order_by(events_table.c.key)))


def profile_of(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event.name == name]


@both
def test_what_was_told_is_not_kept(call_style: CallStyle, shared_where: str | Path) -> None:
    events: list[Event] = []
    with open_memory(shared_where) as memory:
        memory.subscribe(events.append)
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(8))
        told(call_style, session.flush)
        told(call_style, session.checkpoint)
        made = profile_of(events, "summary_made")
        assert made
        assert len({event.id for event in made}) == len(made)
        assert len(profile_of(events, "checkpoint_made")) == 1
        assert kept(memory) == []


def dies_before_it_tells(where: str, call_style: CallStyle) -> None:
    """Write until the first summary is committed, and end as by a power cut, before anybody is told of it."""

    def cut(self: Runtime, event: Event) -> bool:
        del self
        if event.name == "summary_made":
            os._exit(9)
        return True

    Runtime.tell = cut  # type: ignore[method-assign]
    memory = open_memory(where)
    memory.subscribe(lambda _: None)
    session = memory.session("s")
    told(call_style, session.add_messages, conversation(8))
    told(call_style, session.flush)


@both
def test_a_kill_between_commit_and_delivery_is_made_up_for_by_the_next_open(
    call_style: CallStyle, tmp_path: Path
) -> None:
    where = str(tmp_path / "memory.db")
    child = multiprocessing.get_context("spawn").Process(target=dies_before_it_tells, args=(where, call_style))
    child.start()
    child.join()
    assert child.exitcode == 9
    events: list[Event] = []
    with open_memory(where) as memory:
        finished = [one for one in summaries_of(memory.session("s")) if one.state.finished]
        assert len(finished) == 1
        assert len(kept(memory)) == 1
        memory.subscribe(events.append)
        assert [(event.name, event.details["summary_id"]) for event in events] == [("summary_made", finished[0].id)]
        assert events[0].session_id == "s"
    again: list[Event] = []
    with open_memory(where) as memory:
        memory.subscribe(again.append)
        assert again == []
        assert kept(memory) == []


@both
def test_an_event_whose_listener_raised_comes_again_under_its_id_a_few_times(
    call_style: CallStyle, tmp_path: Path
) -> None:
    where = tmp_path / "memory.db"
    ids: list[str] = []

    def broken(event: Event) -> None:
        if event.name == "summary_made":
            ids.append(event.id)
            raise RuntimeError

    with open_memory(where) as memory:
        memory.subscribe(broken)
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(8))
        told(call_style, session.flush)
        first = list(ids)
        assert kept(memory) == first
    for number in range(outbox.MOST_DELIVERIES + 2):
        ids.clear()
        with open_memory(where) as memory:
            memory.subscribe(broken)
        assert ids == (first if number < outbox.MOST_DELIVERIES else []), number
    with open_memory(where) as memory:
        assert kept(memory) == []


@pytest.mark.parametrize("heard_by", ["nobody", "a log", "a listener"])
def test_what_nobody_hears_is_owed_to_nobody(heard_by: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO" if heard_by == "a log" else "ERROR")
    said: list[str] = []
    with open_memory(tmp_path / "memory.db") as memory:
        if heard_by == "a listener":
            memory.subscribe(lambda _: None)
        memory.session("s").add_messages(conversation(8))
        listen(store_of(memory).database.engine, "before_cursor_execute", lambda *call: said.append(call[2]))
        memory.flush()
        memory.session("s").checkpoint()
    assert any("ltm_checkpoints" in one for one in said)
    assert any("ltm_events" in one for one in said) is (heard_by != "nobody")


def test_a_listener_that_comes_later_takes_what_an_earlier_process_left(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    with open_memory(where) as memory:
        end = memory.subscribe(lambda _: 1 / 0)
        memory.session("s").add_messages(conversation(8))
        memory.flush()
        end()
        left = kept(memory)
        assert left
    with open_memory(where) as memory:
        memory.session("s").add_messages(conversation(2, start=8))
        events: list[Any] = []
        memory.subscribe(events.append)
        assert [event.id for event in events] == left
        memory.session("s").checkpoint()  # the next confirmation takes those along
        assert kept(memory) == []


def test_what_is_kept_is_bounded_and_goes_with_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MOST_KEPT", 3)
    with open_memory(tmp_path / "memory.db") as memory:
        memory.subscribe(lambda _: 1 / 0)
        session = memory.session("s")
        session.add_messages(conversation(12))
        session.flush()
        assert ref_of(session)
        assert len(kept(memory)) == 3
        session.forget()
        assert kept(memory) == []


def test_a_damaged_row_stops_no_open(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    with open_memory(where) as memory:
        memory.subscribe(lambda _: 1 / 0)
        memory.session("s").add_messages(conversation(8))
        memory.flush()
        ids = kept(memory)
        with store_of(memory).database.write() as connection:
            connection.execute(events_table.update().where(events_table.c.id == ids[0]).values(details="{no JSON"))
            connection.execute(
                events_table.update().where(events_table.c.id == ids[1]).values(name="of_a_later_version")
            )
    with open_memory(where) as memory:
        events: list[Any] = []
        memory.subscribe(events.append)
        assert [event.id for event in events] == ids[2:], "the first cannot be read, the second nobody here knows"
        assert events
