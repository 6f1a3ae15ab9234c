"""The one function that decides the view of a request, and writes down what it decided.

It measures the request and its zone, has the view made smaller where that is due (`compaction_steps`), saves a
checkpoint where a trigger fires, and swaps the view's plan together with its outcome, in one transaction. When not even
the required messages fit, it recovers: from the last checkpoint, with the essentials alone; or it says what takes the
room, with everything saved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.compaction_steps import propose, pruning_target
from langchain_tiered_memory.context.compaction.condensing import needed, slides_only
from langchain_tiered_memory.context.compaction.last_resort import laid_out
from langchain_tiered_memory.context.compaction.overflow_recovery import pieces_of
from langchain_tiered_memory.context.compaction.shrinking import pruning_plan
from langchain_tiered_memory.context.compaction.zones import alert_for, zone_of
from langchain_tiered_memory.context.outcome_log import identified, outcome_of, refuse, write_account
from langchain_tiered_memory.context.view.rendered_view import render_view
from langchain_tiered_memory.context.view_cache import ViewStanding
from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import ViewSnapshot
from langchain_tiered_memory.runs.checkpoint_triggers import due_reasons, is_over_share
from langchain_tiered_memory.runs.checkpoints import checkpoint
from langchain_tiered_memory.summaries.tree.condense import want
from langchain_tiered_memory.summaries.tree.cover import nodes_of, summary_ids_of
from langchain_tiered_memory.transcript.derived_writes import may_write, note_unwritten, write_if_possible
from langchain_tiered_memory.types.outcomes import (
    CUTTING_STEPS,
    ZONES,
    GuardReport,
    Outcome,
    OutcomeKind,
    StepKind,
    Zone,
)
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs, Proposal, ViewQuestion
    from langchain_tiered_memory.context.layout import Piece
    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.outcomes import Alert, Window
    from langchain_tiered_memory.types.records import SessionRef


_INTENDED_STEPS: frozenset[StepKind] = frozenset({"masked", "condensed", "slid"})
"""What a full view is there for: a plan that stands from then on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The view of one request, and the account of how it came about."""

    proposal: Proposal
    pieces: tuple[Piece, ...]
    report: GuardReport
    left_out: tuple[LeftOut, ...] = ()
    """Recent messages that the plan shows and this request does not."""


def decide(
    runtime: Runtime, ref: SessionRef, question: ViewQuestion, inputs_for: Callable[[float], AssemblyInputs]
) -> Flow[Decided]:
    """Decide the view of a request, and write down what was decided.

    Raises:
        ContextOverflowError: when not even the essentials fit; everything is saved.
        CondensationError: when condensing failed, the view does not fit, and `strategies.fallback` is `error`.
    """
    standing = _standing(runtime, ref, question)
    if standing.pruning_of is not None and standing.pruning_of[0] == ref.epoch:
        question = replace(question, prepared=standing.pruning)
    proposal = yield from propose(runtime, ref, question, inputs_for)
    _tell_of_provider(runtime, ref, question, proposal)
    standing = _with_pruning_plan(ref, question, proposal, standing)
    judged = _judged(runtime, question, proposal)
    alert = _alert(runtime, ref, question, judged, standing)
    saved = _checkpointed(runtime, ref, question, proposal, standing)
    # Before anything can be raised: who asks again is not alerted again, and nothing is saved twice.
    noted = _noted(runtime, ref, question, judged, standing, used_tokens=proposal.used_tokens, saved=saved is not None)
    if proposal.refused:
        refuse(runtime, ref, question, proposal, noted)
    taken = pieces_of(runtime, ref, question, proposal, checkpoint_id=saved)
    pieces, steps = taken.pieces, taken.steps
    if taken.plan is not None:
        proposal = replace(proposal, rendered=render_view(proposal.inputs, taken.plan))
    outcome = identified(outcome_of(runtime, question, proposal, steps, pieces), ref, question, proposal, noted)
    write_account(runtime, ref, question, proposal, outcome=outcome, standing=noted)
    _note_need(runtime, ref, question, proposal)
    report = GuardReport(
        window=question.window,
        used_tokens=proposal.used_tokens,
        zone=proposal.zone,
        outcome=outcome,
        steps=outcome.steps,
        alert=alert,
        checkpoint_id=saved,
    )
    return Decided(proposal=proposal, pieces=pieces, report=report, left_out=_missing(proposal, pieces, steps))


def _tell_of_provider(runtime: Runtime, ref: SessionRef, question: ViewQuestion, proposal: Proposal) -> None:
    """Say that a view had to be made smaller here which the provider was to compact; once for each plan left."""
    before = proposal.before
    fitted = before is not None and before.tokens <= proposal.inputs.room
    if runtime.settings.condensation.strategies.primary != "provider" or "minimal" in question.mode or fitted:
        return
    if runtime.view_cache.first_time(("provider_not_compacted", ref.key, question.name, proposal.kept)):
        runtime.report(
            EventName.PROVIDER_NOT_COMPACTED,
            f"{proposal.why}: the provider has not compacted; let it begin earlier (its trigger or threshold), or give "
            "the memory more tokens",
            session_id=ref.session_id,
            used_tokens=proposal.used_tokens,
            limit_tokens=question.window.limit,
            track=question.track,
        )


def _note_need(runtime: Runtime, ref: SessionRef, question: ViewQuestion, proposal: Proposal) -> None:
    """Write down what the view needs, or soon will, in a model's words."""
    if "minimal" in question.mode or not runtime.condenser.writes_later or slides_only(runtime):
        return
    wish = needed(proposal)
    known = ("wish", ref.key, question.track, wish.up_to) if wish is not None else None
    if wish is None or not runtime.view_cache.first_time(known):
        return
    if write_if_possible(runtime, ref.session_id, want, runtime, ref, wish):
        runtime.view_cache.note_wish(ref.session_id)


