"""Assembles the context for one model call: required messages, summaries of what is older, recent messages, recall.

What stands before recall depends on the history and the budget alone, and stays byte for byte until the view is
condensed again; recall stands last. The account says what is in, what stayed out and why.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.cutting import overflowed
from langchain_tiered_memory.context.compaction.guard import decide, joined, outcome_of, undecided
from langchain_tiered_memory.context.ladder import proposed
from langchain_tiered_memory.context.layout import with_quotes
from langchain_tiered_memory.context.ledgers import diff_of
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.packing import Need, Packing
from langchain_tiered_memory.context.pieces import Piece, shortened
from langchain_tiered_memory.context.policy import no_room_beside, with_loop
from langchain_tiered_memory.context.recall_budget import said_beside
from langchain_tiered_memory.context.recalling import Recalling, keep_standing, parent_section, recalling
from langchain_tiered_memory.context.request import Request, read_inputs
from langchain_tiered_memory.context.required_messages import kept_by_kind
from langchain_tiered_memory.context.section_report import account, not_shown
from langchain_tiered_memory.context.view.fact_section import record_room
from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.context.view.rendered_view import RenderedView, in_order, pinned_piece
from langchain_tiered_memory.context.view.repeated_reads import tell_repeated, without_astray
from langchain_tiered_memory.errors import BudgetError, InvalidInputError, NotFoundError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.content_blocks import without_foreign_compactions
from langchain_tiered_memory.messages.repair import make_valid
from langchain_tiered_memory.models.message_counting import Calibration
from langchain_tiered_memory.types.contexts import Context
from langchain_tiered_memory.types.outcomes import OutcomeKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.messages.repair import Validated
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.outcomes import GuardReport, ViewDiff

_ATTEMPTS = 6
"""Times that a context is put together when repairs made it larger than planned."""


def assemble(runtime: Runtime, session_id: str, request: Request) -> Flow[Context]:
    """Put a context together.

    Raises:
        BudgetError: when the budget cannot hold what must be shown; it says what takes the room.
        CondensationError: when condensing failed, the view does not fit, and `strategies.fallback` is `error`.
    """
    inputs = read_inputs(runtime, session_id, request)
    room, parent = parent_section(inputs)
    inputs = replace(inputs, margin=room)
    report: GuardReport | None = None
    for _ in range(_ATTEMPTS):
        shown, told = yield from _shown(inputs)
        report = joined(report, told)
        if inputs.has_view and report.outcome.kind is not OutcomeKind.NOT_NEEDED:
            # What left the view may be what answers.
            inputs = inputs.resolved(ratio=inputs.ratio, given=said_beside(inputs, shown.rendered.plan))
            shown = replace(shown, inputs=replace(shown.inputs, recall_budget=inputs.recall_budget))
        recalled = recalling(shown)
        context = _finished(shown, recalled, report=report, parent=parent, parent_room=room)
        if context.tokens <= inputs.budget.max_tokens:
            if not inputs.is_new:
                tell_repeated(runtime, inputs.ref, shown.pieces, context)
                keep_standing(shown, recalled)
            return context
        # What repairs cost stays what it is when the next attempt has less room.
        planned = inputs.policy.fixed + sum(piece.tokens for piece in shown.pieces) + recalled.tokens
        over = context.tokens - inputs.budget.max_tokens
        inputs = replace(inputs, margin=max(inputs.margin + over, context.raw_tokens - planned))
    largest = ", ".join(f"{section.name} {section.tokens}" for section in context.sections)
    msg = (
        f"what must be shown takes {context.tokens} tokens, the budget is {inputs.budget.max_tokens} ({largest}): "
        "raise max_tokens, unpin messages, or shorten the system prompt"
    )
    if inputs.is_new:
        raise BudgetError(msg)
    raise overflowed(inputs, msg, checkpoint_id=context.guard.checkpoint_id)


def preview(runtime: Runtime, session_id: str, request: Request) -> Flow[ViewDiff]:
    """What a condensation of a request's view would change now. Nothing is written, and no model is called.

    Raises:
        NotFoundError: when the session has no message yet.
        InvalidInputError: for a view that has nothing to condense.
    """
    inputs = read_inputs(runtime, session_id, request)
    if inputs.is_new:
        msg = f"the session {session_id!r} has no message yet: there is nothing to condense"
        raise NotFoundError(msg)
    if request.view in ("recall", "minimal"):
        msg = f"the view {request.view!r} is rebuilt for each request: it is never condensed"
        raise InvalidInputError(msg)
    packing = yield from proposed(replace(inputs, forced=True))
    before = packing.before.plan if packing.before is not None else None
    return diff_of(runtime, inputs.ref, outcome_of(packing), before, packing.rendered.plan)


def _shown(inputs: Inputs) -> Flow[tuple[Packing, GuardReport]]:
    """Everything but recall, as the guard decides it."""
    if inputs.has_view:
        packing, report = yield from decide(inputs)
        mode = with_loop(inputs.mode, inputs.request, packing.rendered.tail)
        policy = replace(packing.inputs.policy, mode=mode)
        # As it bound this view, where facts that must last or messages that must be shown had more.
        bound = {}
        if sum(piece.tokens for piece in packing.pieces if piece.part == "facts") > policy.of("facts"):
            bound["facts"] = max(policy.of("facts"), record_room(packing.inputs, packing.rendered.plan.items))
        if packing.is_cut:  # recall lends its room
            bound["recent"] = policy.total - policy.fixed
        return replace(packing, inputs=replace(packing.inputs, policy=policy.telling(**bound))), report
    if inputs.policy.is_full:  # there is no view that a guard could make smaller
        raise BudgetError(no_room_beside(inputs.policy.fixed, inputs.budget.max_tokens, ratio=inputs.ratio))
    pieces = () if inputs.is_new else _asked_alone(inputs)
    used = math.ceil((inputs.policy.fixed + sum(piece.tokens for piece in pieces)) * inputs.ratio)
    report = undecided(inputs, used)
    need = Need(used_tokens=used, zone=report.zone, percent=math.inf)
    nothing = RenderedView(plan=ViewPlan(border=0, tail_from=1), head=(), tail=())
    return Packing(inputs=inputs, need=need, rendered=nothing, pieces=pieces), report


def _asked_alone(inputs: Inputs) -> tuple[Piece, ...]:
    """What the recall view shows beside recall: what is always kept, and the question where the user said it last."""
    required, pieces = inputs.required, list[Piece]()
    pinned = {entry.seq for entry in required.pinned}
    always = [entry for entry in in_order(inputs, kept_by_kind(inputs, None)) if entry.seq not in pinned]
    if pinned or always:
        pieces.append(pinned_piece(inputs, required.pinned, always=always))
    if not inputs.request.asks and required.last_user is not None:
        most = max(round(NUMBERS.question_share * inputs.policy.total), 1)
        pieces.append(shortened(required.last_user, max_tokens=most, counter=inputs.counter, expands=inputs.expands))
    return tuple(pieces)


def _stands_in(inputs: Inputs, piece: Piece) -> str:
    """Say once that a message cannot be shown, and each time in the context's repairs."""
    message_id, session_id = piece.entry.id if piece.entry is not None else "", inputs.ref.session_id
    if inputs.runtime.view_cache.first_time(("message_damaged", session_id, message_id)):
        said = str(piece.damaged)
        inputs.runtime.report(EventName.MESSAGE_DAMAGED, said, session_id=session_id, message_id=message_id)
    return f"a placeholder stands for the message {message_id!r}: {piece.damaged}"


