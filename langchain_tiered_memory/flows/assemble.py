"""The context for one model call: musts, the cover of what is older, the recent messages, recall; within a budget.

What stands before recall depends on the history and the budget alone, and stays byte for byte until the view is
condensed again; recall stands last. The account says what is in, what stayed out and why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.contexts import Context
from langchain_tiered_memory.decisions.accounting import account
from langchain_tiered_memory.decisions.budget import Budget, budget_of
from langchain_tiered_memory.decisions.calibration import Calibration
from langchain_tiered_memory.decisions.counting import PRIMING_TOKENS
from langchain_tiered_memory.decisions.rendering import summary_block
from langchain_tiered_memory.decisions.request import Piece, ours, recall_position, shortened
from langchain_tiered_memory.decisions.validity import make_valid
from langchain_tiered_memory.errors import BudgetError, InvalidInputError, NotFoundError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.guard import decide, joined, previewed, undecided
from langchain_tiered_memory.flows.ledgers import diff_of
from langchain_tiered_memory.flows.recall import Recalled, recall
from langchain_tiered_memory.flows.recovering import overflowed
from langchain_tiered_memory.flows.requests import Desks, Request, desk_maker, desks_of, question_of, with_learnt_window
from langchain_tiered_memory.flows.showing import other_tracks, pinned_piece
from langchain_tiered_memory.flows.summary_search import find_summaries

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.decisions.cover import CoverItem
    from langchain_tiered_memory.decisions.rooms import Rooms
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.flows.musts import Musts
    from langchain_tiered_memory.outcomes import GuardReport, ViewDiff
    from langchain_tiered_memory.records import LeftOut, SessionRef, Summary

_ATTEMPTS = 6
"""Times that a context is put together when repairs made it larger than planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The part of a context that stays byte for byte until the next condensation."""

    rooms: Rooms
    ratio: float
    """Billed per raw token, as the split took it."""
    report: GuardReport
    pieces: tuple[Piece, ...] = ()
    items: tuple[CoverItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    in_loop: bool = False
    """Whether an agent is at work: then recall stays as it is until the user speaks again."""


def assemble(house: House, session_id: str, request: Request) -> Flow[Context]:
    """Put a context together.

    Raises:
        BudgetError: when the budget cannot hold what must be shown; it says what takes the room.
        CondensationError: when condensing failed, the view does not fit, and `strategies.fallback` is `error`.
    """
    ref = yield from do(house.store.transcript.find, session_id)
    told = yield from with_learnt_window(house, request.model)
    budget = budget_of(request.max_tokens, told, settings=house.settings)
    desks = yield from desks_of(house, ref, request, told, budget)
    margin, first = 0, None
    for _ in range(_ATTEMPTS):
        shown = yield from _shown(house, ref, request, budget, desks, margin=margin)
        if first is not None:
            shown = replace(shown, report=joined(first, shown.report))
        first = shown.report
        recalled, related = Recalled(), tuple[str, ...]()
        if ref is not None and desks.has_query:
            recalled, related = yield from _recalled(house, ref, request, desks, shown, margin=margin)
        context = _finished(
            house, request, budget, shown, recalled, system=desks.system, has_query=desks.has_query, related=related
        )
        if context.tokens <= budget.max_tokens:
            return context
        # What repairs cost stays what it is when the next attempt has less room.
        planned = rooms_used(shown, recalled)
        margin = max(margin + context.tokens - budget.max_tokens, context.raw_tokens - planned)
    largest = ", ".join(f"{section.name} {section.tokens}" for section in context.sections)
    msg = (
        f"what must be shown takes {context.tokens} tokens, the budget is {budget.max_tokens} ({largest}): raise "
        "max_tokens, unpin messages, or shorten the system prompt"
    )
    yield from overflowed(house, ref, msg, checkpoint_id=context.guard.checkpoint_id)
    raise BudgetError(msg)


def preview(house: House, session_id: str, request: Request) -> Flow[ViewDiff]:
    """What a condensation of a request's view would change now. Nothing is written, and no model is called.

    Raises:
        NotFoundError: when the session has no message yet.
        InvalidInputError: for a view that has nothing to condense.
    """
    ref = yield from do(house.store.transcript.find, session_id)
    if ref is None:
        msg = f"the session {session_id!r} has no message yet: there is nothing to condense"
        raise NotFoundError(msg)
    if request.view in ("recall", "minimal"):
        msg = f"the view {request.view!r} is made anew for each request: it is never condensed"
        raise InvalidInputError(msg)
    told = yield from with_learnt_window(house, request.model)
    budget = budget_of(request.max_tokens, told, settings=house.settings)
    desks = yield from desks_of(house, ref, request, told, budget)
    question = question_of(house, request, budget, desks)
    proposal, outcome = yield from previewed(
        house, ref, question, desk_maker(house, ref, request, budget, desks, margin=0)
    )
    before = proposal.before.plan if proposal.before is not None else None
    return (yield from diff_of(house, ref, outcome, before, proposal.sight.plan))


def rooms_used(shown: Shown, recalled: Recalled) -> int:
    """Raw tokens of a request as it was planned, before anything in it was repaired."""
    return shown.rooms.fixed + sum(piece.tokens for piece in shown.pieces) + recalled.tokens


def _shown(
    house: House, ref: SessionRef | None, request: Request, budget: Budget, desks: Desks, *, margin: int
) -> Flow[Shown]:
    """Everything but recall, as the guard decides it."""
    if ref is None or request.view == "recall":
        rooms = desks.rooms(house, request, budget, desks.ratio)
        pieces = _asked_alone(house, request, rooms, desks.musts) if ref is not None else ()
        used = math.ceil((rooms.fixed + sum(piece.tokens for piece in pieces)) * desks.ratio)
        return Shown(
            rooms=rooms, ratio=desks.ratio, pieces=pieces, report=undecided(house, budget.window, used, request.track)
        )
    question = question_of(house, request, budget, desks)
    decided = yield from decide(house, ref, question, desk_maker(house, ref, request, budget, desks, margin=margin))
    plan, desk = decided.proposal.sight.plan, decided.proposal.desk
    newest = decided.proposal.sight.tail
    return Shown(
        rooms=desk.rooms,
        ratio=desk.ratio,
        pieces=decided.pieces,
        items=(*plan.items, *plan.left_spans),
        left_out=(*decided.left_out, *(yield from other_tracks(desk, plan))),
        report=decided.report,
        in_loop=bool(request.tools) or any(entry.calls or entry.answers for entry in newest),
    )


def _asked_alone(house: House, request: Request, rooms: Rooms, musts: Musts) -> tuple[Piece, ...]:
    """What the recall view shows beside recall: pins, and the question where it is the user's last message."""
    pieces: list[Piece] = []
    if musts.pinned:
        pieces.append(pinned_piece(house, rooms, musts.pinned))
    if not (request.query or "").strip() and musts.last_user is not None:
        most = max(round(house.settings.context.question_share * rooms.total), 1)
        pieces.append(shortened(musts.last_user, max_tokens=most, counter=house.counter))
    return tuple(pieces)


