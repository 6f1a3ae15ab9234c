"""Assembles the context for one model call: required messages, summaries of what is older, recent messages, recall.

What stands before recall depends on the history and the budget alone, and stays byte for byte until the view is
condensed again; recall stands last. The account says what is in, what stayed out and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.budget.allocation import no_room_beside
from langchain_tiered_memory.context.compaction.guard import decide, joined, previewed, undecided
from langchain_tiered_memory.context.compaction.overflow_recovery import overflowed
from langchain_tiered_memory.context.history.ledgers import diff_of
from langchain_tiered_memory.context.layout import Piece, ours, recall_position, shortened
from langchain_tiered_memory.context.request import (
    Request,
    RequestInputs,
    inputs_maker,
    question_of,
    request_inputs_of,
    with_learnt_window,
)
from langchain_tiered_memory.context.section_report import account
from langchain_tiered_memory.context.view.rendered_view import other_tracks, pinned_piece
from langchain_tiered_memory.errors import BudgetError, InvalidInputError, NotFoundError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.validity.repair import make_valid
from langchain_tiered_memory.models.calibration import Calibration
from langchain_tiered_memory.models.message_counting import PRIMING_TOKENS
from langchain_tiered_memory.models.window_budget import Budget, budget_of
from langchain_tiered_memory.recall.recall import Recalled, recall
from langchain_tiered_memory.recall.summary_search import find_summaries
from langchain_tiered_memory.summaries.rendering import summary_block
from langchain_tiered_memory.summaries.tree.cover import nodes_of
from langchain_tiered_memory.types.contexts import Context
from langchain_tiered_memory.types.drafts import SearchFilters

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.context.budget.allocation import BudgetAllocation
    from langchain_tiered_memory.context.required_messages import RequiredMessages
    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.summaries.tree.cover import CoverItem
    from langchain_tiered_memory.types.outcomes import GuardReport, ViewDiff
    from langchain_tiered_memory.types.records import LeftOut, SessionRef, Summary

_ATTEMPTS = 6
"""Times that a context is put together when repairs made it larger than planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The part of a context that stays byte for byte until the next condensation."""

    allocation: BudgetAllocation
    ratio: float
    """Billed per raw token, as the split took it."""
    report: GuardReport
    pieces: tuple[Piece, ...] = ()
    items: tuple[CoverItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    in_loop: bool = False
    """Whether an agent is at work: then recall stays as it is until the user speaks again."""


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
    margin, first = 0, None
    for _ in range(_ATTEMPTS):
        shown = yield from _shown(runtime, ref, request, budget, request_inputs, margin=margin)
        if first is not None:
            shown = replace(shown, report=joined(first, shown.report))
        first = shown.report
        recalled, related = Recalled(), tuple[str, ...]()
        if ref is not None and request_inputs.has_query:
            recalled, related = _recalled(runtime, ref, request, request_inputs, shown, margin=margin)
        context = _finished(
            runtime,
            request,
            budget,
            shown,
            recalled,
            system=request_inputs.system,
            has_query=request_inputs.has_query,
            related=related,
            session_id=session_id,
        )
        if context.tokens <= budget.max_tokens:
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


def allocation_used(shown: Assembly, recalled: Recalled) -> int:
    """Raw tokens of a request as it was planned, before anything in it was repaired."""
    return shown.allocation.fixed + sum(piece.tokens for piece in shown.pieces) + recalled.tokens


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
        allocation = request_inputs.allocation(runtime, request, budget, request_inputs.ratio)
        if allocation.is_full:  # there is no view that a guard could make smaller
            raise BudgetError(no_room_beside(allocation.fixed, budget.max_tokens, ratio=request_inputs.ratio))
        pieces = _asked_alone(runtime, request, allocation, request_inputs.required) if ref is not None else ()
        used = math.ceil((allocation.fixed + sum(piece.tokens for piece in pieces)) * request_inputs.ratio)
        return Assembly(
            allocation=allocation,
            ratio=request_inputs.ratio,
            pieces=pieces,
            report=undecided(runtime, budget.window, used, request.track),
        )
    question = question_of(runtime, request, budget, request_inputs)
    decided = yield from decide(
        runtime, ref, question, inputs_maker(runtime, ref, request, budget, request_inputs, margin=margin)
    )
    plan, inputs = decided.proposal.rendered.plan, decided.proposal.inputs
    newest = decided.proposal.rendered.tail
    return Assembly(
        allocation=inputs.allocation,
        ratio=inputs.ratio,
        pieces=decided.pieces,
        items=(*plan.items, *plan.left_spans),
        left_out=(*decided.left_out, *other_tracks(inputs, plan)),
        report=decided.report,
        in_loop=bool(request.tools) or any(entry.calls or entry.answers for entry in newest),
    )


def _asked_alone(
    runtime: Runtime, request: Request, allocation: BudgetAllocation, required: RequiredMessages
) -> tuple[Piece, ...]:
    """What the recall view shows beside recall: pins, and the question where it is the user's last message."""
    pieces: list[Piece] = []
    if required.pinned:
        pieces.append(pinned_piece(runtime, allocation, required.pinned))
    if not (request.query or "").strip() and required.last_user is not None:
        most = max(round(runtime.settings.context.question_share * allocation.total), 1)
        pieces.append(shortened(required.last_user, max_tokens=most, counter=runtime.counter))
    return tuple(pieces)


