import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.budget.allocation import View, no_room_beside, split
from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.settings import ContextSettings

SETTINGS = ContextSettings()


def test_the_split_depends_on_the_budget_and_on_whether_something_is_asked() -> None:
    asked = split(8000, fixed=100, ratio=1.0, has_query=True, view="default", settings=SETTINGS)
    silent = split(8000, fixed=100, ratio=1.0, has_query=False, view="default", settings=SETTINGS)
    assert asked.recall == 3950  # half of what the system prompt and tools leave
    assert silent.recall == 0
    assert (silent.cover, silent.facts) == (asked.cover, asked.facts), "the record has its room whatever is said"
    own = split(8000, fixed=100, ratio=1.0, has_query=True, own_query=True, view="default", settings=SETTINGS)
    assert own.recall == asked.recall
    assert own.cover + own.facts < asked.cover + asked.facts
    assert asked.keep == silent.keep == 2000


def test_beside_file_work_what_recall_is_not_given_of_its_most_is_spared() -> None:
    found = split(
        8000,
        fixed=0,
        ratio=1.0,
        has_query=True,
        view="default",
        settings=SETTINGS,
        recall_share=0.04,
        recall_most=0.1,
        sections_share=0.1,
    )
    assert (found.recall - found.sections, found.spared) == (320, 480)
    silent = split(
        8000, fixed=0, ratio=1.0, has_query=False, view="default", settings=SETTINGS, recall_share=0.04, recall_most=0.1
    )
    assert silent.spared == 0


def test_the_recall_view_gives_everything_but_the_fixed_part_to_the_answer() -> None:
    allocation = split(1000, fixed=200, ratio=1.0, has_query=True, view="recall", settings=SETTINGS)
    assert allocation.recall == 800


def test_calibration_shrinks_the_raw_budget() -> None:
    assert split(8000, fixed=0, ratio=1.6, has_query=True, view="default", settings=SETTINGS).total == 5000


@pytest.mark.parametrize("budget", [0, -5])
def test_a_budget_below_one_is_refused(budget: int) -> None:
    with pytest.raises(BudgetError, match="at least 1 token"):
        split(budget, fixed=0, ratio=1.0, has_query=False, view="default", settings=SETTINGS)


@pytest.mark.parametrize(("fixed", "is_full"), [(982, False), (983, True), (990, True), (5000, True)])
def test_a_system_prompt_that_fills_the_budget_leaves_no_room_and_no_share(fixed: int, is_full: bool) -> None:  # noqa: FBT001
    found = split(990, fixed=fixed, ratio=1.0, has_query=True, view="default", settings=SETTINGS)
    assert found.is_full is is_full
    assert found.recall >= 0
    assert "system prompt and the tool schemas take 990 of 990" in no_room_beside(990, 990, ratio=1.0)


@given(
    st.integers(20, 300_000),
    st.floats(0.5, 3.0),
    st.booleans(),
    st.sampled_from(["default", "recall"]),
)
def test_no_room_is_larger_than_the_whole(budget: int, ratio: float, has_query: bool, view: View) -> None:  # noqa: FBT001
    try:
        allocation = split(budget, fixed=1, ratio=ratio, has_query=has_query, view=view, settings=SETTINGS)
    except BudgetError:
        return
    assert allocation.total * ratio <= budget + 1e-6
    for room in (
        allocation.goal,
        allocation.pins,
        allocation.queries,
        allocation.cover,
        allocation.keep,
        allocation.recall,
        allocation.code,
    ):
        assert 0 <= room <= allocation.total
    assert allocation.hard + allocation.recall == allocation.total
