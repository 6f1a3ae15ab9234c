import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.compaction.need import cache_ran_out, early_full
from langchain_tiered_memory.context.compaction.thresholds import overfull
from langchain_tiered_memory.settings import CondensationSettings
from langchain_tiered_memory.types.outcomes import Window

NOW = 1_700_000_000.0


def known(seconds: float | None = 300.0) -> CondensationSettings:
    return CondensationSettings(cache_lifetime_seconds=seconds)


@pytest.mark.parametrize(
    ("ago", "lifetime", "expected"),
    [(299.0, 300.0, False), (300.0, 300.0, True), (9e9, 300.0, True), (9e9, None, False), (-50.0, 300.0, False)],
)
def test_a_cache_runs_out_when_its_known_lifetime_has_passed_since_the_last_request(
    ago: float, lifetime: float | None, *, expected: bool
) -> None:
    assert cache_ran_out(NOW - ago, now=NOW, settings=known(lifetime)) is expected


def test_a_view_that_was_never_sent_has_no_cache() -> None:
    assert not cache_ran_out(None, now=NOW, settings=known())


def test_from_three_quarters_of_the_threshold_on_an_expired_cache_is_reason_enough() -> None:
    room = Window(tokens=20_000, reserved_tokens=1000)
    assert early_full(11_249, room, percent=75.0) == ""
    assert "11,250 tokens" in early_full(11_250, room, percent=75.0)


def test_where_the_allowed_tokens_are_reached_first_they_are_what_counts() -> None:
    room = Window(tokens=10_000, reserved_tokens=5000)
    assert room.allowed == 4000
    assert "3,000 tokens are past 3,000, " in early_full(3000, room, percent=75.0)
    assert not early_full(2999, room, percent=75.0)


@given(st.integers(1, 10**6), st.integers(64, 10**6), st.floats(5, 100))
def test_what_is_full_at_its_threshold_is_full_early_too(used: int, tokens: int, percent: float) -> None:
    room = Window(tokens=tokens, reserved_tokens=tokens // 8)
    if overfull(used, room, percent=percent):
        assert early_full(used, room, percent=percent)
