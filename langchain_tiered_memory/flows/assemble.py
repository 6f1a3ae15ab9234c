"""The context for one model call: musts, the cover of what is older, the recent messages, recall; within a budget.

What stands before recall depends on the history and the budget alone, and stays byte for byte until the view is
condensed again; recall stands last. The account says what is in, what stayed out and why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.decisions.accounting import account
from langchain_tiered_memory.decisions.calibration import Calibration
from langchain_tiered_memory.decisions.counting import PRIMING_TOKENS
from langchain_tiered_memory.decisions.rendering import summary_block
from langchain_tiered_memory.decisions.request import Piece, ours, recall_position, shortened, system_message
from langchain_tiered_memory.decisions.rooms import Rooms, View, split
from langchain_tiered_memory.decisions.validity import make_valid
from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.musts import Musts, read_musts
from langchain_tiered_memory.flows.recall import Recalled, recall
from langchain_tiered_memory.flows.stable import Stable, pinned_piece, plan_name, stable_part
from langchain_tiered_memory.flows.summary_search import find_summaries
from langchain_tiered_memory.records import Context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import SessionRef, Summary

_RELATED = 0.5
"""A summary that matches the question less than this is no help beside the quotes."""
_QUESTION_SHARE = 0.25
"""Of the budget, for the question itself in the recall view."""
_ATTEMPTS = 6
"""Times that a context is put together when repairs made it larger than planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a caller asks for."""

    track: str
    query: str | None
    """`None`: the last user message asks; blank: nothing does."""
    max_tokens: int
    system: str | BaseMessage | None
    tools: Sequence[Any]
    model: str | None
    view: View
    branch: tuple[str, ...] | None = None
    """Ids of the messages on this branch; `None`: all are."""


def assemble(house: House, session_id: str, request: Request) -> Flow[Context]:
    """Put a context together.

    Raises:
        BudgetError: when the budget cannot hold what must be shown; it says what takes the room.
    """
    ref = yield from do(house.store.transcript.find, session_id)
    calibration = yield from _calibration(house, request.model)
    system = system_message(request.system)
    fixed = PRIMING_TOKENS + house.counter.count_tools(request.tools)
    fixed += house.counter.count_message(system) if system is not None else 0
    off = frozenset[int]()
    if ref is not None and request.branch is not None:
        off = yield from do(house.store.transcript.off_branch, ref, request.branch, track=request.track)
    musts = (yield from read_musts(house, ref, request.track, off=off)) if ref is not None else Musts()
    query = musts.last_user_text if request.query is None else request.query
    has_query = bool(query.strip())

    def rooms_for(ratio: float) -> Rooms:
        return split(
            request.max_tokens,
            fixed=fixed,
            ratio=ratio,
            has_query=has_query,
            view=request.view,
            settings=house.settings.context,
        )

    name = plan_name(
        request.track,
        max_tokens=request.max_tokens,
        has_query=has_query,
        model=request.model,
        settings=house.settings.context,
        off=off,
    )
    margin = 0
    for _ in range(_ATTEMPTS):
        stable = Stable(rooms=rooms_for(calibration.ratio), ratio=calibration.ratio)
        if ref is not None and request.view == "default":
            stable = yield from stable_part(
                house,
                ref,
                rooms_for,
                musts,
                track=request.track,
                name=name,
                margin=margin,
                ratio=calibration.ratio,
                off=off,
            )
        elif ref is not None:
            stable = replace(stable, pieces=_asked_alone(house, request, stable.rooms, musts))
        recalled, related = Recalled(), tuple[str, ...]()
        if ref is not None and has_query:
            recalled, related = yield from _recalled(
                house, ref, query, request.view, musts=musts, stable=stable, margin=margin, off=off
            )
        context = _finished(house, request, system, stable, recalled, related=related)
        if context.tokens <= request.max_tokens:
            return context
        margin += context.tokens - request.max_tokens
    largest = ", ".join(f"{section.name} {section.tokens}" for section in context.sections)
    msg = (
        f"what must be shown takes {context.tokens} tokens, the budget is {request.max_tokens} ({largest}): raise "
        "max_tokens, unpin messages, or shorten the system prompt"
    )
    raise BudgetError(msg)


def _calibration(house: House, model: str | None) -> Flow[Calibration]:
    if model is None:
        return Calibration()
    known = yield from do(house.store.plans.calibration, model, house.counter.fingerprint)
    return Calibration(ratio=known[0], samples=known[1]) if known is not None else Calibration()


def _asked_alone(house: House, request: Request, rooms: Rooms, musts: Musts) -> tuple[Piece, ...]:
    """What the recall view shows beside recall: pins, and the question where it is the user's last message."""
    pieces: list[Piece] = []
    if musts.pinned:
        pieces.append(pinned_piece(house, rooms, musts.pinned))
    if not (request.query or "").strip() and musts.last_user is not None:
        most = max(round(_QUESTION_SHARE * rooms.total), 1)
        pieces.append(shortened(musts.last_user, max_tokens=most, counter=house.counter))
    return tuple(pieces)


