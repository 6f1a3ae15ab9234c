"""How full the window is, and what to say when it gets fuller.

The borders are those of the context-strategy design: 70, 85 and 95 percent of `limit`; a request that stands exactly
on a border belongs to the fuller zone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.types.outcomes import ZONES, Alert, Zone

if TYPE_CHECKING:
    from langchain_tiered_memory.settings import GuardSettings

_RECOMMENDATIONS = {
    Zone.SAFE: "Nothing to do.",
    Zone.WARNING: (
        "The request takes most of its room. Finish tasks that are done, unpin what is not needed any more, or let "
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


def zone_of(used_tokens: int, limit_tokens: int, *, settings: GuardSettings) -> Zone:
    """The zone of a request.

    Args:
        used_tokens: Of the whole request, before anything is pruned.
        limit_tokens: Window minus reserved output; one below 1 is taken for 1.
        settings: The borders, as shares of the limit.
    """
    filled = max(used_tokens, 0) / max(limit_tokens, 1)
    if filled >= settings.critical:
        return Zone.CRITICAL
    if filled >= settings.danger:
        return Zone.DANGER
    return Zone.WARNING if filled >= settings.warning else Zone.SAFE


def alert_for(zone: Zone, *, before: Zone | None, used_tokens: int, limit_tokens: int) -> Alert | None:
    """What to tell when a request enters `zone`; `None` where it is no fuller than the one before.

    So each zone alerts once until it is left downward: a request that falls back to a lower zone and comes again is
    told of again, and one that jumps over a zone is told of the fuller one alone.

    Args:
        zone: Of this request.
        before: Of the last request of the same view; `None` for the first, which counts as safe.
        used_tokens: As the zone was judged by.
        limit_tokens: The same.
    """
    last = Zone.SAFE if before is None else before
    if ZONES.index(zone) <= ZONES.index(last):
        return None
    return Alert(
        zone=zone,
        used_tokens=used_tokens,
        limit_tokens=max(limit_tokens, 1),
        recommendation=_RECOMMENDATIONS[zone],
    )
