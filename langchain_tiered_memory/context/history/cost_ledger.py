"""What condensing a session cost and saved, and after how many calls it paid.

What a condensation freed would have stood in every call since: it saves that many input tokens with each of them, until
it is undone. So what one call saves is the sum over the condensations before it, and a row's account is its own share.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from langchain_tiered_memory.types.outcomes import CostLedger, CostRow, OutcomeKind

if TYPE_CHECKING:
    from langchain_tiered_memory.settings import PriceSettings
    from langchain_tiered_memory.types.outcomes import Outcome
    from langchain_tiered_memory.types.records import Spent

_MILLION = 1_000_000
_UNCHANGED = (OutcomeKind.NOT_NEEDED, OutcomeKind.FAILED)
"""What left the view as it was."""


def ledger(
    outcomes: Sequence[Outcome],
    calls: Sequence[int] | Mapping[str, int],
    *,
    spent: Spent,
    price: PriceSettings | None,
    answer_price: PriceSettings | None = None,
) -> CostLedger:
    """The ledger of a session.

    Args:
        outcomes: Kept ones, in any order, which the rows keep. There is a row for each that changed a view or spent
            something.
        calls: `seq`s of the assistant's messages in rising order; or, by outcome id, how many there were since (for
            sessions of several tracks, where a call of one track saves nothing of another's view).
        spent: Everything spent on summaries, those that no view shows yet included.
        price: Of the condensing model; `None` where it is not known.
        answer_price: Of the model whose calls got smaller, where that is another one.
    """
    saving = answer_price if answer_price is not None else price
    rows = tuple(
        _row(one, _calls_since(one, calls), price=price, saving=saving)
        for one in outcomes
        if one.kind not in _UNCHANGED or one.spent.calls
    )
    saved = sum(row.saved_tokens for row in rows)
    return CostLedger(
        rows=rows,
        spent=spent,
        spent_cost=cost_of(spent, price=price),
        saved_tokens=saved,
        saved_cost=_input_cost(saved, saving),
        prefix_breaks=sum(one.breaks_prefix for one in outcomes),
    )


def cost_of(spent: Spent, *, price: PriceSettings | None) -> float | None:
    """What model calls cost, in the price table's currency; `None` without a price."""
    if price is None:
        return None
    paid = spent.input_tokens * price.input_per_million + spent.output_tokens * price.output_per_million
    return paid / _MILLION


def saved_per_call(outcome: Outcome) -> int:
    """Tokens that each call since has been smaller by; 0 for what was undone, or changed nothing."""
    if outcome.undone_at is not None or outcome.kind in _UNCHANGED:
        return 0
    return outcome.tokens_before - outcome.tokens_after


def _row(one: Outcome, calls_since: int, *, price: PriceSettings | None, saving: PriceSettings | None) -> CostRow:
    per_call = saved_per_call(one)
    spent_cost = one.cost if one.cost is not None else cost_of(one.spent, price=price)
    saved = per_call * calls_since
    return CostRow(
        outcome_id=one.id,
        at=one.at,
        spent=one.spent,
        spent_cost=spent_cost,
        saved_tokens_per_call=per_call,
        calls_since=calls_since,
        saved_tokens=saved,
        saved_cost=_input_cost(saved, saving),
        breaks_even_after=_break_even(one, per_call, spent_cost=spent_cost, saving=saving),
    )


def _break_even(one: Outcome, per_call: int, *, spent_cost: float | None, saving: PriceSettings | None) -> float | None:
    if per_call <= 0:
        return None
    money_per_call = _input_cost(per_call, saving)
    if spent_cost is None or money_per_call is None:
        return (one.spent.input_tokens + one.spent.output_tokens) / per_call
    if spent_cost == 0:
        return 0.0
    return spent_cost / money_per_call if money_per_call > 0 else None


def _calls_since(one: Outcome, calls: Sequence[int] | Mapping[str, int]) -> int:
    if isinstance(calls, Mapping):
        return calls.get(one.id, 0)
    return len(calls) - bisect_right(calls, one.last_seq)


def _input_cost(tokens: int, price: PriceSettings | None) -> float | None:
    return tokens * price.input_per_million / _MILLION if price is not None else None
