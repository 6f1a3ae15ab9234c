"""The table of the policy, resolved to tokens for each mode."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.numbers import NUMBERS, Numbers, told
from langchain_tiered_memory.context.policy import LADDER, LEAVES_FOR_REQUIRED, no_room_beside, resolved
from langchain_tiered_memory.context.recall_budget import RecallBudget
from langchain_tiered_memory.context.sections.kept_files import KeptFiles
from langchain_tiered_memory.context.sections.registry import ChosenSections
from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.settings import Settings
from langchain_tiered_memory.types.contexts import Mode, ModeName, ViewPolicy

SETTINGS = Settings()


def rooms(
    *names: ModeName,
    budget: int = 8000,
    fixed: int = 0,
    ratio: float = 1.0,
    looks_up: bool = True,
    said: RecallBudget | None = None,
    sections: float = 0.0,
) -> ViewPolicy:
    mode = Mode(names=names or ("talk",), reason="a test", looks_up=looks_up)
    own = ChosenSections(kept=((KeptFiles(), sections),))
    return resolved(
        budget, fixed=fixed, ratio=ratio, mode=mode, settings=SETTINGS, given=said or RecallBudget(), sections=own
    )


def test_what_stands_in_the_plan_is_the_same_whatever_is_said_and_less_beside_a_callers_question() -> None:
    question, silent, asked = rooms("question"), rooms(looks_up=False), rooms("asked", fixed=100)
    assert asked.recall == 3950  # half of what the system prompt and tools leave
    assert silent.recall == 0
    plan = ("history", "facts", "recent")
    assert [question.of(one) for one in plan[:2]] == [silent.of(one) for one in plan[:2]]
    assert asked.of("history") + asked.of("facts") < silent.of("history") + silent.of("facts")
    assert question.stays == silent.stays == asked.stays == 1600


def test_where_two_modes_hold_the_plan_has_the_smaller_room_and_recall_that_of_the_first() -> None:
    said = RecallBudget(share=0.25)
    asked, files, both = rooms("asked"), rooms("files", said=said), rooms("asked", "files")
    assert both.cover == min(asked.cover, files.cover)
    assert both.of("facts") == files.of("facts") < asked.of("facts")
    assert both.stays == files.stays == 1000
    assert both.recall == asked.recall > files.recall


def test_beside_file_work_what_recall_is_not_given_of_its_most_is_spared() -> None:
    found = rooms("files", said=RecallBudget(share=0.04), sections=0.1)
    assert (found.recall - found.sections, found.spared) == (320, 480)
    assert rooms("files", looks_up=False).spared == 0


@pytest.mark.parametrize(("answers", "recall"), [(0.0, 150), (0.15, 225), (0.25, 300)])
def test_beside_file_work_the_best_answers_have_their_tokens_whatever_the_system_prompt_takes(
    answers: float, recall: int
) -> None:
    assert rooms("files", budget=2000, fixed=500, said=RecallBudget(share=0.25, answers=answers)).recall == recall


def test_the_recall_view_gives_everything_but_the_fixed_part_to_the_answer() -> None:
    found = rooms("recall", budget=1000, fixed=200)
    assert found.recall == found.of("recall") == 800
    assert found.of("facts") == found.cover == found.stays == 0
    assert found.of("recent") == 250  # the user's last message


def test_calibration_shrinks_the_raw_budget() -> None:
    assert rooms(ratio=1.6).total == 5000


@pytest.mark.parametrize("budget", [0, -5])
def test_a_budget_below_one_is_refused(budget: int) -> None:
    with pytest.raises(BudgetError, match="at least 1 token"):
        rooms(budget=budget)


@pytest.mark.parametrize(("fixed", "is_full"), [(982, False), (983, True), (990, True), (5000, True)])
def test_a_system_prompt_that_fills_the_budget_leaves_no_room_and_no_share(fixed: int, is_full: bool) -> None:  # noqa: FBT001
    found = rooms(budget=990, fixed=fixed)
    assert found.is_full is is_full
    assert found.recall >= 0
    assert "system prompt and the tool schemas take 990 of 990" in no_room_beside(990, 990, ratio=1.0)


@given(
    st.integers(20, 300_000),
    st.floats(0.5, 3.0),
    st.booleans(),
    st.lists(st.sampled_from(["recall", "minimal", "asked", "files", "loop", "question", "talk"]), min_size=1),
)
def test_no_room_is_larger_than_the_whole(budget: int, ratio: float, looks_up: bool, names: list[ModeName]) -> None:  # noqa: FBT001
    try:
        found = rooms(*names, budget=budget, fixed=1, ratio=ratio, looks_up=looks_up)
    except BudgetError:
        return
    assert found.total * ratio <= budget + 1e-6
    assert all(0 <= row.tokens <= found.total for row in found)
    assert all(0 <= room <= found.total for room in (found.keep, found.stays, found.cover, found.queries, found.code))
    assert found.hard + found.recall == found.total


def test_every_number_has_a_unit_an_origin_and_lies_in_its_range() -> None:
    described = told()
    assert described.keys() == {field.name for field in dataclasses.fields(Numbers)}
    for name, about in described.items():
        assert about.least <= getattr(NUMBERS, name) <= about.most, name
        assert about.unit
        assert bool(about.by) == (about.origin == "fitted"), name


def test_what_gives_way_is_a_step_of_the_ladder() -> None:
    steps = [section for section, _ in LADDER]
    for row in rooms():
        assert row.gives_way == 0 or steps[row.gives_way - 1] in (row.section, "facts")
    assert {row.section for row in rooms() if not row.gives_way} == {"system", "goal", "pinned", "parent"}
    assert set(LEAVES_FOR_REQUIRED) <= {row.section for row in rooms() if row.gives_way}
