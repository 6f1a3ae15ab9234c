"""Measures a view before a request and, where it is due, makes it smaller. Writes nothing.

In this order, each step only while it is needed: tool outputs are masked, summaries take the place of messages, the
window slides or (in the critical zone) what is least important is pruned. The commit, and what happens when not even
that suffices, stand in `guard`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.assembly_inputs import Proposal, ViewQuestion, billed, raw_room
from langchain_tiered_memory.context.compaction.condensing import (
    NOTHING,
    PREVIEWED,
    can_advance,
    failed_for,
    slides_only,
    with_summaries,
)
from langchain_tiered_memory.context.compaction.growth import (
    best_size,
    cache_ran_out,
    cheaper_due,
    early_due,
    filled_as_pays,
)
from langchain_tiered_memory.context.compaction.shrinking import (
    masked_view,
    pruned_view,
    slid_view,
    without_pruned_kinds,
)
from langchain_tiered_memory.context.compaction.thresholds import due, percent_for
from langchain_tiered_memory.context.compaction.zones import zone_of
from langchain_tiered_memory.context.policy import no_room_beside
from langchain_tiered_memory.context.view.file_retention import with_more_parts
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.context.view.planning import begun_by_compaction
from langchain_tiered_memory.context.view.rendered_view import RenderedView, is_whole, render_view
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, Zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs
    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef


_MISSING_FINISHED = "summaries that were missing are finished"


def propose(
    runtime: Runtime, ref: SessionRef, question: ViewQuestion, inputs_for: Callable[[float], AssemblyInputs]
) -> Flow[Proposal]:
    """Measure a view, and make it smaller where that is due."""
    stored = runtime.store.transcript.kept_view(ref, question.name)
    kept, total = stored.plan, stored.tokens
    plan = ViewPlan.from_json(kept) if kept is not None else None
    if kept is not None and plan is None and runtime.view_cache.first_time(("plan_unreadable", ref.key, question.name)):
        what = "the plan of a view is damaged, or of another version: it is made anew"
        runtime.report(EventName.DAMAGED_ROW, what, session_id=ref.session_id, table="ltm_plans", column="payload")
    inputs = inputs_for(plan.ratio if plan is not None else question.ratio)
    start = render_view(inputs, plan or ViewPlan(border=0, tail_from=1, ratio=inputs.ratio))
    start = begun_by_compaction(inputs, start)
    # Without a plan the view is the whole track, unless there is so much of it that not even all was read.
    whole = plan is not None or is_whole(inputs, start)
    before = start if whole else None
    if before is not None and _shows_all(before.plan) and before.tokens <= inputs.room + _of_recall(inputs):
        inputs = _without_recall(inputs)
    used = billed(inputs, start.tokens if whole else max(start.tokens, total))
    # What is beyond the share that was chosen leaves in any case: it is no reason for an alert.
    judged = used if question.window.most is None else min(used, question.window.most)
    zone = zone_of(judged, question.window.limit, settings=runtime.settings.guard)
    if inputs.rooms.is_full:  # no smaller view helps: nobody waits for a summary
        why = no_room_beside(inputs.rooms.fixed, question.window.limit, ratio=inputs.ratio)
        return Proposal(inputs=inputs, kept=kept, before=before, rendered=start, used_tokens=used, zone=zone, why=why)
    percent = percent_for(runtime, ref, question, used=used, zone=zone)
    due_at = _due_at(inputs, question, start, percent=percent)
    why = _why(inputs, question, start, used=used, percent=percent, zone=zone)
    if not why and start.plan.provisional and not slides_only(runtime) and can_advance(inputs, start.plan):
        why = _MISSING_FINISHED
    if before is not None and not why:
        return Proposal(
            inputs=inputs, kept=kept, before=before, rendered=before, used_tokens=used, zone=zone, due_at=due_at
        )
    if before is not None and before.plan.held and before.tokens <= inputs.room:
        return Proposal(
            inputs=inputs,
            kept=kept,
            before=before,
            rendered=before,
            used_tokens=used,
            zone=zone,
            kind=OutcomeKind.FAILED,
            reason=FailureReason.UNDONE,
            why=why,
        )
    proposal = Proposal(
        inputs=filled_as_pays(inputs_for(question.ratio), question, start, percent=percent),
        kept=kept,
        before=before,
        rendered=start,
        used_tokens=used,
        zone=zone,
        why=why,
        due_at=due_at,
    )
    return _refilled(_without_pruned_kinds((yield from _made_smaller(runtime, question, proposal))))


def _why(
    inputs: AssemblyInputs, question: ViewQuestion, start: RenderedView, *, used: int, percent: float, zone: Zone
) -> str:
    """Why a view has to become smaller; empty where it has not."""
    window, settings = question.window, inputs.runtime.settings.condensation
    waits = settings.strategies.primary == "provider"
    why = "" if waits else due(used, window, percent=percent)
    if not why and start.tokens > inputs.room:
        why = f"the view takes {start.tokens:,} tokens, and {max(inputs.room, 0):,} are left for it"
    if waits:
        return why or (PREVIEWED if question.forced else "")
    if not why and zone is Zone.CRITICAL:
        why = f"{used:,} of {window.limit:,} tokens are critical"
    if not why and start.plan.border < inputs.required.recent.guard:
        last = max((entry.at for entry in start.tail if entry.role == "assistant"), default=None)
        if cache_ran_out(last, now=inputs.runtime.now(), settings=settings):
            why = early_due(used, window, percent=min(percent, 100.0), settings=settings)
        why = why or cheaper_due(inputs, question, start, percent=percent)
    return why or (PREVIEWED if question.forced else "")


def _due_at(inputs: AssemblyInputs, question: ViewQuestion, start: RenderedView, *, percent: float) -> int:
    """Billed tokens of a request at which its view is made smaller, as far as figures say."""
    limit = math.floor(min(question.window.allowed, question.window.tokens * percent / 100))
    best = best_size(inputs, question, start, percent=percent)
    return limit if best is None else min(limit, billed(inputs, best))


def _shows_all(plan: ViewPlan) -> bool:
    """Whether nothing that was said on this track is out of sight: then there is nothing to quote of it."""
    return plan.border == 0 and not (plan.left or plan.masked or plan.held)


def _without_recall(inputs: AssemblyInputs) -> AssemblyInputs:
    """The inputs with recall's room given to the view: a history that fits is shown whole. What is left is recall's."""
    return replace(inputs, rooms=inputs.rooms.without_recall(), room=inputs.room + _of_recall(inputs))


def _of_recall(inputs: AssemblyInputs) -> int:
    """What is set aside for recall alone: registered sections keep theirs."""
    return inputs.rooms.recall - inputs.rooms.sections


def _made_smaller(runtime: Runtime, question: ViewQuestion, proposal: Proposal) -> Flow[Proposal]:
    """Mask, condense, then slide or prune, each as far as needed."""
    inputs, before, zone = proposal.inputs, proposal.before, proposal.zone
    target = pruning_target(inputs, question)
    if before is not None:
        lean = _without_pruned_kinds(proposal)
        if lean is not proposal and lean.rendered.tokens <= target:
            return lean
        proposal = _with_masks(proposal, question, target)
    if "masked" not in proposal.steps or proposal.rendered.tokens > target:
        proposal = yield from with_summaries(runtime, question, proposal, complete=before is not None)
    if proposal.fits and zone is not Zone.CRITICAL and slides_only(runtime):
        if "masked" in proposal.steps and proposal.rendered.tokens <= target:
            return proposal
        return _slid(proposal, room=min(target, proposal.rendered.tokens - 1))
    if proposal.fits and (zone is not Zone.CRITICAL or proposal.kind is OutcomeKind.CONDENSED):
        return proposal
    if before is None or "masked" not in proposal.steps:
        proposal = _with_masks(proposal, question, target)
    return _cut(runtime, question, proposal, target=target)


def _refilled(proposal: Proposal) -> Proposal:
    """A view that was made smaller, with parts of files in what that left free: its prefix is broken anyway.

    A large result that was masked, or messages that were pruned, leave more room than a condensation would.
    """
    if set(proposal.steps) <= {"condensed"} or not proposal.fits:
        return proposal
    return replace(proposal, rendered=with_more_parts(proposal.inputs, proposal.rendered))


def pruning_target(inputs: AssemblyInputs, question: ViewQuestion) -> int:
    """Raw tokens that a view may take after it was pruned."""
    share = round(inputs.runtime.settings.guard.prune_to * question.window.limit)
    return raw_room(inputs, min(share, question.window.allowed))


def _cut(runtime: Runtime, question: ViewQuestion, proposal: Proposal, *, target: int) -> Proposal:
    """Messages leave without a summary: the least important ones in the critical zone, else the oldest."""
    inputs = proposal.inputs
    strategies = runtime.settings.condensation.strategies
    if not proposal.fits and strategies.fallback == "error" and proposal.reason is not None:
        return replace(proposal, refused=True)
    if proposal.zone is Zone.CRITICAL and proposal.rendered.tokens > target and not _prefers_window(runtime):
        room = min(target, inputs.room)
        smaller, left = pruned_view(inputs, proposal.rendered, target=room, prepared=question.prepared)
        if smaller is not proposal.rendered:
            kind = proposal.kind if proposal.kind is OutcomeKind.CONDENSED else OutcomeKind.TRUNCATED
            proposal = replace(proposal.stepped(smaller, "pruned", left), kind=kind)
    if proposal.fits and not (proposal.zone is Zone.CRITICAL and _prefers_window(runtime)):
        return proposal
    return _slid(proposal, room=min(target, inputs.room) if proposal.fits else inputs.room)


def _prefers_window(runtime: Runtime) -> bool:
    """Whether a user chose what leaves a view: the window by a setting, or a selector of their own."""
    chosen = runtime.settings.condensation
    by_setting = not chosen.automatic or chosen.strategies.primary == "truncation"
    return by_setting or runtime.condenser.views.truncation_selector is not None


def _slid(proposal: Proposal, *, room: int) -> Proposal:
    """The window slid until it takes no more than `room`, or until nothing more may go."""
    smaller, left = slid_view(proposal.inputs, proposal.rendered, room=room)
    if smaller is not proposal.rendered:
        return replace(proposal.stepped(smaller, "slid", left), kind=OutcomeKind.TRUNCATED)
    if proposal.kind is OutcomeKind.NOT_NEEDED:
        return failed_for(proposal, FailureReason.TOO_FEW_MESSAGES, NOTHING)
    return proposal


def _without_pruned_kinds(proposal: Proposal) -> Proposal:
    rendered, left = without_pruned_kinds(proposal.inputs, proposal.rendered)
    if rendered is proposal.rendered:
        return proposal
    kind = proposal.kind if proposal.kind is OutcomeKind.CONDENSED else OutcomeKind.TRUNCATED
    return replace(proposal.stepped(rendered, "pruned", left), kind=kind)


def _with_masks(proposal: Proposal, question: ViewQuestion, target: int) -> Proposal:
    inputs = proposal.inputs
    least = round(inputs.runtime.settings.guard.masks.batch_share * question.window.limit / inputs.ratio)
    rendered, left = masked_view(inputs, proposal.rendered, target=target, least=least)
    if rendered is proposal.rendered:
        return proposal
    kind = proposal.kind if proposal.kind is OutcomeKind.CONDENSED else OutcomeKind.MASKED
    return replace(proposal.stepped(rendered, "masked", left), kind=kind)
