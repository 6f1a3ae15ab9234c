"""At how many percent of the window a view is condensed: what is set, what was learnt, what a user's resolver says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.adaptive import advice
from langchain_tiered_memory.decisions.thresholds import configured_percent, threshold_of
from langchain_tiered_memory.extensions import ThresholdQuestion
from langchain_tiered_memory.flows.asking import Flow, do

if TYPE_CHECKING:
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.flows.proposals import ViewQuestion
    from langchain_tiered_memory.outcomes import ThresholdAdvice, Zone
    from langchain_tiered_memory.records import SessionRef

_LEARNT_FROM = 20
"""Last outcomes of a view that speak for a threshold."""


def percent_for(house: House, ref: SessionRef, question: ViewQuestion, *, used: int, zone: Zone) -> Flow[float]:
    """The threshold of a request; infinite for a bare budget, which is grown into to its end."""
    if question.window.source == "budget":
        return math.inf
    settings = house.settings.condensation.thresholds
    learnt: ThresholdAdvice | None = None
    resolver = house.condenser.views.threshold_resolver
    if settings.adaptive or resolver is not None:
        learnt = yield from advised(house, ref, question.profile)
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
        resolved = yield from do(house.condenser.views.resolve_threshold, asked)
    threshold = threshold_of(settings, profile=question.profile, resolved=resolved, advice=learnt)
    if threshold.warning is not None and house.standing.first_time(threshold.warning):
        house.report("threshold_unusable", threshold.warning, session_id=ref.session_id)
    return threshold.percent


def advised(house: House, ref: SessionRef, profile: str | None) -> Flow[ThresholdAdvice | None]:
    """The threshold that past condensations of a session speak for."""
    settings = house.settings.condensation.thresholds
    outcomes = yield from do(house.store.outcomes.read, ref, limit=_LEARNT_FROM)
    present = configured_percent(settings, profile=profile)
    return advice(outcomes, present_percent=present, settings=settings)
