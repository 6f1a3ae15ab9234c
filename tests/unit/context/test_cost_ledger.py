from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.ledgers import cost_of, ledger
from langchain_tiered_memory.settings import PriceSettings
from langchain_tiered_memory.types.outcomes import CostLedger, Outcome, OutcomeKind
from langchain_tiered_memory.types.records import Spent

PRICE = PriceSettings(input_per_million=2.0, output_per_million=10.0)


def outcome(seq: int, *, freed: int = 1000, kind: OutcomeKind = OutcomeKind.CONDENSED, **more: Any) -> Outcome:
    spent = more.pop("spent", Spent(calls=1, input_tokens=4000, output_tokens=500))
    before = max(freed, 0) + 3000
    return Outcome(
        id=f"o{seq}",
        kind=kind,
        last_seq=seq,
        tokens_before=before,
        tokens_after=before - freed,
        spent=spent,
        **more,
    )


def of(*outcomes: Outcome, calls: Any = (), **more: Any) -> CostLedger:
    """The ledger; `calls` by outcome, or the numbers of the assistant's messages."""
    if not isinstance(calls, dict):
        calls = {one.id: sum(seq > one.last_seq for seq in calls) for one in outcomes}
    return ledger(outcomes, calls, spent=more.pop("spent", Spent()), price=more.pop("price", None))


def test_a_condensation_saves_what_it_freed_with_each_call_since() -> None:
    row = of(outcome(10), calls=[2, 4, 10, 12, 14, 16]).rows[0]
    assert (row.saved_tokens_per_call, row.calls_since, row.saved_tokens) == (1000, 3, 3000)
    assert row.breaks_even_after == 4.5
    assert not row.paid
    assert of(outcome(10), calls=range(12, 22, 2)).rows[0].paid


def test_what_one_call_saves_adds_up_over_the_condensations_before_it() -> None:
    found = of(outcome(10), outcome(20, freed=500), calls=[12, 22, 24])
    assert [row.saved_tokens for row in found.rows] == [3000, 1000]
    assert found.saved_tokens == 1000 + 1500 + 1500


def test_with_a_price_it_is_the_money_that_has_to_break_even() -> None:
    row = of(outcome(10), calls=[12], price=PRICE).rows[0]
    assert row.spent_cost == 0.013
    assert row.saved_cost == 0.002
    assert row.breaks_even_after == 6.5


def test_a_cost_that_was_noted_counts_before_one_that_is_computed() -> None:
    assert of(outcome(10, cost=0.5), price=PRICE).rows[0].spent_cost == 0.5


def test_what_cost_nothing_pays_at_once_and_what_saves_nothing_never() -> None:
    free = outcome(10, spent=Spent())
    assert of(free).rows[0].breaks_even_after == 0
    assert of(free, price=PRICE).rows[0].paid
    assert of(outcome(10, freed=0), outcome(11, freed=-5)).rows[0].breaks_even_after is None
    assert (
        of(outcome(10), price=PriceSettings(input_per_million=0, output_per_million=1)).rows[0].breaks_even_after
        is None
    )


def test_an_undone_or_failed_condensation_cost_something_and_saves_nothing() -> None:
    found = of(outcome(10, undone_at=5.0), outcome(20, kind=OutcomeKind.FAILED), calls=[12, 22], price=PRICE)
    assert [row.saved_tokens for row in found.rows] == [0, 0]
    assert [row.breaks_even_after for row in found.rows] == [None, None]
    assert all(row.spent_cost for row in found.rows)


def test_a_failure_that_spent_nothing_has_no_row() -> None:
    assert of(outcome(10, kind=OutcomeKind.FAILED, spent=Spent())).rows == ()


def test_a_window_that_slid_saves_without_a_cost() -> None:
    row = of(outcome(10, kind=OutcomeKind.TRUNCATED, spent=Spent()), calls=[11]).rows[0]
    assert (row.saved_tokens, row.breaks_even_after) == (1000, 0)


def test_masked_tool_outputs_save_as_well() -> None:
    masked = outcome(10, kind=OutcomeKind.MASKED, spent=Spent(), breaks_prefix=True)
    found = of(masked, calls=[11, 13])
    assert (found.saved_tokens, found.prefix_breaks, len(found.rows)) == (2000, 1, 1)
    assert of(outcome(11, kind=OutcomeKind.NOT_NEEDED, spent=Spent())).rows == ()


def test_calls_may_be_counted_by_outcome() -> None:
    found = of(outcome(10), outcome(20), calls={"o10": 7})
    assert [row.calls_since for row in found.rows] == [7, 0]


def test_the_totals_have_everything_that_was_spent_and_each_broken_prefix() -> None:
    spent = Spent(calls=9, input_tokens=1_000_000, output_tokens=100_000)
    found = of(outcome(1, breaks_prefix=True), outcome(2), outcome(3, breaks_prefix=True), spent=spent, price=PRICE)
    assert (found.spent, found.spent_cost, found.prefix_breaks) == (spent, 3.0, 2)
    assert of(spent=spent).spent_cost is None
    assert cost_of(spent, price=None) is None


_events = st.lists(st.tuples(st.booleans(), st.integers(-500, 5000), st.booleans()), max_size=60)


@given(_events)
def test_rows_add_up_to_what_each_call_saved(events: list[tuple[bool, int, bool]]) -> None:
    outcomes: list[Outcome] = []
    calls: list[int] = []
    expected = standing = 0
    for seq, (is_call, freed, undone) in enumerate(events, 1):
        if is_call:
            calls.append(seq)
            expected += standing
        else:
            outcomes.append(outcome(seq, freed=freed, undone_at=9.0 if undone else None))
            standing += 0 if undone else freed
    found = of(*outcomes, calls=calls, price=PRICE)
    assert found.saved_tokens == expected == sum(row.saved_tokens for row in found.rows)
    for row in found.rows:
        assert row.breaks_even_after is None or row.breaks_even_after >= 0
        assert not row.paid or (row.saved_cost or 0) >= (row.spent_cost or 0) - 1e-9
