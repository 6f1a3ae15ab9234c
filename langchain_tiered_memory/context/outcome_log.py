"""Writes the outcome of a request's view together with its plan, and sends the event."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.assembly_inputs import Proposal, ViewQuestion, billed
from langchain_tiered_memory.context.ledgers import cost_of
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries.tree.cover import nodes_of
from langchain_tiered_memory.transcript.derived_writes import write_if_possible
from langchain_tiered_memory.transcript.outbox import deliver
from langchain_tiered_memory.types.outcomes import (
    CUTTING_STEPS,
    FailureReason,
    Outcome,
    OutcomeKind,
    StepKind,
)
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.layout import Piece
    from langchain_tiered_memory.context.view_cache import ViewStanding
    from langchain_tiered_memory.reports import Event
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef, Summary

_TO_THE_WINDOW: frozenset[StepKind] = frozenset({"slid", "pruned"})
"""Steps by which messages leave a view without a summary."""
_CHANGED = (OutcomeKind.MASKED, OutcomeKind.CONDENSED, OutcomeKind.TRUNCATED)


def refuse(
    runtime: Runtime, ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding
) -> None:
    """Write down that the view could not be condensed as the settings want it, and raise.

    Raises:
        CondensationError: always.
    """
    failed = replace(outcome_of(runtime, question, proposal, proposal.steps), kind=OutcomeKind.FAILED)
    kept = replace(proposal, rendered=proposal.before) if proposal.before is not None else proposal
    outcome = identified(failed, ref, question, kept, standing)
    write_account(runtime, ref, question, kept, outcome=outcome, standing=standing)
    why = f"({proposal.reason.value})" if proposal.reason is not None else ""
    msg = f"the view could not be condensed {why} and does not fit: {proposal.error}"
    raise CondensationError(msg, reason=proposal.reason or FailureReason.MODEL_ERROR)


def outcome_of(
    runtime: Runtime,
    question: ViewQuestion,
    proposal: Proposal,
    steps: tuple[StepKind, ...],
    pieces: Sequence[Piece] | None = None,
) -> Outcome:
    """What became of the question, in figures; of the view as proposed, where no `pieces` were cut from it."""
    rendered = proposal.rendered
    tokens = rendered.tokens if pieces is None else sum(piece.tokens for piece in pieces)
    messages = len(rendered.tail) if pieces is None else sum(piece.part == "recent" for piece in pieces)
    kind = proposal.kind
    if (
        kind in (OutcomeKind.NOT_NEEDED, OutcomeKind.FAILED)
        and CUTTING_STEPS & set(steps)
        and "minimal" not in question.mode
    ):
        kind = OutcomeKind.TRUNCATED  # it did not fit as it was
    if kind is OutcomeKind.NOT_NEEDED:
        return Outcome(
            id="",
            kind=kind,
            at=runtime.now(),
            track=question.track,
            messages_before=len(rendered.tail),
            messages_after=messages,
            tokens_before=proposal.used_tokens,
            tokens_after=billed(proposal.inputs, tokens),
            steps=steps,
        )
    library = proposal.inputs.library.summaries
    old = {node.id for node in nodes_of(proposal.before.plan.items)} if proposal.before is not None else set()
    new = [node.id for node in nodes_of(rendered.plan.items) if node.id not in old]
    spent = sum((library[one].spent for one in new if one in library), Spent())
    last_seq = rendered.tail[-1].seq if rendered.tail else rendered.plan.border
    changed = kind in _CHANGED
    return Outcome(
        id="",
        kind=kind,
        reason=proposal.reason,
        why=proposal.why,
        at=runtime.now(),
        track=question.track,
        last_seq=last_seq,
        messages_before=len(proposal.before.tail) if proposal.before is not None else len(rendered.tail),
        messages_after=messages,
        tokens_before=proposal.used_tokens,
        tokens_after=billed(proposal.inputs, tokens),
        summary_ids=tuple(new) if changed else (),
        left_out=proposal.left_out,
        steps=steps,
        spent=spent if changed else Spent(),
        cost=_cost(runtime, [library[one] for one in new if one in library]) if changed else None,
        error=proposal.error,
        breaks_prefix=changed and proposal.before is not None,
    )


def identified(
    outcome: Outcome, ref: SessionRef, question: ViewQuestion, proposal: Proposal, standing: ViewStanding
) -> Outcome:
    """With an id of its own: the same for the same journey, and never that of another outcome."""
    if outcome.kind is OutcomeKind.NOT_NEEDED:
        return outcome
    plan = proposal.rendered.plan.to_json()
    what = (outcome.kind.value, outcome.reason, outcome.at, outcome.last_seq, standing.outcomes)
    said = repr((ref.key, question.name, proposal.kept, plan, what))
    return replace(outcome, id=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32])


def _cost(runtime: Runtime, made: Sequence[Summary]) -> float | None:
    """What the writers of these summaries cost; `None` where one that called a model has no price."""
    costs = [cost_of(one.spent, price=runtime.settings.prices.get(one.model or "")) for one in made if one.spent.calls]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) and (costs or runtime.settings.prices) else None


def _repeatable(outcome: Outcome) -> str:
    """What the next request may well say again: kept once, until something else is said."""
    if outcome.kind is OutcomeKind.FAILED or CUTTING_STEPS & set(outcome.steps):
        return repr((outcome.kind.value, outcome.reason, outcome.steps[-1:]))
    return ""


def write_account(
    runtime: Runtime,
    ref: SessionRef,
    question: ViewQuestion,
    proposal: Proposal,
    *,
    outcome: Outcome,
    standing: ViewStanding,
) -> None:
    """Swap the plan and keep its outcome, together; tell of it."""
    plan, now = proposal.rendered.plan, runtime.now()
    payload = plan.to_json()
    keep = runtime.settings.condensation.monitoring.history
    before = proposal.kept
    if before is None and proposal.before is not None:
        before = proposal.before.plan.to_json()  # shown, or to be shown, but never written: so that it can come back
    event = _event(runtime, ref, outcome)
    written: bool | None = False
    if outcome.kind in _CHANGED and payload != before:
        written = write_if_possible(
            runtime,
            ref.session_id,
            runtime.store.outcomes.swap,
            ref,
            question.name,
            payload,
            border=plan.border,
            now=now,
            outcome=outcome,
            plan_before=before,
            keep=keep,
            event=event,
        )
    else:
        if payload != proposal.kept:
            write_if_possible(
                runtime,
                ref.session_id,
                runtime.store.plans.write,
                ref,
                question.name,
                payload,
                now=now,
                border=plan.border,
            )
        said = _repeatable(outcome) if outcome.kind is not OutcomeKind.NOT_NEEDED else ""
        if said and said != standing.failure:
            written = write_if_possible(
                runtime,
                ref.session_id,
                runtime.store.outcomes.add,
                ref,
                question.name,
                outcome,
                keep=keep,
                event=event,
            )
    if written:
        deliver(runtime, event)
        if outcome.kind is OutcomeKind.TRUNCATED and _TO_THE_WINDOW & set(outcome.steps):
            runtime.store.database.end_snapshot()  # collectors are somebody else's code
            runtime.condenser.tell_of_window(ref.session_id, outcome)
    if outcome.kind is not OutcomeKind.NOT_NEEDED:
        noted = replace(standing, failure=_repeatable(outcome), outcomes=standing.outcomes + 1)
        runtime.view_cache.note(ref.key, question.name, noted)


def _event(runtime: Runtime, ref: SessionRef, outcome: Outcome) -> Event:
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
    return runtime.event(
        EventName(f"view_{outcome.kind.value}"),
        f"{outcome.why}: {outcome.kind.value}{reason}, {freed:,} tokens freed",
        session_id=ref.session_id,
        event_id=outcome.id,
        **details,
    )