def _finished(
    shown: Packing, recalled: Recalling, *, report: GuardReport, parent: Piece | None, parent_room: int
) -> Context:
    inputs, count = shown.inputs, shown.inputs.counter.count_message
    reader, system = inputs.request.model.provider, [inputs.system] if inputs.system is not None else []

    def validated_of(pieces: Sequence[Piece]) -> Validated:
        return make_valid([*system, *(piece.message for piece in pieces)], complete=inputs.request.complete)

    earlier = {one.before: one.piece for one in recalled.standing if one.piece is not None}
    now = [piece for piece in (parent, recalled.piece) if piece is not None]
    laid, place = with_quotes(shown.pieces, earlier=earlier, now=now)
    pieces = [replace(piece, message=without_foreign_compactions(piece.message, reader=reader)) for piece in laid]
    stood_in = tuple(_stands_in(inputs, piece) for piece in pieces if piece.damaged is not None)
    validated = validated_of(pieces)
    settled = without_astray(pieces, validated.messages)
    if settled is not None:
        pieces, validated = settled, validated_of(settled)
    known, raw = {id(piece.message): piece.tokens for piece in pieces}, inputs.policy.fixed
    for message in system:
        known[id(message)] = count(message)
        raw -= known[id(message)]
    raw += sum(known[id(one)] if id(one) in known else count(one) for one in validated.messages)
    # Where something is asked, recall may come there at the next request, though nothing was found for this one.
    # What stands from earlier questions is taken out in one step when its room is needed: none of it is promised.
    first = min((at for at, piece in enumerate(pieces) if piece.part in ("parent", "recall")), default=place)
    asks = inputs.mode.looks_up or bool(inputs.sections.own)
    border = pieces[first].message if first < len(pieces) and asks else None
    volatile = [at for at, one in enumerate(validated.messages) if one is border]
    policy = inputs.policy.telling(recall=recalled.room, parent=parent_room)
    whole = {entry.seq: entry.id for piece in pieces for entry in piece.whole_entries}
    parts = {entry.seq: entry.id for piece in pieces for entry in piece.passages if entry.seq not in whole}
    plan = shown.rendered.plan
    return Context(
        messages=validated.messages,
        tokens=Calibration(ratio=inputs.ratio).apply(raw),
        raw_tokens=raw,
        max_tokens=inputs.budget.max_tokens,
        sections=account(
            pieces,
            policy=policy,
            items=(*plan.items, *plan.left_spans),
            other_left_out=not_shown(shown),
            recalled_left_out=recalled.left_out,
            registered=recalled.sections,
        ),
        policy=policy,
        entry_ids=tuple(dict.fromkeys(whole.values())),
        passage_ids=tuple(dict.fromkeys(parts.values())),
        summary_ids=tuple(dict.fromkeys(one for piece in pieces for one in piece.summary_ids)),
        repairs=(*stood_in, *validated.repairs),
        guard=report,
        stable_messages=volatile[0] if volatile else len(validated.messages),
    )