def _recalled(
    house: House, ref: SessionRef, request: Request, desks: Desks, shown: Shown, *, margin: int
) -> Flow[tuple[Recalled, tuple[str, ...]]]:
    """What answers the question. During a tool loop it stays as it was when the user spoke."""
    rooms, off = shown.rooms, desks.off
    framing = house.counter.count_message(ours("", part="recall", counter=house.counter).message)
    room = rooms.total - rooms.fixed - sum(piece.tokens for piece in shown.pieces) - framing - margin
    last = desks.musts.last_user
    key = (ref.epoch, desks.query, last.seq if last is not None else 0, rooms)
    if shown.in_loop:
        kept: tuple[Recalled, tuple[str, ...]] | None = house.standing.recalled(ref.key, desks.name, key)
        if kept is not None and kept[0].tokens <= room:
            return kept
        # What the loop will say needs what the split leaves it: recall keeps to its own room from the start.
        room = min(room, rooms.recall - framing)
    found = yield from _looked_up(house, ref, request, desks, shown, room=room, off=off)
    if shown.in_loop:
        house.standing.keep_recalled(ref.key, desks.name, key, found)
    return found


def _looked_up(
    house: House, ref: SessionRef, request: Request, desks: Desks, shown: Shown, *, room: int, off: frozenset[int]
) -> Flow[tuple[Recalled, tuple[str, ...]]]:
    rooms, query, musts = shown.rooms, desks.query, desks.musts
    view = "recall" if request.view == "recall" else "default"
    in_view = {entry.seq for piece in shown.pieces for entry in piece.whole_entries}
    in_view |= {piece.entry.seq for piece in shown.pieces if piece.entry is not None}
    if musts.last_user is not None and musts.last_user_text.strip() == query.strip():
        in_view.add(musts.last_user.seq)
    summaries: list[Summary] = []
    if view == "default" and not off:
        covered = {one for piece in shown.pieces for one in piece.summary_ids}
        found = yield from _related(house, ref, query, room=min(rooms.summaries, room), shown=covered)
        summaries = [one for one in found if not {one.first_seq, one.last_seq} <= in_view]
    recalled = yield from recall(
        house,
        ref,
        query,
        room=room,
        code_room=rooms.code if view == "default" else rooms.recall // 2,
        shown=frozenset(in_view) | off,
        summaries=summaries,
    )
    return recalled, tuple(summary.id for summary in summaries) if recalled.text else ()


