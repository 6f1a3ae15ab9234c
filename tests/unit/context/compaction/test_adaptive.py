from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.compaction.thresholds import CLOSE_MESSAGES, LEAST_ADAPTIVE, advice
from langchain_tiered_memory.types.outcomes import FailureReason, Outcome, OutcomeKind, ThresholdAdvice


def outcome(kind: OutcomeKind = OutcomeKind.CONDENSED, *, freed: float = 0.5, **more: Any) -> Outcome:
    """A condensation that taught nothing, unless it is told otherwise."""
    before = more.pop("before", 10_000)
    return Outcome(id="o", kind=kind, tokens_before=before, tokens_after=round(before * (1 - freed)), **more)


def spaced(*outcomes: Outcome, every: int = 100) -> list[Outcome]:
    return [replace(one, last_seq=number * every) for number, one in enumerate(outcomes, 1)]


def advised(outcomes: list[Outcome], *, present: float = 75.0) -> ThresholdAdvice | None:
    return advice(outcomes, present_percent=present)


def percent(outcomes: list[Outcome], *, present: float = 75.0) -> float:
    """What the advice comes to, where no advice is to leave things as they are."""
    found = advised(outcomes, present=present)
    return found.percent if found is not None else min(max(present, 50.0), 90.0)


FINE = outcome()
LITTLE = outcome(freed=0.1)
UNREADY = outcome(OutcomeKind.TRUNCATED, reason=FailureReason.NOT_READY)
CRITICAL = outcome(steps=("pruned", "minimal"))


def test_fewer_than_three_condensations_say_nothing() -> None:
    assert advised(spaced(LITTLE, LITTLE)) is None


def test_condensations_that_did_well_speak_for_no_other_threshold() -> None:
    assert advised(spaced(*[FINE] * 20)) is None


def test_three_that_freed_too_little_speak_for_five_points_more() -> None:
    found = advised(spaced(LITTLE, LITTLE, LITTLE))
    assert found is not None
    assert (found.percent, found.present_percent, found.samples) == (80.0, 75.0, 3)
    assert found.because.startswith("of 3 condensations 3 freed less than 20% of the view: condense later")


def test_condensations_that_follow_each_other_closely_speak_for_a_later_one() -> None:
    found = advised(spaced(*[FINE] * 4, every=CLOSE_MESSAGES - 1))
    assert found is not None
    assert found.percent == 80.0
    assert "3 came fewer than 12 messages after another" in found.because
    assert advised(spaced(*[FINE] * 4, every=CLOSE_MESSAGES)) is None


def test_condensations_of_two_tracks_are_not_taken_for_close() -> None:
    both = [replace(FINE, track=track, last_seq=seq) for seq, track in ((10, "a"), (11, "b"), (60, "a"), (61, "b"))]
    assert advised(both) is None


@pytest.mark.parametrize("pressing", [UNREADY, CRITICAL, replace(UNREADY, reason=FailureReason.TIMEOUT)])
def test_views_that_had_to_be_cut_down_speak_for_an_earlier_condensation(pressing: Outcome) -> None:
    found = advised(spaced(pressing, pressing, pressing))
    assert found is not None
    assert found.percent == 70.0
    assert "earlier" in found.because


def test_a_window_that_slid_by_choice_is_no_sign_of_lateness() -> None:
    assert advised(spaced(*[replace(UNREADY, reason=None)] * 5)) is None


def test_undone_failed_and_idle_outcomes_do_not_count() -> None:
    kinds = (OutcomeKind.FAILED, OutcomeKind.NOT_NEEDED, OutcomeKind.MASKED)
    idle = [replace(LITTLE, kind=kind) for kind in kinds]
    assert advised(spaced(LITTLE, LITTLE, replace(LITTLE, undone_at=5.0), *idle, *idle)) is None


def test_opposite_lessons_cancel_out() -> None:
    assert advised(spaced(LITTLE, UNREADY, LITTLE, UNREADY)) is None


def test_asking_twice_changes_nothing() -> None:
    outcomes = spaced(LITTLE, LITTLE, FINE, LITTLE)
    assert advised(outcomes) == advised(outcomes)


def test_the_order_of_the_outcomes_makes_no_difference() -> None:
    outcomes = spaced(LITTLE, UNREADY, FINE, LITTLE, LITTLE, LITTLE)
    assert advised(outcomes[::-1]) == advised(outcomes)
    assert advised(spaced(*[FINE] * 6)[::-1]) is None


_lessons = st.sampled_from([FINE, LITTLE, UNREADY, CRITICAL, replace(LITTLE, undone_at=1.0)])
_histories = st.lists(_lessons, max_size=40).map(lambda made: spaced(*made))
_percents = st.floats(5, 100)


@given(_histories, _percents, st.floats(50, 90))
def test_advice_is_always_within_the_bounds(history: list[Outcome], present: float, most: float) -> None:
    found = advice(history, present_percent=present, most=most)
    assert found is None or LEAST_ADAPTIVE <= found.percent <= most
    assert found is None or (found.samples >= 3 and found.because)


@given(_histories, st.data())
def test_a_condensation_that_was_more_wasteful_never_lowers_the_advice(history: list[Outcome], data: Any) -> None:
    at = data.draw(st.integers(0, max(len(history) - 1, 0)))
    for better, worse in ((FINE, LITTLE), (UNREADY, FINE), (UNREADY, LITTLE)):
        changed = [*history[:at], better, *history[at:]]
        low = percent(spaced(*changed))
        changed[at] = worse
        assert percent(spaced(*changed)) >= low


@given(_histories, _lessons)
def test_one_more_condensation_moves_the_advice_by_at_most_five_points(history: list[Outcome], one: Outcome) -> None:
    assert abs(percent(spaced(*history, one)) - percent(history)) <= 5 + 1e-9


@given(_histories, _percents, _percents)
def test_a_higher_setting_never_makes_a_lower_advice(history: list[Outcome], one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert percent(history, present=low) <= percent(history, present=high) + 1


def test_advice_says_how_many_condensations_taught_what() -> None:
    found = advised(spaced(UNREADY, CRITICAL, LITTLE, UNREADY, LITTLE))
    assert found is not None
    assert "of 5 condensations 2 freed less than 20% of the view, 3 dropped messages" in found.because
