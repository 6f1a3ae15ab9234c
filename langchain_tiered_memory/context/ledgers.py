"""Past decisions about views: outcomes, what left, what changed, what it cost; and how one is undone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.section_report import reason_of, shown_by
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.errors import InvalidInputError, NotFoundError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.reports import LevelMetrics, Ratings, SessionMetrics
from langchain_tiered_memory.summaries.rendering import history_block
from langchain_tiered_memory.summaries.tree.cover import gaps_of, nodes_of
from langchain_tiered_memory.types.outcomes import CostLedger, CostRow, LedgerRow, Outcome, OutcomeKind, ViewDiff
from langchain_tiered_memory.types.records import LeftOut, Spent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.context.outcome_store import StoredOutcome
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import PriceSettings
    from langchain_tiered_memory.types.records import SessionRef, Summary

_MILLION = 1_000_000
CHANGED = (OutcomeKind.MASKED, OutcomeKind.CONDENSED, OutcomeKind.TRUNCATED)
"""What did not leave the view as it was."""


def ledger(
    outcomes: Sequence[Outcome], calls: Mapping[str, int], *, spent: Spent, price: PriceSettings | None
) -> CostLedger:
    """The ledger of a session, with a row for each outcome that changed a view or spent something, in their order.

    `calls` says by outcome id how many messages of the assistant its track has since; `spent` is all that was spent on
    summaries, those that no view shows yet included; `price` is that of the condensing model, where it is known.
    """
    told = [one for one in outcomes if one.kind in CHANGED or one.spent.calls]
    rows = tuple(_row(one, calls.get(one.id, 0), price=price) for one in told)
    saved = sum(row.saved_tokens for row in rows)
    return CostLedger(
        rows=rows,
        spent=spent,
        spent_cost=cost_of(spent, price=price),
        saved_tokens=saved,
        saved_cost=_input_cost(saved, price),
        prefix_breaks=sum(one.breaks_prefix for one in outcomes),
    )


def cost_of(spent: Spent, *, price: PriceSettings | None) -> float | None:
    """What model calls cost, in the price table's currency; `None` without a price."""
    if price is None:
        return None
    paid = spent.input_tokens * price.input_per_million + spent.output_tokens * price.output_per_million
    return paid / _MILLION


def _row(one: Outcome, calls_since: int, *, price: PriceSettings | None) -> CostRow:
    stands = one.undone_at is None and one.kind in CHANGED
    per_call = one.tokens_before - one.tokens_after if stands else 0
    spent_cost = one.cost if one.cost is not None else cost_of(one.spent, price=price)
    saved = per_call * calls_since
    return CostRow(
        outcome_id=one.id,
        at=one.at,
        spent=one.spent,
        spent_cost=spent_cost,
        saved_tokens_per_call=per_call,
        calls_since=calls_since,
        saved_tokens=saved,
        saved_cost=_input_cost(saved, price),
        breaks_even_after=_break_even(one, per_call, spent_cost=spent_cost, price=price),
    )


def _break_even(one: Outcome, per_call: int, *, spent_cost: float | None, price: PriceSettings | None) -> float | None:
    if per_call <= 0:
        return None
    money_per_call = _input_cost(per_call, price)
    if spent_cost is None or money_per_call is None:
        return (one.spent.input_tokens + one.spent.output_tokens) / per_call
    if spent_cost == 0:
        return 0.0
    return spent_cost / money_per_call if money_per_call > 0 else None


def _input_cost(tokens: int, price: PriceSettings | None) -> float | None:
    return tokens * price.input_per_million / _MILLION if price is not None else None


