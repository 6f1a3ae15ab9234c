"""What gives way where not all fits: the ladder, step by step, each only as far as it is needed. Writes nothing.

`proposed` measures a view (`Need`) and goes down the first part of the ladder, which changes its plan: tool outputs are
masked, summaries take the place of messages, what is least important is pruned, the window slides. `packed` goes down
the rest, which changes this request alone: the longest messages are cut, the essentials are shown, the run recovers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.condensing import NOTHING, can_advance, with_summaries
from langchain_tiered_memory.context.compaction.cutting import essentials_shown, laid_out, recovered, required_cut
from langchain_tiered_memory.context.compaction.leaving import pruned_view, slid_view, without_pruned_kinds
from langchain_tiered_memory.context.compaction.masking import masked_view
from langchain_tiered_memory.context.compaction.need import filled_as_pays, need_of
from langchain_tiered_memory.context.packing import Packing
from langchain_tiered_memory.context.view.file_retention import with_more_parts
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.context.view.planning import begun_by_compaction
from langchain_tiered_memory.context.view.rendered_view import is_whole, render_view
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, Zone

if TYPE_CHECKING:
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.driver import Flow

_MISSING_FINISHED = "summaries that were missing are finished"


def proposed(given: Inputs) -> Flow[Packing]:
    """Measure a view, and make it smaller where that is due."""
    runtime, ref = given.runtime, given.ref
    stored = runtime.store.transcript.kept_view(ref, given.name)
    plan = ViewPlan.from_json(stored.plan) if stored.plan is not None else None
    unreadable = stored.plan is not None and plan is None
    if unreadable and runtime.view_cache.first_time(("plan_unreadable", ref.key, given.name)):
        what = "the plan of a view is damaged, or of another version: it is made anew"
        runtime.report(EventName.DAMAGED_ROW, what, session_id=ref.session_id, table="ltm_plans", column="payload")
    inputs = given.at(plan.ratio) if plan is not None else given
    start = render_view(inputs, plan or ViewPlan(border=0, tail_from=1, ratio=inputs.ratio))
    start = begun_by_compaction(inputs, start)
    # Without a plan the view is the whole track, unless there is so much of it that not even all was read.
    whole = plan is not None or is_whole(inputs, start)
    if whole and start.plan.shows_all and start.tokens <= inputs.without_recall().room:
        inputs = inputs.without_recall()
    need = need_of(inputs, start, used=inputs.billed(start.tokens if whole else max(start.tokens, stored.tokens)))
    before = start if whole else None
    packing = Packing(inputs=inputs, need=need, rendered=start, kept=stored.plan, before=before)
    if inputs.policy.is_full:
        return packing
    if not need.why and start.plan.provisional and not given.slides_only and can_advance(inputs, start.plan):
        need = replace(need, why=_MISSING_FINISHED)
    if whole and not need.why:
        return packing
    if whole and start.plan.held and packing.fits:
        held = replace(packing, kind=OutcomeKind.FAILED, reason=FailureReason.UNDONE)
        return replace(held, need=replace(need, due_at=None))
    filled = filled_as_pays(given, start, percent=need.percent)
    return (yield from _made_smaller(replace(packing, inputs=filled, need=need)))


def _made_smaller(packing: Packing) -> Flow[Packing]:
    """Down the steps that change the plan."""
    lean = _without_kinds(packing) if packing.before is not None else packing
    if lean is not packing and lean.rendered.tokens <= lean.target:
        return _refilled(lean)
    packing = _masked(packing) if packing.before is not None else packing
    if not (_is_enough(packing) or packing.inputs.slides_only):
        packing = yield from with_summaries(packing)
    packing = _masked(packing) if _goes_on(packing) else packing
    forbids = packing.inputs.settings.condensation.strategies.fallback == "error"
    if _goes_on(packing) and not packing.fits and forbids and packing.reason is not None:
        return replace(packing, refused=True)
    for step in (_pruned, _slid, _without_kinds, _refilled):
        packing = step(packing)
    return packing


def _masked(packing: Packing) -> Packing:
    """Tool outputs are masked, cheapest loss first; once, with a view as it was or as it was condensed."""
    if "masked" in packing.steps:
        return packing
    rendered, left = masked_view(packing.inputs, packing.rendered, target=packing.target)
    return packing.stepped(rendered, "masked", left, OutcomeKind.MASKED)


def _pruned(packing: Packing) -> Packing:
    """In the critical zone what is least important leaves, unless a user chose what does."""
    if not (_goes_on(packing) and packing.need.zone is Zone.CRITICAL) or _prefers_window(packing):
        return packing
    inputs, target = packing.inputs, packing.target
    if packing.rendered.tokens <= target:
        return packing
    smaller, left = pruned_view(inputs, packing.rendered, target=min(target, inputs.room))
    return packing.stepped(smaller, "pruned", left, OutcomeKind.TRUNCATED)


def _slid(packing: Packing) -> Packing:
    """The window slides until the view fits, or until nothing more may go; then facts and summaries are briefer."""
    inputs, target, fits = packing.inputs, packing.target, packing.fits
    critical = packing.need.zone is Zone.CRITICAL
    if fits and not critical and inputs.slides_only and not _is_enough(packing):
        room = min(target, packing.rendered.tokens - 1)
    elif not fits or (critical and packing.kind is not OutcomeKind.CONDENSED and _prefers_window(packing)):
        room = min(target, inputs.room) if fits else inputs.room
    else:
        return packing
    smaller, left = slid_view(inputs, packing.rendered, room=room)
    if smaller is not packing.rendered:
        kind = OutcomeKind.TRUNCATED
        return replace(packing.stepped(smaller, "slid", left, kind), kind=kind)
    if packing.kind is OutcomeKind.NOT_NEEDED:
        return packing.failed(FailureReason.TOO_FEW_MESSAGES, NOTHING)
    return packing


def _without_kinds(packing: Packing) -> Packing:
    """What the caller gave a kind that is always pruned leaves in any case."""
    rendered, left = without_pruned_kinds(packing.inputs, packing.rendered)
    return packing.stepped(rendered, "pruned", left, OutcomeKind.TRUNCATED)


def _refilled(packing: Packing) -> Packing:
    """A view that was made smaller, with parts of files in what that left free: its prefix is broken anyway.

    A large result that was masked, or messages that were pruned, leave more room than a condensation would.
    """
    if set(packing.steps) <= {"condensed"} or not packing.fits:
        return packing
    return replace(packing, rendered=with_more_parts(packing.inputs, packing.rendered))


def _is_enough(packing: Packing) -> bool:
    """Whether masks alone made a view small enough."""
    return "masked" in packing.steps and packing.rendered.tokens <= packing.target


def _goes_on(packing: Packing) -> bool:
    """Whether a view has to become smaller still once summaries took the place of messages."""
    critical = packing.need.zone is Zone.CRITICAL and packing.kind is not OutcomeKind.CONDENSED
    return critical or not packing.fits


def _prefers_window(packing: Packing) -> bool:
    """Whether a user chose what leaves a view: the window by a setting, or a selector of their own."""
    chosen = packing.inputs.settings.condensation
    by_setting = not chosen.automatic or chosen.strategies.primary == "truncation"
    return by_setting or packing.inputs.runtime.condenser.views.truncation_selector is not None


def packed(packing: Packing, *, checkpoint_id: str | None) -> Packing:
    """The messages of a view: as proposed, else its required ones cut, else the essentials, else recovered.

    Raises:
        ContextOverflowError: when not even the essentials fit.
    """
    inputs = packing.inputs
    if inputs.policy.is_full:
        return recovered(packing, checkpoint_id=checkpoint_id)
    if packing.fits and "minimal" not in inputs.mode:
        return replace(packing, pieces=tuple(laid_out(inputs, packing.rendered)))
    return required_cut(packing) or essentials_shown(packing) or recovered(packing, checkpoint_id=checkpoint_id)
