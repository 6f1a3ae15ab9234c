"""Resolves the condensation threshold of a request: the setting, what was learnt, a user's own resolver."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.budget.adaptive import advice
from langchain_tiered_memory.context.budget.thresholds import configured_percent, threshold_of
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.extensions import ThresholdQuestion
from langchain_tiered_memory.models.window_budget import ModelProfile, budget_of

if TYPE_CHECKING:
    from langchain_tiered_memory.context.compaction.proposals import ViewQuestion
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.outcomes import ThresholdAdvice, Window, Zone
    from langchain_tiered_memory.types.records import SessionRef

_LEARNT_FROM = 20
"""Last outcomes of a view that speak for a threshold."""


def percent_for(runtime: Runtime, ref: SessionRef, question: ViewQuestion, *, used: int, zone: Zone) -> float:
    """The threshold of a request; infinite for a bare budget, which is grown into to its end."""
    if question.window.source == "budget":
        return math.inf
    settings = runtime.settings.condensation.thresholds
    learnt: ThresholdAdvice | None = None
    resolver = runtime.condenser.views.threshold_resolver
    if settings.adaptive or resolver is not None:
        learnt = advised(runtime, ref, question.profile, window=question.window)
    resolved: float | None = None
    if resolver is not None:
        asked = ThresholdQuestion(
            session_id=ref.session_id,
            track=question.track,
            profile=question.profile,
            global_percent=settings.percent,
            profile_percent=settings.profiles.get(question.profile or ""),
            used_tokens=used,
            window_tokens=question.window.tokens,
            zone=zone,
            advice=learnt,
        )
        runtime.store.database.end_snapshot()  # a resolver is somebody else's code, in a thread of its own
        resolved = runtime.condenser.views.resolve_threshold(asked)
    threshold = threshold_of(settings, profile=question.profile, resolved=resolved, advice=learnt)
    if threshold.warning is not None and runtime.view_cache.first_time(threshold.warning):
        runtime.report(EventName.THRESHOLD_UNUSABLE, threshold.warning, session_id=ref.session_id)
    return threshold.percent


def advised(
    runtime: Runtime,
    ref: SessionRef,
    profile: str | None,
    *,
    window: Window | None = None,
    track: str | None = None,
) -> ThresholdAdvice | None:
    """The threshold that past condensations of a session, or of one track, speak for, as far as the window allows."""
    settings = runtime.settings.condensation.thresholds
    if window is None and (known := runtime.settings.guard.window) is not None:
        window = budget_of(known, ModelProfile(), settings=runtime.settings).window
    if window is not None:
        most = math.floor(100 * window.allowed / window.tokens)
        settings = settings.model_copy(update={"adaptive_maximum": min(settings.adaptive_maximum, most)})
    outcomes = runtime.store.outcomes.read(ref, limit=_LEARNT_FROM, track=track)
    present = configured_percent(settings, profile=profile)
    return advice(outcomes, present_percent=present, settings=settings)
