import json

from rich.console import Console

from langchain_tiered_memory.conversations import Conversation
from langchain_tiered_memory.evaluation.measure import MEMORY_METHODS, Measured, measure, steps_of
from langchain_tiered_memory.evaluation.report import renderables
from langchain_tiered_memory.evaluation.summary import as_json, is_rival, summarise, value
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


def test_every_method_answers_every_countable_question_at_every_budget() -> None:
    found = measured()
    methods = {outcome.method for outcome in found.outcomes}
    assert set(MEMORY_METHODS.values()) < methods
    assert len(found.outcomes) == 3 * 2 * len(methods)
    assert found.left_out == {"no evidence": ("q3",), "unresolved evidence": ("q4",)}


def test_with_room_for_everything_the_memory_shows_all_evidence() -> None:
    ours = [one for one in measured(budgets=(20_000,)).outcomes if one.method == MEMORY_METHODS["recall"]]
    assert [one.whole for one in ours] == [one.evidence for one in ours]


def test_the_memory_keeps_within_every_budget_by_its_own_count() -> None:
    ours = [one for one in measured().outcomes if not is_rival(one.method)]
    assert [one for one in ours if one.overspent] == []
    assert all(one.whole <= one.touched <= one.evidence for one in ours)


def test_a_summary_leaves_adversarial_questions_out_of_its_totals_and_lists_them() -> None:
    summary = summarise("group", [measured()])
    assert summary.questions == 2
    assert summary.left_out == {"no evidence": 1, "unresolved evidence": 1, "adversarial": 1}
    assert {table.name: table.questions for table in summary.categories} == {"1 fact": 2, "5 adversarial": 1}


def test_shares_of_a_summary_are_means_of_its_outcomes() -> None:
    found = measured()
    summary = summarise("group", [found])
    assert summary.overall is not None
    rows = [one for one in found.outcomes if one.method == "BM25" and one.budget == 200 and not one.adversarial]
    share = summary.overall.shares["fraction"]["BM25"][200].mean
    assert share == sum(value(one, "fraction") for one in rows) / 2


def test_the_recall_view_is_compared_with_every_method() -> None:
    summary = summarise("group", [measured()])
    against = {(one.method, one.budget) for one in summary.comparisons if one.view == MEMORY_METHODS["recall"]}
    assert against == {(method, budget) for method in summary.methods if is_rival(method) for budget in (200, 2000)}


def test_a_summary_can_be_printed_and_written_as_json() -> None:
    summary = summarise("group", [measured()])
    console = Console(width=80, record=True, file=None, force_terminal=False, quiet=False)
    with console.capture() as shown:
        for part in renderables(summary):
            console.print(part)
    assert "memory, recall view" in shown.get()
    assert json.loads(json.dumps(as_json(summary)))["questions"] == 2


def test_a_group_without_countable_questions_says_so() -> None:
    found = measure(
        conversation(["hi"], questions=[question("?")]),
        (100,),
        counter=EstimatingCounter(),
        embeddings=None,
        on_step=lambda: None,
    )
    summary = summarise("group", [found])
    assert summary.overall is None
    assert "No question" in "".join(str(part) for part in renderables(summary))


def test_the_turns_that_the_memory_shows_whole_also_fit_by_the_common_prices() -> None:
    dear = conversation(*SITTINGS, questions=QUESTIONS, speakers=("Ann-Kathrin of the third floor, left", "Bo"))
    found = measure(dear, (150, 400), counter=EstimatingCounter(), embeddings=None, on_step=lambda: None)
    assert [one.excess for one in found.outcomes] == [0] * len(found.outcomes)
    assert all(one.asked is None or (one.tokens or 0) <= one.asked <= one.budget for one in found.outcomes)
