"""What a view is filled to when it is condensed, and whether condensing it pays before it has to be."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.budget.room_to_grow import fill_target, pays_from, rates_of
from langchain_tiered_memory.context.compaction.proposals import raw_room

if TYPE_CHECKING:
    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs
    from langchain_tiered_memory.context.budget.room_to_grow import Rates
    from langchain_tiered_memory.context.compaction.proposals import Proposal, ViewQuestion
    from langchain_tiered_memory.context.view.rendered_view import RenderedView

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
    filled = max(full - inputs.allocation.spared, 1)
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
    after = max(least, start.head_tokens + inputs.allocation.keep)
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
    if not inputs.touches_files:
        return 0
    settings = inputs.runtime.settings.room
    least = settings.working_tokens + round(settings.least_share * full)
    return min(least, settings.least_tokens, full)


def _rates(inputs: AssemblyInputs, question: ViewQuestion, start: RenderedView) -> Rates:
    return rates_of(start.tail, settings=inputs.runtime.settings, model=question.profile, room=inputs.room)
