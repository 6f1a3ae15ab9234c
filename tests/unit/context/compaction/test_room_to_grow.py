"""What a condensation fills a view to: as much as pays, never below the least, less where a view grows fast."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.compaction.need import Rates, cost_of_turn, fill_target, pays_from, rates_of
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.settings import PriceSettings, Settings
from tests.memory_builders import entries_of, open_memory, turn

FULL = st.integers(min_value=100, max_value=200_000)
GROWTH = st.floats(min_value=1, max_value=5000)
CACHED = st.floats(min_value=0.05, max_value=1)
EXTRA = st.floats(min_value=0, max_value=6)


def target(full: int, growth: float, *, cached: float = 0.1, extra: float = 0.5) -> int:
    return fill_target(
        full=full,
        least=full // 4,
        most=round(0.85 * full),
        rates=Rates(cached=cached, growth=growth),
        extra_share=extra,
    )


@given(full=FULL, growth=GROWTH, cached=CACHED, extra=EXTRA)
def test_a_target_is_between_the_least_and_the_most(full: int, growth: float, cached: float, extra: float) -> None:
    assert full // 4 <= target(full, growth, cached=cached, extra=extra) <= max(round(0.85 * full), full // 4)


@given(full=FULL, growth=GROWTH, faster=GROWTH, cached=CACHED, extra=EXTRA)
def test_the_faster_a_view_grows_the_less_is_left_in_it(
    full: int, growth: float, faster: float, cached: float, extra: float
) -> None:
    low, high = sorted((growth, faster))
    # One token of tolerance: two costs that differ by rounding alone.
    assert target(full, high, cached=cached, extra=extra) <= target(full, low, cached=cached, extra=extra) + 1


@given(full=FULL, growth=GROWTH, cached=CACHED, extra=EXTRA)
def test_what_is_kept_besides_costs_no_more_than_was_said(
    full: int, growth: float, cached: float, extra: float
) -> None:
    rates = Rates(cached=cached, growth=growth)
    found = target(full, growth, cached=cached, extra=extra)
    assert cost_of_turn(found, full, rates) <= cost_of_turn(full // 4, full, rates) * (1 + extra) * (1 + 1e-9)


def test_without_extra_cost_nothing_is_kept_besides_the_least() -> None:
    assert target(32_000, 1000.0, extra=0.0) == 8000


def test_a_large_window_keeps_a_larger_share_than_a_small_one() -> None:
    assert target(8000, 1000.0) / 8000 < target(32_000, 1000.0) / 32_000 < target(128_000, 1000.0) / 128_000


@given(
    after=st.integers(min_value=500, max_value=50_000),
    growth=st.floats(min_value=50, max_value=5000),
    cached=st.floats(min_value=0.05, max_value=0.9),
)
def test_condensing_pays_from_the_size_at_which_a_turn_is_cheapest(after: int, growth: float, cached: float) -> None:
    rates = Rates(cached=cached, growth=growth)
    best = pays_from(after, rates)
    cheapest = cost_of_turn(after, best, rates)
    step = max((best - after) // 4, 2)
    assert cheapest <= cost_of_turn(after, best + step, rates) * (1 + 1e-3)
    assert cheapest <= cost_of_turn(after, max(best - step, after + 1), rates) * (1 + 1e-3)
    assert pays_from(0, rates) == 1, "what leaves all as it is pays nothing"


@given(after=st.integers(min_value=500, max_value=50_000), growth=st.floats(min_value=50, max_value=5000), extra=EXTRA)
def test_whoever_pays_more_lets_a_view_grow_further(after: int, growth: float, extra: float) -> None:
    rates = Rates(cached=0.1, growth=growth)
    further = pays_from(after, rates, extra_share=extra)
    assert further >= pays_from(after, rates)
    bound = cost_of_turn(after, pays_from(after, rates), rates) * (1 + extra)
    assert cost_of_turn(after, further - 1, rates) <= bound * (1 + 1e-3)


def test_growth_is_that_of_the_latest_turns_and_the_price_that_of_the_model() -> None:
    settings = Settings(
        prices={"dear": PriceSettings(input_per_million=2, output_per_million=8, cached_input_per_million=1)}
    )
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([message for number in range(6) for message in turn(number)])
        entries = entries_of(session)
    found = rates_of(entries, settings=settings, model="dear", room=1000)
    assert found.cached == 0.5
    assert found.growth == sum(entry.tokens for entry in entries) / 6
    assert rates_of((), settings=settings, model=None, room=1000) == Rates(cached=0.1, growth=25.0)
    assert rates_of((), settings=settings, model=None, room=0).growth == 1.0, "else nothing would ever pay"


def test_of_turns_before_the_latest_growth_says_nothing() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([message for number in range(NUMBERS.growth_turns + 5) for message in turn(number)])
        entries = entries_of(session)
    before = len(entries) - 2 * NUMBERS.growth_turns
    latest = [replace(one, tokens=100 if place < before else 30) for place, one in enumerate(entries)]
    assert rates_of(latest, settings=Settings(), model=None, room=1000).growth == 60.0
