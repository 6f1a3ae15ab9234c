import json

from rich.console import Console

from benchmarks import evidence_tables
from benchmarks.asked_conversations import VIEWS, WINDOW
from benchmarks.evidence import Measured, measure, value
from benchmarks.evidence_summary import as_json, is_rival, summarise
from benchmarks.simple_methods import measured_beside
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from tests.unit.evaluation.conversation_builders import QUESTIONS, SITTINGS, asked, conversation, question


def beside() -> Measured:
    return measured_beside(asked(), (200, 2000), counter=EstimatingCounter(), embeddings=None)


def test_every_method_answers_every_countable_question_at_every_budget() -> None:
    found = beside()
    methods = {outcome.method for outcome in found.outcomes}
    assert set(VIEWS.values()) < methods
    assert len(found.outcomes) == 3 * 2 * len(methods)
    assert found.left_out == {"no evidence": ("q3",), "unresolved evidence": ("q4",)}


def test_the_memory_keeps_within_every_budget_by_its_own_count() -> None:
    ours = [one for one in beside().outcomes if not is_rival(one.method)]
    assert [one for one in ours if one.overspent] == []
    assert all(one.whole <= one.touched <= one.evidence for one in ours)


def test_a_summary_leaves_adversarial_questions_out_of_its_totals_and_lists_them() -> None:
    summary = summarise("group", [beside()])
    assert summary.questions == 2
    assert summary.left_out == {"no evidence": 1, "unresolved evidence": 1, "adversarial": 1}
    assert {table.name: table.questions for table in summary.categories} == {"1 fact": 2, "5 adversarial": 1}


def test_shares_of_a_summary_are_means_of_its_outcomes() -> None:
    found = beside()
    summary = summarise("group", [found])
    assert summary.overall is not None
    for method in ("BM25", WINDOW):
        rows = [one for one in found.outcomes if one.method == method and one.budget == 200 and not one.adversarial]
        share = summary.overall.shares["fraction"][method][200].mean
        assert share == sum(value(one, "fraction") for one in rows) / 2


def test_the_recall_view_is_compared_with_every_method() -> None:
    summary = summarise("group", [beside()])
    against = {(one.method, one.budget) for one in summary.comparisons if one.view == VIEWS["recall"]}
    assert against == {(method, budget) for method in summary.methods if is_rival(method) for budget in (200, 2000)}


def test_a_summary_can_be_printed_and_written_as_json() -> None:
    summary = summarise("group", [beside()])
    console = Console(width=80, record=True, file=None, force_terminal=False, quiet=False)
    with console.capture() as shown:
        for part in evidence_tables.renderables(summary):
            console.print(part)
    assert "memory, recall view" in shown.get()
    assert "BM25" in shown.get()
    assert json.loads(json.dumps(as_json(summary)))["questions"] == 2


def test_a_group_without_countable_questions_says_so() -> None:
    without = conversation(["hi"], questions=[question("?")])
    summary = summarise("group", [measure(without, (100,), counter=EstimatingCounter(), embeddings=None)])
    assert summary.overall is None
    assert "No question" in "".join(str(part) for part in evidence_tables.renderables(summary))


def test_the_turns_that_the_memory_shows_whole_also_fit_by_the_common_prices() -> None:
    dear = conversation(*SITTINGS, questions=QUESTIONS, speakers=("Ann-Kathrin of the third floor, left", "Bo"))
    found = measure(dear, (150, 400), counter=EstimatingCounter(), embeddings=None)
    assert [one.excess for one in found.outcomes] == [0] * len(found.outcomes)
    assert all(one.asked is None or (one.tokens or 0) <= one.asked <= one.budget for one in found.outcomes)
