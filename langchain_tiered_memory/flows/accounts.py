"""The account of what a request's view was decided to be: its outcome, written together with its plan, and told."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.decisions.cost_ledger import cost_of
from langchain_tiered_memory.decisions.cover import nodes_of
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.proposals import Proposal, ViewQuestion, billed
from langchain_tiered_memory.outcomes import (
    CUTTING_STEPS,
    FailureReason,
    Outcome,
    OutcomeKind,
    StepKind,
)
from langchain_tiered_memory.records import Spent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.decisions.request import Piece
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.flows.standing import ViewStanding
    from langchain_tiered_memory.records import SessionRef, Summary

_CHANGED = (OutcomeKind.MASKED, OutcomeKind.CONDENSED, OutcomeKind.TRUNCATED)


def refuse(
    house: House, ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding
) -> Flow[None]:
    """Write down that the view could not be condensed as the settings want it, and raise.

    Raises:
        CondensationError: always.
    """
    failed = replace(outcome_of(house, question, proposal, proposal.steps), kind=OutcomeKind.FAILED)
    kept = replace(proposal, sight=proposal.before) if proposal.before is not None else proposal
    outcome = identified(failed, ref, question, kept, standing)
    yield from write_account(house, ref, question, kept, outcome=outcome, standing=standing)
    why = f"({proposal.reason.value})" if proposal.reason is not None else ""
    msg = f"the view could not be condensed {why} and does not fit: {proposal.error}"
    raise CondensationError(msg, reason=proposal.reason or FailureReason.MODEL_ERROR)


def outcome_of(
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
    if kind in (OutcomeKind.NOT_NEEDED, OutcomeKind.FAILED) and CUTTING_STEPS & set(steps) and not question.minimal:
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


def identified(
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
    if outcome.kind is OutcomeKind.FAILED or CUTTING_STEPS & set(outcome.steps):
        return repr((outcome.kind.value, outcome.reason, outcome.steps[-1:]))
    return ""


def write_account(
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
