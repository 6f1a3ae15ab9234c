"""Whether a view has to become smaller, why, how full it is left, and what a model has to write for that.

It has to past its threshold; where it is larger than its room; in the critical zone; where the provider's cache of it
ran out anyway and it would have to be condensed soon; or where going on costs more a turn than condensing. The borders
of the zones are those of the context-strategy design; a request that stands on a border belongs to the fuller zone.

How full a condensation leaves a view, and from which size on condensing pays, follow from what is billed. Between two
condensations a view grows from `after` to `full` tokens, by `growth` a turn. Each turn sends what stands there already
at the price of cached input, and what is new in full; a condensation sends all that it leaves in full once. In prices
of an uncached token, a turn costs on average, besides what is new and is paid for in any case,

    cached * (after + full) / 2 + (1 - cached) * after * growth / (full - after)

The first part says that every token kept costs a little at each turn; the second, that a view left nearly full is paid
for in full every few turns. What a condensing model reads and writes is the same whatever a view is filled to, for
everything is condensed once, and several chunks in a call.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.thresholds import full_at, overfull, percent_for
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.packing import Need
from langchain_tiered_memory.context.policy import filled_at_least, no_room_beside
from langchain_tiered_memory.context.view.plan import standing_before
from langchain_tiered_memory.models.chat_models import cached_price
from langchain_tiered_memory.summaries.tree.condense import Wish
from langchain_tiered_memory.text.truncation import most_fitting
from langchain_tiered_memory.types.outcomes import ZONES, Alert, Zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.packing import Packing
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.rendered_view import RenderedView
    from langchain_tiered_memory.settings import CondensationSettings, GuardSettings, Settings
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
    """What the latest turns of a track tell; `room` is that of the view, for a track that has no turn yet."""
    turns = tokens = 0
    for entry in reversed(recent):
        if entry.role == "assistant":
            if turns == NUMBERS.growth_turns:
                break
            turns += 1
        tokens += entry.tokens
    growth = tokens / turns if turns else room / NUMBERS.growth_turns
    return Rates(cached=cached_price(settings, model), growth=max(growth, 1.0))


def cost_of_turn(after: float, full: float, rates: Rates) -> float:
    """What a turn costs on average between two condensations, besides what is new; without end where nothing grows."""
    if after >= full:
        return math.inf
    once = (1 - rates.cached) * after
    return rates.cached * (after + full) / 2 + once * rates.growth / (full - after)


def fill_target(*, full: int, least: int, most: int, rates: Rates, extra_share: float) -> int:
    """Tokens that a condensation may leave in a view which is condensed at `full` tokens.

    The most that costs a turn at most `extra_share` more than leaving the least: the faster a view grows, or the
    smaller it is, the less. Never below `least`, nor above `most` where that is more.
    """
    bound = cost_of_turn(least, full, rates) * (1 + extra_share)
    most = max(min(most, full - 1), least)
    return most_fitting(most, lambda size: cost_of_turn(size, full, rates) <= bound, least=least)


def pays_from(after: int, rates: Rates, *, extra_share: float = 0.0) -> int:
    """The size from which on a view is better condensed to `after` tokens than left to grow.

    Where the share is 0, that is the size at which going on costs more a turn than condensing; else the largest at
    which turns cost that share more than at the cheapest, and so have more in view.
    """
    once = (1 - rates.cached) * after * rates.growth
    cheapest = math.sqrt(2 * once / rates.cached)
    beside = (1 + extra_share) * rates.cached * (after + cheapest) - rates.cached * after
    further = math.sqrt(max(beside**2 - 2 * rates.cached * once, 0.0))
    return max(math.ceil(after + (beside + further) / rates.cached), after + 1)


PREVIEWED = "a preview was requested"
CHEAPER = "continuing would cost more per turn than condensing"
"""Begins the reason of a condensation that nothing but its price asks for."""
_RECOMMENDATIONS = {
    Zone.SAFE: "Nothing to do.",
    Zone.WARNING: (
        "The request takes most of its room. Finish tasks that are done, unpin what is no longer needed, or let "
        "`flush()` finish the summaries that the next condensation will need."
    ),
    Zone.DANGER: (
        "Little room is left. Save a checkpoint before anything risky; the next request will be pruned or condensed. "
        "A larger window, fewer tools or a shorter system prompt would help."
    ),
    Zone.CRITICAL: (
        "The request hardly fits. The state is saved and the view pruned to its essentials; if that happens again, "
        "raise the window, lower what is reserved for the answer, or shorten pins, tools and system prompt."
    ),
}


def need_of(inputs: Inputs, start: RenderedView, *, used: int) -> Need:
    """Measure a view as it stands, `used` billed tokens with all of the request."""
    window = inputs.window
    # What is beyond the share that was chosen leaves in any case: it is no reason for an alert.
    alerts_at = used if window.most is None else min(used, window.most)
    zone = zone_of(alerts_at, window.limit, settings=inputs.settings.guard)
    if inputs.policy.is_full:  # no smaller view helps: nobody waits for a summary
        why = no_room_beside(inputs.policy.fixed, window.limit, ratio=inputs.ratio)
        return Need(used_tokens=used, zone=zone, percent=math.inf, why=why)
    percent = percent_for(inputs, used=used, zone=zone)
    limit, best = math.floor(full_at(window, percent=percent)), _best_size(inputs, start, percent=percent)
    at = limit if best is None else min(limit, inputs.billed(best))
    need = Need(used_tokens=used, zone=zone, percent=percent, condensed_at=at)
    return replace(need, why=_why(inputs, start, need, best=best) or (PREVIEWED if inputs.forced else ""))


def _why(inputs: Inputs, start: RenderedView, need: Need, *, best: int | None) -> str:
    window, settings, used = inputs.window, inputs.settings.condensation, need.used_tokens
    waits = settings.strategies.primary == "provider"
    why = "" if waits else overfull(used, window, percent=need.percent)
    if not why and start.tokens > inputs.room:
        why = f"the view takes {start.tokens:,} tokens, and {max(inputs.room, 0):,} are left for it"
    if why or waits:
        return why
    if need.zone is Zone.CRITICAL:
        return f"{used:,} of {window.limit:,} tokens are critical"
    if start.plan.border >= inputs.required.guard:
        return ""
    last = max((entry.at for entry in start.tail if entry.role == "assistant"), default=None)
    if cache_ran_out(last, now=inputs.runtime.now(), settings=settings):
        why = early_full(used, window, percent=need.percent)
    return why or _cheaper(inputs, start, percent=need.percent, best=best)


def zone_of(used_tokens: int, limit_tokens: int, *, settings: GuardSettings) -> Zone:
    """The zone of a request; the limit is the window minus reserved output, and one below 1 is taken for 1."""
    filled = max(used_tokens, 0) / max(limit_tokens, 1)
    if filled >= settings.critical:
        return Zone.CRITICAL
    if filled >= settings.danger:
        return Zone.DANGER
    return Zone.WARNING if filled >= settings.warning else Zone.SAFE


def alert_for(zone: Zone, *, before: Zone | None, used_tokens: int, limit_tokens: int) -> Alert | None:
    """What to tell when a request enters `zone`; `None` where it is no fuller than the one before.

    So each zone alerts once until it is left downward: a request that falls back to a lower zone and comes again is
    told of again, and one that jumps over a zone is told of the fuller one alone. The first counts as safe before.
    """
    if ZONES.index(zone) <= ZONES.index(before or Zone.SAFE):
        return None
    limit = max(limit_tokens, 1)
    return Alert(zone=zone, used_tokens=used_tokens, limit_tokens=limit, recommendation=_RECOMMENDATIONS[zone])


def cache_ran_out(last_sent_at: float | None, *, now: float, settings: CondensationSettings) -> bool:
    """Whether the provider has dropped its cache of a view: where its lifetime is known, and there was a request.

    Providers count from the last use, so the time of the last request is what matters.
    """
    lifetime = settings.cache_lifetime_seconds
    return lifetime is not None and last_sent_at is not None and now - last_sent_at >= lifetime


def early_full(used_tokens: int, window: Window, *, percent: float) -> str:
    """Why to condense a view before it is full, given that the cache ran out: a sentence, or empty."""
    soon = NUMBERS.early_share * full_at(window, percent=percent)
    if used_tokens < soon:
        return ""
    return (
        f"the provider's cache expired, and {used_tokens:,} tokens are past {math.ceil(soon):,}, "
        f"{NUMBERS.early_share:.0%} of where this view has to be condensed"
    )


def filled_as_pays(inputs: Inputs, start: RenderedView, *, percent: float) -> Inputs:
    """`inputs` with what a condensation fills the view to, by how fast its latest messages let it grow."""
    full = _full(inputs, percent=percent)
    filled = max(full - inputs.policy.spared, 1)
    least, most = _least_and_most(inputs, filled)
    extra, rates = inputs.settings.room.extra_share, _rates(inputs, start)
    return replace(inputs, fill=fill_target(full=full, least=least, most=most, rates=rates, extra_share=extra))


def _cheaper(inputs: Inputs, start: RenderedView, *, percent: float, best: int | None) -> str:
    """Why a view is condensed though it fits: a sentence with figures, empty where it goes on growing."""
    if best is None or start.tokens < best:
        return ""
    # What did not pay is not tried at each request, but when there is as much more as a condensation has to free.
    step = max(round(NUMBERS.least_progress_share * _full(inputs, percent=percent)), 1)
    tried = ("cheaper", inputs.ref.key, inputs.name, start.plan.border, start.tokens // step)
    if not (inputs.forced or inputs.runtime.view_cache.first_time(tried)):
        return ""
    return f"{CHEAPER}: {start.tokens:,} tokens, and {best:,} are best"


def _best_size(inputs: Inputs, start: RenderedView, *, percent: float) -> int | None:
    """Raw tokens from which on a view is condensed for its price alone; `None` where the settings let it grow on."""
    settings = inputs.settings.room
    if settings.grows_to != "cheapest":
        return None
    # What stands before the recent messages stays about as large, or takes its rooms as far as there is enough to tell.
    policy, told = inputs.policy, max(start.tail_tokens - inputs.policy.keep, 0)
    rooms = NUMBERS.cover_filled_share * policy.cover + policy.of("facts")
    head = max(start.head_tokens, round(min(rooms, inputs.settings.tree.level(1).target_ratio * told)))
    least, _ = _least_and_most(inputs, _full(inputs, percent=percent))
    after = max(least, head + policy.keep)
    return pays_from(after, _rates(inputs, start), extra_share=settings.extra_share)


def does_not_pay(packing: Packing, found: RenderedView) -> bool:
    """Whether a condensation that only its price asks for leaves too much for that."""
    if not packing.need.why.startswith(CHEAPER):
        return False
    extra, rates = packing.inputs.settings.room.extra_share, _rates(packing.inputs, packing.rendered)
    return packing.rendered.tokens < pays_from(found.tokens, rates, extra_share=extra)


def _full(inputs: Inputs, *, percent: float) -> int:
    """Raw tokens at which the view has to be condensed, whatever asks for it first."""
    return max(min(inputs.room, inputs.raw_room(math.floor(full_at(inputs.window, percent=percent)))), 1)


def _least_and_most(inputs: Inputs, full: int) -> tuple[int, int]:
    """Raw tokens that a view is filled to in any case, and at most: one that is left full is condensed again at once.

    One of them is what it has with all that an agent has at hand, where it worked on files lately.
    """
    at_hand = filled_at_least(inputs.settings, full) if inputs.mode.shows_parts else 0
    share = round(NUMBERS.filled_share * full)
    return min(at_hand, share), max(at_hand, share)


def _rates(inputs: Inputs, start: RenderedView) -> Rates:
    return rates_of(start.tail, settings=inputs.settings, model=inputs.profile, room=inputs.room)


def wished(packing: Packing) -> Wish | None:
    """What a view needs in a model's words now or soon; `None` where that is nothing.

    It is foreseen from the growth of the last turns: a history that is not near the end of its room needs nothing.
    """
    inputs, shown, condensed_at = packing.inputs, packing.rendered, packing.need.condensed_at
    up_to = shown.plan.border
    if condensed_at is not None:
        left = min(condensed_at - packing.tokens, round((inputs.room - shown.tokens) * inputs.ratio))
        grown: list[int] = []  # between one request and the next: an answer, its results, and what was said to it
        for entry in shown.tail:
            if entry.role == "assistant" or not grown:
                grown.append(0)
            grown[-1] += entry.tokens
        grown = grown[-NUMBERS.growth_requests :] or [0]
        expected = NUMBERS.lead_requests * sum(grown) / len(grown) + max(grown)
        if left <= round(min(expected * inputs.ratio, NUMBERS.latest_wish_share * condensed_at)):
            grows_by = max(round(left / inputs.ratio), 0)
            up_to = max(up_to, standing_before(inputs, shown.tail, grows_by=grows_by))
    return Wish(track=inputs.track, up_to=up_to) if up_to else None
