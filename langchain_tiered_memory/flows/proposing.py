"""What becomes of a view before a request: measured, and where it is due made smaller. Nothing is written here.

In this order, each step only while it is needed: tool outputs are masked, summaries take the place of messages, the
window slides or (in the critical zone) what is least important is pruned. The commit, and what happens when not even
that suffices, stand in `guard`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.cache_timing import cache_ran_out, early_due
from langchain_tiered_memory.decisions.cover import nodes_of
from langchain_tiered_memory.decisions.thresholds import due
from langchain_tiered_memory.decisions.triggers import due_entries
from langchain_tiered_memory.decisions.view_plan import ViewPlan
from langchain_tiered_memory.decisions.zones import zone_of
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.condense import condense
from langchain_tiered_memory.flows.deadlines import until
from langchain_tiered_memory.flows.keeping import with_file_work, with_files
from langchain_tiered_memory.flows.planning import plan_view
from langchain_tiered_memory.flows.proposals import Proposal, ViewQuestion, billed, raw_room
from langchain_tiered_memory.flows.resolving import percent_for
from langchain_tiered_memory.flows.showing import Sight, is_whole, sight_of
from langchain_tiered_memory.flows.shrinking import masked_sight, pruned_sight, slid_sight
from langchain_tiered_memory.outcomes import FailureReason, OutcomeKind, Zone
from langchain_tiered_memory.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.flows.desk import Desk
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import SessionRef


_PREVIEWED = "a preview was asked for"
_MISSING_FINISHED = "summaries that were missing are finished"
_NOTHING = "nothing but what must stay is there to condense"
_WAITING_ENTRIES = 64
"""So many messages without a summary are due, whatever the triggers are."""


def propose(house: House, ref: SessionRef, question: ViewQuestion, desk_for: Callable[[float], Desk]) -> Flow[Proposal]:
    """Measure a view, and make it smaller where that is due."""
    stored = yield from do(
        house.store.transcript.kept_view, ref, question.name, track=question.track, tail=lambda *_: None
    )
    kept, total = stored.plan, stored.tokens
    plan = ViewPlan.from_json(kept) if kept is not None else None
    desk = desk_for(plan.ratio if plan is not None else question.ratio)
    start = yield from sight_of(desk, plan or ViewPlan(border=0, tail_from=1, ratio=desk.ratio))
    # Without a plan the view is the whole track, unless there is so much of it that not even all was read.
    whole = plan is not None or (yield from is_whole(desk, start))
    before = start if whole else None
    if before is not None and _shows_all(before.plan) and before.tokens <= desk.room + desk.rooms.recall:
        desk = _without_recall(desk)
    used = billed(desk, start.tokens if whole else max(start.tokens, total))
    zone = zone_of(used, question.window.limit, settings=house.settings.guard)
    percent = yield from percent_for(house, ref, question, used=used, zone=zone)
    why = _why(desk, question, start, used=used, percent=percent, zone=zone)
    if not why and start.plan.provisional and not _slides_only(house) and (yield from _can_advance(desk, start.plan)):
        why = _MISSING_FINISHED
    if before is not None and not why:
        return Proposal(desk=desk, kept=kept, before=before, sight=before, used_tokens=used, zone=zone)
    if before is not None and before.plan.held and before.tokens <= desk.room:
        return Proposal(
            desk=desk,
            kept=kept,
            before=before,
            sight=before,
            used_tokens=used,
            zone=zone,
            kind=OutcomeKind.FAILED,
            reason=FailureReason.UNDONE,
            why=why,
        )
    proposal = Proposal(
        desk=desk_for(question.ratio), kept=kept, before=before, sight=start, used_tokens=used, zone=zone, why=why
    )
    return (yield from _made_smaller(house, question, proposal))


def _why(desk: Desk, question: ViewQuestion, start: Sight, *, used: int, percent: float, zone: Zone) -> str:
    """Why a view has to become smaller; empty where it has not."""
    window, settings = question.window, desk.house.settings.condensation
    why = due(used, window, percent=percent)
    if not why and start.tokens > desk.room:
        why = f"the view takes {start.tokens:,} tokens, and {max(desk.room, 0):,} are left for it"
    if not why and zone is Zone.CRITICAL:
        why = f"{used:,} of {window.limit:,} tokens are critical"
    if not why and start.plan.border < desk.musts.recent.guard:
        last = max((entry.at for entry in start.tail if entry.role == "assistant"), default=None)
        if cache_ran_out(last, now=desk.house.now(), settings=settings):
            why = early_due(used, window, percent=min(percent, 100.0), settings=settings)
    return why or (_PREVIEWED if question.forced else "")


def _shows_all(plan: ViewPlan) -> bool:
    """Whether nothing that was said on this track is out of sight: then there is nothing to quote of it."""
    return plan.border == 0 and not (plan.left or plan.masked or plan.held)


def _without_recall(desk: Desk) -> Desk:
    """The desk with recall's room given to the view: a history that fits is shown whole. What is left is recall's."""
    return replace(desk, rooms=replace(desk.rooms, recall=0), room=desk.room + desk.rooms.recall)


def _can_advance(desk: Desk, plan: ViewPlan) -> Flow[bool]:
    """Whether a finished summary stands where the border could move to."""
    tree, track = desk.house.store.tree, desk.track
    found = yield from do(tree.borders, desk.ref, track=track, after=plan.border, limit=1)
    if not found or found[0][2] >= desk.musts.recent.guard:
        return False
    blocked = yield from do(tree.first_uncondensed, desk.ref, track=track, after=plan.border)
    return blocked is None or found[0][2] < blocked


def _made_smaller(house: House, question: ViewQuestion, proposal: Proposal) -> Flow[Proposal]:
    """Mask, condense, then slide or prune, each as far as needed."""
    desk, before, zone = proposal.desk, proposal.before, proposal.zone
    target = raw_room(desk, min(round(house.settings.guard.prune_to * question.window.limit), question.window.allowed))
    if before is not None:
        proposal = yield from _with_masks(proposal, question, target)
    if "masked" not in proposal.steps or proposal.sight.tokens > target:
        proposal = yield from _condensed(house, question, proposal, complete=before is not None)
    if proposal.fits and zone is not Zone.CRITICAL and _slides_only(house):
        if "masked" in proposal.steps and proposal.sight.tokens <= target:
            return proposal
        return (yield from _slid(proposal, room=min(target, proposal.sight.tokens - 1)))
    if proposal.fits and (zone is not Zone.CRITICAL or proposal.kind is OutcomeKind.CONDENSED):
        return proposal
    if before is None or "masked" not in proposal.steps:
        proposal = yield from _with_masks(proposal, question, target)
    return (yield from _cut(house, proposal, target=target))


def _cut(house: House, proposal: Proposal, *, target: int) -> Flow[Proposal]:
    """Messages leave without a summary: the least important ones in the critical zone, else the oldest."""
    desk = proposal.desk
    strategies = house.settings.condensation.strategies
    if not proposal.fits and strategies.fallback == "error" and proposal.reason is not None:
        return replace(proposal, refused=True)
    if proposal.zone is Zone.CRITICAL and proposal.sight.tokens > target and not _prefers_window(house):
        smaller, left = yield from pruned_sight(desk, proposal.sight, target=min(target, desk.room))
        if smaller is not proposal.sight:
            kind = proposal.kind if proposal.kind is OutcomeKind.CONDENSED else OutcomeKind.TRUNCATED
            proposal = replace(proposal.stepped(smaller, "pruned", left), kind=kind)
    if proposal.fits and not (proposal.zone is Zone.CRITICAL and _prefers_window(house)):
        return proposal
    return (yield from _slid(proposal, room=min(target, desk.room) if proposal.fits else desk.room))


def _prefers_window(house: House) -> bool:
    """Whether a user chose what leaves a view: the window by a setting, or a selector of their own."""
    chosen = house.settings.condensation
    by_setting = not chosen.automatic or chosen.strategies.primary == "truncation"
    return by_setting or house.condenser.views.truncation_selector is not None


def _slid(proposal: Proposal, *, room: int) -> Flow[Proposal]:
    """The window slid until it takes no more than `room`, or until nothing more may go."""
    smaller, left = yield from slid_sight(proposal.desk, proposal.sight, room=room)
    if smaller is not proposal.sight:
        return replace(proposal.stepped(smaller, "slid", left), kind=OutcomeKind.TRUNCATED)
    if proposal.kind is OutcomeKind.NOT_NEEDED:
        return _failed(proposal, FailureReason.TOO_FEW_MESSAGES, _NOTHING)
    return proposal


def _with_masks(proposal: Proposal, question: ViewQuestion, target: int) -> Flow[Proposal]:
    desk = proposal.desk
    least = round(desk.house.settings.guard.masks.batch_share * question.window.limit / desk.ratio)
    sight, left = yield from masked_sight(desk, proposal.sight, target=target, least=least)
    if sight is proposal.sight:
        return proposal
    kind = proposal.kind if proposal.kind is OutcomeKind.CONDENSED else OutcomeKind.MASKED
    return replace(proposal.stepped(sight, "masked", left), kind=kind)


def _condensed(house: House, question: ViewQuestion, proposal: Proposal, *, complete: bool) -> Flow[Proposal]:
    """Summaries take the place of older messages, or the reason why they do not."""
    settings = house.settings
    start = proposal.sight
    if _slides_only(house):
        return proposal
    found = yield from _renewed(proposal, complete=complete)
    short = found.tokens > proposal.desk.room or found.plan.border == start.plan.border
    if short and question.foreground_seconds > 0 and settings.condensation.strategies.primary == "llm":
        yield from until(
            condense(house, proposal.desk.ref), seconds=question.foreground_seconds, monotonic=house.monotonic
        )
        found = yield from _renewed(proposal, complete=complete)
    freed = start.tokens - found.tokens if complete else start.tokens
    least = round(settings.condensation.least_progress_share * question.window.allowed / proposal.desk.ratio)
    moved = found.plan.border > start.plan.border
    # A plan that left messages out for want of summaries is made whole, whether or not that frees anything.
    mends = start.plan.provisional and found.tokens <= proposal.desk.room
    if moved and complete and freed <= 0 and not mends:
        return _failed(proposal, FailureReason.CONTEXT_GREW, "what would stand there is not smaller")
    if moved and complete and freed < least and proposal.fits and not mends and proposal.why != _PREVIEWED:
        return _failed(proposal, FailureReason.CONDENSED_RECENTLY, f"it would free only {freed:,} tokens")
    if moved:
        left = _what_left(start, found) if complete else ()
        return replace(proposal.stepped(found, "condensed", left), kind=OutcomeKind.CONDENSED, reason=None, error=None)
    reason, error = yield from _reason(proposal)
    failed = _failed(proposal, reason, error)
    # A view without a plan starts from what can be shown; one that has a plan may still gain a finer cover.
    return replace(failed, sight=found) if not complete else failed


def _slides_only(house: House) -> bool:
    """Whether no summary may take the place of messages: then the window slides as soon as a view is due."""
    settings = house.settings
    summarises = settings.condensation.automatic and settings.tree.enabled
    return not summarises or settings.condensation.strategies.primary == "truncation"


def _renewed(proposal: Proposal, *, complete: bool) -> Flow[Sight]:
    """The sight of a plan made anew; masks go on where their messages stay."""
    previous = proposal.sight.plan if complete else None
    plan = yield from plan_view(proposal.desk, previous)
    if previous is not None:
        plan = replace(plan, masked=tuple(one for one in previous.masked if one[0] >= plan.tail_from))
    sight = yield from sight_of(proposal.desk, plan)
    sight = yield from with_file_work(proposal.desk, sight)
    return (yield from with_files(proposal.desk, sight))


def _what_left(start: Sight, found: Sight) -> tuple[LeftOut, ...]:
    stays = {entry.seq for entry in found.tail}
    gone = [entry for entry in start.tail if entry.seq not in stays]
    left: tuple[LeftOut, ...] = ()
    if gone:
        span = f"{gone[0].seq}-{gone[-1].seq}"
        left = (LeftOut(what=span, reason="condensed", tokens=sum(entry.tokens for entry in gone)),)
    shown = {node.id for node in nodes_of(found.plan.items)}
    return left + tuple(
        LeftOut(what=node.id, reason="condensed into a higher level, or no room", tokens=node.tokens)
        for node in nodes_of(start.plan.items)
        if node.id not in shown
    )


def _failed(proposal: Proposal, reason: FailureReason, error: str) -> Proposal:
    kind = proposal.kind if proposal.kind is OutcomeKind.MASKED else OutcomeKind.FAILED
    return replace(proposal, kind=kind, reason=reason, error=error)


def _reason(proposal: Proposal) -> Flow[tuple[FailureReason, str]]:
    """Why no summary could take the place of messages."""
    desk = proposal.desk
    plan = proposal.sight.plan
    waiting = [entry for entry in proposal.sight.tail if entry.seq < desk.musts.recent.guard]
    if not waiting:
        return FailureReason.TOO_FEW_MESSAGES, _NOTHING
    blocking = yield from do(desk.house.store.tree.first_unfinished, desk.ref, track=desk.track, after=plan.border)
    if blocking is None and not (yield from _is_due(desk)):
        told = f"{len(waiting)} messages since the last summary are not due yet"
        return (FailureReason.CONDENSED_RECENTLY if plan.border else FailureReason.TOO_FEW_MESSAGES), told
    if blocking is not None and blocking.reason:
        return FailureReason(blocking.reason), blocking.error or "its last attempt failed"
    return FailureReason.NOT_READY, "summaries are being made; the next request takes them up"


def _is_due(desk: Desk) -> Flow[bool]:
    """Whether messages wait for a summary that nobody has begun yet."""
    tree = desk.house.settings.tree
    waiting = yield from do(desk.house.store.tree.waiting_entries, desk.ref, track=desk.track, limit=_WAITING_ENTRIES)
    if len(waiting) == _WAITING_ENTRIES:
        return True
    found = due_entries(
        waiting,
        tree.level(1),
        more=False,
        idle_seconds=tree.idle_seconds,
        by_task=tree.on_finished_task,
        now=desk.house.now(),
    )
    return found is not None