def _missing(proposal: Proposal, pieces: Sequence[Piece], steps: tuple[StepKind, ...]) -> tuple[LeftOut, ...]:
    """What the plan shows and this request does not; the plan itself names everything else."""
    if not CUTTING_STEPS & set(steps):
        return ()
    shown = {entry.seq for piece in pieces for entry in (*piece.whole_entries, *piece.passages)}
    standing = {one for piece in pieces for one in piece.summary_ids}
    gone = [entry for entry in proposal.rendered.tail if entry.seq not in shown]
    items = proposal.rendered.plan.items
    tokens = {node.id: node.tokens for node in nodes_of(items)}
    untold = [one for one in summary_ids_of(items) if one not in standing]
    return (
        *(LeftOut(what=one, reason="no room beside what must be shown", tokens=tokens.get(one, 0)) for one in untold),
        *(LeftOut(what=entry.id, reason="not essential", tokens=entry.tokens) for entry in gone),
    )


def _standing(runtime: Runtime, ref: SessionRef, question: ViewQuestion) -> ViewStanding:
    known = runtime.view_cache.view(ref.key, question.name)
    if known is not None:
        return known
    run = runtime.store.runs.read(ref)
    since = run.checkpoint_at if run.checkpoint_at is not None else run.started_at
    zone = Zone(run.zones.get(question.name, Zone.SAFE))
    return ViewStanding(zone=zone, over_share=None, checkpoint_at=since)


def _with_pruning_plan(
    ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding
) -> ViewStanding:
    """In the danger zone a plan of what would leave is made, and kept for as long as the view's own plan holds."""
    inputs, rendered = proposal.inputs, proposal.rendered
    still = zone_of(proposal.tokens, question.window.limit, settings=inputs.runtime.settings.guard)
    if still is not Zone.DANGER or proposal.zone is not Zone.DANGER or inputs.rooms.is_full:
        return replace(standing, pruning=(), pruning_of=None)
    of = (ref.epoch, rendered.plan.to_json())
    if standing.pruning_of == of:
        return standing
    target = min(pruning_target(inputs, question), inputs.room)
    return replace(standing, pruning=pruning_plan(inputs, rendered, target=target), pruning_of=of)


def _judged(runtime: Runtime, question: ViewQuestion, proposal: Proposal) -> Proposal:
    """The proposal with zone and size by which it is told of: as they are after what was due was done as intended.

    A long history that a view is opened on is far over its room, and condensed: that is no news to anybody. Where
    nothing was condensed, where messages had to be cut, or it stayed too large, it is told as it was before.
    """
    steps = set(proposal.steps)
    if _INTENDED_STEPS.isdisjoint(steps) or CUTTING_STEPS & steps or not proposal.fits:
        return proposal
    zone = zone_of(proposal.tokens, question.window.limit, settings=runtime.settings.guard)
    if ZONES.index(zone) >= ZONES.index(proposal.zone):
        return proposal
    return replace(proposal, zone=zone, used_tokens=proposal.tokens)


