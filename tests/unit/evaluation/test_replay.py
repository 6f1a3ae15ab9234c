import pytest

from langchain_tiered_memory import Settings, TieredMemory, TreeSettings
from langchain_tiered_memory.evaluation.replay import ReplayReport, calls_a_model, replay
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from tests.unit.evaluation.conversation_builders import conversation

pytestmark = pytest.mark.slow

TEXTS = [f"Point {number}: the pump in hall {number % 7} was checked and found in order." for number in range(40)]


def replayed(*, budget: int = 500, speakers: tuple[str, ...] = ("user", "assistant")) -> ReplayReport:
    counter, settings = EstimatingCounter(), Settings(tree=TreeSettings(background=False))
    steps: list[int] = []
    with TieredMemory.open(embeddings=None, token_counter=counter, settings=settings) as memory:
        report = replay(
            conversation(TEXTS, speakers=speakers),
            memory.session("s"),
            max_tokens=budget,
            counter=counter,
            on_step=lambda: steps.append(1),
        )
        assert [message.text for message in memory.session("s").messages()] == TEXTS
        assert memory.verify().problems == ()
    assert len(steps) == len(TEXTS)
    return report


def test_a_model_is_called_before_each_of_its_messages_and_after_a_last_word_that_is_not_its_own() -> None:
    turns = conversation(["a", "b", "c"], speakers=("user", "assistant")).turns
    assert calls_a_model(turns) == [True, False, True]
    assert calls_a_model(turns[:2]) == [True, False]


def test_in_a_chat_of_people_every_message_is_followed_by_a_call() -> None:
    assert calls_a_model(conversation(["a", "b", "c"]).turns) == [True, True, True]


def test_no_context_of_a_replay_is_larger_than_its_budget() -> None:
    report = replayed()
    assert report.calls == report.assembling.count == 20
    assert report.largest_context <= 500
    assert report.sent_tokens <= 20 * 500


def test_with_little_room_a_replay_sends_less_than_the_whole_history() -> None:
    report = replayed()
    assert report.sent_per_call < report.full_per_call
    assert report.largest_history > 500


def test_a_replay_ends_with_its_summaries_made() -> None:
    report = replayed(speakers=("Ann", "Bo"))
    assert report.metrics.messages == len(TEXTS)
    assert report.metrics.levels[0].summaries > 0
    assert report.last_context is not None
