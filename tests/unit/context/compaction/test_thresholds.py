import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.compaction.thresholds import configured_percent, overfull, threshold_of
from langchain_tiered_memory.settings import ThresholdSettings
from langchain_tiered_memory.types.outcomes import ThresholdAdvice, Window

NAN = float("nan")


def advised(percent: float) -> ThresholdAdvice:
    return ThresholdAdvice(percent=percent, present_percent=75.0, samples=3, because="it was so")


def threshold(
    *, profile: str | None = None, resolved: Any = None, advice: ThresholdAdvice | None = None, **settings: Any
) -> tuple[float, str]:
    return threshold_of(ThresholdSettings(**settings), profile=profile, resolved=resolved, advice=advice)


def window(tokens: int = 10_000, *, reserved: int = 1000, buffer: float = 0.1) -> Window:
    return Window(tokens=tokens, reserved_tokens=reserved, buffer_share=buffer)


@pytest.mark.parametrize(
    ("own", "expected", "warned"),
    [
        (None, 60.0, False),
        (-1, 60.0, False),
        (-1.0, 60.0, False),
        (5, 5.0, False),
        (40.5, 40.5, False),
        (100, 100.0, False),
        (4.999, 60.0, True),
        (0, 60.0, True),
        (-2, 60.0, True),
        (100.001, 60.0, True),
        (NAN, 60.0, True),
        (math.inf, 60.0, True),
        (-math.inf, 60.0, True),
    ],
)
def test_a_profile_has_its_own_threshold_inherits_or_is_warned_of(
    own: float | None, expected: float, *, warned: bool
) -> None:
    profiles = {} if own is None else {"small": own}
    percent, warning = threshold(profile="small", percent=60.0, profiles=profiles)
    assert percent == expected
    assert bool(warning) is warned
    assert not warned or ("'small'" in warning and repr(float(own or 0)) in warning)


@pytest.mark.parametrize("wrong", [4.0, -1.0, 101.0, NAN, math.inf])
def test_a_global_threshold_that_cannot_be_used_falls_back_to_75_with_a_warning(wrong: float) -> None:
    percent, warning = threshold(percent=wrong)
    assert percent == 75.0
    assert "75 percent" in warning


def test_a_profile_that_is_fine_still_tells_of_a_global_threshold_that_is_not() -> None:
    percent, warning = threshold(percent=3.0, profile="small", profiles={"small": 50.0})
    assert percent == 50.0
    assert warning


def test_another_profile_or_none_takes_the_global_threshold() -> None:
    assert threshold(profile="other", profiles={"small": 50.0}) == (75.0, "")
    assert threshold(profiles={"small": NAN}) == (75.0, "")


@pytest.mark.parametrize("answer", [4, 101.0, NAN, -1, True, "80", [80]])
def test_a_resolver_that_answers_outside_is_warned_of_and_ignored(answer: Any) -> None:
    percent, warning = threshold(percent=60.0, resolved=answer)
    assert percent == 60.0
    assert repr(answer) in warning


def test_a_resolver_has_the_last_word() -> None:
    found = threshold(resolved=33, adaptive=True, advice=advised(80.0), profile="p", profiles={"p": 50.0})
    assert found == (33.0, "")


@pytest.mark.parametrize(
    ("adaptive", "percent", "expected"),
    [(False, 60.0, 75.0), (True, 60.0, 60.0), (True, 20.0, 50.0), (True, 99.0, 90.0), (True, NAN, 75.0)],
)
def test_advice_counts_where_it_is_switched_on_within_its_bounds(
    percent: float, expected: float, *, adaptive: bool
) -> None:
    assert threshold(adaptive=adaptive, advice=advised(percent)) == (expected, "")


def test_the_configured_threshold_is_known_apart_from_advice() -> None:
    assert configured_percent(ThresholdSettings(profiles={"p": 50.0}), profile="p")[0] == 50.0
    assert configured_percent(ThresholdSettings(profiles={"p": NAN}), profile="p")[0] == 75.0


_any_percent = st.one_of(st.floats(), st.sampled_from([-1.0, 5.0, 75.0, 100.0]))


@given(
    _any_percent, _any_percent, st.one_of(st.none(), _any_percent), st.one_of(st.none(), _any_percent), st.booleans()
)
def test_the_threshold_is_valid_whatever_was_set_and_said(
    percent: float,
    own: float,
    resolved: float | None,
    said: float | None,
    adaptive: bool,  # noqa: FBT001 - generated
) -> None:
    found = threshold(
        percent=percent,
        profile="p",
        profiles={"p": own},
        resolved=resolved,
        advice=advised(said) if said is not None else None,
        adaptive=adaptive,
    )
    assert 5 <= found[0] <= 100


@pytest.mark.parametrize(
    ("used", "percent", "is_full"),
    [
        (7499, 75.0, False),
        (7500, 75.0, True),
        (8000, 100.0, False),
        (8001, 100.0, True),
        (3330, 33.3, True),
        (3329, 33.3, False),
    ],
)
def test_it_is_full_at_the_threshold_or_beyond_what_is_allowed(used: int, percent: float, *, is_full: bool) -> None:
    assert bool(overfull(used, window(), percent=percent)) is is_full


def test_the_sentence_has_figures() -> None:
    assert (
        overfull(7600, window(), percent=75.0) == "7,600 tokens are 76.0 % of a window of 10,000; the threshold is 75 %"
    )
    assert "8,001 tokens are more than the 8,000 allowed" in overfull(8001, window(), percent=75.0)


@given(st.integers(0, 50_000), st.integers(0, 50_000), st.integers(1, 20_000), st.floats(5, 100))
def test_what_is_full_stays_full_when_more_is_used(used: int, more: int, tokens: int, percent: float) -> None:
    room = window(tokens, reserved=tokens // 10)
    assert not overfull(used, room, percent=percent) or overfull(used + more, room, percent=percent)
