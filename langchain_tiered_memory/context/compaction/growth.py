"""How full a view is left by a condensation, and from which size on condensing pays: both from what is billed.

Between two condensations a view grows from `after` to `full` tokens, by `growth` a turn. Each turn sends what stands
there already at the price of cached input, and what is new in full; a condensation sends all that it leaves in full
once. In prices of an uncached token, a turn costs on average, besides what is new and is paid for in any case,

    cached * (after + full) / 2 + (1 - cached) * after * growth / (full - after)

The first part says that every token kept costs a little at each turn; the second, that a view left nearly full is paid
for in full every few turns. What a condensing model reads and writes is the same whatever a view is filled to, for
everything is condensed once, and several chunks in a call.

Where a provider's cache of a view has expired anyway, a condensation breaks no cached prefix: a view that would have to
be condensed soon is condensed at the first request after such a pause.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.assembly_inputs import raw_room
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.models.profiles import cached_price

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs, Proposal, ViewQuestion
    from langchain_tiered_memory.context.view.rendered_view import RenderedView
    from langchain_tiered_memory.settings import CondensationSettings, Settings
    from langchain_tiered_memory.types.outcomes import Window
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


def cache_ran_out(last_sent_at: float | None, *, now: float, settings: CondensationSettings) -> bool:
    """Whether the provider has dropped its cache of a view.

    Providers count from the last use, so the time of the last request is what matters.

    Args:
        last_sent_at: When the last request of the view was made, in seconds since the epoch; `None` where there was
            none, and so no cache either.
        now: The time, in the same seconds. A clock that went back says nothing: not run out.
        settings: Knows the lifetime, or not: then it is never taken for run out.
    """
    lifetime = settings.cache_lifetime_seconds
    if lifetime is None or last_sent_at is None:
        return False
    return now - last_sent_at >= lifetime


def early_due(used_tokens: int, window: Window, *, percent: float, settings: CondensationSettings) -> str:
    """Why to condense a view before its threshold, given that the cache ran out: a sentence, or empty.

    Args:
        used_tokens: Of the whole request, before anything is pruned.
        window: The room of the request.
        percent: The threshold, in percent of the window.
        settings: Knows the share of the threshold from which on this holds.
    """
    early = percent * settings.early_share
    # What is allowed can be reached before the threshold is: then it is what is waited for.
    allowed = settings.early_share * window.allowed
    if 100 * used_tokens / max(window.tokens, 1) < early and used_tokens < allowed:
        return ""
    soon = math.ceil(min(early * window.tokens / 100, allowed))
    return (
        f"the provider's cache ran out, and {used_tokens:,} tokens are past {soon:,}, "
        f"{settings.early_share:.0%} of where this view has to be condensed"
    )


CHEAPER = "going on would cost more a turn than condensing"
"""Begins the reason of a condensation that nothing but its price asks for."""


def filled_as_pays(
    inputs: AssemblyInputs, question: ViewQuestion, start: RenderedView, *, percent: float
) -> AssemblyInputs:
    """`inputs` with what a condensation fills the view to.

    Args:
        inputs: Of the assembly.
        question: Tells the window.
        start: The view as it stands: its latest messages tell how fast it grows.
        percent: The threshold, in percent of the window.
    """
    settings = inputs.runtime.settings
    full = _full(inputs, question, percent=percent)
    filled = max(full - inputs.rooms.spared, 1)
    target = fill_target(
        full=full,
        least=_least(inputs, filled),
        most=round(settings.files.filled_share * filled),
        rates=_rates(inputs, question, start),
        extra_share=settings.room.extra_share,
    )
    return replace(inputs, fill=target)


def cheaper_due(inputs: AssemblyInputs, question: ViewQuestion, start: RenderedView, *, percent: float) -> str:
    """Why a view is condensed though it fits: a sentence with figures, empty where it goes on growing."""
    best = best_size(inputs, question, start, percent=percent)
    if best is None or start.tokens < best:
        return ""
    settings, full = inputs.runtime.settings, _full(inputs, question, percent=percent)
    # What did not pay is not tried at each request, but when there is as much more as a condensation has to free.
    step = max(round(settings.condensation.least_progress_share * full), 1)
    tried = ("cheaper", inputs.ref.key, question.name, start.plan.border, start.tokens // step)
    if not (question.forced or inputs.runtime.view_cache.first_time(tried)):
        return ""
    return f"{CHEAPER}: {start.tokens:,} tokens, and {best:,} are best"


def best_size(inputs: AssemblyInputs, question: ViewQuestion, start: RenderedView, *, percent: float) -> int | None:
    """Raw tokens from which on a view is condensed for its price alone; `None` where the settings let it grow on."""
    settings = inputs.runtime.settings.room
    if settings.grows_to != "cheapest":
        return None
    # What stands before the recent messages stays about as large; it is more than the least in some views.
    least = _least(inputs, _full(inputs, question, percent=percent))
    after = max(least, start.head_tokens + inputs.rooms.keep)
    return pays_from(after, _rates(inputs, question, start), extra_share=settings.extra_share)


def does_not_pay(question: ViewQuestion, proposal: Proposal, found: RenderedView) -> bool:
    """Whether a condensation that only its price asks for leaves too much for that."""
    if not proposal.why.startswith(CHEAPER):
        return False
    rates = _rates(proposal.inputs, question, proposal.rendered)
    extra = proposal.inputs.runtime.settings.room.extra_share
    return proposal.rendered.tokens < pays_from(found.tokens, rates, extra_share=extra)


def _full(inputs: AssemblyInputs, question: ViewQuestion, *, percent: float) -> int:
    """Raw tokens at which the view has to be condensed, whatever asks for it first."""
    if math.isinf(percent):
        return max(inputs.room, 1)
    threshold = math.floor(percent / 100 * question.window.tokens)
    return max(min(inputs.room, raw_room(inputs, threshold)), 1)


def _least(inputs: AssemblyInputs, full: int) -> int:
    """Raw tokens that a view is filled to in any case: with file work, where there was some lately."""
    if not inputs.rooms.mode.shows_parts:
        return 0
    settings = inputs.runtime.settings.room
    least = settings.working_tokens + round(settings.least_share * full)
    return min(least, settings.least_tokens, full)


def _rates(inputs: AssemblyInputs, question: ViewQuestion, start: RenderedView) -> Rates:
    return rates_of(start.tail, settings=inputs.runtime.settings, model=question.profile, room=inputs.room)
