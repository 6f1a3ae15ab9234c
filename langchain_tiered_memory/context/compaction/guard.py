"""The one function that decides the view of a request, and writes down what it decided.

It has the view measured and made smaller where it is full (`ladder`), saves a checkpoint where a trigger fires, and
swaps the view's plan together with its outcome, in one transaction.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.context.compaction.leaving import pruning_plan
from langchain_tiered_memory.context.compaction.need import alert_for, wished, zone_of
from langchain_tiered_memory.context.ladder import packed, proposed
from langchain_tiered_memory.context.layout import in_request_order
from langchain_tiered_memory.context.ledgers import CHANGED, cost_of
from langchain_tiered_memory.context.view_cache import ViewStanding
from langchain_tiered_memory.errors import CondensationError, StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import ViewSnapshot
from langchain_tiered_memory.runs.checkpoints import checkpoint, is_over_share, reasons_to_save
from langchain_tiered_memory.summaries.tree.condense import want
from langchain_tiered_memory.summaries.tree.cover import nodes_of
from langchain_tiered_memory.transcript.outbox import deliver, may_write, note_unwritten, write_if_possible
from langchain_tiered_memory.types.outcomes import (
    CUTTING_STEPS,
    ZONES,
    FailureReason,
    GuardReport,
    Outcome,
    OutcomeKind,
    StepKind,
    Zone,
)
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.context.packing import Packing
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.reports import Event
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.outcomes import Alert
    from langchain_tiered_memory.types.records import SessionRef

_INTENDED_STEPS: frozenset[StepKind] = frozenset({"masked", "condensed", "slid"})
"""What a full view is there for: a plan that stands from then on."""


def decide(inputs: Inputs) -> Flow[tuple[Packing, GuardReport]]:
    """Decide the view of a request, and write down what was decided.

    Raises:
        ContextOverflowError: when not even the essentials fit; everything is saved.
        CondensationError: when condensing failed, the view does not fit, and `strategies.fallback` is `error`.
    """
    runtime, ref = inputs.runtime, inputs.ref
    standing = runtime.view_cache.views.get((ref.key, inputs.name))
    if standing is None:
        run = runtime.store.runs.read(ref)
        since = run.checkpoint_at if run.checkpoint_at is not None else run.started_at
        zone = Zone(run.zones.get(inputs.name, Zone.SAFE))
        standing = ViewStanding(zone=zone, over_share=None, checkpoint_at=since)
    packing = yield from proposed(inputs)
    _tell_of_provider(packing)
    judged = _judged(packing)
    alert = _alert(judged, standing)
    saved = _checkpointed(packing, standing)
    # Before anything can be raised: who asks again is not alerted again, and nothing is saved twice.
    noted = _noted(judged, standing, used_tokens=packing.need.used_tokens, saved=saved is not None)
    if packing.refused:
        refuse(packing, noted)
    packing = packed(packing, checkpoint_id=saved)
    outcome = identified(outcome_of(packing), packing, noted)
    write_account(packing, outcome=outcome, standing=noted)
    _note_need(packing)
    report = GuardReport(
        window=inputs.window,
        used_tokens=packing.need.used_tokens,
        zone=packing.need.zone,
        outcome=outcome,
        steps=outcome.steps,
        alert=alert,
        checkpoint_id=saved,
    )
    return packing, report


def _tell_of_provider(packing: Packing) -> None:
    """Say that a view had to be made smaller here which the provider was to compact; once for each plan left."""
    inputs, before = packing.inputs, packing.before
    fitted = before is not None and before.tokens <= inputs.room
    if inputs.settings.condensation.strategies.primary != "provider" or "minimal" in inputs.mode or fitted:
        return
    if inputs.runtime.view_cache.first_time(("provider_not_compacted", inputs.ref.key, inputs.name, packing.kept)):
        inputs.runtime.report(
            EventName.PROVIDER_NOT_COMPACTED,
            f"{packing.need.why}: the provider has not compacted; let it begin earlier (its trigger or threshold), or "
            "give the memory more tokens",
            session_id=inputs.ref.session_id,
            used_tokens=packing.need.used_tokens,
            limit_tokens=inputs.window.limit,
            track=inputs.track,
        )


def _note_need(packing: Packing) -> None:
    """Write down what the view needs, or soon will, in a model's words."""
    inputs, runtime = packing.inputs, packing.inputs.runtime
    if "minimal" in inputs.mode or not runtime.condenser.writes_later or inputs.slides_only:
        return
    wish = wished(packing)
    known = ("wish", inputs.ref.key, inputs.track, wish.up_to) if wish is not None else None
    if wish is None or not runtime.view_cache.first_time(known):
        return
    if write_if_possible(runtime, inputs.ref.session_id, want, runtime, inputs.ref, wish):
        runtime.view_cache.wishes.put(inputs.ref.session_id, inputs.ref.session_id)


