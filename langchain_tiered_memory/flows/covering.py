"""What stands for older history in a view: a cover of summaries, made whole, grown behind the last one, or selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.cover import (
    APPENDED_SHARE,
    FILLED_SHARE,
    PROSE_SHARE,
    CoverItem,
    Gap,
    Node,
    between,
    fitted,
    merged_gaps,
    newest_gap,
    next_to_refine,
    nodes_of,
    opened,
    refined,
    selected,
    tokens_of,
)
from langchain_tiered_memory.decisions.rendering import gap_line, summary_block
from langchain_tiered_memory.decisions.shown_facts import shown_facts
from langchain_tiered_memory.flows.asking import Flow, do

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.decisions.view_plan import ViewPlan
    from langchain_tiered_memory.flows.desk import Desk
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import Summary

_ROOTS = 400
"""Highest summaries read for a cover: a tree of 3 to 5 below each has a handful for each level."""
_REFINEMENTS = 64
"""Nodes looked into while a cover is refined."""
_LEAST_SUMMARY_TOKENS = 32
"""A summary with its header is hardly smaller: bounds how many a room can hold."""
_BLOCK_JOINT = 2
"""Tokens of the blank line between two parts of a block."""


def whole_cover(desk: Desk, *, border: int, cap: int) -> Flow[tuple[CoverItem, ...]]:
    """A cover of everything up to `border`, made from the highest summaries down."""
    if border == 0:
        return ()
    house, ref, library, off = desk.house, desk.ref, desk.library, desk.off
    strays = yield from _strays(desk)
    inside: list[CoverItem] = []
    waiting = library.add((yield from do(house.store.tree.roots, ref, limit=_ROOTS)))
    while waiting:
        deeper: list[str] = []
        for one in waiting:
            touched = (
                strays.get(one.id, 0) if one.level == 1 else any(one.first_seq <= seq <= one.last_seq for seq in off)
            )
            if one.level > 1 and (touched or one.last_seq > border):
                deeper.append(one.id)
            elif one.last_seq <= border and not touched:
                inside.append(_node(house, one, facts=()))
            elif one.last_seq <= border and touched < one.entry_count:
                left = one.entry_count - touched
                span = Gap(first_seq=one.first_seq, last_seq=one.last_seq, entry_count=left, ids=(), why="of_branch")
                inside.append(span)
        below = yield from do(house.store.tree.children, deeper)
        waiting = library.add(one for children in below.values() for one in children)
    spans = yield from do(house.store.tree.uncondensed, ref, track=desk.track, up_to=border)
    items: list[CoverItem] = [
        *inside,
        *(Gap(first_seq=first, last_seq=last, entry_count=count, ids=()) for first, last, count in spans),
    ]
    gap_tokens = gap_counter(house)
    chosen = fitted(merged_gaps(items), cap=cap, gap_tokens=gap_tokens)
    chosen = yield from _opened(desk, chosen, cap=cap)
    filled = round(cap * FILLED_SHARE)
    chosen = yield from _refine(desk, chosen, room=round(filled * PROSE_SHARE))
    return _with_facts(desk, chosen, cap=filled)


def grown_cover(desk: Desk, previous: ViewPlan, *, border: int, cap: int) -> Flow[tuple[CoverItem, ...] | None]:
    """The items of a plan with what stands for the messages up to a new border behind them; `None` past the cap.

    What is appended is as coarse as its own span allows, then refined into a share of the free room: so that the next
    condensations can append as well, and the first bytes of the view stay.
    """
    house, ref, library = desk.house, desk.ref, desk.library
    gap_tokens = gap_counter(house)
    known = [node.id for node in nodes_of(previous.items) if node.id not in library.summaries]
    library.add((yield from do(house.store.tree.by_id, ref, known)))
    free = cap - tokens_of(previous.items, gap_tokens=gap_tokens)
    new = yield from do(house.store.tree.level_1_between, ref, after=previous.border, up_to=border)
    highest = yield from _highest(desk, library.add(new), after=previous.border, up_to=border)
    fresh: tuple[CoverItem, ...] = tuple(_node(house, one, facts=()) for one in highest)
    if tokens_of(fresh, gap_tokens=gap_tokens) > free:
        return None
    finer = yield from _refine(desk, fresh, room=round(free * APPENDED_SHARE * PROSE_SHARE))
    return _with_facts(desk, finer, cap=round(free * APPENDED_SHARE), before=previous.items)


def selected_cover(desk: Desk, *, border: int, room: int) -> Flow[tuple[CoverItem, ...]]:
    """What the original selection shows of everything up to `border`."""
    house, ref, library, tree = desk.house, desk.ref, desk.library, desk.house.store.tree
    settings = house.settings.context
    top: Node | None = None
    for level in range((yield from do(tree.height, ref)) - 1, 2, -1):
        found = library.add((yield from do(tree.newest, ref, level=level, up_to=border, limit=1)))
        if found:
            top = _node(house, found[0])
            break
    at_most = room // _LEAST_SUMMARY_TOKENS + 1
    level_2 = library.add((yield from do(tree.newest, ref, level=2, up_to=border, limit=at_most)))
    level_1 = library.add((yield from do(tree.newest, ref, level=1, up_to=border, limit=at_most)))
    return selected(
        top,
        [_node(house, one) for one in level_2],
        [_node(house, one) for one in level_1],
        room=room,
        threshold=settings.selection_threshold_tokens,
        share=settings.selection_share,
    )


def cover_of_levels(desk: Desk, *, border: int, cap: int, levels: tuple[int, ...]) -> Flow[tuple[CoverItem, ...]]:
    """What a view of certain levels shows of everything up to `border`: fine where recent, coarse where old.

    The newest summaries of each level that no finished summary of a higher one of these levels stands for. What lies
    between and before them is named in lines.
    """
    house, tree = desk.house, desk.house.store.tree
    at_most = cap // _LEAST_SUMMARY_TOKENS + 1
    nodes: list[Node] = []
    reach = border
    for level in sorted(set(levels)):
        found = desk.library.add((yield from do(tree.newest, desk.ref, level=level, up_to=reach, limit=at_most)))
        parents = list(dict.fromkeys(one.parent_id for one in found if one.parent_id is not None))
        above = {one.id: one for one in desk.library.add((yield from do(tree.by_id, desk.ref, parents)))}
        mine = [one for one in found if level == max(levels) or not _stands(above.get(one.parent_id or ""), border)]
        nodes += [_node(house, one) for one in mine]
        reach = min((one.first_seq - 1 for one in mine), default=reach)
    gap_tokens = gap_counter(house)
    lines = between(nodes, border=border)
    return fitted(merged_gaps([*nodes, *lines]), cap=cap, gap_tokens=gap_tokens)


def gap_counter(house: House) -> Callable[[Gap], int]:
    """Counts the line that stands for a gap."""
    return lambda gap: house.counter.count_text(gap_line(gap)) + _BLOCK_JOINT


def _with_facts(
    desk: Desk, items: Sequence[CoverItem], *, cap: int, before: Sequence[CoverItem] = ()
) -> tuple[CoverItem, ...]:
    """The items of `before`, without facts that were taken back since, and `items` with the facts that fit in `cap`."""
    count = desk.house.counter.count_text
    summaries = desk.library.summaries
    standing = {node.id: node.facts for node in nodes_of(before) if node.facts is not None}
    shown = shown_facts(
        [summaries[node.id] for node in nodes_of([*before, *items])],
        room=cap - tokens_of(items, gap_tokens=gap_counter(desk.house)),
        count_text=count,
        standing=standing,
    )
    return tuple(
        item
        if isinstance(item, Gap) or item.facts in (None, shown[item.id])
        else _node(desk.house, summaries[item.id], facts=shown[item.id])
        for item in (*before, *items)
    )


def _highest(desk: Desk, level_1: Sequence[Summary], *, after: int, up_to: int) -> Flow[list[Summary]]:
    """The highest finished summaries that stand for nothing but what lies between two borders."""
    standing = {one.id: one for one in level_1}
    below = list(level_1)
    while below:
        parent_ids = list(dict.fromkeys(one.parent_id for one in below if one.parent_id is not None))
        parents = desk.library.add((yield from do(desk.house.store.tree.by_id, desk.ref, parent_ids)))
        inside = [one for one in parents if one.state.finished and one.first_seq > after and one.last_seq <= up_to]
        covered = {source for one in inside for source in one.sources}
        standing = {key: one for key, one in standing.items() if key not in covered} | {one.id: one for one in inside}
        below = inside
    return sorted(standing.values(), key=lambda one: (one.first_seq, one.last_seq))


def _strays(desk: Desk) -> Flow[dict[str, int]]:
    """How many messages of other branches each level-1 summary stands for."""
    counts: dict[str, int] = {}
    off = sorted(desk.off)
    for entry in (yield from do(desk.house.store.transcript.by_seq, desk.ref, off)) if off else ():
        if entry.summary_id is not None:
            counts[entry.summary_id] = counts.get(entry.summary_id, 0) + 1
    return counts


def _opened(desk: Desk, items: tuple[CoverItem, ...], *, cap: int) -> Flow[tuple[CoverItem, ...]]:
    """Where a summary is too large for the room, show what fits of the level below it, the most recent first."""
    house, library = desk.house, desk.library
    gap_tokens = gap_counter(house)
    tried: frozenset[str] = frozenset()
    for _ in range(_REFINEMENTS):
        gap = newest_gap(items, tried=tried)
        if gap is None:
            break
        last = gap.ids[-1]
        tried |= {last}
        below = yield from do(house.store.tree.children, [last])
        if last not in library.summaries or not below[last]:
            continue
        children = [_node(house, one, facts=()) for one in library.add(below[last])]
        others = [library.summaries[one].last_seq for one in gap.ids[:-1] if one in library.summaries]
        rest_ends = max(others, default=library.summaries[last].first_seq - 1)
        wider = opened(items, gap, _node(house, library.summaries[last]), children, rest_ends=rest_ends)
        finer = fitted(merged_gaps(wider), cap=cap, gap_tokens=gap_tokens)
        if tokens_of(finer, gap_tokens=gap_tokens) <= cap:
            items = finer
    return items


def _stands(parent: Summary | None, border: int) -> bool:
    return parent is not None and parent.state.finished and parent.last_seq <= border


def _refine(desk: Desk, items: tuple[CoverItem, ...], *, room: int) -> Flow[tuple[CoverItem, ...]]:
    """Replace nodes by the level below them, the most recent first, while `room` lasts."""
    house, library = desk.house, desk.library
    gap_tokens = gap_counter(house)
    tried: frozenset[str] = frozenset()
    for _ in range(_REFINEMENTS):
        node = next_to_refine(items, tried=tried)
        if node is None or tokens_of(items, gap_tokens=gap_tokens) >= room:
            break
        tried |= {node.id}
        below = yield from do(house.store.tree.children, [node.id])
        children = [_node(house, one, facts=()) for one in library.add(below[node.id])]
        finer = refined(items, node, children)
        if children and tokens_of(finer, gap_tokens=gap_tokens) <= room:
            items = finer
    return items


def _node(house: House, summary: Summary, *, facts: tuple[int, ...] | None = None) -> Node:
    return Node(
        id=summary.id,
        level=summary.level,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        entry_count=summary.entry_count,
        tokens=house.counter.count_text(summary_block(summary, facts)) + _BLOCK_JOINT,
        facts=facts,
    )
