"""Past decisions about views: outcomes, what left, what changed, what it cost; and how one is undone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.history.cost_ledger import ledger
from langchain_tiered_memory.context.history.measure import spent_on
from langchain_tiered_memory.context.section_report import reason_of, shown_by
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.summaries.rendering import history_block
from langchain_tiered_memory.summaries.tree.cover import gaps_of, nodes_of
from langchain_tiered_memory.types.outcomes import CostLedger, LedgerRow, Outcome, OutcomeKind, ViewDiff
from langchain_tiered_memory.types.records import LeftOut, Spent

if TYPE_CHECKING:
    from langchain_tiered_memory.context.history.outcome_store import StoredOutcome
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef, Summary

_LOOKED_BACK = 20
"""Outcomes among which the last that changed a plan is looked for: others cut a single request."""
_CHANGED = (OutcomeKind.MASKED, OutcomeKind.CONDENSED, OutcomeKind.TRUNCATED)


def outcomes(runtime: Runtime, session_id: str, *, limit: int, track: str | None = None) -> list[Outcome]:
    """Kept outcomes, of one track or of all, newest first.

    Raises:
        InvalidInputError: when `limit` is below 1.
    """
    if limit < 1:
        msg = f"limit is {limit}: ask for at least one outcome"
        raise InvalidInputError(msg)
    ref = runtime.store.transcript.find(session_id)
    return runtime.store.outcomes.read(ref, limit=limit, track=track) if ref is not None else []


def dropped(runtime: Runtime, session_id: str, *, track: str | None = None) -> list[LedgerRow]:
    """Everything that left a view, newest first, as far back as outcomes are kept."""
    kept = outcomes(runtime, session_id, limit=runtime.settings.condensation.monitoring.history, track=track)
    return [
        LedgerRow(
            outcome_id=one.id,
            at=one.at,
            track=one.track,
            what=left.what,
            reason=left.reason,
            tokens=left.tokens,
            undone=one.undone_at is not None,
        )
        for one in kept
        for left in one.left_out
    ]


def costs(runtime: Runtime, session_id: str, *, track: str | None = None) -> CostLedger:
    """What condensing cost, and what it saved by now, on one track or on all."""
    kept = outcomes(runtime, session_id, limit=runtime.settings.condensation.monitoring.history, track=track)
    ref = runtime.store.transcript.find(session_id)
    spent = spent_on(runtime, ref, track=track) if ref is not None else Spent()
    calls: dict[str, int] = {}
    if ref is not None:
        for one in kept:
            calls[one.id] = runtime.store.outcomes.assistant_calls(ref, one.track, after=one.last_seq, up_to=None)
    price = runtime.settings.prices.get(runtime.condenser.name)
    return ledger(kept, calls, spent=spent, price=price)


def undo(runtime: Runtime, session_id: str, outcome_id: str | None) -> Outcome:
    """Give a view back what it showed before its last condensation, or before the one that is named.

    Raises:
        NotFoundError: when there is nothing to undo.
        InvalidInputError: when the view shows something else by now.
    """
    ref = _found(runtime, session_id)
    stored = _named_or_last(runtime, ref, outcome_id)
    outcome_id = stored.outcome.id
    if stored.outcome.undone_at is not None:
        return stored.outcome  # asking twice is asking once
    if stored.plan_before is None or stored.plan_after is None:
        msg = f"{outcome_id!r} cannot be undone: it changed no plan that is still known"
        raise InvalidInputError(msg)
    before = ViewPlan.from_json(stored.plan_before)
    held = replace(before, held=True).to_json() if before is not None else stored.plan_before
    runtime.store.outcomes.undo(ref, outcome_id, now=runtime.now(), plan_before=held)
    runtime.report(EventName.VIEW_UNDONE, f"{stored.outcome.why}: undone", session_id=session_id, outcome_id=outcome_id)
    return runtime.store.outcomes.get(ref, outcome_id).outcome


def diff(runtime: Runtime, session_id: str, outcome_id: str | None) -> ViewDiff:
    """What an outcome, the last one that changed a view if none is named, changed in it.

    Raises:
        NotFoundError: when there is no such outcome.
    """
    ref = _found(runtime, session_id)
    stored = _named_or_last(runtime, ref, outcome_id)
    before = ViewPlan.from_json(stored.plan_before) if stored.plan_before is not None else None
    after = ViewPlan.from_json(stored.plan_after) if stored.plan_after is not None else None
    return diff_of(runtime, ref, stored.outcome, before, after)


def diff_of(
    runtime: Runtime, ref: SessionRef, outcome: Outcome, before: ViewPlan | None, after: ViewPlan | None
) -> ViewDiff:
    """The difference between two plans of a view."""
    ids = {node.id for plan in (before, after) if plan is not None for node in nodes_of(plan.items)}
    found = runtime.store.tree.by_id(ref, sorted(ids)) if ids else []
    summaries = {one.id: one for one in found}
    shown = {node.id for node in nodes_of(before.items)} if before is not None else set()
    came: list[LeftOut] = []
    if after is not None:
        came += [
            LeftOut(what=node.id, reason=_for_what(summaries.get(node.id)), tokens=node.tokens)
            for node in nodes_of(after.items)
            if node.id not in shown
        ]
        lines = gaps_of((*after.items, *after.left_spans))
        came += [LeftOut(what=f"{gap.first_seq}-{gap.last_seq}", reason=f"a line: {reason_of(gap)}") for gap in lines]
    return ViewDiff(
        outcome=outcome,
        left=outcome.left_out,
        came=tuple(came),
        text_before=_text(before, summaries),
        text_after=_text(after, summaries),
        before=shown_by(before) if before is not None else None,
        after=shown_by(after) if after is not None else None,
    )


def _for_what(summary: Summary | None) -> str:
    if summary is None:
        return "a summary that was removed since"
    return f"level {summary.level}, for messages {summary.first_seq}-{summary.last_seq}"


def _text(plan: ViewPlan | None, summaries: dict[str, Summary]) -> str:
    if plan is None or not (plan.items or plan.left_spans):
        return ""
    return history_block(plan.items, summaries, (), left=plan.left_spans)


def _named_or_last(runtime: Runtime, ref: SessionRef, outcome_id: str | None) -> StoredOutcome:
    """An outcome with its plans; the last one that gave a view another plan, if none is named."""
    if outcome_id is not None:
        return runtime.store.outcomes.get(ref, outcome_id)
    kinds = [kind.value for kind in _CHANGED]
    for one in runtime.store.outcomes.read(ref, limit=_LOOKED_BACK, kinds=kinds):
        stored: StoredOutcome = runtime.store.outcomes.get(ref, one.id)
        if stored.plan_after is not None or set(one.steps) <= {"masked", "condensed", "slid", "pruned"}:
            return stored
    msg = f"no view of the session {ref.session_id!r} was condensed yet: there is nothing to undo or compare"
    raise NotFoundError(msg)


def _found(runtime: Runtime, session_id: str) -> SessionRef:
    ref = runtime.store.transcript.find(session_id)
    if ref is None:
        msg = f"the session {session_id!r} has no message yet"
        raise NotFoundError(msg)
    found: SessionRef = ref
    return found