def _related(house: House, ref: SessionRef, query: str, *, room: int, shown: set[str]) -> Flow[list[Summary]]:
    """Level-1 summaries that answer the question and stand in no other place, within `room` tokens."""
    found = yield from find_summaries(house, ref, query, level=1, quota=house.settings.recall.quota_level_1)
    chosen: list[Summary] = []
    for one in found:
        tokens = house.counter.count_text(summary_block(one.summary)) + 1
        if (
            one.score >= house.settings.recall.related_score
            and tokens <= room
            and one.summary.id not in shown
            and not one.summary.degraded
        ):
            chosen.append(one.summary)
            room -= tokens
    return sorted(chosen, key=lambda summary: summary.first_seq)


def _finished(
    house: House,
    request: Request,
    budget: Budget,
    shown: Shown,
    recalled: Recalled,
    *,
    system: BaseMessage | None,
    has_query: bool,
    related: tuple[str, ...],
) -> Context:
    pieces = list(shown.pieces)
    place = recall_position(pieces)
    quoted: Piece | None = None
    if recalled.text:
        quoted = ours(
            recalled.text,
            part="recall",
            counter=house.counter,
            quoted=tuple(one.entry for one in recalled.quotes if not one.passages),
            passages=tuple(one.entry for one in recalled.quotes if one.passages),
            summary_ids=related,
        )
        pieces.insert(place, quoted)
    known = {id(piece.message): piece.tokens for piece in pieces}
    outgoing = [piece.message for piece in pieces]
    if system is not None:
        known[id(system)] = house.counter.count_message(system)
        outgoing.insert(0, system)
    validated = make_valid(outgoing, unanswered=house.settings.context.unanswered, complete=request.complete)
    raw = PRIMING_TOKENS + house.counter.count_tools(request.tools)
    for message in validated.messages:
        counted = known.get(id(message))
        raw += counted if counted is not None else house.counter.count_message(message)
    # Where something is asked, recall may come there at the next request, though nothing was found for this one.
    border = pieces[place].message if place < len(pieces) and has_query else None
    volatile = [at for at, one in enumerate(validated.messages) if one is border]
    whole = dict.fromkeys(entry.id for piece in pieces for entry in piece.whole_entries)
    parts = dict.fromkeys(entry.id for piece in pieces for entry in piece.passages if entry.id not in whole)
    return Context(
        messages=validated.messages,
        tokens=Calibration(ratio=shown.ratio).apply(raw),
        raw_tokens=raw,
        max_tokens=budget.max_tokens,
        sections=account(
            pieces,
            rooms=shown.rooms,
            items=shown.items,
            other_left_out=shown.left_out,
            recalled_left_out=recalled.left_out,
        ),
        entry_ids=tuple(whole),
        passage_ids=tuple(parts),
        summary_ids=tuple(dict.fromkeys(one for piece in pieces for one in piece.summary_ids)),
        repairs=validated.repairs,
        guard=shown.report,
        stable_messages=volatile[0] if volatile else len(validated.messages),
    )
