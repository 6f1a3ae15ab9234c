"""A text is counted once while its count is remembered; how many are remembered is bounded."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.models import message_counting
from langchain_tiered_memory.models.message_counting import EstimatingCounter, RememberedCounts
from tests.memory_builders import open_memory

LONG = "a sentence that is longer than what is counted as fast as it is looked up; " * 3


class Counting(EstimatingCounter):
    """Says how often it counted."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def count_text(self, text: str) -> int:
        """As the estimate."""
        self.calls += 1
        return super().count_text(text)


def test_a_text_that_was_counted_is_not_counted_again_until_its_count_is_cleared() -> None:
    inner = Counting()
    counts = RememberedCounts(inner)
    assert counts.count_text(LONG) == counts.count_text(LONG) == EstimatingCounter().count_text(LONG)
    assert inner.calls == 1
    counts.clear()
    counts.count_text(LONG)
    assert inner.calls == 2


def test_messages_count_as_the_counter_itself_counts_them_halves_of_surrogates_included() -> None:
    counts = RememberedCounts(EstimatingCounter())
    for message in (HumanMessage(LONG, name="ann"), AIMessage([{"type": "text", "text": LONG + "\ud83d"}])):
        assert counts.count_message(message) == EstimatingCounter().count_message(message)
        assert counts.count_message(message) == EstimatingCounter().count_message(message)


def test_as_many_counts_are_remembered_as_two_generations_hold() -> None:
    counts = RememberedCounts(EstimatingCounter())
    for number in range(3 * message_counting._GENERATION):
        counts.count_text(f"{number} {LONG}")
    assert message_counting._GENERATION <= len(counts) <= 2 * message_counting._GENERATION


def test_forgetting_clears_the_counts_of_a_memory() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage(LONG, id="m1"), AIMessage("noted", id="m2")])
        session.context("", max_tokens=2000)
        runtime = memory.core.runtime
        runtime.counter.count_text(LONG)
        assert len(runtime.counter) > 0
        session.forget(message_ids=["m1"])
        assert len(runtime.counter) == 0
