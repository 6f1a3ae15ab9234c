"""Each statement and each commit of every journey is made to fail in turn: nothing acknowledged is lost."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage
from sqlalchemy import func, select

from langchain_tiered_memory.errors import NotFoundError, StorageError
from langchain_tiered_memory.settings import CheckpointSettings
from langchain_tiered_memory.sql import schema
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.faults import Fault, faults_in
from tests.memory_builders import conversation, open_memory, quick_settings, store_of, turn
from tests.spread import spread

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow

KINDS = ("full", "broken", "busy")
MOST = 5
"""Faults in one journey, unless every step is asked for."""


@dataclass(slots=True)
class Journey:
    """One journey, and what of it was acknowledged."""

    memory: TieredMemory
    call_style: CallStyle
    acknowledged: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)

    def call(self, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return told(self.call_style, verb, *args, **options)

    def add(self, messages: list[Any]) -> None:
        self.call(self.memory.session("s").add_messages, messages)
        self.acknowledged |= {str(message.id): str(message.content) for message in messages}


def add(at: Journey) -> None:
    for number in range(40, 43):
        at.add(turn(number))


def edit(at: Journey) -> None:
    at.add([HumanMessage("another question", id="q2")])
    at.add([HumanMessage("and another", id="q2"), *turn(45)])


def pin(at: Journey) -> None:
    at.call(at.memory.session("s").pin, "q4")
    at.pinned.add("q4")
    at.call(at.memory.session("s").unpin, "q5")


def condense(at: Journey) -> None:
    at.add(conversation(4, start=50))
    at.call(at.memory.session("s").flush)


def swap(at: Journey) -> None:
    session = at.memory.session("s")
    for budget in (500, 700):
        context = at.call(session.context, "", max_tokens=budget)
        assert 0 < context.tokens <= budget
    assert at.call(session.context, "Which team checked the crane?", max_tokens=600).tokens <= 600


def checkpoint(at: Journey) -> None:
    session = at.memory.session("s")
    at.call(session.start_task, "new task")
    at.call(session.checkpoint)
    at.call(session.finish_task, "new task")
    at.call(session.phase, "review")


def restore(at: Journey) -> None:
    report = at.call(at.memory.session("s").restore)
    assert report.restored


def forget(at: Journey) -> None:
    with suppress(NotFoundError):  # the second time they are gone already
        at.call(at.memory.session("s").forget, message_ids=["q7", "a8"])
    at.gone |= {"q7", "a8"}


def import_history(at: Journey) -> None:
    at.add(conversation(5, start=60))
    at.call(at.memory.flush)
    at.call(at.memory.session("s").end)


JOURNEYS = {one.__name__: one for one in (add, edit, pin, condense, swap, checkpoint, restore, forget, import_history)}


def choices(*, vectors: bool) -> dict[str, Any]:
    settings = quick_settings().model_copy(
        update={"checkpoints": CheckpointSettings(tasks=1, keep=2), "busy_seconds": 1.0}
    )
    return {"settings": settings, "embeddings": HashingEmbeddings() if vectors else None}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with messages, summaries, plans, a task, a pin and a checkpoint in it."""
    folder = tmp_path_factory.mktemp("prepared")
    with open_memory(folder / "memory.db", **choices(vectors=False)) as memory:
        session = memory.session("s")
        session.add_messages(conversation(16))
        memory.flush()
        session.context("", max_tokens=900)
        session.pin("q5")
        session.start_task("kept")
        session.checkpoint()
    return folder


