"""What gives way where not all fits: the ladder, step by step, each only as far as it is needed.

`proposed` measures a view (`Need`) and goes down the first part of the ladder, which changes its plan: tool outputs are
masked, summaries take the place of messages, what is least important is pruned, the window slides. `packed` goes down
the rest, which changes this request alone: the longest messages are cut, the essentials are shown, the run recovers.
Nothing is written but summaries that a view waits for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.cutting import essentials_shown, recovered, required_cut
from langchain_tiered_memory.context.compaction.leaving import pruned_view, slid_view, without_pruned_kinds
from langchain_tiered_memory.context.compaction.masking import masked_view
from langchain_tiered_memory.context.compaction.need import (
    PREVIEWED,
    does_not_pay,
    filled_as_pays,
    need_of,
)
from langchain_tiered_memory.context.layout import in_request_order
from langchain_tiered_memory.context.ledgers import CHANGED
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.packing import Packing
from langchain_tiered_memory.context.view.file_retention import with_file_work, with_files
from langchain_tiered_memory.context.view.plan import ViewPlan, begun_by_compaction, plan_view, standing_before
from langchain_tiered_memory.context.view.rendered_view import RenderedView, is_whole, render_view
from langchain_tiered_memory.context.view.task_lists import with_tasks
from langchain_tiered_memory.driver import until
from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries.tree.condense import Wish, condense, is_due
from langchain_tiered_memory.summaries.tree.cover import nodes_of, summary_ids_of
from langchain_tiered_memory.transcript.outbox import may_write, note_unwritten
from langchain_tiered_memory.types.outcomes import FailureReason, OutcomeKind, Zone
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.driver import Flow

_MISSING_FINISHED = "summaries that were missing are finished"


def proposed(given: Inputs) -> Flow[Packing]:
    """Measure a view, and make it smaller where it has to be."""
    runtime, ref = given.runtime, given.ref
    stored = runtime.store.transcript.kept_view(ref, given.name)
    plan = ViewPlan.from_json(stored.plan) if stored.plan is not None else None
    unreadable = stored.plan is not None and plan is None
    if unreadable and runtime.view_cache.first_time(("plan_unreadable", ref.key, given.name)):
        what = "the plan of a view is damaged, or of another version: it is rebuilt"
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
    if not need.why and start.plan.provisional and not given.slides_only and _can_advance(inputs, start.plan):
        need = replace(need, why=_MISSING_FINISHED)
    if whole and not need.why:
        return packing
    if whole and start.plan.held and packing.fits:
        held = replace(packing, kind=OutcomeKind.FAILED, reason=FailureReason.UNDONE)
        return replace(held, need=replace(need, condensed_at=None))
    filled = filled_as_pays(given, start, percent=need.percent)
    made = yield from _made_smaller(replace(packing, inputs=filled, need=need), seconds=given.foreground_seconds)
    return (yield from _settled(given, made)) if made.rendered is not start else made


def _settled(given: Inputs, made: Packing) -> Flow[Packing]:
    """A view that was made smaller, with what the next request like this one would do with its plan.

    What is briefer makes room to slide on, and what left may have been summarised: only a plan that nothing is left to
    do with gives the same bytes again. Nobody waits for a summary once more.
    """
    while not made.refused:
        start = made.rendered
        awaits = start.plan.provisional and not made.inputs.slides_only
        if made.fits and not (awaits and _can_advance(made.inputs, start.plan)):
            break
        inputs = given.at(start.plan.ratio)
        need = need_of(inputs, start, used=inputs.billed(start.tokens))
        filled = filled_as_pays(given, start, percent=need.percent)
        packing = Packing(inputs=filled, need=need, rendered=start, kept=made.kept, before=start)
        further = yield from _made_smaller(packing, seconds=0.0)
        rendered = further.rendered
        if further.refused or (rendered.plan.border <= start.plan.border and rendered.tokens >= start.tokens):
            break
        made = replace(
            made,
            rendered=rendered,
            kind=further.kind if further.kind in CHANGED else made.kind,
            steps=tuple(dict.fromkeys((*made.steps, *further.steps))),
            left_out=made.left_out + further.left_out,
        )
        if made.kind is OutcomeKind.CONDENSED:
            made = replace(made, reason=None, error=None)
    return made


def _made_smaller(packing: Packing, *, seconds: float) -> Flow[Packing]:
    """Down the steps that change the plan; missing summaries are waited for so many seconds."""
    lean = _without_kinds(packing) if packing.before is not None else packing
    if lean is not packing and lean.rendered.tokens <= lean.target:
        return _refilled(lean)
    packing = _masked(packing) if packing.before is not None else packing
    if not (_is_enough(packing) or packing.inputs.slides_only):
        packing = yield from _with_summaries(packing, seconds=seconds)
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
    smaller, left = pruned_view(inputs, packing.rendered, target=target)
    return packing.stepped(smaller, "pruned", left, OutcomeKind.TRUNCATED)


def _slid(packing: Packing) -> Packing:
    """The window slides until the view fits, or until nothing more may go; then facts and summaries are briefer."""
    inputs, target, fits = packing.inputs, packing.target, packing.fits
    critical = packing.need.zone is Zone.CRITICAL
    if fits and not critical and inputs.slides_only and not _is_enough(packing):
        room = min(target, packing.rendered.tokens - 1)
    elif not fits or (critical and packing.kind is not OutcomeKind.CONDENSED and _prefers_window(packing)):
        room = target if fits else inputs.room
    else:
        return packing
    smaller, left = slid_view(inputs, packing.rendered, room=room)
    if smaller is not packing.rendered:
        kind = OutcomeKind.TRUNCATED
        return replace(packing.stepped(smaller, "slid", left, kind), kind=kind)
    if packing.kind is OutcomeKind.NOT_NEEDED:
        return packing.failed(FailureReason.TOO_FEW_MESSAGES, _NOTHING)
    return packing


def _without_kinds(packing: Packing) -> Packing:
    """What the caller gave a kind that is always pruned leaves in any case."""
    rendered, left = without_pruned_kinds(packing.inputs, packing.rendered)
    return packing.stepped(rendered, "pruned", left, OutcomeKind.TRUNCATED)


def _refilled(packing: Packing) -> Packing:
    """A view that was made smaller, with parts of files in what that left free: its prefix is broken anyway.

    A large result that was masked, or messages that were pruned, leave more room than a condensation would; and what
    does not fit even so is shortened.
    """
    if packing.fits and (not packing.steps or packing.steps[-1] == "condensed"):  # which chose them already
        return packing
    return replace(packing, rendered=with_file_work(packing.inputs, packing.rendered, anew=True))


def _is_enough(packing: Packing) -> bool:
    """Whether masks alone made a view small enough."""
    return "masked" in packing.steps and packing.rendered.tokens <= packing.target


def _goes_on(packing: Packing) -> bool:
    """Whether a view has to become smaller still once summaries took the place of messages."""
    critical = packing.need.zone is Zone.CRITICAL and packing.kind is not OutcomeKind.CONDENSED
    return critical or not packing.fits


def _prefers_window(packing: Packing) -> bool:
    """Whether a user chose what leaves a view: the window by a setting, or a selector of their own."""
    by_setting = packing.inputs.settings.condensation.strategies.primary == "truncation"
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
        laid = in_request_order(inputs, packing.rendered.head, packing.rendered.recent())
        return replace(packing, pieces=tuple(laid))
    return required_cut(packing) or essentials_shown(packing) or recovered(packing, checkpoint_id=checkpoint_id)


_NOTHING = "everything there must stay, so there is nothing to condense"


def _with_summaries(packing: Packing, *, seconds: float) -> Flow[Packing]:
    """Summaries take the place of older messages, or the reason why they do not."""
    inputs, settings, start = packing.inputs, packing.inputs.settings, packing.rendered
    runtime = inputs.runtime
    waits = seconds > 0 and settings.condensation.strategies.primary in ("llm", "provider")
    # Where nothing could be taken up, nobody has to see that view first: it is worked out once, of what is made now.
    found = None if waits and _border_stays(packing) else _renewed(packing)
    is_short = found is None or found.tokens > inputs.room or found.plan.border == start.plan.border
    if found is None or (waits and (is_short or _shows_rules(inputs, found, start))):
        began, foreseen = runtime.monotonic(), standing_before(inputs, start.tail)
        yield from _condense_now(inputs, up_to=foreseen, seconds=seconds)
        found = _renewed(packing)
        remaining = seconds - (runtime.monotonic() - began)
        if found.plan.border > foreseen and remaining > 0 and _shows_rules(inputs, found, start):
            # A chunk ends behind what was foreseen. Written after it was shown, it would have the view made anew.
            yield from _condense_now(inputs, up_to=found.plan.border, seconds=remaining)
            found = _renewed(packing)
    return _if_it_frees(packing, found)


def _if_it_frees(packing: Packing, found: RenderedView) -> Packing:
    """A view with its border moved, if that frees enough."""
    inputs, start, complete = packing.inputs, packing.rendered, packing.before is not None
    if found.plan.border <= start.plan.border:
        failed = packing.failed(*_reason(packing))
        # A view without a plan starts from what can be shown; one that has a plan may still gain a finer cover.
        return failed if complete else replace(failed, rendered=found)
    freed = start.tokens - found.tokens if complete else start.tokens
    least = round(NUMBERS.least_progress_share * inputs.window.allowed / inputs.ratio)
    # A plan that left messages out for want of summaries is made whole, whether or not that frees anything.
    if complete and not (start.plan.provisional and found.tokens <= inputs.room):
        if does_not_pay(packing, found):
            return packing
        if freed <= 0:
            return packing.failed(FailureReason.CONTEXT_GREW, "the condensed view would not be smaller")
        if freed < least and packing.fits and packing.need.why != PREVIEWED:
            return packing.failed(FailureReason.CONDENSED_RECENTLY, f"it would free only {freed:,} tokens")
    left = _what_left(start, found) if complete else ()
    kind = OutcomeKind.CONDENSED
    return replace(packing.stepped(found, "condensed", left, kind), kind=kind, reason=None, error=None)


def _can_advance(inputs: Inputs, plan: ViewPlan) -> bool:
    """Whether a finished summary stands where the border could move to."""
    tree, track = inputs.runtime.store.tree, inputs.track
    found = tree.borders(inputs.ref, track=track, after=plan.border, limit=1)
    if not found or found[0][2] >= inputs.required.guard:
        return False
    blocked = tree.first_uncondensed(inputs.ref, track=track, after=plan.border)
    return blocked is None or found[0][2] < blocked


def _border_stays(packing: Packing) -> bool:
    """Whether it is plain that a plan made now ends where this one does; a view that is not complete begins anew."""
    begun = packing.before is not None or packing.rendered.plan.border == 0
    return begun and not _can_advance(packing.inputs, packing.rendered.plan)


def _shows_rules(inputs: Inputs, found: RenderedView, start: RenderedView) -> bool:
    """Whether a view would show, as it did not before, what rules wrote until a model does."""
    library, known = inputs.library.summaries, set(summary_ids_of(start.plan.items))
    new = [one for one in summary_ids_of(found.plan.items) if one in library and one not in known]
    return inputs.runtime.condenser.writes_later and any(library[one].by_rules for one in new)


def _condense_now(inputs: Inputs, *, up_to: int, seconds: float) -> Flow[None]:
    """Have missing summaries made, where they can be kept, and by the model those of what ends at `up_to`."""
    runtime = inputs.runtime
    if not may_write(runtime):
        return
    wish = Wish(track=inputs.track, up_to=up_to)
    try:
        yield from until(condense(runtime, inputs.ref, wish), seconds=seconds, monotonic=runtime.monotonic)
    except StorageError as error:
        note_unwritten(runtime, inputs.ref.session_id, error)
    inputs.library.summaries.clear()  # their texts may be others now


def _renewed(packing: Packing) -> RenderedView:
    """The sight of a plan made anew; masks go on where their messages stay."""
    previous = packing.rendered.plan if packing.before is not None else None
    plan = plan_view(packing.inputs, previous, packing.rendered.tail)
    if previous is not None:
        masked = tuple(one for one in previous.masked if one[0] >= plan.tail_from)
        plan = replace(plan, masked=masked, tasks=previous.tasks, listed=previous.listed)
    kept = frozenset(plan.kept)
    plan = with_tasks(
        packing.inputs,
        plan,
        packing.rendered.tail,
        is_shown=lambda entry: entry.seq >= plan.tail_from or entry.group in kept,
    )
    rendered = with_file_work(packing.inputs, render_view(packing.inputs, plan))
    return with_files(packing.inputs, rendered)


def _what_left(start: RenderedView, found: RenderedView) -> tuple[LeftOut, ...]:
    stays = {entry.seq for entry in found.tail}
    gone = [entry for entry in start.tail if entry.seq not in stays]
    shown = set(summary_ids_of(found.plan.items))
    left = [
        LeftOut(what=node.id, reason="condensed into a higher level", tokens=node.tokens)
        for node in nodes_of(start.plan.items)
        if node.id not in shown
    ]
    if gone:
        tokens = sum(entry.tokens for entry in gone)
        left.insert(0, LeftOut(what=f"{gone[0].seq}-{gone[-1].seq}", reason="condensed", tokens=tokens))
    return tuple(left)


def _reason(packing: Packing) -> tuple[FailureReason, str]:
    """Why no summary could take the place of messages."""
    inputs = packing.inputs
    plan = packing.rendered.plan
    waiting = [entry for entry in packing.rendered.tail if entry.seq < inputs.required.guard]
    if not waiting:
        return FailureReason.TOO_FEW_MESSAGES, _NOTHING
    blocking = inputs.runtime.store.tree.first_unfinished(inputs.ref, track=inputs.track, after=plan.border)
    if blocking is None and not is_due(inputs.runtime, inputs.ref, inputs.track):
        told = f"{len(waiting)} messages since the last summary are not due yet"
        return (FailureReason.CONDENSED_RECENTLY if plan.border else FailureReason.TOO_FEW_MESSAGES), told
    if blocking is not None and blocking.reason:
        return FailureReason(blocking.reason), blocking.error or "its last attempt failed"
    return FailureReason.NOT_READY, "summaries are being written; the next request uses them"
