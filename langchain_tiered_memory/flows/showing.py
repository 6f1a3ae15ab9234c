"""A plan made visible: the messages of the recent part, and everything that stands before them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.cover import nodes_of
from langchain_tiered_memory.decisions.quoting import quotes_within
from langchain_tiered_memory.decisions.rendering import history_block, pins_block
from langchain_tiered_memory.decisions.request import Piece, masked, ours, shortened, shown
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.decisions.rooms import Rooms
    from langchain_tiered_memory.decisions.view_plan import ViewPlan
    from langchain_tiered_memory.flows.desk import Desk
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import Entry
    from langchain_tiered_memory.settings import ContextSettings

_LEAST_ENTRY_TOKENS = 3
"""An entry's framing alone: bounds how many entries a room can hold."""
_PAGE = 500
_OTHER_TRACKS = 16
_OTHER_SUMMARIES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a plan shows, and how much it takes."""

    plan: ViewPlan
    head: tuple[Piece, ...]
    """Goal, pins, history, files: everything before the recent messages."""
    tail: tuple[Entry, ...]
    """The recent messages that are shown, and before them those that are kept."""
    masks: tuple[Piece, ...] = ()
    """Those of them that stand there by head, pointer and tail."""

    @property
    def recent_from(self) -> int:
        """`seq` of the first message shown that is not only kept."""
        kept = frozenset(self.plan.kept)
        return next((entry.seq for entry in self.tail if entry.group not in kept), self.plan.tail_from)

    @property
    def head_tokens(self) -> int:
        """Raw tokens before the recent messages."""
        return sum(piece.tokens for piece in self.head)

    @property
    def tail_tokens(self) -> int:
        """Raw tokens of the recent messages, as shown."""
        return sum(entry.tokens for entry in self.tail) - self.masked_away

    @property
    def masked_away(self) -> int:
        """Raw tokens that masks keep out."""
        return sum(piece.entry.tokens - piece.tokens for piece in self.masks if piece.entry is not None)

    @property
    def tokens(self) -> int:
        """Raw tokens of both."""
        return self.head_tokens + self.tail_tokens

    def recent(self) -> list[Piece]:
        """The recent messages as pieces."""
        by_seq = {piece.entry.seq: piece for piece in self.masks if piece.entry is not None}
        return [by_seq.get(entry.seq) or shown(entry) for entry in self.tail]


def sight_of(desk: Desk, plan: ViewPlan) -> Flow[Sight]:
    """Read what `plan` shows."""
    tail = yield from _tail(desk, plan)
    return (yield from seen_with(desk, plan, tail))


def seen_with(desk: Desk, plan: ViewPlan, tail: Sequence[Entry]) -> Flow[Sight]:
    """What `plan` shows before and of `tail`, whose messages were read already."""
    hidden = frozenset(plan.left)
    kept_groups = frozenset(plan.kept)
    stays = tuple(
        entry
        for entry in tail
        if (entry.group not in hidden and entry.seq >= plan.tail_from) or entry.group in kept_groups
    )
    head = yield from _head(desk, plan, stays)
    kept = dict(plan.masked)
    counter = desk.house.counter
    masks = tuple(masked(entry, keep_tokens=kept[entry.seq], counter=counter) for entry in stays if entry.seq in kept)
    return Sight(plan=plan, head=tuple(head), tail=stays, masks=masks)


def _tail(desk: Desk, plan: ViewPlan) -> Flow[list[Entry]]:
    """The recent messages of a plan, a few more than fit if there are so many; before them what it keeps."""
    kept = (yield from do(desk.house.store.transcript.groups_of, desk.ref, plan.kept)) if plan.kept else []
    hidden = sum(gap.entry_count for gap in plan.left_spans)
    entries = yield from do(
        desk.house.store.transcript.entries,
        desk.ref,
        track=desk.track,
        after=plan.tail_from - 1,
        newest_first=True,
        limit=max(desk.room, 0) // _LEAST_ENTRY_TOKENS + 8 + len(desk.off) + hidden,
    )
    recent = [entry for entry in entries if entry.summary_id not in plan.skip and entry.group not in plan.kept]
    # A group that is kept may have got a late result among the newest messages: that is where it was said.
    shown = [entry for entry in (*kept, *recent) if entry.seq not in desk.off]
    return sorted(shown, key=lambda entry: entry.seq)


def is_whole(desk: Desk, sight: Sight) -> Flow[bool]:
    """Whether every message of a plan's recent part was read."""
    first = sight.recent_from
    if not sight.tail or first <= sight.plan.tail_from:
        return True
    limit = len(desk.off) + 1
    before = yield from do(
        desk.house.store.transcript.entries,
        desk.ref,
        track=desk.track,
        after=sight.plan.tail_from - 1,
        up_to=first - 1,
        limit=limit,
    )
    return all(entry.seq in desk.off for entry in before)


