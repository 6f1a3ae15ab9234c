"""Past decisions about views: outcomes, what left, what changed, what it cost; and how one is undone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.accounting import reason_of
from langchain_tiered_memory.decisions.cost_ledger import ledger
from langchain_tiered_memory.decisions.cover import Gap, nodes_of
from langchain_tiered_memory.decisions.rendering import history_block
from langchain_tiered_memory.decisions.view_plan import ViewPlan
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.measure import spent_on
from langchain_tiered_memory.outcomes import CostLedger, LedgerRow, Outcome, OutcomeKind, ViewDiff
from langchain_tiered_memory.records import LeftOut, Spent

if TYPE_CHECKING:
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import SessionRef, Summary
    from langchain_tiered_memory.stores.outcomes import StoredOutcome

_LOOKED_BACK = 20
"""Outcomes among which the last that changed a plan is looked for: others cut a single request."""
_CHANGED = (OutcomeKind.MASKED, OutcomeKind.CONDENSED, OutcomeKind.TRUNCATED)


def outcomes(house: House, session_id: str, *, limit: int) -> Flow[list[Outcome]]:
    """Kept outcomes, newest first.

    Raises:
        InvalidInputError: when `limit` is below 1.
    """
    if limit < 1:
        msg = f"limit is {limit}: ask for at least one outcome"
        raise InvalidInputError(msg)
    ref = yield from do(house.store.transcript.find, session_id)
    return (yield from do(house.store.outcomes.read, ref, limit=limit)) if ref is not None else []


def dropped(house: House, session_id: str) -> Flow[list[LedgerRow]]:
    """Everything that left a view, newest first, as far back as outcomes are kept."""
    kept = yield from outcomes(house, session_id, limit=house.settings.condensation.monitoring.history)
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


def costs(house: House, session_id: str) -> Flow[CostLedger]:
    """What condensing cost, and what it saved by now."""
    kept = yield from outcomes(house, session_id, limit=house.settings.condensation.monitoring.history)
    ref = yield from do(house.store.transcript.find, session_id)
    spent = (yield from spent_on(house, ref)) if ref is not None else Spent()
    calls: dict[str, int] = {}
    if ref is not None:
        for one in kept:
            calls[one.id] = yield from do(
                house.store.outcomes.assistant_calls, ref, one.track, after=one.last_seq, up_to=None
            )
    price = house.settings.prices.get(house.condenser.name)
    return ledger(kept, calls, spent=spent, price=price)


def undo(house: House, session_id: str, outcome_id: str | None) -> Flow[Outcome]:
    """Give a view back what it showed before its last condensation, or before the one that is named.

    Raises:
        NotFoundError: when there is nothing to undo.
        InvalidInputError: when the view shows something else by now.
    """
    ref = yield from _found(house, session_id)
    stored = yield from _named_or_last(house, ref, outcome_id)
    outcome_id = stored.outcome.id
    if stored.outcome.undone_at is not None:
        return stored.outcome  # asking twice is asking once
    if stored.plan_before is None or stored.plan_after is None:
        msg = f"{outcome_id!r} cannot be undone: it changed no plan that is still known"
        raise InvalidInputError(msg)
    before = ViewPlan.from_json(stored.plan_before)
    held = replace(before, held=True).to_json() if before is not None else stored.plan_before
    yield from do(house.store.outcomes.undo, ref, outcome_id, now=house.now(), plan_before=held)
    house.report("view_undone", f"{stored.outcome.why}: undone", session_id=session_id, outcome_id=outcome_id)
    return (yield from do(house.store.outcomes.get, ref, outcome_id)).outcome


def diff(house: House, session_id: str, outcome_id: str | None) -> Flow[ViewDiff]:
    """What an outcome, the last one that changed a view if none is named, changed in it.

    Raises:
        NotFoundError: when there is no such outcome.
    """
    ref = yield from _found(house, session_id)
    stored = yield from _named_or_last(house, ref, outcome_id)
    before = ViewPlan.from_json(stored.plan_before) if stored.plan_before is not None else None
    after = ViewPlan.from_json(stored.plan_after) if stored.plan_after is not None else None
    return (yield from diff_of(house, ref, stored.outcome, before, after))


def diff_of(
    house: House, ref: SessionRef, outcome: Outcome, before: ViewPlan | None, after: ViewPlan | None
) -> Flow[ViewDiff]:
    """The difference between two plans of a view."""
    ids = {node.id for plan in (before, after) if plan is not None for node in nodes_of(plan.items)}
    found = (yield from do(house.store.tree.by_id, ref, sorted(ids))) if ids else []
    summaries = {one.id: one for one in found}
    shown = {node.id for node in nodes_of(before.items)} if before is not None else set()
    came: list[LeftOut] = []
    if after is not None:
        came += [
            LeftOut(what=node.id, reason=_for_what(summaries.get(node.id)), tokens=node.tokens)
            for node in nodes_of(after.items)
            if node.id not in shown
        ]
        lines = [item for item in (*after.items, *after.left_spans) if isinstance(item, Gap)]
        came += [LeftOut(what=f"{gap.first_seq}-{gap.last_seq}", reason=f"a line: {reason_of(gap)}") for gap in lines]
    return ViewDiff(
        outcome=outcome,
        left=outcome.left_out,
        came=tuple(came),
        text_before=_text(before, summaries),
        text_after=_text(after, summaries),
    )


def _for_what(summary: Summary | None) -> str:
    if summary is None:
        return "a summary that was removed since"
    return f"level {summary.level}, for messages {summary.first_seq}-{summary.last_seq}"


def _text(plan: ViewPlan | None, summaries: dict[str, Summary]) -> str:
    if plan is None or not (plan.items or plan.left_spans):
        return ""
    return history_block(plan.items, summaries, (), left=plan.left_spans)


def _named_or_last(house: House, ref: SessionRef, outcome_id: str | None) -> Flow[StoredOutcome]:
    """An outcome with its plans; the last one that gave a view another plan, if none is named."""
    if outcome_id is not None:
        return (yield from do(house.store.outcomes.get, ref, outcome_id))
    kinds = [kind.value for kind in _CHANGED]
    for one in (yield from do(house.store.outcomes.read, ref, limit=_LOOKED_BACK, kinds=kinds)):
        stored: StoredOutcome = yield from do(house.store.outcomes.get, ref, one.id)
        if stored.plan_after is not None or set(one.steps) <= {"masked", "condensed", "slid", "pruned"}:
            return stored
    msg = f"no view of the session {ref.session_id!r} was condensed yet: there is nothing to undo or compare"
    raise NotFoundError(msg)


def _found(house: House, session_id: str) -> Flow[SessionRef]:
    ref = yield from do(house.store.transcript.find, session_id)
    if ref is None:
        msg = f"the session {session_id!r} has no message yet"
        raise NotFoundError(msg)
    found: SessionRef = ref
    return found
