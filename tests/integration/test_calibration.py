"""What a provider bills for a context teaches how its tokens are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.errors import StorageFullError
from langchain_tiered_memory.models.message_counting import Calibration
from tests.memory_builders import conversation, open_memory, store_of

if TYPE_CHECKING:
    from langchain_tiered_memory.memory import TieredMemory


def answer(billed: int) -> AIMessage:
    usage = {"input_tokens": billed, "output_tokens": 1, "total_tokens": billed + 1}
    return AIMessage("Noted.", usage_metadata=usage, response_metadata={"model_name": "m"})  # type: ignore[arg-type]


def learnt_in(memory: TieredMemory) -> tuple[float, int] | None:
    return store_of(memory).plans.calibration("m", memory.core.runtime.counter.fingerprint)


def test_the_answer_to_a_context_teaches_and_the_next_one_without_a_context_does_not() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(conversation(20))
        sent = session.context("", max_tokens=8000).raw_tokens
        session.add_messages([answer(2 * sent)])
        learnt = learnt_in(memory)
        assert learnt is not None
        assert learnt[0] > 1
        session.add_messages([HumanMessage("And now?"), answer(9 * sent)])
        assert learnt_in(memory) == learnt


def test_each_answer_counts_as_one_sample_whatever_is_written_with_it() -> None:
    with open_memory() as memory:
        session, expected = memory.session("s"), Calibration()
        session.add_messages([HumanMessage("Hello?")])
        session.context("", max_tokens=8000)
        session.add_messages([answer(1000)])
        assert learnt_in(memory) is None, "in so short a request framing weighs more than text"
        session.add_messages(conversation(20))
        for times in (3, 2, 1):
            sent = session.context("", max_tokens=8000).raw_tokens
            session.add_messages([HumanMessage("And now?"), answer(times * sent)])
            expected = expected.observe(sent, times * sent)
            assert learnt_in(memory) == (pytest.approx(expected.ratio), expected.samples)
        session.context("", max_tokens=8000)
        session.add_messages([answer(0)])
        assert learnt_in(memory) == (pytest.approx(expected.ratio), 3), "it does not say what it billed"


def test_what_cannot_be_learnt_breaks_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        msg = "the disk is full"
        raise StorageFullError(msg)

    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(conversation(20))
        sent = session.context("", max_tokens=8000).raw_tokens
        monkeypatch.setattr(store_of(memory).plans, "set_calibration", full)
        session.add_messages([answer(2 * sent)])
        assert session.messages()[-1].text == "Noted."
