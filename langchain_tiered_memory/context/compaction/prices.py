"""How full a condensation leaves a view, and from which size on condensing pays: both from what is billed.

Between two condensations a view grows from `after` to `full` tokens, by `growth` a turn. Each turn sends what stands
there already at the price of cached input, and what is new in full; a condensation sends all that it leaves in full
once. In prices of an uncached token, a turn costs on average, besides what is new and is paid for in any case,

    cached * (after + full) / 2 + (1 - cached) * after * growth / (full - after)

The first part says that every token kept costs a little at each turn; the second, that a view left nearly full is paid
for in full every few turns. What a condensing model reads and writes is the same whatever a view is filled to, for
everything is condensed once, and several chunks in a call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.models.chat_models import cached_price

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.types.records import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What a turn is billed by, in prices of an uncached token of input."""

    cached: float
    """Of a token read from the provider's cache."""
    growth: float
    """Tokens that a turn adds."""


def rates_of(recent: Sequence[Entry], *, settings: Settings, model: str | None, room: int) -> Rates:
    """What the latest turns of a track tell.

    Args:
        recent: Its recent messages, oldest first; a turn ends with each of the assistant's.
        settings: Prices.
        model: Whose price counts, where it is known.
        room: Tokens of the view, for a track that has no turn yet.
    """
    turns = tokens = 0
    for entry in reversed(recent):
        turns += entry.role == "assistant"
        if turns > NUMBERS.growth_turns:
            break
        tokens += entry.tokens
    growth = tokens / turns if turns else NUMBERS.unknown_growth_share * room
    return Rates(cached=cached_price(settings, model), growth=max(growth, 1.0))


def cost_of_turn(after: float, full: float, rates: Rates) -> float:
    """What a turn costs on average between two condensations, besides what is new; without end where nothing grows."""
    if after >= full:
        return math.inf
    once = (1 - rates.cached) * after
    return rates.cached * (after + full) / 2 + once * rates.growth / (full - after)


def fill_target(*, full: int, least: int, most: int, rates: Rates, extra_share: float) -> int:
    """Tokens that a condensation may leave in a view.

    The most that costs a turn at most `extra_share` more than leaving the least: the faster a view grows, or the
    smaller it is, the less. Never below `least`, nor above `most` where that is more.

    Args:
        full: Tokens at which the view is condensed.
        least: That it keeps in any case.
        most: That it may keep at the utmost.
        rates: Prices and growth.
        extra_share: How much more than the least may cost.
    """
    low, high = least, max(min(most, full - 1), least)
    bound = cost_of_turn(least, full, rates) * (1 + extra_share)
    while low < high:
        middle = (low + high + 1) // 2
        if cost_of_turn(middle, full, rates) <= bound:
            low = middle
        else:
            high = middle - 1
    return low


def pays_from(after: int, rates: Rates, *, extra_share: float = 0.0) -> int:
    """The size from which on a view is better condensed to `after` tokens than left to grow.

    Where the share is 0, that is the size at which going on costs more a turn than condensing; else the largest at
    which turns cost that share more, and so have more in view.

    Args:
        after: Tokens that a condensation would leave.
        rates: Prices and growth.
        extra_share: How much more than at the cheapest size a turn may cost.
    """
    once = (1 - rates.cached) * after * rates.growth
    cheapest = math.sqrt(2 * once / rates.cached)
    beside = (1 + extra_share) * rates.cached * (after + cheapest) - rates.cached * after
    further = math.sqrt(max(beside**2 - 2 * rates.cached * once, 0.0))
    return max(math.ceil(after + (beside + further) / rates.cached), after + 1)
