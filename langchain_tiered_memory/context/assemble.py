"""Assembles the context for one model call: required messages, summaries of what is older, recent messages, recall.

What stands before recall depends on the history and the budget alone, and stays byte for byte until the view is
condensed again; recall stands last. The account says what is in, what stayed out and why.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.assembly_inputs import Assembly
from langchain_tiered_memory.context.compaction.guard import decide, joined, previewed, undecided
from langchain_tiered_memory.context.compaction.overflow_recovery import overflowed
from langchain_tiered_memory.context.layout import Piece, recall_position, shortened
from langchain_tiered_memory.context.ledgers import diff_of
from langchain_tiered_memory.context.mode import with_loop
from langchain_tiered_memory.context.parent_sight import NO_SIGHT, ParentSight, sight_of
from langchain_tiered_memory.context.policy import no_room_beside
from langchain_tiered_memory.context.recall_budget import said_beside
from langchain_tiered_memory.context.recalling import Recalling, keep_standing, recalling, with_standing
from langchain_tiered_memory.context.request import (
    Request,
    RequestInputs,
    inputs_maker,
    question_of,
    request_inputs_of,
    with_learnt_window,
)
from langchain_tiered_memory.context.required_messages import kept_by_kind
from langchain_tiered_memory.context.section_report import COMPACTED, account
from langchain_tiered_memory.context.view.fact_section import record_room
from langchain_tiered_memory.context.view.rendered_view import in_order, other_tracks, pinned_piece
from langchain_tiered_memory.context.view.repeated_reads import tell_repeated, without_astray
from langchain_tiered_memory.errors import BudgetError, InvalidInputError, NotFoundError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.content_blocks import without_foreign_compactions
from langchain_tiered_memory.messages.validity.repair import make_valid
from langchain_tiered_memory.models.message_counting import PRIMING_TOKENS, Calibration
from langchain_tiered_memory.models.window_budget import Budget, budget_of
from langchain_tiered_memory.types.contexts import Context
from langchain_tiered_memory.types.outcomes import CUTTING_STEPS, OutcomeKind
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs
    from langchain_tiered_memory.context.compaction.guard import Decided
    from langchain_tiered_memory.context.policy import Rooms
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.messages.validity.repair import Validated
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.outcomes import ViewDiff
    from langchain_tiered_memory.types.records import SessionRef

_ATTEMPTS = 6
"""Times that a context is put together when repairs made it larger than planned."""


def assemble(runtime: Runtime, session_id: str, request: Request) -> Flow[Context]:
    """Put a context together.

    Raises:
        BudgetError: when the budget cannot hold what must be shown; it says what takes the room.
        CondensationError: when condensing failed, the view does not fit, and `strategies.fallback` is `error`.
    """
    ref = runtime.store.transcript.find(session_id)
    told = with_learnt_window(runtime, request.model)
    budget = budget_of(request.max_tokens, told, settings=runtime.settings)
    request_inputs = request_inputs_of(runtime, ref, request, told, budget)
    sight = sight_of(runtime, ref, request, request_inputs, budget) if ref is not None else NO_SIGHT
    margin, first = sight.room, None
    for _ in range(_ATTEMPTS):
        shown = yield from _shown(runtime, ref, request, budget, request_inputs, margin=margin)
        if first is not None:
            shown = replace(shown, report=joined(first, shown.report))
        first = shown.report
        if ref is not None and shown.plan is not None and first.outcome.kind is not OutcomeKind.NOT_NEEDED:
            request_inputs = _with_what_left(runtime, ref, request, budget, request_inputs, shown.plan)
        recalled = Recalling()
        if ref is not None and (request_inputs.mode.looks_up or request_inputs.sections.own):
            recalled = recalling(runtime, ref, request, request_inputs, shown, margin=margin)
        context = _finished(
            runtime,
            request,
            budget,
            shown,
            recalled,
            sight=sight,
            system=request_inputs.system,
            has_query=request_inputs.mode.looks_up or bool(request_inputs.sections.own),
            session_id=session_id,
        )
        if context.tokens <= budget.max_tokens:
            if ref is not None:
                tell_repeated(runtime, ref, shown.pieces, context)
            if ref is not None and request_inputs.mode.looks_up:
                keep_standing(runtime, ref, request, request_inputs, shown=shown, recalled=recalled)
            return context
        # What repairs cost stays what it is when the next attempt has less room.
        planned = allocation_used(shown, recalled)
        margin = max(margin + context.tokens - budget.max_tokens, context.raw_tokens - planned)
    largest = ", ".join(f"{section.name} {section.tokens}" for section in context.sections)
    msg = (
        f"what must be shown takes {context.tokens} tokens, the budget is {budget.max_tokens} ({largest}): raise "
        "max_tokens, unpin messages, or shorten the system prompt"
    )
    overflowed(runtime, ref, msg, checkpoint_id=context.guard.checkpoint_id)
    raise BudgetError(msg)


def _with_what_left(  # noqa: PLR0917 - the parts of one request
    runtime: Runtime, ref: SessionRef, request: Request, budget: Budget, request_inputs: RequestInputs, plan: ViewPlan
) -> RequestInputs:
    """What recall may take, judged by the view as it was made for this request."""
    said = said_beside(
        runtime,
        ref,
        request_inputs.recall_budget,
        plan,
        name=request_inputs.name,
        required=request_inputs.required,
        total=budget.max_tokens,
        track=request.track if request.alone else None,
    )
    return replace(request_inputs, recall_budget=said)


def preview(runtime: Runtime, session_id: str, request: Request) -> Flow[ViewDiff]:
    """What a condensation of a request's view would change now. Nothing is written, and no model is called.

    Raises:
        NotFoundError: when the session has no message yet.
        InvalidInputError: for a view that has nothing to condense.
    """
    ref = runtime.store.transcript.find(session_id)
    if ref is None:
        msg = f"the session {session_id!r} has no message yet: there is nothing to condense"
        raise NotFoundError(msg)
    if request.view in ("recall", "minimal"):
        msg = f"the view {request.view!r} is made anew for each request: it is never condensed"
        raise InvalidInputError(msg)
    told = with_learnt_window(runtime, request.model)
    budget = budget_of(request.max_tokens, told, settings=runtime.settings)
    request_inputs = request_inputs_of(runtime, ref, request, told, budget)
    question = question_of(runtime, request, budget, request_inputs)
    proposal, outcome = yield from previewed(
        runtime, ref, question, inputs_maker(runtime, ref, request, budget, request_inputs, margin=0)
    )
    before = proposal.before.plan if proposal.before is not None else None
    return diff_of(runtime, ref, outcome, before, proposal.rendered.plan)


def allocation_used(shown: Assembly, recalled: Recalling) -> int:
    """Raw tokens of a request as it was planned, before anything in it was repaired."""
    return shown.rooms.fixed + sum(piece.tokens for piece in shown.pieces) + recalled.tokens


def _shown(
    runtime: Runtime,
    ref: SessionRef | None,
    request: Request,
    budget: Budget,
    request_inputs: RequestInputs,
    *,
    margin: int,
) -> Flow[Assembly]:
    """Everything but recall, as the guard decides it."""
    if ref is None or request.view == "recall":
        rooms = request_inputs.rooms(runtime, request, budget, request_inputs.ratio)
        if rooms.is_full:  # there is no view that a guard could make smaller
            raise BudgetError(no_room_beside(rooms.fixed, budget.max_tokens, ratio=request_inputs.ratio))
        maker = inputs_maker(runtime, ref, request, budget, request_inputs, margin=margin) if ref is not None else None
        pieces = _asked_alone(maker(request_inputs.ratio), request) if maker is not None else ()
        used = math.ceil((rooms.fixed + sum(piece.tokens for piece in pieces)) * request_inputs.ratio)
        return Assembly(
            rooms=rooms,
            ratio=request_inputs.ratio,
            mode=request_inputs.mode,
            pieces=pieces,
            report=undecided(runtime, budget.window, used, request.track),
        )
    question = question_of(runtime, request, budget, request_inputs)
    decided = yield from decide(
        runtime, ref, question, inputs_maker(runtime, ref, request, budget, request_inputs, margin=margin)
    )
    plan, inputs = decided.proposal.rendered.plan, decided.proposal.inputs
    newest = decided.proposal.rendered.tail
    rooms = _as_bound(inputs, plan, decided)
    return Assembly(
        rooms=rooms,
        ratio=inputs.ratio,
        pieces=decided.pieces,
        items=(*plan.items, *plan.left_spans),
        left_out=(*_compacted(plan), *decided.left_out, *other_tracks(inputs, plan)),
        report=decided.report,
        plan=plan,
        mode=with_loop(request_inputs.mode, request, newest),
    )


def _as_bound(inputs: AssemblyInputs, plan: ViewPlan, decided: Decided) -> Rooms:
    """The rooms as they bound this view, where facts that must last or messages that must be shown had more."""
    rooms = inputs.rooms
    bound = {}
    if sum(piece.tokens for piece in decided.pieces if piece.part == "facts") > rooms.of("facts"):
        bound["facts"] = max(rooms.of("facts"), record_room(inputs, plan.items))
    if CUTTING_STEPS & set(decided.report.steps):  # recall lends its room
        bound["recent"] = rooms.total - rooms.fixed
    return replace(rooms, policy=rooms.policy.telling(**bound)) if bound else rooms


def _compacted(plan: ViewPlan) -> tuple[LeftOut, ...]:
    """What the provider's own compaction stands for, where a view begins with one."""
    told = f"1-{plan.since - 1}"
    return (LeftOut(what=told, reason=COMPACTED),) if plan.since > 1 else ()