def _recalled(
    runtime: Runtime, ref: SessionRef, request: Request, request_inputs: RequestInputs, shown: Assembly, *, margin: int
) -> tuple[Recalled, tuple[str, ...]]:
    """What answers the question. During a tool loop it stays as it was when the user spoke."""
    allocation, off = shown.allocation, request_inputs.off
    framing = runtime.counter.count_message(ours("", part="recall", counter=runtime.counter).message)
    room = allocation.total - allocation.fixed - sum(piece.tokens for piece in shown.pieces) - framing - margin
    if request.view == "minimal":
        room = min(room, round(runtime.settings.context.minimal_recall_share * allocation.total) - framing)
    last = request_inputs.required.last_user
    key = (ref.epoch, request_inputs.query, last.seq if last is not None else 0, allocation)
    if shown.in_loop:
        kept: tuple[Recalled, tuple[str, ...]] | None = runtime.view_cache.recalled(ref.key, request_inputs.name, key)
        if kept is not None and kept[0].tokens <= room:
            return kept
        # What the loop will say needs what the split leaves it: recall keeps to its own room from the start.
        room = min(room, allocation.recall - framing)
    found = _looked_up(runtime, ref, request, request_inputs, shown, room=room, off=off)
    if shown.in_loop:
        runtime.view_cache.keep_recalled(ref.key, request_inputs.name, key, found)
    return found


def _looked_up(
    runtime: Runtime,
    ref: SessionRef,
    request: Request,
    request_inputs: RequestInputs,
    shown: Assembly,
    *,
    room: int,
    off: frozenset[int],
) -> tuple[Recalled, tuple[str, ...]]:
    allocation, query, required = shown.allocation, request_inputs.query, request_inputs.required
    view = "recall" if request.view == "recall" else "default"
    in_view = {entry.seq for piece in shown.pieces for entry in piece.whole_entries}
    in_view |= {piece.entry.seq for piece in shown.pieces if piece.entry is not None}
    if required.last_user is not None and required.last_user_text.strip() == query.strip():
        in_view.add(required.last_user.seq)
    summaries: list[Summary] = []
    if view == "default" and not off and not request.alone:
        # A headline names a stretch: where it answers the question, what it says may stand beside the quotes.
        covered = {node.id for node in nodes_of(shown.items) if node.resolution != "headline"}
        found = _related(runtime, ref, query, room=min(allocation.summaries, room), shown=covered)
        summaries = [one for one in found if not {one.first_seq, one.last_seq} <= in_view]
    recalled = recall(
        runtime,
        ref,
        query,
        room=room,
        code_room=allocation.code if view == "default" else allocation.recall // 2,
        shown=frozenset(in_view) | off,
        summaries=summaries,
        filters=SearchFilters(tracks=(request.track,)) if request.alone else None,
    )
    return recalled, tuple(summary.id for summary in summaries) if recalled.text else ()


