"""Builds the cover of a view: the summaries that stand for older history, made anew, extended, or selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.context.view.barred_summaries import Barred
from langchain_tiered_memory.summaries.rendering import gap_line, summary_block
from langchain_tiered_memory.summaries.shown_facts import shown_facts
from langchain_tiered_memory.summaries.tree.cover import (
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

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.context.assembly_inputs import AssemblyInputs
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Summary

_ROOTS = 400
"""Highest summaries read for a cover: a tree of 3 to 5 below each has a handful for each level."""
_REFINEMENTS = 64
"""Nodes looked into while a cover is refined."""
_LEAST_SUMMARY_TOKENS = 32
"""A summary with its header is hardly smaller: bounds how many a room can hold."""
_BLOCK_JOINT = 2
"""Tokens of the blank line between two parts of a block."""


def whole_cover(inputs: AssemblyInputs, *, border: int, cap: int) -> tuple[CoverItem, ...]:
    """A cover of everything up to `border`, made from the highest summaries down."""
    if border == 0:
        return ()
    runtime, ref, library = inputs.runtime, inputs.ref, inputs.library
    barred = barred_from(inputs)
    inside: list[CoverItem] = []
    waiting = library.add(runtime.store.tree.roots(ref, limit=_ROOTS))
    while waiting:
        deeper: list[str] = []
        for one in waiting:
            touched = barred.of(one)
            if one.level > 1 and (touched or one.last_seq > border):
                deeper.append(one.id)
            elif one.last_seq <= border and not touched:
                inside.append(_node(runtime, one, facts=()))
            elif one.last_seq <= border and touched < one.entry_count:
                left = one.entry_count - touched
                span = Gap(first_seq=one.first_seq, last_seq=one.last_seq, entry_count=left, ids=(), why="of_branch")
                inside.append(span)
        below = runtime.store.tree.children(deeper)
        waiting = library.add(one for children in below.values() for one in children)
    spans = runtime.store.tree.uncondensed(ref, track=inputs.track, up_to=border)
    items: list[CoverItem] = [
        *inside,
        *(Gap(first_seq=first, last_seq=last, entry_count=count, ids=()) for first, last, count in spans),
    ]
    gap_tokens = gap_counter(runtime)
    chosen = fitted(merged_gaps(items), cap=cap, gap_tokens=gap_tokens)
    chosen = _opened(inputs, chosen, cap=cap)
    filled = round(cap * FILLED_SHARE)
    chosen = _refine(inputs, chosen, room=round(filled * PROSE_SHARE))
    return _with_facts(inputs, chosen, cap=filled)


def grown_cover(inputs: AssemblyInputs, previous: ViewPlan, *, border: int, cap: int) -> tuple[CoverItem, ...] | None:
    """The items of a plan with what stands for the messages up to a new border behind them; `None` past the cap.

    What is appended is as coarse as its own span allows, then refined into a share of the free room: so that the next
    condensations can append as well, and the first bytes of the view stay.
    """
    runtime, ref, library = inputs.runtime, inputs.ref, inputs.library
    gap_tokens = gap_counter(runtime)
    known = [node.id for node in nodes_of(previous.items) if node.id not in library.summaries]
    library.add(runtime.store.tree.by_id(ref, known))
    free = cap - tokens_of(previous.items, gap_tokens=gap_tokens)
    new = runtime.store.tree.level_1_between(ref, after=previous.border, up_to=border)
    highest = _highest(inputs, library.add(new), after=previous.border, up_to=border)
    fresh: tuple[CoverItem, ...] = tuple(_node(runtime, one, facts=()) for one in highest)
    if tokens_of(fresh, gap_tokens=gap_tokens) > free:
        return None
    finer = _refine(inputs, fresh, room=round(free * APPENDED_SHARE * PROSE_SHARE))
    return _with_facts(inputs, finer, cap=round(free * APPENDED_SHARE), before=previous.items)


def selected_cover(inputs: AssemblyInputs, *, border: int, room: int) -> tuple[CoverItem, ...]:
    """What the original selection shows of everything up to `border`."""
    runtime, ref, library, tree = inputs.runtime, inputs.ref, inputs.library, inputs.runtime.store.tree
    settings, barred = runtime.settings.context, barred_from(inputs)
    top: Node | None = None
    for level in range(tree.height(ref) - 1, 2, -1):
        found = library.add(tree.newest(ref, level=level, up_to=border, limit=1))
        if found and not barred.of(found[0]):
            top = _node(runtime, found[0])
            break
    at_most = room // _LEAST_SUMMARY_TOKENS + 1
    level_2 = library.add(tree.newest(ref, level=2, up_to=border, limit=at_most))
    level_1 = library.add(tree.newest(ref, level=1, up_to=border, limit=at_most))
    return selected(
        top,
        [_node(runtime, one) for one in level_2 if not barred.of(one)],
        [_node(runtime, one) for one in level_1 if not barred.of(one)],
        room=room,
        threshold=settings.selection_threshold_tokens,
        share=settings.selection_share,
    )


def cover_of_levels(inputs: AssemblyInputs, *, border: int, cap: int, levels: tuple[int, ...]) -> tuple[CoverItem, ...]:
    """What a view of certain levels shows of everything up to `border`: fine where recent, coarse where old.

    The newest summaries of each level that no finished summary of a higher one of these levels stands for. What lies
    between and before them is named in lines.
    """
    runtime, tree = inputs.runtime, inputs.runtime.store.tree
    at_most = cap // _LEAST_SUMMARY_TOKENS + 1
    barred = barred_from(inputs)
    nodes: list[Node] = []
    reach = border
    for level in sorted(set(levels)):
        found = inputs.library.add(tree.newest(inputs.ref, level=level, up_to=reach, limit=at_most))
        parents = list(dict.fromkeys(one.parent_id for one in found if one.parent_id is not None))
        above = {one.id: one for one in inputs.library.add(tree.by_id(inputs.ref, parents))}
        free = [one for one in found if not barred.of(one)]
        mine = [
            one for one in free if level == max(levels) or not _stands(above.get(one.parent_id or ""), border, barred)
        ]
        nodes += [_node(runtime, one) for one in mine]
        reach = min((one.first_seq - 1 for one in mine), default=reach)
    gap_tokens = gap_counter(runtime)
    lines = between(nodes, border=border)
    return fitted(merged_gaps([*nodes, *lines]), cap=cap, gap_tokens=gap_tokens)


def gap_counter(runtime: Runtime) -> Callable[[Gap], int]:
    """Counts the line that stands for a gap."""
    return lambda gap: runtime.counter.count_text(gap_line(gap)) + _BLOCK_JOINT


def _with_facts(
    inputs: AssemblyInputs, items: Sequence[CoverItem], *, cap: int, before: Sequence[CoverItem] = ()
) -> tuple[CoverItem, ...]:
    """The items of `before`, without facts that were taken back since, and `items` with the facts that fit in `cap`."""
    count = inputs.runtime.counter.count_text
    summaries = inputs.library.summaries
    standing = {node.id: node.facts for node in nodes_of(before) if node.facts is not None}
    shown = shown_facts(
        [summaries[node.id] for node in nodes_of([*before, *items])],
        room=cap - tokens_of(items, gap_tokens=gap_counter(inputs.runtime)),
        count_text=count,
        standing=standing,
    )
    return tuple(
        item
        if isinstance(item, Gap) or item.facts in (None, shown[item.id])
        else _node(inputs.runtime, summaries[item.id], facts=shown[item.id])
        for item in (*before, *items)
    )


def _highest(inputs: AssemblyInputs, level_1: Sequence[Summary], *, after: int, up_to: int) -> list[Summary]:
    """The highest finished summaries that stand for nothing but what lies between two borders."""
    standing = {one.id: one for one in level_1}
    below = list(level_1)
    while below:
        parent_ids = list(dict.fromkeys(one.parent_id for one in below if one.parent_id is not None))
        parents = inputs.library.add(inputs.runtime.store.tree.by_id(inputs.ref, parent_ids))
        inside = [one for one in parents if one.state.finished and one.first_seq > after and one.last_seq <= up_to]
        covered = {source for one in inside for source in one.sources}
        standing = {key: one for key, one in standing.items() if key not in covered} | {one.id: one for one in inside}
        below = inside
    return sorted(standing.values(), key=lambda one: (one.first_seq, one.last_seq))


def barred_from(inputs: AssemblyInputs) -> Barred:
    """Which summaries stand for messages that this view does not show."""
    counts: dict[str, int] = {}
    off = sorted(inputs.off)
    for entry in inputs.runtime.store.transcript.by_seq(inputs.ref, off) if off else ():
        if entry.summary_id is not None:
            counts[entry.summary_id] = counts.get(entry.summary_id, 0) + 1
    return Barred(off=tuple(off), counts=counts, only_track=inputs.track if inputs.alone else None)


def _opened(inputs: AssemblyInputs, items: tuple[CoverItem, ...], *, cap: int) -> tuple[CoverItem, ...]:
    """Where a summary is too large for the room, show what fits of the level below it, the most recent first."""
    runtime, library = inputs.runtime, inputs.library
    gap_tokens = gap_counter(runtime)
    tried: frozenset[str] = frozenset()
    for _ in range(_REFINEMENTS):
        gap = newest_gap(items, tried=tried)
        if gap is None:
            break
        last = gap.ids[-1]
        tried |= {last}
        below = runtime.store.tree.children([last])
        if last not in library.summaries or not below[last]:
            continue
        children = [_node(runtime, one, facts=()) for one in library.add(below[last])]
        others = [library.summaries[one].last_seq for one in gap.ids[:-1] if one in library.summaries]
        rest_ends = max(others, default=library.summaries[last].first_seq - 1)
        wider = opened(items, gap, _node(runtime, library.summaries[last]), children, rest_ends=rest_ends)
        finer = fitted(merged_gaps(wider), cap=cap, gap_tokens=gap_tokens)
        if tokens_of(finer, gap_tokens=gap_tokens) <= cap:
            items = finer
    return items


def _stands(parent: Summary | None, border: int, barred: Barred) -> bool:
    return parent is not None and parent.state.finished and parent.last_seq <= border and not barred.of(parent)


def _refine(inputs: AssemblyInputs, items: tuple[CoverItem, ...], *, room: int) -> tuple[CoverItem, ...]:
    """Replace nodes by the level below them, the most recent first, while `room` lasts."""
    runtime, library = inputs.runtime, inputs.library
    gap_tokens = gap_counter(runtime)
    tried: frozenset[str] = frozenset()
    for _ in range(_REFINEMENTS):
        node = next_to_refine(items, tried=tried)
        if node is None or tokens_of(items, gap_tokens=gap_tokens) >= room:
            break
        tried |= {node.id}
        below = runtime.store.tree.children([node.id])
        children = [_node(runtime, one, facts=()) for one in library.add(below[node.id])]
        finer = refined(items, node, children)
        if children and tokens_of(finer, gap_tokens=gap_tokens) <= room:
            items = finer
    return items


def _node(runtime: Runtime, summary: Summary, *, facts: tuple[int, ...] | None = None) -> Node:
    return Node(
        id=summary.id,
        level=summary.level,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        entry_count=summary.entry_count,
        tokens=runtime.counter.count_text(summary_block(summary, facts)) + _BLOCK_JOINT,
        facts=facts,
    )
