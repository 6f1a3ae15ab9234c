import json
from dataclasses import asdict

from langchain_tiered_memory.display.as_text import blocks_as_text
from langchain_tiered_memory.evaluation.measure import (
    FIGURES,
    VIEWS,
    WINDOW,
    Evidence,
    Outcome,
    added_up,
    blocks_of,
    countable,
    measure,
)
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from tests.unit.evaluation.conversation_builders import asked, conversation, question

ALL, _, FRACTION = FIGURES


def measured(*, budgets: tuple[int, ...] = (200, 2000)) -> list[Outcome]:
    steps: list[int] = []
    found = measure(asked(), budgets, counter=EstimatingCounter(), embeddings=None, on_step=lambda: steps.append(1))
    assert len(steps) == len(countable(asked()))
    return found


def evidence() -> Evidence:
    return added_up("group", [asked()], measured())


def test_both_views_and_the_window_answer_every_countable_question_at_every_budget() -> None:
    found = measured()
    assert {one.method for one in found} == {*VIEWS.values(), WINDOW}
    assert {one.question for one in found} == {"q0", "q1", "q2"}
    assert len(found) == 3 * 2 * 3
    assert all(one.whole <= one.touched <= one.evidence for one in found)


def test_with_room_for_everything_the_memory_shows_all_evidence() -> None:
    ours = [one for one in measured(budgets=(20_000,)) if one.method == VIEWS["recall"]]
    assert [one.whole for one in ours] == [one.evidence for one in ours]


def test_the_window_holds_the_end_alone() -> None:
    assert {one.whole for one in measured(budgets=(200,)) if one.method == WINDOW} == {0}
    assert {one.whole for one in measured(budgets=(20_000,)) if one.method == WINDOW} == {1, 2}


def test_adversarial_questions_are_listed_and_left_out_of_the_totals() -> None:
    found = evidence()
    assert found.questions == 2
    assert found.left_out == {"no evidence": 1, "unresolved evidence": 1, "adversarial": 1}
    assert found.shares.keys() == {"overall", "1 fact", "5 adversarial"}


def test_shares_are_means_of_their_outcomes() -> None:
    found, shares = measured(), evidence().shares["overall"][FRACTION]
    for method in (WINDOW, *VIEWS.values()):
        rows = [one for one in found if one.method == method and one.budget == 200 and not one.adversarial]
        assert shares[method][200] == sum(one.whole / one.evidence for one in rows) / 2


def test_how_far_a_view_is_above_the_window_is_the_mean_over_questions_with_its_interval() -> None:
    found = evidence()
    shares = found.shares["overall"][ALL]
    for view in VIEWS.values():
        mean, half = found.above_window[view][200]
        assert mean == shares[view][200] - shares[WINDOW][200]
        assert half >= 0
    assert found.above_window[VIEWS["recall"]][200] == (1, 0)


def test_what_was_measured_can_be_printed_and_written_as_json() -> None:
    told = blocks_as_text(blocks_of(evidence()))
    assert VIEWS["recall"] in told
    assert "+100.0 ±0.0" in told
    assert json.loads(json.dumps(asdict(evidence())))["questions"] == 2


def test_a_group_without_countable_questions_says_so() -> None:
    without = conversation(["hi"], questions=[question("?")])
    found = measure(without, (100,), counter=EstimatingCounter(), embeddings=None, on_step=lambda: None)
    assert "No question" in blocks_as_text(blocks_of(added_up("group", [without], found)))
