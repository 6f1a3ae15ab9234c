"""The part of a context that stays byte for byte between condensations: goal, pins, cover, recent messages."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.cover import CoverItem, ViewPlan, fitted, nodes_of, tokens_of
from langchain_tiered_memory.decisions.quoting import quotes_within
from langchain_tiered_memory.decisions.rendering import history_block, pins_block
from langchain_tiered_memory.decisions.request import Piece, ours, shortened, shown, water_level
from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.planning import Library, gap_counter, plan_view, slid
from langchain_tiered_memory.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.decisions.rooms import Rooms
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.flows.musts import Musts
    from langchain_tiered_memory.records import Entry, SessionRef
    from langchain_tiered_memory.settings import ContextSettings

_LEAST_ENTRY_TOKENS = 3
"""An entry's framing alone: bounds how many entries a room can hold."""
_LEAD_SHARE = 0.25
"""Of the budget, for the last user message where it stands before the recent ones."""
_LEAST_MUST_TOKENS = 10
"""A message that must be shown says nothing with less."""
_OTHER_TRACKS = 16
_OTHER_SUMMARIES = 64
_PAGE = 500
_GAP_TOKENS = 32
"""A line that names what was left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stable:
    """The stable part, and what it left out."""

    rooms: Rooms
    """How the budget was split."""
    ratio: float
    """Billed per raw token, as the split took it."""
    pieces: tuple[Piece, ...] = ()
    items: tuple[CoverItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """What one assembly works with."""

    house: House
    ref: SessionRef
    rooms: Rooms
    musts: Musts
    track: str
    room: int
    ratio: float
    library: Library
    off: frozenset[int]


def stable_part(
    house: House,
    ref: SessionRef,
    rooms_for: Callable[[float], Rooms],
    musts: Musts,
    *,
    track: str,
    name: str,
    margin: int,
    ratio: float,
    off: frozenset[int],
) -> Flow[Stable]:
    """Goal, pins, cover and recent messages within the hard limit, by the kept plan or by a new one.

    Args:
        house: The memory.
        ref: The session.
        rooms_for: Splits the budget for a ratio of billed to raw tokens.
        musts: What must be shown.
        track: Which line of the session.
        name: Of the view's plan.
        margin: Tokens to leave free beyond the budget's own rooms.
        ratio: What calibration knows now. A kept plan goes on with the ratio that it was made with.
        off: `seq`s that are not on this branch.
    """
    library = Library()

    def desk_for(ratio: float) -> _Desk:
        rooms = rooms_for(ratio)
        room = rooms.hard - rooms.fixed - margin
        return _Desk(
            house=house,
            ref=ref,
            rooms=rooms,
            musts=musts,
            track=track,
            room=room,
            ratio=ratio,
            library=library,
            off=off,
        )

    kept = yield from do(house.store.plans.read, ref, name)
    plan = ViewPlan.from_json(kept) if kept is not None else None
    desk = desk_for(plan.ratio if plan is not None else ratio)
    if plan is not None and plan.provisional and (yield from _can_advance(desk, plan)):
        desk = desk_for(ratio)
        plan = yield from _renewed(desk, plan)
    if plan is None and (yield from _everything_may_fit(desk)):
        plan = ViewPlan(border=0, tail_from=1, ratio=ratio)
    tail: list[Entry] = []
    head: list[Piece] = []
    for renewal in range(2):
        if plan is not None:
            tail = yield from _tail(desk, plan)
            head = yield from _head(desk, plan, tail)
            if _total(head) + _tokens(tail) <= desk.room:
                break
        if renewal == 0:
            desk = desk_for(ratio)
            plan = yield from _renewed(desk, plan)
    assert plan is not None  # noqa: S101 - the loop made one
    if _total(head) + _tokens(tail) > desk.room:
        plan, tail = slid(
            plan,
            tail,
            earlier=(yield from _count_earlier(desk, plan, tail)),
            room=desk.room - _total(head) - _GAP_TOKENS,
            guard=musts.recent.guard,
            recent=musts.recent,
        )
        plan, head = yield from _leaner(desk, plan, tail)
    payload = plan.to_json()
    if payload != kept:
        yield from do(house.store.plans.write, ref, name, payload, now=house.now(), border=plan.border)
    return Stable(
        pieces=tuple(_fitting(desk, head, tail)),
        items=plan.items,
        left_out=(yield from _other_tracks(desk, plan)),
        rooms=desk.rooms,
        ratio=desk.ratio,
    )


def _renewed(desk: _Desk, plan: ViewPlan | None) -> Flow[ViewPlan]:
    return (
        yield from plan_view(
            desk.house,
            desk.ref,
            desk.track,
            desk.rooms,
            desk.musts.recent,
            previous=plan,
            ratio=desk.ratio,
            library=desk.library,
            off=desk.off,
        )
    )


def plan_name(
    track: str, *, max_tokens: int, has_query: bool, model: str | None, settings: ContextSettings, off: frozenset[int]
) -> str:
    """Under which name a view's plan is kept: one for each track, budget, model, branch and way of splitting."""
    chosen = repr((track, model, settings.model_dump_json(), sorted(off)))
    digest = hashlib.sha256(chosen.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    return f"default:{max_tokens}:{int(has_query)}:{digest}"


def _can_advance(desk: _Desk, plan: ViewPlan) -> Flow[bool]:
    found = yield from do(desk.house.store.tree.borders, desk.ref, track=desk.track, after=plan.border, limit=1)
    return bool(found) and found[0][2] < desk.musts.recent.guard


def _everything_may_fit(desk: _Desk) -> Flow[bool]:
    totals = yield from do(desk.house.store.transcript.totals, desk.ref)
    return int(totals["tokens"]) <= desk.room


def _tail(desk: _Desk, plan: ViewPlan) -> Flow[list[Entry]]:
    """The recent messages of a plan; a few more than fit, if there are so many."""
    entries = yield from do(
        desk.house.store.transcript.entries,
        desk.ref,
        track=desk.track,
        after=plan.tail_from - 1,
        newest_first=True,
        limit=max(desk.room, 0) // _LEAST_ENTRY_TOKENS + 8 + len(desk.off),
    )
    return [entry for entry in reversed(entries) if entry.summary_id not in plan.skip and entry.seq not in desk.off]


def _count_earlier(desk: _Desk, plan: ViewPlan, tail: Sequence[Entry]) -> Flow[int]:
    """How many messages of a plan's recent part are older than those that `_tail` took."""
    count, after = 0, plan.tail_from - 1
    while tail and after < tail[0].seq - 1:
        page = yield from do(
            desk.house.store.transcript.entries,
            desk.ref,
            track=desk.track,
            after=after,
            up_to=tail[0].seq - 1,
            limit=_PAGE,
        )
        if not page:
            break
        count += sum(entry.summary_id not in plan.skip for entry in page)
        after = page[-1].seq
    return count


def _leaner(desk: _Desk, plan: ViewPlan, tail: Sequence[Entry]) -> Flow[tuple[ViewPlan, list[Piece]]]:
    """`plan` with as much less of its cover as the musts need, and its head. The next condensation makes it anew."""
    head = yield from _head(desk, plan, tail)
    excess = _total(head) + _tokens(tail) - desk.room
    if excess <= 0 or not plan.items:
        return plan, head
    tokens = gap_counter(desk.house)
    cap = max(tokens_of(plan.items, gap_tokens=tokens) - excess, 0)
    plan = replace(plan, items=fitted(plan.items, cap=cap, gap_tokens=tokens), provisional=True)
    return plan, (yield from _head(desk, plan, tail))


def _head(desk: _Desk, plan: ViewPlan, tail: Sequence[Entry]) -> Flow[list[Piece]]:
    """Everything before the recent messages. Depends on the plan and on the first of them alone."""
    starts = tail[0].seq if tail else plan.tail_from
    counter = desk.house.counter
    head = [
        shortened(entry, max_tokens=desk.rooms.goal, counter=counter, part="goal")
        for entry in desk.musts.opening
        if entry.seq < starts
    ]
    opening = {entry.seq for entry in desk.musts.opening}
    pinned = [entry for entry in desk.musts.pinned if entry.seq not in opening and entry.seq < starts]
    if pinned:
        head.append(pinned_piece(desk.house, desk.rooms, pinned))
    users = [seq for seq in plan.queries if seq not in opening and seq not in {entry.seq for entry in pinned}]
    queries = (yield from do(desk.house.store.transcript.by_seq, desk.ref, users)) if users else []
    leads = bool(queries) and bool(tail) and tail[0].role != "user"
    quoted = queries[:-1] if leads else queries
    if plan.items or quoted:
        head.append((yield from _history(desk, plan, quoted)))
    if leads:
        most = round(_LEAD_SHARE * desk.rooms.total)
        head.append(shortened(queries[-1], max_tokens=most, counter=counter))
    return head


def pinned_piece(house: House, rooms: Rooms, pinned: Sequence[Entry]) -> Piece:
    """Pinned messages as one quoting message, within their room."""
    quotes = quotes_within(pinned, room=rooms.pins, count=house.counter.count_text)
    block = pins_block(quotes.texts, quotes.left_out)
    return ours(block, part="pinned", counter=house.counter, quoted=quotes.whole, passages=quotes.cut)


def _history(desk: _Desk, plan: ViewPlan, quoted: Sequence[Entry]) -> Flow[Piece]:
    library = desk.library
    wanted = [node.id for node in nodes_of(plan.items) if node.id not in library.summaries]
    if wanted:
        library.add((yield from do(desk.house.store.tree.by_id, desk.ref, wanted)))
    quotes = quotes_within(quoted, room=desk.rooms.queries, count=desk.house.counter.count_text)
    block = history_block(plan.items, library.summaries, quotes.texts)
    return ours(
        block,
        part="history",
        counter=desk.house.counter,
        quoted=quotes.whole,
        passages=quotes.cut,
        summary_ids=tuple(node.id for node in nodes_of(plan.items)),
    )


def _total(pieces: Sequence[Piece]) -> int:
    return sum(piece.tokens for piece in pieces)


def _tokens(entries: Sequence[Entry]) -> int:
    return sum(entry.tokens for entry in entries)


def _fitting(desk: _Desk, head: Sequence[Piece], tail: Sequence[Entry]) -> list[Piece]:
    """Head and recent messages; where the musts alone are too large, the longest are shown head and tail.

    They come before recall: what is set aside for it is theirs when they need it.

    Raises:
        BudgetError: when not even a few words of each would fit.
    """
    wanted = _tokens(tail)
    if _total(head) + wanted > desk.room:
        # No must: what it stands for is named in the account all the same.
        head = [piece for piece in head if piece.part != "history"]
    room = min(max(desk.room, _total(head) + wanted), desk.room + desk.rooms.recall) - _total(head)
    if wanted <= room:
        return [*head, *(shown(entry) for entry in tail)]
    level = water_level([entry.tokens for entry in tail], room)
    if level < _LEAST_MUST_TOKENS:
        rooms = desk.rooms
        msg = (
            f"{len(tail)} messages that must be shown have {room} tokens left: the budget is {rooms.total}, the "
            f"system prompt and tools take {rooms.fixed}, goal and pins {_total(head)}; raise max_tokens, or unpin"
        )
        raise BudgetError(msg)
    counter = desk.house.counter
    return [*head, *(shortened(entry, max_tokens=level, counter=counter) for entry in tail)]


def _other_tracks(desk: _Desk, plan: ViewPlan) -> Flow[tuple[LeftOut, ...]]:
    """What other tracks said that no summary of this view stands for yet."""
    waiting: dict[str, None] = {}
    track: str | None = None
    for _ in range(_OTHER_TRACKS):
        track = yield from do(desk.house.store.tree.next_waiting_track, desk.ref, after=track)
        if track is None:
            break
        waiting[track] = None
    begun = yield from do(desk.house.store.tree.waiting_summaries, desk.ref, level=1, limit=_OTHER_SUMMARIES)
    waiting |= {one.track: None for one in begun if one.track is not None and not one.state.finished}
    found = [
        LeftOut(what=f"track {one}", reason="another track, not condensed yet") for one in waiting if one != desk.track
    ]
    later = yield from do(
        desk.house.store.tree.level_1_of_others, desk.ref, track=desk.track, after=plan.border, limit=_OTHER_SUMMARIES
    )
    found += [LeftOut(what=one, reason="another track, condensed after this view") for one in later]
    if len(later) == _OTHER_SUMMARIES or len(begun) == _OTHER_SUMMARIES:
        found.append(LeftOut(what=f"{plan.border + 1}-", reason="other tracks, more than are named here"))
    return tuple(found)
