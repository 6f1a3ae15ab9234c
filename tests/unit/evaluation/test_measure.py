import json

from rich.console import Console

from benchmarks import evidence_tables
from benchmarks.evidence_summary import as_json, is_rival, summarise
from benchmarks.simple_methods import measured_beside
from langchain_tiered_memory.conversations import Conversation
from langchain_tiered_memory.display.as_text import blocks_as_text
from langchain_tiered_memory.evaluation.measure import MEMORY_METHODS, WINDOW, Measured, measure, steps_of
from langchain_tiered_memory.evaluation.report import added_up, blocks_of, value
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from tests.unit.evaluation.conversation_builders import conversation, question

SITTINGS = (
    ["I moved to Porto in spring.", "How is the flat?", "Small, but it has a balcony over the river."],
    ["My sister Vera keeps bees now.", "How many hives?", "Seven, on the roof of the library."],
    [f"Nothing much happened on day {day}, only rain and work." for day in range(60)],
)
QUESTIONS = (
    question("Where are the beehives of Vera?", "t3", "t5", number=0),
    question("Which city did she move to?", "t0", number=1),
    question("Who keeps pigs?", "t3", number=2, adversarial=True),
    question("What call_style is the door?", number=3),
    question("Which boat?", number=4, unresolved=("t99",)),
)


def asked() -> Conversation:
    return conversation(*SITTINGS, questions=QUESTIONS)


def measured(*, budgets: tuple[int, ...] = (200, 2000)) -> Measured:
    steps: list[int] = []
    found = measure(asked(), budgets, counter=EstimatingCounter(), embeddings=None, on_step=lambda: steps.append(1))
    assert len(steps) == steps_of(asked())
    return found


def beside() -> Measured:
    return measured_beside(asked(), (200, 2000), counter=EstimatingCounter(), embeddings=None)


def test_every_method_answers_every_countable_question_at_every_budget() -> None:
    found = beside()
    methods = {outcome.method for outcome in found.outcomes}
    assert set(MEMORY_METHODS.values()) < methods
    assert len(found.outcomes) == 3 * 2 * len(methods)
    assert found.left_out == {"no evidence": ("q3",), "unresolved evidence": ("q4",)}


def test_with_room_for_everything_the_memory_shows_all_evidence() -> None:
    ours = [one for one in measured(budgets=(20_000,)).outcomes if one.method == MEMORY_METHODS["recall"]]
    assert [one.whole for one in ours] == [one.evidence for one in ours]


def test_the_memory_keeps_within_every_budget_by_its_own_count() -> None:
    ours = [one for one in measured().outcomes if one.method != WINDOW]
    assert [one for one in ours if one.overspent] == []
    assert all(one.whole <= one.touched <= one.evidence for one in ours)


def test_a_summary_leaves_adversarial_questions_out_of_its_totals_and_lists_them() -> None:
    found = added_up("group", [measured()])
    assert found.questions == 2
    assert found.left_out == {"no evidence": 1, "unresolved evidence": 1, "adversarial": 1}
    assert found.shares.keys() == {"overall", "1 fact", "5 adversarial"}
    summary = summarise("group", [beside()])
    assert (summary.questions, summary.left_out) == (found.questions, found.left_out)
    assert {table.name: table.questions for table in summary.categories} == {"1 fact": 2, "5 adversarial": 1}


def test_shares_are_means_of_their_outcomes() -> None:
    found = beside()
    summary = summarise("group", [found])
    assert summary.overall is not None
    for method in ("BM25", WINDOW):
        rows = [one for one in found.outcomes if one.method == method and one.budget == 200 and not one.adversarial]
        share = summary.overall.shares["fraction"][method][200].mean
        assert share == sum(value(one, "fraction") for one in rows) / 2
    ours = added_up("group", [measured()]).shares["overall"]["fraction"]
    assert ours[WINDOW][200] == share
    assert ours.keys() == {*MEMORY_METHODS.values(), WINDOW}


def test_how_far_a_view_is_above_the_window_is_the_mean_over_questions_with_its_interval() -> None:
    found = added_up("group", [measured()])
    shares = found.shares["overall"]["all"]
    for view in MEMORY_METHODS.values():
        mean, half = found.above_window[view][200]
        assert mean == shares[view][200] - shares[WINDOW][200]
        assert half >= 0
    assert found.above_window[MEMORY_METHODS["recall"]][200][0] == 1


def test_the_recall_view_is_compared_with_every_method() -> None:
    summary = summarise("group", [beside()])
    against = {(one.method, one.budget) for one in summary.comparisons if one.view == MEMORY_METHODS["recall"]}
    assert against == {(method, budget) for method in summary.methods if is_rival(method) for budget in (200, 2000)}


def test_what_was_measured_can_be_printed_and_written_as_json() -> None:
    summary = summarise("group", [beside()])
    console = Console(width=80, record=True, file=None, force_terminal=False, quiet=False)
    with console.capture() as shown:
        for part in evidence_tables.renderables(summary):
            console.print(part)
    assert "memory, recall view" in shown.get()
    assert "BM25" in shown.get()
    assert json.loads(json.dumps(as_json(summary)))["questions"] == 2
    told = blocks_as_text(blocks_of(added_up("group", [measured()])))
    assert "memory, recall view" in told
    assert "+100.0 ±0.0" in told


def test_a_group_without_countable_questions_says_so() -> None:
    found = measure(
        conversation(["hi"], questions=[question("?")]),
        (100,),
        counter=EstimatingCounter(),
        embeddings=None,
        on_step=lambda: None,
    )
    assert summarise("group", [found]).overall is None
    assert "No question" in blocks_as_text(blocks_of(added_up("group", [found])))


def test_the_turns_that_the_memory_shows_whole_also_fit_by_the_common_prices() -> None:
    dear = conversation(*SITTINGS, questions=QUESTIONS, speakers=("Ann-Kathrin of the third floor, left", "Bo"))
    found = measure(dear, (150, 400), counter=EstimatingCounter(), embeddings=None, on_step=lambda: None)
    assert [one.excess for one in found.outcomes] == [0] * len(found.outcomes)
    assert all(one.asked is None or (one.tokens or 0) <= one.asked <= one.budget for one in found.outcomes)
