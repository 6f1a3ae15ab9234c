"""At how full a window a view is condensed: what is set, what past condensations taught, what a resolver says.

The rules are those of the condensation-mechanism design: a profile's own threshold counts from 5 to 100 percent, -1
inherits the global one, anything else is warned of and taken for the global one. The adaptive threshold is learnt from
what past condensations cost and saved. One that freed little, or came right after another, broke a prompt cache for
nothing: later. One that dropped messages because their summaries were not ready, or left the essentials alone: earlier.
Advice is what the threshold would be had each lesson been followed; asking twice changes nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.extensions import ThresholdQuestion
from langchain_tiered_memory.models.window_budget import ModelProfile, budget_of
from langchain_tiered_memory.settings import ThresholdSettings
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, ThresholdAdvice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.outcomes import Outcome, Window, Zone
    from langchain_tiered_memory.types.records import SessionRef

LEAST_PERCENT, MOST_PERCENT = 5.0, 100.0
"""Of any threshold."""
_BOUNDS = f"{LEAST_PERCENT:g} to {MOST_PERCENT:g}"
LEAST_ADAPTIVE, MOST_ADAPTIVE = 50.0, 90.0
"""Of one that is learnt."""
INHERITS = -1.0
"""A profile's threshold that stands for the global one."""


def threshold_of(
    settings: ThresholdSettings, *, profile: str | None, resolved: float | None, advice: ThresholdAdvice | None
) -> tuple[float, str]:
    """The threshold of a request: a resolver's answer, else (when switched on) the advice, else what is set.

    In percent of the window, 5 to 100; and what was set or answered that cannot be used, to be said once.
    """
    percent, warnings = configured_percent(settings, profile=profile)
    if settings.adaptive and advice is not None and not math.isnan(advice.percent):
        percent = adaptively(advice.percent)
    if resolved is not None:
        if _valid(resolved):
            percent = float(resolved)
        else:
            warnings.append(
                f"the threshold resolver said {resolved!r} percent, which is not within {_BOUNDS}: "
                f"{percent:g} percent is used"
            )
    return percent, "; ".join(warnings)


def full_at(window: Window, *, percent: float) -> float:
    """Billed tokens at which a view is full: at its threshold, or at all that the window allows where that is less."""
    return min(window.allowed, window.tokens * percent / 100)


def overfull(used_tokens: int, window: Window, *, percent: float) -> str:
    """Why a view has to be condensed: a sentence with figures, empty where it has not."""
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


def adaptively(percent: float, *, most: float = MOST_ADAPTIVE) -> float:
    """`percent` within the bounds of an adaptive threshold, and not above what a window allows."""
    return min(max(percent, LEAST_ADAPTIVE), most)


def configured_percent(settings: ThresholdSettings, *, profile: str | None) -> tuple[float, list[str]]:
    """The threshold as set for a profile, before resolvers and advice have their say, and what cannot be used of it."""
    percent, warnings = settings.percent, list[str]()
    if not _valid(percent):
        percent = ThresholdSettings().percent
        warnings.append(
            f"condensation.thresholds.percent is {settings.percent!r}, which is not within {_BOUNDS}: "
            f"{percent:g} percent is used"
        )
    own = settings.profiles.get(profile) if profile is not None else None
    if own is None or own == INHERITS:
        return percent, warnings
    if _valid(own):
        return own, warnings
    warnings.append(
        f"condensation.thresholds.profiles has {own!r} for {profile!r}, which is neither -1 nor within {_BOUNDS}: "
        f"{percent:g} percent is used"
    )
    return percent, warnings


def _valid(percent: float) -> bool:
    """Whether a threshold can be used: NaN compares as false, and a resolver may answer anything."""
    is_number = isinstance(percent, int | float) and not isinstance(percent, bool)
    return is_number and LEAST_PERCENT <= percent <= MOST_PERCENT


LEAST_SAMPLES = 3
"""Fewer say nothing."""
STEP_PERCENT = 5 / LEAST_SAMPLES
"""What one condensation moves the threshold by: three alike move it by five points."""
LITTLE_SHARE = 0.2
"""A condensation that frees less of what stood there was hardly worth its broken prefix."""
CLOSE_MESSAGES = 12
"""Condensations with fewer messages between them, some six calls of a model, follow each other too closely."""
_LATE_STEPS = frozenset({"minimal", "recovered"})
"""Steps that only a view in the critical zone takes."""
_UNREADY = frozenset(
    {
        FailureReason.NOT_READY,
        FailureReason.TIMEOUT,
        FailureReason.RATE_LIMITED,
        FailureReason.CIRCUIT_OPEN,
        FailureReason.MODEL_ERROR,
    }
)
"""Why a summary was missing that an earlier start might have had ready."""


