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
from langchain_tiered_memory.errors import CheckpointError, ContextOverflowError
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
from langchain_tiered_memory.outcomes import GuardReport, Outcome, OutcomeKind, StepKind, Zone
from langchain_tiered_memory.records import LeftOut, Spent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.decisions.request import Piece
    from langchain_tiered_memory.flows.desk import Desk
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.outcomes import Alert, Window
    from langchain_tiered_memory.records import SessionRef, Summary

_CHANGED = (OutcomeKind.MASKED, OutcomeKind.CONDENSED, OutcomeKind.TRUNCATED)


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
    pieces, steps = yield from _pieces(house, ref, question, proposal, checkpoint_id=saved)
    outcome = _outcome(house, question, proposal, steps)
    yield from _written(house, ref, question, proposal, outcome=outcome, standing=standing)
    at = house.now() if saved is not None else standing.checkpoint_at
    failure = _failure(outcome) if outcome.kind is not OutcomeKind.NOT_NEEDED else standing.failure
    if proposal.zone is not standing.zone:
        yield from do(house.store.runs.set_zone, ref, question.name, proposal.zone.value, now=house.now())
    over = is_over_share(proposal.used_tokens, question.window.tokens, settings=house.settings.checkpoints)
    house.standing.note(
        ref.key,
        question.name,
        ViewStanding(zone=proposal.zone, over_share=over, checkpoint_at=at, failure=failure),
    )
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
    """Recent messages that only the essentials keep out; the plan names all others."""
    if not {"minimal", "recovered"} & set(steps):
        return ()
    shown = {entry.seq for piece in pieces for entry in (*piece.whole_entries, *piece.passages)}
    gone = [entry for entry in proposal.sight.tail if entry.seq not in shown]
    return tuple(LeftOut(what=entry.id, reason="not essential", tokens=entry.tokens) for entry in gone)


def _standing(house: House, ref: SessionRef, question: ViewQuestion) -> Flow[ViewStanding]:
    known = house.standing.view(ref.key, question.name)
    if known is not None:
        return known
    run = yield from do(house.store.runs.read, ref)
    since = run.checkpoint_at if run.checkpoint_at is not None else run.started_at
    zone = Zone(run.zones.get(question.name, Zone.SAFE))
    return ViewStanding(zone=zone, over_share=None, checkpoint_at=since)


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
    since = standing.checkpoint_at
    reasons = due_reasons(
        settings=settings,
        used_tokens=proposal.used_tokens,
        window_tokens=question.window.tokens,
        zone=proposal.zone,
        zone_before=standing.zone,
        was_over_share=standing.over_share,
        seconds_since_last=house.now() - since if since is not None else None,
    )
    if not reasons:
        return None
    shown = proposal.before if proposal.before is not None else proposal.sight
    made = yield from checkpoint(
        house,
        ref.session_id,
        track=question.track,
        reasons=reasons,
        view=ViewSnapshot(
            name=question.name,
            zone=proposal.zone,
            used_tokens=proposal.used_tokens,
            window=question.window,
            messages=tuple(piece.message for piece in (*shown.head, *shown.recent())),
        ),
    )
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
    found = checkpoint_id
    if found is None and house.settings.checkpoints.enabled:
        try:
            found = yield from last_sound(house, ref)
        except CheckpointError as error:
            house.report("checkpoint_unusable", str(error), session_id=ref.session_id)
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
    house.report("context_fatal", msg, session_id=ref.session_id, checkpoint_id=found)
    raise ContextOverflowError(msg, checkpoint_id=found)


def _outcome(house: House, question: ViewQuestion, proposal: Proposal, steps: tuple[StepKind, ...]) -> Outcome:
    """What became of the question, in figures."""
    if proposal.kind is OutcomeKind.NOT_NEEDED and not steps:
        return Outcome(
            id="",
            kind=OutcomeKind.NOT_NEEDED,
            at=house.now(),
            track=question.track,
            messages_before=len(proposal.sight.tail),
            messages_after=len(proposal.sight.tail),
            tokens_before=proposal.used_tokens,
            tokens_after=proposal.used_tokens,
        )
    library = proposal.desk.library.summaries
    old = {node.id for node in nodes_of(proposal.before.plan.items)} if proposal.before is not None else set()
    new = [node.id for node in nodes_of(proposal.sight.plan.items) if node.id not in old]
    spent = sum((library[one].spent for one in new if one in library), Spent())
    last_seq = proposal.sight.tail[-1].seq if proposal.sight.tail else proposal.sight.plan.border
    changed = proposal.kind in _CHANGED
    said = repr((question.name, proposal.kept, proposal.sight.plan.to_json(), last_seq, proposal.reason, house.now()))
    return Outcome(
        id=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        kind=proposal.kind,
        reason=proposal.reason,
        why=proposal.why,
        at=house.now(),
        track=question.track,
        last_seq=last_seq,
        messages_before=len(proposal.before.tail) if proposal.before is not None else len(proposal.sight.tail),
        messages_after=len(proposal.sight.tail),
        tokens_before=proposal.used_tokens,
        tokens_after=billed(proposal.desk, proposal.sight.tokens),
        summary_ids=tuple(new) if changed else (),
        left_out=proposal.left_out,
        steps=steps,
        spent=spent if changed else Spent(),
        cost=_cost(house, [library[one] for one in new if one in library]) if changed else None,
        error=proposal.error,
        breaks_prefix=changed and proposal.before is not None,
    )


def _cost(house: House, made: Sequence[Summary]) -> float | None:
    """What the writers of these summaries cost; `None` where one that called a model has no price."""
    costs = [cost_of(one.spent, price=house.settings.prices.get(one.model or "")) for one in made if one.spent.calls]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) and (costs or house.settings.prices) else None


def _failure(outcome: Outcome) -> str:
    return f"{outcome.reason}" if outcome.kind is OutcomeKind.FAILED else ""


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
    if outcome.kind in _CHANGED and payload != proposal.kept:
        yield from do(
            house.store.outcomes.swap,
            ref,
            question.name,
            payload,
            border=plan.border,
            now=now,
            outcome=outcome,
            plan_before=proposal.kept,
            keep=keep,
        )
        _tell(house, ref, outcome)
        return
    if payload != proposal.kept:
        yield from do(house.store.plans.write, ref, question.name, payload, now=now, border=plan.border)
    if outcome.kind is OutcomeKind.FAILED and _failure(outcome) != standing.failure:
        yield from do(house.store.outcomes.add, ref, question.name, outcome, keep=keep)
        _tell(house, ref, outcome)


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