def _recalled(
    house: House,
    ref: SessionRef,
    query: str,
    view: View,
    *,
    musts: Musts,
    stable: Stable,
    margin: int,
    off: frozenset[int],
) -> Flow[tuple[Recalled, tuple[str, ...]]]:
    rooms = stable.rooms
    framing = house.counter.count_message(ours("", part="recall", counter=house.counter).message)
    used = rooms.fixed + sum(piece.tokens for piece in stable.pieces)
    in_view = {entry.seq for piece in stable.pieces for entry in piece.whole_entries}
    in_view |= {piece.entry.seq for piece in stable.pieces if piece.entry is not None}
    if musts.last_user is not None and musts.last_user_text.strip() == query.strip():
        in_view.add(musts.last_user.seq)
    room = rooms.total - used - framing - margin
    summaries: list[Summary] = []
    if view == "default" and not off:
        covered = {one for piece in stable.pieces for one in piece.summary_ids}
        summaries = yield from _related(house, ref, query, room=min(rooms.summaries, room), shown=covered)
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
        if one.score >= _RELATED and tokens <= room and one.summary.id not in shown and not one.summary.degraded:
            chosen.append(one.summary)
            room -= tokens
    return sorted(chosen, key=lambda summary: summary.first_seq)


def _finished(
    house: House,
    request: Request,
    system: BaseMessage | None,
    stable: Stable,
    recalled: Recalled,
    *,
    related: tuple[str, ...],
) -> Context:
    pieces = list(stable.pieces)
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
        pieces.insert(recall_position(pieces), quoted)
    known = {id(piece.message): piece.tokens for piece in pieces}
    outgoing = [piece.message for piece in pieces]
    if system is not None:
        known[id(system)] = house.counter.count_message(system)
        outgoing.insert(0, system)
    validated = make_valid(outgoing, unanswered=house.settings.context.unanswered)
    raw = PRIMING_TOKENS + house.counter.count_tools(request.tools)
    for message in validated.messages:
        counted = known.get(id(message))
        raw += counted if counted is not None else house.counter.count_message(message)
    volatile = [place for place, one in enumerate(validated.messages) if quoted is not None and one is quoted.message]
    whole = dict.fromkeys(entry.id for piece in pieces for entry in piece.whole_entries)
    parts = dict.fromkeys(entry.id for piece in pieces for entry in piece.passages if entry.id not in whole)
    return Context(
        messages=validated.messages,
        tokens=Calibration(ratio=stable.ratio).apply(raw),
        raw_tokens=raw,
        max_tokens=request.max_tokens,
        sections=account(
            pieces,
            rooms=stable.rooms,
            items=stable.items,
            other_left_out=stable.left_out,
            recalled_left_out=recalled.left_out,
        ),
        entry_ids=tuple(whole),
        passage_ids=tuple(parts),
        summary_ids=tuple(dict.fromkeys(one for piece in pieces for one in piece.summary_ids)),
        repairs=validated.repairs,
        stable_messages=volatile[0] if volatile else len(validated.messages),
    )
