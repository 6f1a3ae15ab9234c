from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from langchain_tiered_memory.errors import InvalidInputError, NotFoundError, StorageError
from langchain_tiered_memory.settings import CheckpointSettings
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import open_memory, quick_settings, ref_of, store_of, turn
from tests.run_builders import runtime_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory

both = pytest.mark.parametrize("call_style", CALL_STYLES)


def memory_with(where: Path | None = None, *, busy_seconds: float = 30.0, **checkpoints: Any) -> TieredMemory:
    changes = {"checkpoints": CheckpointSettings(**checkpoints), "busy_seconds": busy_seconds}
    return open_memory(where, settings=quick_settings().model_copy(update=changes))


@both
def test_a_task_can_be_started_before_the_first_message(call_style: CallStyle) -> None:
    with memory_with() as memory:
        session, runtime = memory.session("s", user="ann", title="work"), runtime_of(memory)
        task = told(call_style, session.start_task, "t", depends_on=("before",))
        assert (task.id, task.first_seq, task.depends_on) == ("t", 1, ("before",))
        ref = ref_of(memory.session("s"))
        assert runtime.store.runs.current_task(ref, "main") == "t"
        assert runtime.store.runs.current_task(ref, "other") is None
        assert (ref.user, ref.title) == ("ann", "work")


@both
def test_every_fifth_finished_task_makes_a_checkpoint_and_finishing_twice_does_not(call_style: CallStyle) -> None:
    with memory_with() as memory:
        session, made, known = memory.session("s"), [], 0
        for number in range(1, 11):
            told(call_style, session.start_task, f"t{number}")
            task = told(call_style, session.finish_task, f"t{number}")
            assert task.number == number
            assert told(call_style, session.finish_task, f"t{number}") == task
            found = session.checkpoints()
            made += [(number, one.reasons) for one in found[: len(found) - known]]
            known = len(found)
        assert made == [(5, ("task_milestone",)), (10, ("task_milestone",))]
        assert len(store_of(memory).checkpoints.infos(ref_of(memory.session("s")))) == 2


@both
def test_another_phase_is_saved_and_the_same_one_is_not(call_style: CallStyle) -> None:
    with memory_with() as memory:
        session = memory.session("s")
        checkpoint = told(call_style, session.phase, "plan")
        assert (checkpoint.reasons, checkpoint.state.phase) == (("phase_transition",), "plan")
        assert checkpoint.project_state["phase"] == "plan"
        assert told(call_style, session.phase, "plan") is None
        assert told(call_style, session.phase, None).state.phase is None


@both
def test_a_risky_operation_is_saved_before_and_a_harmless_one_is_not(call_style: CallStyle) -> None:
    with memory_with(operations=("deploy",)) as memory:
        session = memory.session("s")
        session.add_messages(turn(0))
        checkpoint = told(call_style, session.before, "deploy")
        assert checkpoint.reasons == ("risky_operation",)
        assert [one["data"]["id"] for one in checkpoint.conversation] == ["q0", "a0"]
        assert told(call_style, session.before, "large_merge") is None


@both
def test_with_checkpoints_off_nothing_is_saved(call_style: CallStyle) -> None:
    with memory_with(enabled=False, tasks=1) as memory:
        session = memory.session("s")
        told(call_style, session.start_task, "t")
        told(call_style, session.finish_task, "t")
        assert told(call_style, session.phase, "plan") is None
        assert told(call_style, session.before, "large_merge") is None
        assert session.checkpoints() == []


@both
def test_what_cannot_be_taken_is_refused_with_a_sentence(call_style: CallStyle) -> None:
    with memory_with() as memory:
        session = memory.session("s")
        calls: list[tuple[Callable[..., object], object]] = [
            (session.start_task, ""),
            (session.start_task, 7),
            (session.phase, " "),
            (session.before, None),
        ]
        for call, name in calls:
            with pytest.raises(InvalidInputError, match="must be words, not only blanks"):
                told(call_style, call, name)
        with pytest.raises(NotFoundError, match="no task 't' was started"):
            told(call_style, session.finish_task, "t")
        with pytest.raises(NotFoundError, match="nothing to save"):
            told(call_style, session.before, "large_merge")


@both
def test_a_checkpoint_that_the_disk_has_no_room_for_unmakes_neither_task_nor_phase(
    call_style: CallStyle, caplog: pytest.LogCaptureFixture
) -> None:
    with memory_with(tasks=1) as memory:
        session = memory.session("s")
        told(call_style, session.start_task, "t")
        with store_of(memory).database.write() as connection:
            connection.exec_driver_sql(
                "CREATE TRIGGER full BEFORE INSERT ON ltm_checkpoints "
                "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
            )
        with caplog.at_level("INFO", "langchain_tiered_memory"):
            task = told(call_style, session.finish_task, "t")
            assert told(call_style, session.phase, "plan") is None
        assert (task.state, session.checkpoints()) == ("finished", [])
        assert [record.message.split(":")[0] for record in caplog.records].count("checkpoint_failed") == 2
        with pytest.raises(StorageError, match="disk is full"):
            told(call_style, session.before, "large_merge")
        assert store_of(memory).runs.read(ref_of(memory.session("s"))).phase == "plan"
        assert memory.verify().problems == ()


@both
def test_a_database_that_stays_locked_says_so_before_a_risky_operation(call_style: CallStyle, tmp_path: Path) -> None:
    with memory_with(tmp_path / "memory.db", busy_seconds=0.1) as memory:
        session = memory.session("s")
        session.add_messages(turn(0))
        other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="locked"):
            told(call_style, session.before, "large_merge")
        other.rollback()
        other.close()
        assert store_of(memory).checkpoints.infos(ref_of(memory.session("s"))) == []
        assert told(call_style, session.before, "large_merge") is not None