def advice(
    outcomes: Sequence[Outcome], *, present_percent: float, most: float = MOST_ADAPTIVE
) -> ThresholdAdvice | None:
    """The threshold that `outcomes` speak for, or `None` where they are too few or speak for no other.

    Outcomes that were undone, masked tool outputs alone, or left the view as it was do not count. `present_percent` is
    the threshold as set, not as advised before: each outcome would count again with each call. `most` is the highest
    that the window allows. A further outcome moves the advice by at most five points.
    """
    samples = [
        one for one in outcomes if one.kind in (OutcomeKind.CONDENSED, OutcomeKind.TRUNCATED) and one.undone_at is None
    ]
    if len(samples) < LEAST_SAMPLES:
        return None
    samples.sort(key=lambda one: (one.last_seq, one.at))
    start = percent = adaptively(present_percent, most=most)
    little = f"freed less than {LITTLE_SHARE:.0%} of the view"
    close = f"came fewer than {CLOSE_MESSAGES} messages after another"
    late = "dropped messages or fell back to the essentials, because summaries were not ready"
    seen = dict.fromkeys((little, close, late), 0)
    last_seqs: dict[str, int] = {}
    for one in samples:
        before = last_seqs.get(one.track)
        last_seqs[one.track] = one.last_seq
        unready = one.kind is OutcomeKind.TRUNCATED and one.reason in _UNREADY
        lesson = ""
        if unready or _LATE_STEPS.intersection(one.steps):
            lesson = late
        elif one.tokens_before - one.tokens_after < LITTLE_SHARE * one.tokens_before:
            lesson = little
        elif before is not None and one.last_seq - before < CLOSE_MESSAGES:
            lesson = close
        if lesson:
            seen[lesson] += 1
            percent = adaptively(percent + (-STEP_PERCENT if lesson == late else STEP_PERCENT), most=most)
    if abs(percent - start) < STEP_PERCENT / 2:
        return None  # the lessons cancel out
    told = ", ".join(f"{count} {what}" for what, count in seen.items() if count)
    what = "condense later, in bigger steps" if percent > start else "begin earlier, so that summaries are ready"
    return ThresholdAdvice(
        percent=adaptively(round(percent, 1), most=most),
        present_percent=present_percent,
        samples=len(samples),
        because=f"of {len(samples)} condensations {told}: {what}",
    )


_LEARNT_FROM = 20
"""Last outcomes of a view that speak for a threshold."""


def percent_for(inputs: Inputs, *, used: int, zone: Zone) -> float:
    """The threshold of a request; infinite for a bare budget, which is grown into to its end."""
    runtime, window, profile = inputs.runtime, inputs.window, inputs.profile
    if window.source == "budget":
        return math.inf
    settings = inputs.settings.condensation.thresholds
    learnt: ThresholdAdvice | None = None
    resolver = runtime.condenser.views.threshold_resolver
    if settings.adaptive or resolver is not None:
        learnt = advised(runtime, inputs.ref, profile, window=window)
    resolved: float | None = None
    if resolver is not None:
        asked = ThresholdQuestion(
            session_id=inputs.ref.session_id,
            track=inputs.track,
            profile=profile,
            global_percent=settings.percent,
            profile_percent=settings.profiles.get(profile or ""),
            used_tokens=used,
            window_tokens=window.tokens,
            zone=zone,
            advice=learnt,
        )
        runtime.store.database.end_snapshot()  # a resolver is somebody else's code, in a thread of its own
        resolved = runtime.condenser.views.resolve_threshold(asked)
    percent, warning = threshold_of(settings, profile=profile, resolved=resolved, advice=learnt)
    if warning and runtime.view_cache.first_time(warning):
        runtime.report(EventName.THRESHOLD_UNUSABLE, warning, session_id=inputs.ref.session_id)
    return percent


def advised(
    runtime: Runtime,
    ref: SessionRef,
    profile: str | None,
    *,
    window: Window | None = None,
    track: str | None = None,
) -> ThresholdAdvice | None:
    """The threshold that past condensations of a session, or of one track, speak for, as far as the window allows."""
    settings, most = runtime.settings.condensation.thresholds, MOST_ADAPTIVE
    if window is None and (known := runtime.settings.guard.window) is not None:
        window = budget_of(known, ModelProfile(), settings=runtime.settings).window
    if window is not None:
        most = min(most, math.floor(100 * window.allowed / window.tokens))
    outcomes = runtime.store.outcomes.read(ref, limit=_LEARNT_FROM, track=track)
    present, _ = configured_percent(settings, profile=profile)
    return advice(outcomes, present_percent=present, most=most)
