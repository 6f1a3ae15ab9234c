"""The one function that decides the view of a request, and writes down what it decided.

It measures the request and its zone, has the view made smaller where that is due (`proposing`), saves a checkpoint
where a trigger fires, and swaps the view's plan together with its outcome, in one transaction. When not even the musts
fit, it recovers: from the last checkpoint, with the essentials alone; or it says what takes the room, with everything
saved.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.decisions.checkpoint_triggers import due_reasons, is_over_share
from langchain_tiered_memory.decisions.cost_ledger import cost_of
from langchain_tiered_memory.decisions.cover import nodes_of
from langchain_tiered_memory.decisions.zones import alert_for, zone_of
from langchain_tiered_memory.errors import CheckpointError, CondensationError, ContextOverflowError, StorageError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.checkpoints import ViewSnapshot, checkpoint, last_sound
from langchain_tiered_memory.flows.emergency import (
    LEAST_READABLE_TOKENS,
    LEAST_TOKENS,
    minimal_pieces,
    shortened_musts,
)
from langchain_tiered_memory.flows.proposing import Proposal, ViewQuestion, billed, propose
from langchain_tiered_memory.flows.standing import ViewStanding
from langchain_tiered_memory.outcomes import FailureReason, GuardReport, Outcome, OutcomeKind, StepKind, Zone
from langchain_tiered_memory.records import LeftOut, Spent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.decisions.request import Piece
    from langchain_tiered_memory.flows.desk import Desk
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.outcomes import Alert, Window
    from langchain_tiered_memory.records import SessionRef, Summary

_CHANGED = (OutcomeKind.MASKED, OutcomeKind.CONDENSED, OutcomeKind.TRUNCATED)
_CUT: frozenset[StepKind] = frozenset({"shortened", "minimal", "recovered"})
"""Steps that cut one request, and leave the view's plan alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The view of one request, and the account of how it came about."""

    proposal: Proposal
    pieces: tuple[Piece, ...]
    report: GuardReport
    left_out: tuple[LeftOut, ...] = ()
    """Recent messages that the plan shows and this request does not."""


def decide(house: House, ref: SessionRef, question: ViewQuestion, desk_for: Callable[[float], Desk]) -> Flow[Decided]:
    """Decide the view of a request, and write down what was decided.

    Raises:
        ContextOverflowError: when not even the essentials fit; everything is saved.
        CondensationError: when condensing failed, the view does not fit, and `strategies.fallback` is `error`.
    """
    standing = yield from _standing(house, ref, question)
    proposal = yield from propose(house, ref, question, desk_for)
    alert = _alert(house, ref, question, proposal, standing)
    saved = yield from _checkpointed(house, ref, question, proposal, standing)
    # Before anything can be raised: who asks again is not alerted again, and nothing is saved twice.
    noted = yield from _noted(house, ref, question, proposal, standing, saved=saved is not None)
    if proposal.refused:
        yield from _refused(house, ref, question, proposal, noted)
    pieces, steps = yield from _pieces(house, ref, question, proposal, checkpoint_id=saved)
    outcome = _identified(_outcome(house, question, proposal, steps, pieces), ref, question, proposal, noted)
    yield from _written(house, ref, question, proposal, outcome=outcome, standing=noted)
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


def _missing(proposal: Proposal, pieces: Sequence[Piece], steps: tuple[StepKind, ...]) -> tuple[LeftOut, ...]:
    """What the plan shows and this request does not; the plan itself names everything else."""
    if not _CUT & set(steps):
        return ()
    shown = {entry.seq for piece in pieces for entry in (*piece.whole_entries, *piece.passages)}
    standing = {one for piece in pieces for one in piece.summary_ids}
    gone = [entry for entry in proposal.sight.tail if entry.seq not in shown]
    nodes = [node for node in nodes_of(proposal.sight.plan.items) if node.id not in standing]
    return (
        *(LeftOut(what=node.id, reason="no room beside what must be shown", tokens=node.tokens) for node in nodes),
        *(LeftOut(what=entry.id, reason="not essential", tokens=entry.tokens) for entry in gone),
    )


def _standing(house: House, ref: SessionRef, question: ViewQuestion) -> Flow[ViewStanding]:
    known = house.standing.view(ref.key, question.name)
    if known is not None:
        return known
    run = yield from do(house.store.runs.read, ref)
    since = run.checkpoint_at if run.checkpoint_at is not None else run.started_at
    zone = Zone(run.zones.get(question.name, Zone.SAFE))
    return ViewStanding(zone=zone, over_share=None, checkpoint_at=since)