def run_with(fault: Fault, journey: str, call_style: CallStyle, prepared: Path, folder: Path) -> None:
    """One journey with one fault, then a look at everything, in this memory and in a new one."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(prepared, folder)
    chosen = choices(vectors=False)
    with open_memory(folder / "memory.db", **chosen) as memory:
        session = memory.session("s")
        at = Journey(memory, call_style, {str(one.id): str(one.content) for one in session.messages()})
        asked: str | None = None
        with faults_in(store_of(memory), fault):
            try:
                JOURNEYS[journey](at)
            except StorageError as error:
                asked = str(error)
        assert asked is None or len(asked) > 20
        # A removal that was broken off is named until the next forget, doctor or open has finished it.
        check(memory, at, journey, may_be_named={"unfinished_removal"} if journey == "forget" else set())
        JOURNEYS[journey](Journey(memory, call_style))  # it goes on
    with open_memory(folder / "memory.db", **chosen) as memory:
        memory.flush()
        check(memory, at, journey)


def check(memory: TieredMemory, at: Journey, journey: str, *, may_be_named: set[str] | None = None) -> None:
    """Nothing that was acknowledged is lost, and nothing is half done."""
    there = {str(message.id): str(message.content) for message in memory.session("s").messages()}
    lost = at.acknowledged.keys() - there.keys()
    assert lost <= ({"q7", "a8"} if journey == "forget" else set())
    assert not at.gone & there.keys()
    edited = {"q2"} if journey == "edit" else set()
    for one in (at.acknowledged.keys() & there.keys()) - edited:
        assert there[one] == at.acknowledged[one]
    assert {problem.kind for problem in memory.verify().problems} <= (may_be_named or set())
    assert memory.session("s").context("", max_tokens=800).tokens <= 800


@pytest.mark.parametrize("journey", JOURNEYS)
def test_no_fault_in_any_statement_or_commit_loses_what_was_acknowledged(
    prepared: Path, tmp_path: Path, journey: str
) -> None:
    count = Fault(at=None)
    run_with(count, journey, "sync", prepared, tmp_path / "m")
    assert count.steps > 2
    for turn_of, number in enumerate(spread(count.steps, MOST)):
        call_style = CALL_STYLES[turn_of % 2]
        fault = Fault(at=number, kind=KINDS[turn_of % 3])
        run_with(fault, journey, call_style, prepared, tmp_path / "m")
        assert len(fault.hits) == 1


def kept_events(memory: TieredMemory) -> int:
    with store_of(memory).database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(schema.events)).scalar_one())


def test_a_read_journey_goes_on_whichever_of_its_writes_fails(prepared: Path, tmp_path: Path) -> None:
    count = Fault(at=None)
    shutil.copytree(prepared, tmp_path / "count")
    with (
        open_memory(tmp_path / "count" / "memory.db", **choices(vectors=True)) as memory,
        faults_in(store_of(memory), count),
    ):
        swap(Journey(memory, "sync"))
    assert count.steps > 2
    for turn_of, number in enumerate(spread(count.steps, MOST)):
        call_style = CALL_STYLES[turn_of % 2]
        folder = tmp_path / f"{number}"
        shutil.copytree(prepared, folder)
        with open_memory(folder / "memory.db", **choices(vectors=True)) as memory:
            profile_of: list[str] = []
            memory.subscribe(lambda event, profile_of=profile_of: profile_of.append(event.name))  # type: ignore[misc]
            fault = Fault(at=number, kind=KINDS[turn_of % 3])
            with faults_in(store_of(memory), fault):
                swap(Journey(memory, call_style))
            # An event that was told and could not be crossed off is told once more by the next open.
            assert "view_not_written" in profile_of or kept_events(memory)


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_messages_that_were_written_are_acknowledged_though_what_follows_fails(
    tmp_path: Path, call_style: CallStyle
) -> None:
    with open_memory(tmp_path / "memory.db", **choices(vectors=False)) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(1))
        count = Fault(at=None)
        with faults_in(store_of(memory), count):
            told(call_style, session.add_messages, conversation(1, start=1))
        profile_of: list[str] = []
        memory.subscribe(lambda event: profile_of.append(event.name))
        with faults_in(store_of(memory), Fault(at=count.steps, kind="full")):  # the first step after the append
            assert told(call_style, session.add_messages, conversation(1, start=2), wait=True) == ["q2", "a2"]
        assert "background_failed" in profile_of
        assert len(told(call_style, session.messages)) == 6