def count_earlier(desk: Desk, plan: ViewPlan, tail: Sequence[Entry]) -> Flow[int]:
    """How many messages of a plan's recent part are older than those that were read of it."""
    count, after = 0, plan.tail_from - 1
    tail = [entry for entry in tail if entry.group not in plan.kept]
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


def _head(desk: Desk, plan: ViewPlan, tail: Sequence[Entry]) -> Flow[list[Piece]]:
    """Everything before the recent messages. Depends on the plan and on the first of them alone."""
    counter = desk.house.counter
    standing = {entry.seq for entry in tail}
    head = [
        shortened(entry, max_tokens=desk.rooms.goal, counter=counter, part="goal")
        for entry in desk.musts.opening
        if entry.seq not in standing
    ]
    opening = {entry.seq for entry in desk.musts.opening}
    pinned = [entry for entry in desk.musts.pinned if entry.seq not in opening | standing]
    if pinned:
        head.append(pinned_piece(desk.house, desk.rooms, pinned))
    users = [seq for seq in plan.queries if seq not in opening and seq not in {entry.seq for entry in pinned}]
    queries = (yield from do(desk.house.store.transcript.by_seq, desk.ref, users)) if users else []
    leads = bool(queries) and bool(tail) and tail[0].role != "user"
    quoted = queries[:-1] if leads else queries
    if plan.items or plan.left_spans or quoted:
        head.append((yield from _history(desk, plan, quoted)))
    if plan.files:
        head.append(ours(plan.files, part="files", counter=counter))
    if leads:
        most = round(desk.house.settings.context.question_share * desk.rooms.total)
        head.append(shortened(queries[-1], max_tokens=most, counter=counter))
    return head


def pinned_piece(house: House, rooms: Rooms, pinned: Sequence[Entry]) -> Piece:
    """Pinned messages as one quoting message, within their room."""
    quotes = quotes_within(pinned, room=rooms.pins, count=house.counter.count_text)
    block = pins_block(quotes.texts, quotes.left_out)
    return ours(block, part="pinned", counter=house.counter, quoted=quotes.whole, passages=quotes.cut)


def _history(desk: Desk, plan: ViewPlan, quoted: Sequence[Entry]) -> Flow[Piece]:
    library = desk.library
    wanted = [node.id for node in nodes_of(plan.items) if node.id not in library.summaries]
    if wanted:
        library.add((yield from do(desk.house.store.tree.by_id, desk.ref, wanted)))
    quotes = quotes_within(quoted, room=desk.rooms.queries, count=desk.house.counter.count_text)
    block = history_block(plan.items, library.summaries, quotes.texts, left=plan.left_spans)
    return ours(
        block,
        part="history",
        counter=desk.house.counter,
        quoted=quotes.whole,
        passages=quotes.cut,
        summary_ids=tuple(node.id for node in nodes_of(plan.items)),
    )


def plan_name(
    view: str,
    track: str,
    *,
    max_tokens: int,
    has_query: bool,
    model: str | None,
    settings: ContextSettings,
    off: frozenset[int],
) -> str:
    """Under which name a view's plan is kept: one for each view, track, budget, model, branch and way of splitting."""
    chosen = repr((track, model, settings.model_dump_json(), sorted(off)))
    digest = hashlib.sha256(chosen.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    # The essentials are chosen anew at each request, from the plan of the default view.
    return f"{'default' if view == 'minimal' else view}:{max_tokens}:{int(has_query)}:{digest}"


def other_tracks(desk: Desk, plan: ViewPlan) -> Flow[tuple[LeftOut, ...]]:
    """What other tracks said that no summary of this view stands for yet."""
    found = yield from do(
        desk.house.store.transcript.other_tracks,
        desk.ref,
        track=desk.track,
        after=plan.border,
        tracks=_OTHER_TRACKS,
        limit=_OTHER_SUMMARIES,
    )
    left = [LeftOut(what=f"track {one}", reason="another track, not condensed yet") for one in found.waiting]
    left += [LeftOut(what=one, reason="another track, condensed after this view") for one in found.later]
    if found.is_cut:
        left.append(LeftOut(what=f"{plan.border + 1}-", reason="other tracks, more than are named here"))
    return tuple(left)
