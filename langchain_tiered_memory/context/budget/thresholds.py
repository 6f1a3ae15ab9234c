"""Condensation thresholds: at how many percent of the window a view is condensed, and whether it is due.

The rules are those of the condensation-mechanism design: a profile's own threshold counts from 5 to 100 percent, -1
inherits the global one, anything else is warned of and taken for the global one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_tiered_memory.settings import ThresholdSettings
    from langchain_tiered_memory.types.outcomes import ThresholdAdvice, Window

DEFAULT_PERCENT = 75.0
"""Where the global threshold itself cannot be used."""
INHERITS = -1.0
"""A profile's threshold that stands for the global one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """At how full a window a view is condensed."""

    percent: float
    """Of the window, 5 to 100 (or within the bounds that were set)."""
    warning: str | None = None
    """What was set or answered that cannot be used; to be said once."""


def threshold_of(
    settings: ThresholdSettings, *, profile: str | None, resolved: float | None, advice: ThresholdAdvice | None
) -> Threshold:
    """The threshold of a request: a resolver's answer, else (when switched on) the advice, else what is set.

    Args:
        settings: What is set, and the bounds.
        profile: Name of the model, or the profile that the request names.
        resolved: What a threshold resolver said; `None` for no opinion.
        advice: What past condensations of the session speak for.
    """
    warnings: list[str] = []
    percent = _configured(settings, profile, warnings)
    if settings.adaptive and advice is not None and not math.isnan(advice.percent):
        percent = adaptively(advice.percent, settings=settings)
    if resolved is not None:
        if _valid(resolved, settings):
            percent = float(resolved)
        else:
            warnings.append(
                f"the threshold resolver said {resolved!r} percent, which is not within {_bounds(settings)}: "
                f"{percent:g} percent is used"
            )
    return Threshold(percent=percent, warning="; ".join(warnings) or None)


def configured_percent(settings: ThresholdSettings, *, profile: str | None) -> float:
    """The threshold as set for a profile, before resolvers and advice have their say."""
    return _configured(settings, profile, [])


def due(used_tokens: int, window: Window, *, percent: float) -> str:
    """Why a view has to be condensed: a sentence with figures, empty where it has not.

    Args:
        used_tokens: Of the whole request, before anything is pruned.
        window: The room of the request.
        percent: The threshold, in percent of the window.
    """
    if used_tokens > window.allowed and window.source == "budget":
        return f"{used_tokens:,} tokens are more than the budget of {window.allowed:,}"
    if used_tokens > window.allowed:
        return (
            f"{used_tokens:,} tokens are more than the {window.allowed:,} allowed in a window of {window.tokens:,} "
            f"({window.reserved_tokens:,} reserved for the answer)"
        )
    filled = 100 * used_tokens / max(window.tokens, 1)
    if filled >= percent:
        return (
            f"{used_tokens:,} tokens are {filled:.1f} % of a window of {window.tokens:,}; "
            f"the threshold is {percent:g} %"
        )
    return ""


def adaptively(percent: float, *, settings: ThresholdSettings) -> float:
    """`percent` within the bounds of an adaptive threshold, which never leave those of any threshold.

    Bounds that are the wrong way round are taken for each other.
    """
    low, high = sorted((settings.adaptive_minimum, settings.adaptive_maximum))
    within = min(max(percent, low), high)
    least, most = sorted((settings.minimum, settings.maximum))
    return min(max(within, least), most)


def _configured(settings: ThresholdSettings, profile: str | None, warnings: list[str]) -> float:
    percent = settings.percent
    if not _valid(percent, settings):
        low, high = sorted((settings.minimum, settings.maximum))
        percent = min(max(DEFAULT_PERCENT, low), high)
        warnings.append(
            f"condensation.thresholds.percent is {settings.percent!r}, which is not within {_bounds(settings)}: "
            f"{percent:g} percent is used"
        )
    own = settings.profiles.get(profile) if profile is not None else None
    if own is None or own == INHERITS:
        return percent
    if _valid(own, settings):
        return own
    warnings.append(
        f"condensation.thresholds.profiles has {own!r} for {profile!r}, which is neither -1 nor within "
        f"{_bounds(settings)}: {percent:g} percent is used"
    )
    return percent


def _valid(percent: float, settings: ThresholdSettings) -> bool:
    """Whether a threshold can be used: NaN compares as false, and a resolver may answer anything."""
    low, high = sorted((settings.minimum, settings.maximum))
    return isinstance(percent, int | float) and not isinstance(percent, bool) and low <= percent <= high


def _bounds(settings: ThresholdSettings) -> str:
    low, high = sorted((settings.minimum, settings.maximum))
    return f"{low:g} to {high:g}"