def _noted(
    house: House, ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding, *, saved: bool
) -> Flow[ViewStanding]:
    """Remember the zone of a view, also for other processes; and when its run was saved."""
    if proposal.zone is not standing.zone:
        yield from do(house.store.runs.set_zone, ref, question.name, proposal.zone.value, now=house.now())
    noted = replace(
        standing,
        zone=proposal.zone,
        over_share=is_over_share(proposal.used_tokens, question.window.tokens, settings=house.settings.checkpoints),
        checkpoint_at=house.now() if saved else standing.checkpoint_at,
    )
    house.standing.note(ref.key, question.name, noted)
    return noted


def _refused(
    house: House, ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding
) -> Flow[None]:
    failed = replace(_outcome(house, question, proposal, proposal.steps), kind=OutcomeKind.FAILED)
    kept = replace(proposal, sight=proposal.before) if proposal.before is not None else proposal
    outcome = _identified(failed, ref, question, kept, standing)
    yield from _written(house, ref, question, kept, outcome=outcome, standing=standing)
    why = f"({proposal.reason.value})" if proposal.reason is not None else ""
    msg = f"the view could not be condensed {why} and does not fit: {proposal.error}"
    raise CondensationError(msg, reason=proposal.reason or FailureReason.MODEL_ERROR)


def _alert(
    house: House, ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding
) -> Alert | None:
    alert = alert_for(
        proposal.zone,
        before=standing.zone,
        used_tokens=proposal.used_tokens,
        limit_tokens=question.window.limit,
    )
    if alert is not None:
        house.report(
            f"zone_{alert.zone.value}",
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
    house: House, ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding
) -> Flow[str | None]:
    """Save the run's state before anything is changed, where a trigger fires."""
    settings = house.settings.checkpoints

    def reasons_since(since: float | None) -> tuple[str, ...]:
        return due_reasons(
            settings=settings,
            used_tokens=proposal.used_tokens,
            window_tokens=question.window.tokens,
            zone=proposal.zone,
            zone_before=standing.zone,
            was_over_share=standing.over_share,
            seconds_since_last=house.now() - since if since is not None else None,
        )

    reasons = reasons_since(standing.checkpoint_at)
    if "time_interval" in reasons:
        # Another view, or somebody else, may have saved the run since this one was looked at.
        run = yield from do(house.store.runs.read, ref)
        reasons = reasons_since(run.checkpoint_at if run.checkpoint_at is not None else run.started_at)
    if not reasons:
        return None
    shown = proposal.before if proposal.before is not None else proposal.sight
    pieces = (*shown.head, *shown.recent())
    view = ViewSnapshot(
        name=question.name,
        zone=proposal.zone,
        used_tokens=proposal.used_tokens,
        window=question.window,
        messages=tuple(piece.message for piece in pieces),
        summary_ids=tuple(one for piece in pieces for one in piece.summary_ids),
    )
    try:
        made = yield from checkpoint(
            house,
            ref.session_id,
            track=question.track,
            reasons=reasons,
            view=view,
            langgraph_checkpoint_id=question.langgraph_checkpoint_id,
        )
    except StorageError as error:
        house.report("checkpoint_failed", str(error), session_id=ref.session_id, reasons=list(reasons))
        return None
    return made.id


def _pieces(
    house: House, ref: SessionRef, question: ViewQuestion, proposal: Proposal, *, checkpoint_id: str | None
) -> Flow[tuple[tuple[Piece, ...], tuple[StepKind, ...]]]:
    """The messages of the view: as proposed, else its musts cut, else the essentials, else recovered."""
    if question.minimal:
        minimal = yield from minimal_pieces(proposal.desk, proposal.sight, least_tokens=LEAST_TOKENS)
        if minimal is not None:
            return tuple(minimal), (*proposal.steps, "minimal")
    elif proposal.fits:
        return (*proposal.sight.head, *proposal.sight.recent()), proposal.steps
    else:
        cut = shortened_musts(proposal.desk, proposal.sight)
        if cut is not None:
            return tuple(cut), (*proposal.steps, "shortened")
        minimal = yield from minimal_pieces(proposal.desk, proposal.sight, least_tokens=LEAST_READABLE_TOKENS)
        if minimal is not None:
            house.report("context_minimal", "pruning was not enough: the essentials alone", session_id=ref.session_id)
            return tuple(minimal), (*proposal.steps, "minimal")
    return (yield from _recovered(house, ref, question, proposal, checkpoint_id=checkpoint_id))