def measure(runtime: Runtime, session_id: str, *, track: str | None = None) -> SessionMetrics:
    """Read a session's figures, or those of one track alone; all 0 where there is no message yet."""
    ref = runtime.store.transcript.find(session_id)
    tree = runtime.store.tree
    totals = runtime.store.transcript.totals(ref, track=track) if ref is not None else {}
    figures = tree.level_figures(ref, track=track) if ref is not None else []
    covered, standing = tree.root_figures(ref, track=track) if ref is not None else (0, 0)
    failed = tree.unfinished(ref, track=track) if ref is not None else 0
    spent = _spent(figures)
    tokens = int(totals.get("tokens", 0))
    saved = max(covered - standing, 0)
    level_1 = next((row for row in figures if row["level"] == 1), {})
    price = runtime.settings.prices.get(runtime.condenser.name)
    ratings: dict[tuple[int, str], dict[str, int]] = {}
    for level, writer, verdict, count in tree.verdicts(ref, track=track) if ref is not None else ():
        ratings.setdefault((level, writer), {})[verdict] = count
    return SessionMetrics(
        session_id=session_id,
        messages=int(totals.get("entries", 0)),
        tokens=tokens,
        levels=tuple(
            LevelMetrics(**{name: row[name] for name in ("level", "summaries", "tokens", "source_tokens", "seconds")})
            for row in figures
        ),
        overall_ratio=saved / tokens if tokens else 0.0,
        tokens_saved=saved,
        spent=spent,
        cost=cost_of(spent, price=price),
        saved_cost_per_call=_input_cost(saved, price),
        failed=failed,
        degraded=sum(row["degraded"] for row in figures),
        stale=sum(row["stale"] for row in figures),
        kept_identifiers=level_1.get("kept_identifiers"),
        information_loss=level_1.get("information_loss"),
        ratings=tuple(Ratings(level=level, writer=writer, **one) for (level, writer), one in ratings.items()),
    )


def _spent(figures: Sequence[Mapping[str, Any]]) -> Spent:
    fields = ("calls", "input_tokens", "output_tokens", "seconds")
    return Spent(**{field: sum(row[field] for row in figures) for field in fields})


_LOOKED_BACK = 20
"""Outcomes among which the last that changed a plan is looked for: others cut a single request."""


def outcomes(runtime: Runtime, session_id: str, *, limit: int, track: str | None = None) -> list[Outcome]:
    """Kept outcomes, of one track or of all, newest first."""
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
    ref, store = runtime.store.transcript.find(session_id), runtime.store
    spent, calls = Spent(), dict[str, int]()
    if ref is not None:
        spent = _spent(store.tree.level_figures(ref, track=track))
        calls = {one.id: store.outcomes.assistant_calls(ref, one.track, after=one.last_seq) for one in kept}
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
    before, after = (
        ViewPlan.from_json(plan) if plan is not None else None for plan in (stored.plan_before, stored.plan_after)
    )
    return diff_of(runtime, ref, stored.outcome, before, after)


def diff_of(
    runtime: Runtime, ref: SessionRef, outcome: Outcome, before: ViewPlan | None, after: ViewPlan | None
) -> ViewDiff:
    """The difference between two plans of a view."""
    ids = {node.id for plan in (before, after) if plan is not None for node in nodes_of(plan.items)}
    found = runtime.store.tree.by_id(ref, sorted(ids)) if ids else []
    summaries = {one.id: one for one in found}
    told = {one.id: f"level {one.level}, for messages {one.first_seq}-{one.last_seq}" for one in found}
    shown = {node.id for node in nodes_of(before.items)} if before is not None else set()
    came = [
        LeftOut(what=node.id, reason=told.get(node.id, "a summary that was removed since"), tokens=node.tokens)
        for node in nodes_of(after.items if after is not None else ())
        if node.id not in shown
    ]
    lines = gaps_of((*after.items, *after.left_spans)) if after is not None else ()
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


def _text(plan: ViewPlan | None, summaries: dict[str, Summary]) -> str:
    if plan is None or not (plan.items or plan.left_spans):
        return ""
    return history_block(plan.items, summaries, (), left=plan.left_spans)


def _named_or_last(runtime: Runtime, ref: SessionRef, outcome_id: str | None) -> StoredOutcome:
    """An outcome with its plans; the last one that gave a view another plan, if none is named."""
    if outcome_id is not None:
        return runtime.store.outcomes.get(ref, outcome_id)
    for one in runtime.store.outcomes.read(ref, limit=_LOOKED_BACK, kinds=CHANGED):
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
    return ref
