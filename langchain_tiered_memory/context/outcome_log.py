"""Writes the outcome of a request's view together with its plan, and sends the event."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.ledgers import CHANGED, cost_of
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries.tree.cover import nodes_of
from langchain_tiered_memory.transcript.outbox import deliver, write_if_possible
from langchain_tiered_memory.types.outcomes import CUTTING_STEPS, FailureReason, Outcome, OutcomeKind, StepKind
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.context.packing import Packing
    from langchain_tiered_memory.context.view_cache import ViewStanding
    from langchain_tiered_memory.reports import Event
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import Settings
    from langchain_tiered_memory.types.records import SessionRef, Summary

_TO_THE_WINDOW: frozenset[StepKind] = frozenset({"slid", "pruned"})
"""Steps by which messages leave a view without a summary."""


def refuse(packing: Packing, standing: ViewStanding) -> None:
    """Write down that the view could not be condensed as the settings want it, and raise.

    Raises:
        CondensationError: always.
    """
    failed = replace(outcome_of(packing), kind=OutcomeKind.FAILED)
    kept = replace(packing, rendered=packing.before) if packing.before is not None else packing
    write_account(kept, outcome=identified(failed, kept, standing), standing=standing)
    why = f"({packing.reason.value})" if packing.reason is not None else ""
    msg = f"the view could not be condensed {why} and does not fit: {packing.error}"
    raise CondensationError(msg, reason=packing.reason or FailureReason.MODEL_ERROR)


def outcome_of(packing: Packing) -> Outcome:
    """What became of the question, in figures; of the view as proposed, where nothing was packed of it yet."""
    inputs, rendered, pieces, kind = packing.inputs, packing.rendered, packing.pieces, packing.kind
    tokens = sum(piece.tokens for piece in pieces) if pieces else rendered.tokens
    messages = sum(piece.part == "recent" for piece in pieces) if pieces else len(rendered.tail)
    if kind in (OutcomeKind.NOT_NEEDED, OutcomeKind.FAILED) and packing.is_cut and "minimal" not in inputs.mode:
        kind = OutcomeKind.TRUNCATED  # it did not fit as it was
    outcome = Outcome(
        id="",
        kind=kind,
        at=inputs.runtime.now(),
        track=inputs.track,
        messages_before=len(rendered.tail),
        messages_after=messages,
        tokens_before=packing.need.used_tokens,
        tokens_after=inputs.billed(tokens),
        steps=packing.steps,
    )
    if kind is OutcomeKind.NOT_NEEDED:
        return outcome
    library, before = inputs.library.summaries, packing.before
    old = {node.id for node in nodes_of(before.plan.items)} if before is not None else set()
    new = [node.id for node in nodes_of(rendered.plan.items) if node.id not in old]
    made = [library[one] for one in new if one in library]
    changed = kind in CHANGED
    return replace(
        outcome,
        reason=packing.reason,
        why=packing.need.why,
        last_seq=rendered.tail[-1].seq if rendered.tail else rendered.plan.border,
        messages_before=len(before.tail) if before is not None else len(rendered.tail),
        summary_ids=tuple(new) if changed else (),
        left_out=packing.left_out,
        spent=sum((one.spent for one in made), Spent()) if changed else Spent(),
        cost=_cost(inputs.settings, made) if changed else None,
        error=packing.error,
        breaks_prefix=changed and before is not None,
    )


def identified(outcome: Outcome, packing: Packing, standing: ViewStanding) -> Outcome:
    """With an id of its own: the same for the same journey, and never that of another outcome."""
    if outcome.kind is OutcomeKind.NOT_NEEDED:
        return outcome
    plan, inputs = packing.rendered.plan.to_json(), packing.inputs
    what = (outcome.kind.value, outcome.reason, outcome.at, outcome.last_seq, standing.outcomes)
    said = repr((inputs.ref.key, inputs.name, packing.kept, plan, what))
    return replace(outcome, id=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:32])


def _cost(settings: Settings, made: Sequence[Summary]) -> float | None:
    """What the writers of these summaries cost; `None` where one that called a model has no price."""
    costs = [cost_of(one.spent, price=settings.prices.get(one.model or "")) for one in made if one.spent.calls]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) and (costs or settings.prices) else None


def _repeatable(outcome: Outcome) -> str:
    """What the next request may well say again: kept once, until something else is said."""
    if outcome.kind is OutcomeKind.FAILED or CUTTING_STEPS & set(outcome.steps):
        return repr((outcome.kind.value, outcome.reason, outcome.steps[-1:]))
    return ""


def write_account(packing: Packing, *, outcome: Outcome, standing: ViewStanding) -> None:
    """Swap the plan and keep its outcome, together; tell of it."""
    inputs, runtime, plan = packing.inputs, packing.inputs.runtime, packing.rendered.plan
    ref, name, payload, now = inputs.ref, inputs.name, plan.to_json(), inputs.runtime.now()
    before = packing.kept
    if before is None and packing.before is not None:
        before = packing.before.plan.to_json()  # shown, or to be shown, but never written: so that it can come back
    event = _event(runtime, ref, outcome)
    store, keep = runtime.store, inputs.settings.condensation.monitoring.history

    def written_by(method: Callable[..., bool | None], *values: object, **named: object) -> bool | None:
        return write_if_possible(runtime, ref.session_id, method, ref, name, *values, **named)

    written: bool | None = False
    account: dict[str, Any] = {"keep": keep, "event": event}
    if outcome.kind in CHANGED and payload != before:
        account |= {"outcome": outcome, "plan_before": before}
        written = written_by(store.outcomes.swap, payload, border=plan.border, now=now, **account)
    else:
        if payload != packing.kept:
            written_by(store.plans.write, payload, now=now, border=plan.border)
        said = _repeatable(outcome) if outcome.kind is not OutcomeKind.NOT_NEEDED else ""
        if said and said != standing.failure:
            written = written_by(store.outcomes.add, outcome, **account)
    if written:
        deliver(runtime, event)
        if outcome.kind is OutcomeKind.TRUNCATED and _TO_THE_WINDOW & set(outcome.steps):
            store.database.end_snapshot()  # collectors are somebody else's code
            runtime.condenser.tell_of_window(ref.session_id, outcome)
    if outcome.kind is not OutcomeKind.NOT_NEEDED:
        noted = replace(standing, failure=_repeatable(outcome), outcomes=standing.outcomes + 1)
        runtime.view_cache.note(ref.key, name, noted)


def _event(runtime: Runtime, ref: SessionRef, outcome: Outcome) -> Event:
    freed = outcome.tokens_before - outcome.tokens_after
    reason = f" ({outcome.reason.value})" if outcome.reason is not None else ""
    return runtime.event(
        EventName(f"view_{outcome.kind.value}"),
        f"{outcome.why}: {outcome.kind.value}{reason}, {freed:,} tokens freed",
        session_id=ref.session_id,
        event_id=outcome.id,
        outcome=outcome.kind.value,
        failure=outcome.reason.value if outcome.reason is not None else None,
        steps=list(outcome.steps),
        tokens_before=outcome.tokens_before,
        tokens_after=outcome.tokens_after,
        track=outcome.track,
    )
