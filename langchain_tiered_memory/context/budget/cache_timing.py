"""Prompt-cache timing: when a cache has expired anyway, a condensation breaks no cached prefix.

A condensation changes the first bytes of a view, and with them what a provider's cache holds. Where the cache's
lifetime is known, a view that would have to be condensed soon is condensed at the first request after a pause longer
than that: the whole prompt is billed in full once in any case, and the smaller one is the cheaper to warm up again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_tiered_memory.settings import CondensationSettings
    from langchain_tiered_memory.types.outcomes import Window


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
