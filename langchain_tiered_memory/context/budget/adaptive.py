"""Adaptive condensation threshold: learnt from what past condensations of a session cost and saved.

Each condensation of the past teaches one thing. One that freed little, or came right after another, broke a prompt
cache for nothing: the view should have been let grow (later). One that had to drop messages because their summaries
were not ready, or that came so late that only the essentials fitted, left the background too little time (earlier). The
advice is what the threshold would be had each lesson been followed when it was taught; so it depends on what is set and
on the outcomes alone, and asking twice changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.context.budget.thresholds import adaptively
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, ThresholdAdvice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.settings import ThresholdSettings
    from langchain_tiered_memory.types.outcomes import Outcome

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
    outcomes: Sequence[Outcome], *, present_percent: float, settings: ThresholdSettings
) -> ThresholdAdvice | None:
    """The threshold that `outcomes` speak for, or `None` where they are too few or speak for no other.

    Args:
        outcomes: Kept ones of one session, of any track, in any order; those that were undone, masked tool outputs
            alone, or left the view as it was do not count.
        present_percent: The threshold as set (not as advised before: each outcome would count again with each call).
        settings: The bounds.

    Returns:
        Advice within `adaptive_minimum` and `adaptive_maximum`. A further outcome moves it by at most five points.
    """
    samples = [
        one for one in outcomes if one.kind in (OutcomeKind.CONDENSED, OutcomeKind.TRUNCATED) and one.undone_at is None
    ]
    if len(samples) < LEAST_SAMPLES:
        return None
    samples.sort(key=lambda one: (one.last_seq, one.at))
    start = percent = adaptively(present_percent, settings=settings)
    late = little = close = 0
    last_seqs: dict[str, int] = {}
    for one in samples:
        before = last_seqs.get(one.track)
        last_seqs[one.track] = one.last_seq
        if came_late(one):
            late += 1
            percent = adaptively(percent - STEP_PERCENT, settings=settings)
        elif freed_little(one) or (before is not None and one.last_seq - before < CLOSE_MESSAGES):
            little += freed_little(one)
            close += not freed_little(one)
            percent = adaptively(percent + STEP_PERCENT, settings=settings)
    if abs(percent - start) < STEP_PERCENT / 2:
        return None  # the lessons cancel out
    return ThresholdAdvice(
        percent=adaptively(round(percent, 1), settings=settings),
        present_percent=present_percent,
        samples=len(samples),
        because=_because(percent > start, late=late, little=little, close=close, samples=len(samples)),
    )


def came_late(outcome: Outcome) -> bool:
    """Whether a view had to be cut down because it was full before its summaries were ready."""
    unready = outcome.kind is OutcomeKind.TRUNCATED and outcome.reason in _UNREADY
    return unready or bool(_LATE_STEPS.intersection(outcome.steps))


def freed_little(outcome: Outcome) -> bool:
    """Whether a condensation freed less than a fifth of what stood there."""
    return outcome.tokens_before - outcome.tokens_after < LITTLE_SHARE * outcome.tokens_before


def _because(later: bool, *, late: int, little: int, close: int, samples: int) -> str:  # noqa: FBT001 - one caller
    seen = [
        f"{count} {what}"
        for count, what in (
            (little, f"freed less than {LITTLE_SHARE:.0%} of the view"),
            (close, f"came fewer than {CLOSE_MESSAGES} messages after another"),
            (late, "dropped messages or went down to the essentials, for the summaries were not ready"),
        )
        if count
    ]
    what = "condense later, in bigger steps" if later else "begin earlier, so that summaries are ready"
    return f"of {samples} condensations {', '.join(seen)}: {what}"