def _zone_now(packing: Packing) -> Zone:
    """The zone of the request with the view as proposed."""
    return zone_of(packing.tokens, packing.inputs.window.limit, settings=packing.inputs.settings.guard)


def _judged(packing: Packing) -> Packing:
    """The packing with zone and size by which it is told of: as they are after it was made smaller as intended.

    A long history that a view is opened on is far over its room, and condensed: that is no news to anybody. Where
    nothing was condensed, where messages had to be cut, or it stayed too large, it is told as it was before.
    """
    if _INTENDED_STEPS.isdisjoint(packing.steps) or packing.is_cut or not packing.fits:
        return packing
    zone = _zone_now(packing)
    if ZONES.index(zone) >= ZONES.index(packing.need.zone):
        return packing
    return replace(packing, need=replace(packing.need, zone=zone, used_tokens=packing.tokens))


def _noted(packing: Packing, standing: ViewStanding, *, used_tokens: int, saved: bool) -> ViewStanding:
    """Remember the zone of a view, also for other processes; and when its run was saved."""
    inputs, runtime, zone = packing.inputs, packing.inputs.runtime, packing.need.zone
    if zone is not standing.zone:
        set_zone, now = runtime.store.runs.set_zone, runtime.now()
        write_if_possible(runtime, inputs.ref.session_id, set_zone, inputs.ref, inputs.name, zone.value, now=now)
    noted = replace(
        standing,
        zone=zone,
        over_share=is_over_share(used_tokens, inputs.window.tokens, settings=inputs.settings.checkpoints),
        checkpoint_at=runtime.now() if saved else standing.checkpoint_at,
    )
    runtime.view_cache.views.put((inputs.ref.key, inputs.name), noted)
    return noted


def _alert(packing: Packing, standing: ViewStanding) -> Alert | None:
    inputs, need = packing.inputs, packing.need
    limit = inputs.window.limit
    alert = alert_for(need.zone, before=standing.zone, used_tokens=need.used_tokens, limit_tokens=limit)
    if alert is not None:
        inputs.runtime.report(
            EventName(f"zone_{alert.zone.value}"),
            f"{alert.used_tokens:,} of {alert.limit_tokens:,} tokens ({alert.ratio:.0%}). {alert.recommendation}",
            session_id=inputs.ref.session_id,
            zone=alert.zone.value,
            used_tokens=alert.used_tokens,
            limit_tokens=alert.limit_tokens,
            ratio=alert.ratio,
            recommendation=alert.recommendation,
            track=inputs.track,
        )
    return alert


def _checkpointed(packing: Packing, standing: ViewStanding) -> str | None:
    """Save the run's state before anything is changed, where a trigger fires."""
    inputs, runtime, need = packing.inputs, packing.inputs.runtime, packing.need

    def reasons_since(since: float | None) -> tuple[str, ...]:
        return reasons_to_save(
            settings=inputs.settings.checkpoints,
            used_tokens=need.used_tokens,
            window_tokens=inputs.window.tokens,
            zone=need.zone,
            zone_before=standing.zone,
            was_over_share=standing.over_share,
            seconds_since_last=runtime.now() - since if since is not None else None,
        )

    reasons = reasons_since(standing.checkpoint_at)
    if "time_interval" in reasons:
        # Another view, or somebody else, may have saved the run since this one was looked at.
        run = runtime.store.runs.read(inputs.ref)
        reasons = reasons_since(run.checkpoint_at if run.checkpoint_at is not None else run.started_at)
    if not reasons or not may_write(runtime):
        return None
    shown = packing.before if packing.before is not None else packing.rendered
    pieces = in_request_order(inputs, shown.head, shown.recent())
    # In the danger zone it is planned what would leave next.
    in_danger = need.zone is Zone.DANGER and _zone_now(packing) is Zone.DANGER and not inputs.policy.is_full
    view = ViewSnapshot(
        name=inputs.name,
        ref=inputs.ref,
        zone=need.zone,
        used_tokens=need.used_tokens,
        window=inputs.window,
        messages=tuple(piece.message for piece in pieces),
        entries=tuple(piece.entry for piece in pieces if piece.entry is not None),
        summary_ids=tuple(one for piece in pieces for one in piece.summary_ids),
        pruning=pruning_plan(inputs, packing.rendered, target=packing.target) if in_danger else (),
    )
    session_id = inputs.ref.session_id
    try:
        made = checkpoint(
            runtime,
            session_id,
            track=inputs.track,
            reasons=reasons,
            view=view,
            langgraph_checkpoint_id=inputs.request.langgraph_checkpoint_id,
        )
    except StorageError as error:
        note_unwritten(runtime, session_id, error)
        runtime.report(EventName.CHECKPOINT_FAILED, str(error), session_id=session_id, reasons=list(reasons))
        return None
    return made.id