def _asked_alone(inputs: AssemblyInputs, request: Request) -> tuple[Piece, ...]:
    """What the recall view shows beside recall: what is always kept, and the question where the user said it last."""
    runtime, required, rooms = inputs.runtime, inputs.required, inputs.rooms
    pieces: list[Piece] = []
    pinned = {entry.seq for entry in required.pinned}
    always = [entry for entry in in_order(inputs, kept_by_kind(inputs, None)) if entry.seq not in pinned]
    if pinned or always:
        pieces.append(pinned_piece(runtime, rooms, required.pinned, always=always))
    if not (request.query or "").strip() and required.last_user is not None:
        most = max(round(runtime.settings.context.question_share * rooms.total), 1)
        pieces.append(shortened(required.last_user, max_tokens=most, counter=runtime.counter))
    return tuple(pieces)


def _stands_in(runtime: Runtime, session_id: str, piece: Piece) -> str:
    """Say once that a message cannot be shown, and each time in the context's repairs."""
    message_id = piece.entry.id if piece.entry is not None else ""
    if runtime.view_cache.first_time(("message_damaged", session_id, message_id)):
        runtime.report(EventName.MESSAGE_DAMAGED, str(piece.damaged), session_id=session_id, message_id=message_id)
    return f"a placeholder stands for the message {message_id!r}: {piece.damaged}"


