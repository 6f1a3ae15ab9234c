"""Makes a view smaller without summaries: tool outputs masked, the window slid, what is least important pruned.

Each gives the smaller sight and the ledger's rows of what left, or the same sight where there was nothing to do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.cover import Gap, fitted, merged_gaps, nodes_of, tokens_of
from langchain_tiered_memory.decisions.critical import critical_groups
from langchain_tiered_memory.decisions.groups import as_groups
from langchain_tiered_memory.decisions.masking import masks
from langchain_tiered_memory.decisions.pruning import prune
from langchain_tiered_memory.decisions.pruning_items import prune_items
from langchain_tiered_memory.decisions.windows import chosen_by, drop_half, keep_last
from langchain_tiered_memory.extensions import TruncationQuestion
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.call_keys import same_looks
from langchain_tiered_memory.flows.covering import gap_counter
from langchain_tiered_memory.flows.keeping import with_files
from langchain_tiered_memory.flows.showing import Sight, count_earlier, seen_with
from langchain_tiered_memory.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from langchain_tiered_memory.decisions.cover import GapReason
    from langchain_tiered_memory.flows.desk import Desk
    from langchain_tiered_memory.records import Entry, Group

_LINE_TOKENS = 32
"""A line that names what was left out."""
_REPEATS = 3
"""Times that a window is slid on, because the lines for what left take room themselves."""
_FINISHED_TASKS = 8
_TOUCHED_FILES = 100


def masked_sight(desk: Desk, sight: Sight, *, target: int, least: int) -> Flow[tuple[Sight, tuple[LeftOut, ...]]]:
    """`sight` with the next batch of tool outputs masked, to come down to `target` raw tokens."""
    settings = desk.house.settings.guard.masks
    if not settings.enabled or sight.tokens <= target:
        return sight, ()
    seen = max((entry.seq for entry in sight.tail if entry.role == "assistant"), default=0)
    groups = as_groups(sight.tail)
    twins = yield from do(same_looks, groups)
    batch = masks(
        groups,
        settings=settings,
        unseen_from=seen,
        already=frozenset(seq for seq, _ in sight.plan.masked),
        tokens_to_free=sight.tokens - target,
        twins=twins,
        least_tokens=least,
        limit_tokens=desk.rooms.total,
    )
    if not batch:
        return sight, ()
    masked = dict(sight.plan.masked) | {one.seq: one.keep_tokens for one in batch}
    plan = replace(sight.plan, masked=tuple(sorted(masked.items())))
    ids = {entry.seq: entry.id for entry in sight.tail}
    left = tuple(
        LeftOut(what=ids[one.seq], reason=f"masked: {one.reason} tool output", tokens=one.frees_tokens) for one in batch
    )
    return (yield from seen_with(desk, plan, sight.tail)), left


def slid_sight(desk: Desk, sight: Sight, *, room: int) -> Flow[tuple[Sight, tuple[LeftOut, ...]]]:
    """`sight` with older groups left out until it takes no more than `room`, by the sliding window that was chosen.

    The user's own selector is asked first. Groups with constraints, decisions or unresolved errors stay while there is
    room without them. A window that would not make the view smaller is not slid.
    """
    start, room_tokens = sight, room
    left: tuple[LeftOut, ...] = ()
    unread = earlier = yield from count_earlier(desk, sight.plan, sight.tail)
    for attempt in range(_REPEATS):
        groups = as_groups(sight.tail)
        room = room_tokens - sight.head_tokens - _LINE_TOKENS + sight.masked_away
        musts = _musts(desk, groups)
        critical = critical_groups(groups) if not attempt else frozenset[int]()
        going = yield from _selected(desk, groups, must_stay=musts, room=room)
        rest = [group for group in groups if group.first_seq not in going]
        going |= set(_window(desk, rest, must_stay=musts | critical, room=room, begins=sight.plan.border == 0))
        if critical and _tokens(groups, without=going) > room:
            rest = [group for group in groups if group.first_seq not in going]
            going |= set(_window(desk, rest, must_stay=musts, room=room, begins=sight.plan.border == 0))
        if not (going or earlier):
            break
        sight, rows = yield from _without(desk, sight, going, why="slid", earlier=earlier)
        earlier = 0
        left += rows
        if sight.tokens <= room_tokens:
            break
    if sight.tokens >= start.tokens and not unread:
        sight, left = start, ()
    leaner = yield from _leaner(desk, sight)
    shown = {node.id for node in nodes_of(leaner.plan.items)}
    gone = [node for node in nodes_of(sight.plan.items) if node.id not in shown]
    return leaner, left + tuple(LeftOut(what=node.id, reason="no room for it", tokens=node.tokens) for node in gone)


def _musts(desk: Desk, groups: Sequence[Group]) -> frozenset[int]:
    recent = desk.musts.recent
    return recent.held | frozenset(
        group.first_seq
        for group in groups
        if group.last_seq >= recent.guard or any(entry.pinned for entry in group.entries)
    )


def _newest(groups: Sequence[Group], *, room: int) -> frozenset[int]:
    """The newest groups that together fit `room`."""
    kept: set[int] = set()
    for group in reversed(groups):
        room -= group.tokens
        if room < 0:
            break
        kept.add(group.first_seq)
    return frozenset(kept)


def _tokens(groups: Sequence[Group], *, without: Collection[int]) -> int:
    return sum(group.tokens for group in groups if group.first_seq not in without)


def _selected(desk: Desk, groups: Sequence[Group], *, must_stay: frozenset[int], room: int) -> Flow[set[int]]:
    views = desk.house.condenser.views
    if views.truncation_selector is None:
        return set()
    question = TruncationQuestion(groups=tuple(groups), must_stay=must_stay, room_tokens=room)
    answer = yield from do(views.select_truncation, question, session_id=desk.ref.session_id)
    return set(chosen_by(answer, groups, must_stay=must_stay))


def _window(
    desk: Desk, groups: Sequence[Group], *, must_stay: frozenset[int], room: int, begins: bool
) -> tuple[int, ...]:
    chosen = desk.house.settings.condensation.strategies
    if chosen.window == "last":
        return keep_last(groups, must_stay=must_stay, room_tokens=room, keep=chosen.keep_last, keeps_first=begins)
    return drop_half(groups, must_stay=must_stay, room_tokens=room, share=chosen.drop_share, keeps_first=begins)


def pruned_sight(desk: Desk, sight: Sight, *, target: int) -> Flow[tuple[Sight, tuple[LeftOut, ...]]]:
    """`sight` without what is least important for the task at hand, down to `target` raw tokens where that can be."""
    house, ref = desk.house, desk.ref
    groups = as_groups(sight.tail)
    tasks = yield from do(house.store.runs.tasks, ref, newest_finished=_FINISHED_TASKS)
    current = yield from do(house.store.runs.current_task, ref, desk.track)
    touches = yield from do(house.store.files.latest, ref, track=desk.track, limit=_TOUCHED_FILES)
    items = yield from do(
        prune_items,
        groups,
        now=house.now(),
        tasks=tasks,
        current_task=current,
        touches=touches,
        must_stay=_musts(desk, groups) | _newest(groups, room=round(desk.house.settings.guard.newest_share * target)),
    )
    room = target - sight.head_tokens - _LINE_TOKENS + sight.masked_away
    pruned = prune(items, target_tokens=max(room, 0), settings=house.settings.guard)
    if not pruned.dropped:
        return sight, ()
    reasons = {one.key: one.reason for one in pruned.dropped}
    earlier = yield from count_earlier(desk, sight.plan, sight.tail)
    return (yield from _without(desk, sight, set(reasons), why="pruned", earlier=earlier, reasons=reasons))


def _without(
    desk: Desk,
    sight: Sight,
    going: Collection[int],
    *,
    why: GapReason,
    earlier: int,
    reasons: Mapping[int, str] | None = None,
) -> Flow[tuple[Sight, tuple[LeftOut, ...]]]:
    """`sight` without the groups that begin at `going`, nor the `earlier` messages that were not even read."""
    plan, groups = sight.plan, as_groups(sight.tail)
    gone = [group for group in groups if group.first_seq in going]
    stays = [entry for group in groups if group.first_seq not in going for entry in group.entries]
    recent = [entry.seq for entry in stays if entry.seq >= plan.tail_from]
    tail_from = min(recent, default=sight.tail[-1].seq + 1 if sight.tail else plan.tail_from)
    newer = [group for group in gone if group.first_seq not in plan.kept]
    spans: list[Gap] = list(plan.left_spans)
    if earlier:
        last = sight.recent_from - 1
        spans.append(Gap(first_seq=plan.tail_from, last_seq=last, entry_count=earlier, ids=(), why=why))
    spans += [
        Gap(first_seq=group.first_seq, last_seq=group.last_seq, entry_count=len(group.entries), ids=(), why=why)
        for group in newer
    ]
    hidden = {*plan.left, *(group.first_seq for group in newer)}
    users = [entry.seq for entry in desk.musts.recent.users if entry.seq < tail_from or entry.group in hidden]
    smaller = replace(
        plan,
        tail_from=tail_from,
        left=tuple(sorted(seq for seq in hidden if seq >= tail_from or _reaches(groups, seq, tail_from))),
        kept=tuple(seq for seq in plan.kept if seq not in going),
        left_spans=tuple(gap for gap in merged_gaps(spans) if isinstance(gap, Gap)),
        queries=tuple(users),
        provisional=True,
    )
    rows = tuple(
        LeftOut(
            what=f"{group.first_seq}-{group.last_seq}",
            reason=f"{why}: {reasons[group.first_seq]}" if reasons else "left out by the sliding window",
            tokens=group.tokens,
        )
        for group in gone
    )
    if earlier:
        span = f"{plan.tail_from}-{sight.recent_from - 1}"
        rows = (LeftOut(what=span, reason="left out: more than fits was not condensed yet"), *rows)
    kept: tuple[Entry, ...] = tuple(sorted(stays, key=lambda entry: entry.seq))
    sight = yield from seen_with(desk, smaller, kept)
    return (yield from with_files(desk, sight)), rows


def _reaches(groups: Sequence[Group], first_seq: int, tail_from: int) -> bool:
    return any(group.first_seq == first_seq and group.last_seq >= tail_from for group in groups)


def _leaner(desk: Desk, sight: Sight) -> Flow[Sight]:
    """`sight` with as much less of its cover as the rest needs. The next condensation makes it anew."""
    excess = sight.tokens - desk.room
    if excess <= 0 or not sight.plan.items:
        return sight
    tokens = gap_counter(desk.house)
    cap = max(tokens_of(sight.plan.items, gap_tokens=tokens) - excess, 0)
    plan = replace(sight.plan, items=fitted(sight.plan.items, cap=cap, gap_tokens=tokens), provisional=True)
    return (yield from seen_with(desk, plan, sight.tail))