def _noted(
    runtime: Runtime,
    ref: SessionRef,
    question: ViewQuestion,
    proposal: Proposal,
    standing: ViewStanding,
    *,
    used_tokens: int,
    saved: bool,
) -> ViewStanding:
    """Remember the zone of a view, also for other processes; and when its run was saved."""
    if proposal.zone is not standing.zone:
        set_zone = runtime.store.runs.set_zone
        write_if_possible(runtime, ref.session_id, set_zone, ref, question.name, proposal.zone.value, now=runtime.now())
    noted = replace(
        standing,
        zone=proposal.zone,
        over_share=is_over_share(used_tokens, question.window.tokens, settings=runtime.settings.checkpoints),
        checkpoint_at=runtime.now() if saved else standing.checkpoint_at,
    )
    runtime.view_cache.note(ref.key, question.name, noted)
    return noted


def _alert(
    runtime: Runtime, ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding
) -> Alert | None:
    alert = alert_for(
        proposal.zone,
        before=standing.zone,
        used_tokens=proposal.used_tokens,
        limit_tokens=question.window.limit,
    )
    if alert is not None:
        runtime.report(
            EventName(f"zone_{alert.zone.value}"),
            f"{alert.used_tokens:,} of {alert.limit_tokens:,} tokens ({alert.ratio:.0%}). {alert.recommendation}",
            session_id=ref.session_id,
            zone=alert.zone.value,
            used_tokens=alert.used_tokens,
            limit_tokens=alert.limit_tokens,
            ratio=alert.ratio,
            recommendation=alert.recommendation,
            track=question.track,
        )
    return alert


def _checkpointed(
    runtime: Runtime, ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding
) -> str | None:
    """Save the run's state before anything is changed, where a trigger fires."""
    settings = runtime.settings.checkpoints

    def reasons_since(since: float | None) -> tuple[str, ...]:
        return due_reasons(
            settings=settings,
            used_tokens=proposal.used_tokens,
            window_tokens=question.window.tokens,
            zone=proposal.zone,
            zone_before=standing.zone,
            was_over_share=standing.over_share,
            seconds_since_last=runtime.now() - since if since is not None else None,
        )

    reasons = reasons_since(standing.checkpoint_at)
    if "time_interval" in reasons:
        # Another view, or somebody else, may have saved the run since this one was looked at.
        run = runtime.store.runs.read(ref)
        reasons = reasons_since(run.checkpoint_at if run.checkpoint_at is not None else run.started_at)
    if not reasons or not may_write(runtime):
        return None
    shown = proposal.before if proposal.before is not None else proposal.rendered
    pieces = laid_out(proposal.inputs, shown)
    view = ViewSnapshot(
        name=question.name,
        zone=proposal.zone,
        used_tokens=proposal.used_tokens,
        window=question.window,
        messages=tuple(piece.message for piece in pieces),
        summary_ids=tuple(one for piece in pieces for one in piece.summary_ids),
        pruning=standing.pruning,
    )
    try:
        made = checkpoint(
            runtime,
            ref.session_id,
            track=question.track,
            reasons=reasons,
            view=view,
            langgraph_checkpoint_id=question.langgraph_checkpoint_id,
        )
    except StorageError as error:
        note_unwritten(runtime, ref.session_id, error)
        runtime.report(EventName.CHECKPOINT_FAILED, str(error), session_id=ref.session_id, reasons=list(reasons))
        return None
    return made.id


def previewed(
    runtime: Runtime, ref: SessionRef, question: ViewQuestion, inputs_for: Callable[[float], AssemblyInputs]
) -> Flow[tuple[Proposal, Outcome]]:
    """What a condensation now would do. Nothing is written, and no model is called."""
    asked = replace(question, forced=True, foreground_seconds=0.0)
    proposal = yield from propose(runtime, ref, asked, inputs_for)
    return proposal, outcome_of(runtime, asked, proposal, proposal.steps)


def joined(first: GuardReport, last: GuardReport) -> GuardReport:
    """The report of a request whose view was decided twice, because what had to be repaired in it took room."""
    changed = last.outcome.kind is not OutcomeKind.NOT_NEEDED
    outcome = last.outcome if changed else first.outcome
    return replace(
        first,
        outcome=outcome,
        steps=tuple(dict.fromkeys((*first.steps, *last.steps))),
        alert=first.alert if first.alert is not None else last.alert,
        checkpoint_id=first.checkpoint_id if first.checkpoint_id is not None else last.checkpoint_id,
    )


def undecided(runtime: Runtime, window: Window, used_tokens: int, track: str) -> GuardReport:
    """The report of a request that has no view to decide: recall alone, or a session without a message."""
    return GuardReport(
        window=window,
        used_tokens=used_tokens,
        zone=zone_of(used_tokens, window.limit, settings=runtime.settings.guard),
        outcome=Outcome(
            id="",
            kind=OutcomeKind.NOT_NEEDED,
            at=runtime.now(),
            track=track,
            tokens_before=used_tokens,
            tokens_after=used_tokens,
        ),
    )
