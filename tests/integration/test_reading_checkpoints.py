"""What a checkpoint holds can be read back, also of one made in passing; tasks that wait stand in its queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import HumanMessage, messages_from_dict

from langchain_tiered_memory.errors import CheckpointError
from langchain_tiered_memory.settings import CheckpointSettings
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import conversation, open_memory, quick_settings, ref_of, store_of, turn
from tests.run_builders import ticking
from tests.unit.runs.test_checkpoints import damage

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("call_style", CALL_STYLES)
GIVEN = {"branch": "crane", "open": [1, 2]}


def saving_each_task() -> TieredMemory:
    settings = quick_settings().model_copy(update={"checkpoints": CheckpointSettings(tasks=1)})
    return open_memory(settings=settings, clock=ticking())


@both
def test_all_of_a_checkpoint_is_read_back(call_style: CallStyle) -> None:
    with saving_each_task() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, [*conversation(3), HumanMessage("odd \ud800", id="odd")])
        told(call_style, session.start_task, "lift")
        told(call_style, session.queue_task, "paint", depends_on=["lift"])
        made = told(call_style, session.checkpoint, "mine", project=GIVEN)
        found = told(call_style, session.read_checkpoint, made.id)
        assert found == told(call_style, session.read_checkpoint)
        assert (found.id, found.reasons, found.metrics) == (made.id, ("mine",), made.metrics)
        assert found.project_state["given"] == GIVEN
        assert [(task.id, task.state, task.depends_on) for task in found.tasks] == [
            ("lift", "active", ()),
            ("paint", "waiting", ("lift",)),
        ]
        assert messages_from_dict(list(found.conversation)) == told(call_style, session.messages)
        assert found.context_state["messages"]


@both
def test_checkpoints_made_in_passing_carry_what_the_caller_gave_last(call_style: CallStyle) -> None:
    with saving_each_task() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, turn(1))
        assert told(call_style, session.phase, "look").project_state["given"] == {}
        told(call_style, session.checkpoint, project=GIVEN)
        assert told(call_style, session.phase, "lift").project_state["given"] == GIVEN
        told(call_style, session.start_task, "t")
        told(call_style, session.finish_task, "t")
        assert told(call_style, session.read_checkpoint).reasons == ("task_milestone",)
        assert told(call_style, session.read_checkpoint).project_state["given"] == GIVEN
        other = {"branch": "hook"}
        assert told(call_style, session.before, "large_merge", project=other).project_state["given"] == other
        assert told(call_style, session.phase, "paint").project_state["given"] == other
        damage(memory, told(call_style, session.checkpoints)[0].id)
        assert told(call_style, session.phase, "rest").project_state["given"] == other, "from the newest that is whole"
        assert told(call_style, session.phase, "end", project={}).project_state["given"] == {}


@both
def test_a_checkpoint_that_is_not_there_or_damaged_says_so(call_style: CallStyle) -> None:
    with saving_each_task() as memory:
        session = memory.session("s")
        with pytest.raises(CheckpointError):
            told(call_style, session.read_checkpoint)
        told(call_style, session.add_messages, turn(1))
        first, second = (told(call_style, session.checkpoint) for _ in range(2))
        damage(memory, second.id)
        assert told(call_style, session.read_checkpoint).id == first.id
        with pytest.raises(CheckpointError):
            told(call_style, session.read_checkpoint, second.id)


@both
def test_a_queue_is_kept_started_in_its_turn_and_restored(call_style: CallStyle) -> None:
    with saving_each_task() as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, turn(1))
        for name in ("lift", "paint", "ship"):
            assert told(call_style, session.queue_task, name, depends_on=["plan"]).state == "waiting"
        assert told(call_style, session.queue_task, "lift") == told(call_style, session.tasks)[0], "it keeps its place"
        saved = told(call_style, session.checkpoint)
        told(call_style, session.add_messages, turn(2))
        started = told(call_style, session.start_task, "paint")
        assert (started.state, started.first_seq, started.depends_on) == ("active", 5, ("plan",))
        told(call_style, session.queue_task, "rest")
        told(call_style, session.add_messages, turn(3))
        told(call_style, session.finish_task, "paint")
        assert [(task.id, task.state) for task in told(call_style, session.tasks)] == [
            ("lift", "waiting"),
            ("ship", "waiting"),
            ("rest", "waiting"),
            ("paint", "finished"),
        ]
        assert memory.verify().problems == ()
        told(call_style, session.restore, saved.id)
        assert [(task.id, task.state) for task in told(call_style, session.tasks)] == [
            ("lift", "waiting"),
            ("paint", "waiting"),
            ("ship", "waiting"),
        ]


def test_a_task_that_waits_has_no_messages_yet() -> None:
    with saving_each_task() as memory:
        session = memory.session("s")
        session.queue_task("paint")
        session.add_messages(turn(1))
        session.start_task("lift")
        session.add_messages(turn(2))
        found = store_of(memory).transcript.by_seq(ref_of(session), [1, 2, 3, 4])
        assert [entry.task for entry in found] == [None, None, "lift", "lift"]


def test_what_a_caller_changes_in_a_checkpoint_is_in_no_later_one() -> None:
    with saving_each_task() as memory:
        session = memory.session("s")
        session.add_messages(conversation(3))
        made = session.checkpoint("mine", project={"open": {"hall": 1}})
        made.project_state["given"]["open"]["hall"] = 99
        assert session.checkpoint("later").project_state["given"] == {"open": {"hall": 1}}