def _related(runtime: Runtime, ref: SessionRef, query: str, *, room: int, shown: set[str]) -> list[Summary]:
    """Level-1 summaries that answer the question and stand in no other place, within `room` tokens."""
    found = find_summaries(runtime, ref, query, level=1, quota=runtime.settings.recall.quota_level_1)
    chosen: list[Summary] = []
    for one in found:
        tokens = runtime.counter.count_text(summary_block(one.summary)) + 1
        if (
            one.score >= runtime.settings.recall.related_score
            and tokens <= room
            and one.summary.id not in shown
            and not one.summary.degraded
        ):
            chosen.append(one.summary)
            room -= tokens
    return sorted(chosen, key=lambda summary: summary.first_seq)


def _stands_in(runtime: Runtime, session_id: str, piece: Piece) -> str:
    """Say once that a message cannot be shown, and each time in the context's repairs."""
    message_id = piece.entry.id if piece.entry is not None else ""
    if runtime.view_cache.first_time(("message_damaged", session_id, message_id)):
        runtime.report(EventName.MESSAGE_DAMAGED, str(piece.damaged), session_id=session_id, message_id=message_id)
    return f"a placeholder stands for the message {message_id!r}: {piece.damaged}"


def _finished(
    runtime: Runtime,
    request: Request,
    budget: Budget,
    shown: Assembly,
    recalled: Recalled,
    *,
    system: BaseMessage | None,
    has_query: bool,
    related: tuple[str, ...],
    session_id: str,
) -> Context:
    pieces = list(shown.pieces)
    place = recall_position(pieces)
    quoted: Piece | None = None
    if recalled.text:
        quoted = ours(
            recalled.text,
            part="recall",
            counter=runtime.counter,
            quoted=tuple(one.entry for one in recalled.quotes if not one.passages),
            passages=tuple(one.entry for one in recalled.quotes if one.passages),
            summary_ids=related,
        )
        pieces.insert(place, quoted)
    stood_in = tuple(_stands_in(runtime, session_id, piece) for piece in pieces if piece.damaged is not None)
    known = {id(piece.message): piece.tokens for piece in pieces}
    outgoing = [piece.message for piece in pieces]
    if system is not None:
        known[id(system)] = runtime.counter.count_message(system)
        outgoing.insert(0, system)
    validated = make_valid(outgoing, unanswered=runtime.settings.context.unanswered, complete=request.complete)
    raw = PRIMING_TOKENS + runtime.counter.count_tools(request.tools)
    for message in validated.messages:
        counted = known.get(id(message))
        raw += counted if counted is not None else runtime.counter.count_message(message)
    # Where something is asked, recall may come there at the next request, though nothing was found for this one.
    border = pieces[place].message if place < len(pieces) and has_query else None
    volatile = [at for at, one in enumerate(validated.messages) if one is border]
    whole = {entry.seq: entry.id for piece in pieces for entry in piece.whole_entries}
    parts = {entry.seq: entry.id for piece in pieces for entry in piece.passages if entry.seq not in whole}
    return Context(
        messages=validated.messages,
        tokens=Calibration(ratio=shown.ratio).apply(raw),
        raw_tokens=raw,
        max_tokens=budget.max_tokens,
        sections=account(
            pieces,
            allocation=shown.allocation,
            items=shown.items,
            other_left_out=shown.left_out,
            recalled_left_out=recalled.left_out,
        ),
        entry_ids=tuple(dict.fromkeys(whole.values())),
        passage_ids=tuple(dict.fromkeys(parts.values())),
        summary_ids=tuple(dict.fromkeys(one for piece in pieces for one in piece.summary_ids)),
        repairs=(*stood_in, *validated.repairs),
        guard=shown.report,
        stable_messages=volatile[0] if volatile else len(validated.messages),
    )
