"""What threshold past condensations of a session suggest, and what is said of one that cannot be used."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_tiered_memory.settings import (
    CondensationSettings,
    ContextSettings,
    GuardSettings,
    Settings,
    ThresholdSettings,
)
from langchain_tiered_memory.types import Scope
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, ThresholdAdvice
from tests.memory_builders import open_memory, ref_of, store_of
from tests.run_builders import outcome

if TYPE_CHECKING:
    from langchain_tiered_memory.types.outcomes import Outcome

LITTLE = outcome(OutcomeKind.CONDENSED, tokens_before=10_000, tokens_after=9_500, steps=())
LATE = replace(LITTLE, kind=OutcomeKind.TRUNCATED, reason=FailureReason.NOT_READY)


def suggested(
    outcomes: list[Outcome], *, reserved: int = 1000, profile: str | None = None, **handle: Any
) -> ThresholdAdvice | None:
    """What is suggested where a window of 10,000 tokens has so many reserved for the answer."""
    settings = Settings(
        guard=GuardSettings(window=10_000),
        context=ContextSettings(reserved_output_tokens=reserved),
        condensation=CondensationSettings(thresholds=ThresholdSettings(profiles={"own": 55.0})),
    )
    with open_memory(settings=settings) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Hello")])
        for place, one in enumerate(outcomes, start=1):
            store_of(memory).outcomes.add(
                ref_of(session), "v", replace(one, id=str(place), last_seq=100 * place), keep=99
            )
        return memory.session("s", **handle).suggest_threshold(profile)


@pytest.mark.parametrize(("reserved", "most"), [(1000, 80.0), (500, 85.0)])
def test_it_is_never_above_what_the_window_allows(reserved: int, most: float) -> None:
    found = suggested([LITTLE] * 20, reserved=reserved)
    assert found is not None
    assert found.percent == most


def test_the_last_twenty_speak_and_those_of_a_profile_begin_at_its_own() -> None:
    found = suggested([LATE] * 5 + [LITTLE] * 20, profile="own")
    assert found is not None
    assert (found.present_percent, found.samples) == (55.0, 20)


def test_a_handle_that_sees_one_track_learns_of_that_alone() -> None:
    both = [LITTLE, replace(LATE, track="aside")] * 5
    found = suggested(both, track="aside", scope=Scope())
    assert found is not None
    assert (found.samples, found.percent < 75) == (5, True)


@pytest.mark.parametrize("window", [4000, None])
def test_a_threshold_that_cannot_be_used_is_told_of_once_and_a_bare_budget_has_none(window: int | None) -> None:
    settings = Settings(
        guard=GuardSettings(window=window),
        condensation=CondensationSettings(thresholds=ThresholdSettings(percent=3.0)),
    )
    told: list[str] = []
    with open_memory(settings=settings) as memory:
        memory.subscribe(lambda event: told.append(event.name))
        session = memory.session("s")
        session.add_messages([HumanMessage("Hello")])
        for most in (100_000, 100_000, 2000):
            session.context("", max_tokens=most)
    assert told.count("threshold_unusable") == (window is not None)
