import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evidence_summary import Bootstrap

shares = st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=40)


@given(shares)
def test_an_interval_holds_the_mean_and_stays_within_the_values(values: list[float]) -> None:
    found = Bootstrap(len(values), resamples=200).estimate(values)
    assert min(values) - 1e-6 <= found.low <= found.high <= max(values) + 1e-6
    assert found.mean == pytest.approx(sum(values) / len(values))


@given(shares)
def test_a_method_is_not_different_from_itself(values: list[float]) -> None:
    found = Bootstrap(len(values), resamples=50).difference(values, values)
    assert (found.mean, found.low, found.high, found.at_most_zero) == (0, 0, 0, 1)


def test_a_method_that_is_better_everywhere_is_above_in_every_resample() -> None:
    found = Bootstrap(10, resamples=100).difference([1.0] * 10, [0.0] * 10)
    assert (found.low, found.at_most_zero) == (1, 0)


def test_the_same_seed_gives_the_same_digits() -> None:
    values = [0.0, 1.0, 1.0, 0.5] * 5
    assert Bootstrap(20).estimate(values) == Bootstrap(20).estimate(values)


def test_the_interval_of_a_coin_is_about_two_standard_errors_wide() -> None:
    found = Bootstrap(400).estimate([0.0, 1.0] * 200)
    assert found.half_width == pytest.approx(1.96 * 0.5 / 20, rel=0.1)


def test_no_questions_cannot_be_resampled() -> None:
    with pytest.raises(ValueError, match="at least one question"):
        Bootstrap(0)