def joined(first: GuardReport | None, last: GuardReport) -> GuardReport:
    """The report of a request whose view was decided twice, because what had to be repaired in it took room."""
    if first is None:
        return last
    changed = last.outcome.kind is not OutcomeKind.NOT_NEEDED
    return replace(
        first,
        outcome=last.outcome if changed else first.outcome,
        steps=tuple(dict.fromkeys((*first.steps, *last.steps))),
        alert=first.alert if first.alert is not None else last.alert,
        checkpoint_id=first.checkpoint_id if first.checkpoint_id is not None else last.checkpoint_id,
    )


def undecided(inputs: Inputs, used_tokens: int) -> GuardReport:
    """The report of a request that has no view to decide: recall alone, or a session without a message."""
    return GuardReport(
        window=inputs.window,
        used_tokens=used_tokens,
        zone=zone_of(used_tokens, inputs.window.limit, settings=inputs.settings.guard),
        outcome=Outcome(
            id="",
            kind=OutcomeKind.NOT_NEEDED,
            at=inputs.runtime.now(),
            track=inputs.track,
            tokens_before=used_tokens,
            tokens_after=used_tokens,
        ),
    )


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
    messages = sum(piece.part == "recent" for piece in pieces if piece.entry) if pieces else len(rendered.tail)
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
    # What the writers of these summaries cost; unknown where one that called a model has no price.
    prices = inputs.settings.prices
    costs = [cost_of(one.spent, price=prices.get(one.model or "")) for one in made if one.spent.calls]
    known = [cost for cost in costs if cost is not None]
    return replace(
        outcome,
        reason=packing.reason,
        why=packing.need.why,
        last_seq=rendered.tail[-1].seq if rendered.tail else rendered.plan.border,
        messages_before=len(before.tail) if before is not None else len(rendered.tail),
        summary_ids=tuple(new) if changed else (),
        left_out=packing.left_out,
        spent=sum((one.spent for one in made), Spent()) if changed else Spent(),
        cost=sum(known) if changed and len(known) == len(costs) and (costs or prices) else None,
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


def write_account(packing: Packing, *, outcome: Outcome, standing: ViewStanding) -> None:
    """Swap the plan and keep its outcome, together; tell of it."""
    inputs, runtime, plan = packing.inputs, packing.inputs.runtime, packing.rendered.plan
    ref, name, payload, now = inputs.ref, inputs.name, plan.to_json(), inputs.runtime.now()
    before, store = packing.kept, runtime.store
    if before is None and packing.before is not None:
        before = packing.before.plan.to_json()  # shown, or to be shown, but never written: so that it can come back

    def written_by(method: Callable[..., bool | None], *values: object, **named: object) -> bool | None:
        return write_if_possible(runtime, ref.session_id, method, ref, name, *values, **named)

    is_swapped = outcome.kind in CHANGED and payload != before
    if not is_swapped and payload != packing.kept:
        written_by(store.plans.write, payload, now=now, border=plan.border)
    if outcome.kind is OutcomeKind.NOT_NEEDED:
        return
    event = _event(runtime, ref, outcome)
    owed = runtime.owed(event)
    account: dict[str, Any] = {"keep": inputs.settings.condensation.monitoring.history, "event": owed}
    # What the next request may well say again: kept once, until something else is said.
    repeatable = outcome.kind is OutcomeKind.FAILED or CUTTING_STEPS & set(outcome.steps)
    said = repr((outcome.kind.value, outcome.reason, outcome.steps[-1:])) if repeatable else ""
    written: bool | None = False
    if is_swapped:
        account |= {"outcome": outcome, "plan_before": before}
        written = written_by(store.outcomes.swap, payload, border=plan.border, now=now, **account)
    elif said and said != standing.failure:
        written = written_by(store.outcomes.add, outcome, **account)
    if written:
        deliver(runtime, event, owed)
        if outcome.kind is OutcomeKind.TRUNCATED and _TO_THE_WINDOW & set(outcome.steps):
            store.database.end_snapshot()  # collectors are somebody else's code
            runtime.condenser.tell_of_window(ref.session_id, outcome)
    noted = replace(standing, failure=said, outcomes=standing.outcomes + 1)
    runtime.view_cache.views.put((ref.key, name), noted)


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
