"""What a restart costs, what it takes over, and that nothing ever stands on the event loop."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from langchain_core.messages import HumanMessage

from langchain_tiered_memory.testing import ScriptedModel, summarising_model
from langchain_tiered_memory.types.records import SummaryState
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.memory_builders import (
    as_bytes,
    conversation,
    open_memory,
    quick_settings,
    ref_of,
    shown_within,
    store_of,
    summaries_of,
    turn,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_core.messages import BaseMessage

pytestmark = pytest.mark.slow


@pytest.fixture
def no_blocking_call() -> Iterator[BlockBuster]:
    """Makes every blocking call on an event loop raise."""
    with blockbuster_ctx() as buster:
        yield buster


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_restart_calls_no_model_and_changes_no_byte(call_style: CallStyle, tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    model = summarising_model()
    with open_memory(where, model=model) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(40))
        shown_within(session, 1500, call_style)
        before = told(call_style, session.context, "", max_tokens=1500)
        made = [one.id for one in summaries_of(session)]
    assert model.calls > 0
    again = summarising_model()
    with open_memory(where, model=again) as memory:
        session = memory.session("s")
        assert told(call_style, session.flush).summaries == 0
        after = told(call_style, session.context, "", max_tokens=1500)
        assert [as_bytes(one) for one in after.messages] == [as_bytes(one) for one in before.messages]
        assert [one.id for one in summaries_of(session)] == made
        assert again.calls == 0


def test_a_summary_that_a_dead_process_was_making_is_taken_over_when_its_lease_ends(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    settings = quick_settings(lease_seconds=0.3)
    with open_memory(where, settings=settings) as memory:
        session = memory.session("s")
        session.add_messages(conversation(2))
        plan = next(iter(_plans(memory)))
        store_of(memory).tree.claim(ref_of(session), plan, owner="dead", now=time.time(), lease_seconds=0.3)
        assert [one.state for one in summaries_of(session)] == [SummaryState.GENERATING]
    with open_memory(where, settings=settings) as memory:
        report = memory.session("s").flush()
        assert (report.summaries, report.pending) == (1, 0)
        assert [one.id for one in summaries_of(memory.session("s"))] == [plan.id]
        assert memory.verify().problems == ()


def _plans(memory: object) -> Iterator[object]:
    from langchain_tiered_memory.types.drafts import SummaryPlan  # noqa: PLC0415 - only here

    del memory
    yield SummaryPlan(id="0" * 32, level=1, strategy="detailed", track="main", source_seqs=(1, 2, 3, 4))


def test_what_was_begun_when_a_memory_was_closed_is_finished_at_once_by_the_next(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    asked = asyncio.Event()

    def hang(_: list[BaseMessage]) -> str:
        asked.set()
        time.sleep(0.5)
        return "## Overview\nTeams checked the harbour and the crane; bolts are needed before Monday."

    settings = quick_settings(background=True)
    with open_memory(where, model=ScriptedModel(answers=hang), settings=settings) as memory:
        memory.session("s").add_messages(conversation(20))
        memory.session("s").context("", max_tokens=700)
        while not asked.is_set():
            time.sleep(0.01)
    with open_memory(where, settings=quick_settings()) as memory:
        report = memory.session("s").flush(timeout=60)  # a lease that nobody gave back holds for 300
        assert report.pending == 0
        assert memory.verify().problems == ()


async def test_nothing_stands_on_the_event_loop(tmp_path: Path, no_blocking_call: BlockBuster) -> None:
    del no_blocking_call
    memory = await _opened(tmp_path / "memory.db")
    session = memory.session("s")
    for number in range(10):
        await session.aadd_messages(turn(number))
    await session.aflush()
    context = await session.acontext("Which team checked the crane?", max_tokens=350)
    assert context.section("recall") is not None
    assert await session.asearch("crane")
    assert await session.aexpand((await session.asearch("team order bolts invoice", levels=[1]))[0].id)
    await session.apin("q1")
    await session.aunpin("q1")
    assert (await memory.averify()).problems == ()
    assert (await session.ametrics()).messages == 20
    assert len(await session.amessages()) == 20
    await session.aadd_messages([HumanMessage("An edit of what I asked.", id="q1")])
    assert len(await session.arevisions("q1")) == 1
    assert (await session.aforget(message_ids=["q2"])).entries == 1
    assert (await memory.arebuild_index()).problems == ()
    await session.aend()
    assert await memory.asessions() == ["s"]
    await memory.aclose()


async def _opened(where: Path) -> object:
    from langchain_tiered_memory.memory import TieredMemory  # noqa: PLC0415 - only here

    return await TieredMemory.aopen(
        where, embeddings=HashingEmbeddings(), model=summarising_model(), settings=quick_settings()
    )


async def test_a_loop_goes_on_while_a_context_is_put_together() -> None:
    memory = open_memory(None)
    session = memory.session("s")
    await session.aadd_messages(conversation(60))
    await session.aflush()
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0)
            beats += 1

    heart = asyncio.create_task(beat())
    await asyncio.gather(*(session.acontext(f"order {1000 + n}", max_tokens=1500) for n in range(5)))
    heart.cancel()
    assert beats > 5