def _readable(piece: Piece, reader: str | None) -> Piece:
    """A piece without what only another provider's models can read."""
    message = without_foreign_compactions(piece.message, reader=reader)
    return piece if message is piece.message else replace(piece, message=message)


def _validated(runtime: Runtime, request: Request, pieces: Sequence[Piece], system: BaseMessage | None) -> Validated:
    outgoing = [*([system] if system is not None else []), *(piece.message for piece in pieces)]
    return make_valid(outgoing, unanswered=runtime.settings.context.unanswered, complete=request.complete)


def _finished(
    runtime: Runtime,
    request: Request,
    budget: Budget,
    shown: Assembly,
    recalled: Recalling,
    *,
    sight: ParentSight,
    system: BaseMessage | None,
    has_query: bool,
    session_id: str,
) -> Context:
    pieces = [_readable(piece, request.model.provider) for piece in with_standing(shown.pieces, recalled.standing)]
    place = recall_position(pieces)
    if recalled.piece is not None:
        pieces.insert(place, recalled.piece)
    if sight.piece is not None:
        pieces.insert(place, sight.piece)
    stood_in = tuple(_stands_in(runtime, session_id, piece) for piece in pieces if piece.damaged is not None)
    validated = _validated(runtime, request, pieces, system)
    settled = without_astray(pieces, validated.messages)
    if settled is not None:
        pieces, validated = settled, _validated(runtime, request, settled, system)
    known = {id(piece.message): piece.tokens for piece in pieces}
    if system is not None:
        known[id(system)] = runtime.counter.count_message(system)
    raw = PRIMING_TOKENS + runtime.counter.count_tools(request.tools)
    for message in validated.messages:
        counted = known.get(id(message))
        raw += counted if counted is not None else runtime.counter.count_message(message)
    # Where something is asked, recall may come there at the next request, though nothing was found for this one.
    # What stands from earlier questions is taken out in one step when its room is needed: none of it is promised.
    first = min((at for at, piece in enumerate(pieces) if piece.part in ("parent", "recall")), default=place)
    border = pieces[first].message if first < len(pieces) and has_query else None
    volatile = [at for at, one in enumerate(validated.messages) if one is border]
    policy = replace(shown.rooms.policy, mode=shown.mode).telling(recall=recalled.room, parent=sight.room)
    whole = {entry.seq: entry.id for piece in pieces for entry in piece.whole_entries}
    parts = {entry.seq: entry.id for piece in pieces for entry in piece.passages if entry.seq not in whole}
    return Context(
        messages=validated.messages,
        tokens=Calibration(ratio=shown.ratio).apply(raw),
        raw_tokens=raw,
        max_tokens=budget.max_tokens,
        sections=account(
            pieces,
            policy=policy,
            items=shown.items,
            other_left_out=shown.left_out,
            recalled_left_out=recalled.left_out,
            registered=recalled.sections,
        ),
        policy=policy,
        entry_ids=tuple(dict.fromkeys(whole.values())),
        passage_ids=tuple(dict.fromkeys(parts.values())),
        summary_ids=tuple(dict.fromkeys(one for piece in pieces for one in piece.summary_ids)),
        repairs=(*stood_in, *validated.repairs),
        guard=shown.report,
        stable_messages=volatile[0] if volatile else len(validated.messages),
    )