def _recovered(
    house: House, ref: SessionRef, question: ViewQuestion, proposal: Proposal, *, checkpoint_id: str | None
) -> Flow[tuple[tuple[Piece, ...], tuple[StepKind, ...]]]:
    """After an overflow: the last sound checkpoint, aggressive pruning, and on; else a fatal error that explains."""
    house.report(
        "context_overflow",
        f"{proposal.used_tokens:,} tokens; not even the messages that must be shown fit {question.window.limit:,}",
        session_id=ref.session_id,
        used_tokens=proposal.used_tokens,
        limit_tokens=question.window.limit,
    )
    found = checkpoint_id if checkpoint_id is not None else (yield from _last_checkpoint(house, ref))
    pieces = yield from minimal_pieces(proposal.desk, None, least_tokens=LEAST_TOKENS)
    if pieces is not None:
        house.report(
            "context_recovered",
            "went on with the essentials alone" + (f", from checkpoint {found}" if found else ""),
            session_id=ref.session_id,
            checkpoint_id=found,
        )
        return tuple(pieces), (*proposal.steps, "recovered")
    rooms = proposal.desk.rooms
    largest = sorted(proposal.sight.recent(), key=lambda piece: -piece.tokens)[:3]
    named = ", ".join(f"{piece.entry.id[:12]} with {piece.tokens:,}" for piece in largest if piece.entry is not None)
    saved = f"; the run's state is saved in checkpoint {found}" if found else "; every message is in the transcript"
    msg = (
        f"messages that must be shown have {max(proposal.desk.room, 0)} tokens left: the budget is {rooms.total}, the "
        f"system prompt and tools take {rooms.fixed}, goal and pins {proposal.sight.head_tokens}; the largest "
        f"messages: {named or 'none'}. Raise max_tokens, shorten the system prompt or unpin{saved}"
    )
    raise _fatal(house, ref, msg, checkpoint_id=found)


def _last_checkpoint(house: House, ref: SessionRef) -> Flow[str | None]:
    if not house.settings.checkpoints.enabled:
        return None
    try:
        return (yield from last_sound(house, ref))
    except CheckpointError as error:
        house.report("checkpoint_unusable", str(error), session_id=ref.session_id)
        return None


def overflowed(house: House, ref: SessionRef | None, msg: str, *, checkpoint_id: str | None) -> Flow[None]:
    """What must be shown did not fit even after it was cut: say so, with what is saved.

    Raises:
        ContextOverflowError: always, where there is a session.
    """
    if ref is None:
        return
    found = checkpoint_id if checkpoint_id is not None else (yield from _last_checkpoint(house, ref))
    raise _fatal(house, ref, msg, checkpoint_id=found)


def _fatal(house: House, ref: SessionRef, msg: str, *, checkpoint_id: str | None) -> ContextOverflowError:
    house.report("context_fatal", msg, session_id=ref.session_id, checkpoint_id=checkpoint_id)
    return ContextOverflowError(msg, checkpoint_id=checkpoint_id)


def _outcome(
    house: House,
    question: ViewQuestion,
    proposal: Proposal,
    steps: tuple[StepKind, ...],
    pieces: Sequence[Piece] | None = None,
) -> Outcome:
    """What became of the question, in figures; of the view as proposed, where no `pieces` were cut from it."""
    sight = proposal.sight
    tokens = sight.tokens if pieces is None else sum(piece.tokens for piece in pieces)
    messages = len(sight.tail) if pieces is None else sum(piece.part == "recent" for piece in pieces)
    kind = proposal.kind
    if kind in (OutcomeKind.NOT_NEEDED, OutcomeKind.FAILED) and _CUT & set(steps) and not question.minimal:
        kind = OutcomeKind.TRUNCATED  # it did not fit as it was
    if kind is OutcomeKind.NOT_NEEDED:
        return Outcome(
            id="",
            kind=kind,
            at=house.now(),
            track=question.track,
            messages_before=len(sight.tail),
            messages_after=messages,
            tokens_before=proposal.used_tokens,
            tokens_after=billed(proposal.desk, tokens),
            steps=steps,
        )
    library = proposal.desk.library.summaries
    old = {node.id for node in nodes_of(proposal.before.plan.items)} if proposal.before is not None else set()
    new = [node.id for node in nodes_of(sight.plan.items) if node.id not in old]
    spent = sum((library[one].spent for one in new if one in library), Spent())
    last_seq = sight.tail[-1].seq if sight.tail else sight.plan.border
    changed = kind in _CHANGED
    return Outcome(
        id="",
        kind=kind,
        reason=proposal.reason,
        why=proposal.why,
        at=house.now(),
        track=question.track,
        last_seq=last_seq,
        messages_before=len(proposal.before.tail) if proposal.before is not None else len(sight.tail),
        messages_after=messages,
        tokens_before=proposal.used_tokens,
        tokens_after=billed(proposal.desk, tokens),
        summary_ids=tuple(new) if changed else (),
        left_out=proposal.left_out,
        steps=steps,
        spent=spent if changed else Spent(),
        cost=_cost(house, [library[one] for one in new if one in library]) if changed else None,
        error=proposal.error,
        breaks_prefix=changed and proposal.before is not None,
    )


def _identified(
    outcome: Outcome, ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding
) -> Outcome:
    """With an id of its own: the same for the same journey, and never that of another outcome."""
    if outcome.kind is OutcomeKind.NOT_NEEDED:
        return outcome
    plan = proposal.sight.plan.to_json()
    what = (outcome.kind.value, outcome.reason, outcome.at, outcome.last_seq, standing.outcomes)
    said = repr((ref.key, question.name, proposal.kept, plan, what))
    return replace(outcome, id=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32])


def _cost(house: House, made: Sequence[Summary]) -> float | None:
    """What the writers of these summaries cost; `None` where one that called a model has no price."""
    costs = [cost_of(one.spent, price=house.settings.prices.get(one.model or "")) for one in made if one.spent.calls]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) and (costs or house.settings.prices) else None


def _repeatable(outcome: Outcome) -> str:
    """What the next request may well say again: kept once, until something else is said."""
    if outcome.kind is OutcomeKind.FAILED or _CUT & set(outcome.steps):
        return repr((outcome.kind.value, outcome.reason, outcome.steps[-1:]))
    return ""


def _written(
    house: House,
    ref: SessionRef,
    question: ViewQuestion,
    proposal: Proposal,
    *,
    outcome: Outcome,
    standing: ViewStanding,
) -> Flow[None]:
    """Swap the plan and keep its outcome, together; tell of it."""
    plan, now = proposal.sight.plan, house.now()
    payload = plan.to_json()
    keep = house.settings.condensation.monitoring.history
    before = proposal.kept
    if before is None and proposal.before is not None:
        before = proposal.before.plan.to_json()  # shown, or to be shown, but never written: so that it can come back
    if outcome.kind in _CHANGED and payload != before:
        written = yield from do(
            house.store.outcomes.swap,
            ref,
            question.name,
            payload,
            border=plan.border,
            now=now,
            outcome=outcome,
            plan_before=before,
            keep=keep,
        )
    else:
        if payload != proposal.kept:
            yield from do(house.store.plans.write, ref, question.name, payload, now=now, border=plan.border)
        said = _repeatable(outcome) if outcome.kind is not OutcomeKind.NOT_NEEDED else ""
        written = False
        if said and said != standing.failure:
            written = yield from do(house.store.outcomes.add, ref, question.name, outcome, keep=keep)
    if written:
        _tell(house, ref, outcome)
    if outcome.kind is not OutcomeKind.NOT_NEEDED:
        noted = replace(standing, failure=_repeatable(outcome), outcomes=standing.outcomes + 1)
        house.standing.note(ref.key, question.name, noted)


def _tell(house: House, ref: SessionRef, outcome: Outcome) -> None:
    freed = outcome.tokens_before - outcome.tokens_after
    reason = f" ({outcome.reason.value})" if outcome.reason is not None else ""
    details: dict[str, Any] = {
        "outcome": outcome.kind.value,
        "failure": outcome.reason.value if outcome.reason is not None else None,
        "steps": list(outcome.steps),
        "tokens_before": outcome.tokens_before,
        "tokens_after": outcome.tokens_after,
        "track": outcome.track,
    }
    house.report(
        f"view_{outcome.kind.value}",
        f"{outcome.why}: {outcome.kind.value}{reason}, {freed:,} tokens freed",
        session_id=ref.session_id,
        event_id=outcome.id,
        **details,
    )


def previewed(
    house: House, ref: SessionRef, question: ViewQuestion, desk_for: Callable[[float], Desk]
) -> Flow[tuple[Proposal, Outcome]]:
    """What a condensation now would do. Nothing is written, and no model is called."""
    asked = replace(question, forced=True, foreground_seconds=0.0)
    proposal = yield from propose(house, ref, asked, desk_for)
    return proposal, _outcome(house, asked, proposal, proposal.steps)


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


def undecided(house: House, window: Window, used_tokens: int, track: str) -> GuardReport:
    """The report of a request that has no view to decide: recall alone, or a session without a message."""
    return GuardReport(
        window=window,
        used_tokens=used_tokens,
        zone=zone_of(used_tokens, window.limit, settings=house.settings.guard),
        outcome=Outcome(
            id="",
            kind=OutcomeKind.NOT_NEEDED,
            at=house.now(),
            track=track,
            tokens_before=used_tokens,
            tokens_after=used_tokens,
        ),
    )
