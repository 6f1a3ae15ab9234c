"""Builds the cover of a view: the summaries that stand for older history, made anew, extended, selected or lowered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.view.cover_parts import CoverParts
from langchain_tiered_memory.summaries.tree.cover import (
    Choice,
    CoverItem,
    Gap,
    Joint,
    Node,
    best_cover,
    in_order,
    joined_oldest,
    merged_gaps,
    nodes_of,
    selected,
    tokens_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.types.records import Group, Summary

_LEAST_SUMMARY_TOKENS = 32
"""A summary with its header is hardly smaller: bounds how many a room can hold."""


def whole_cover(inputs: Inputs, *, border: int, cap: int) -> tuple[CoverItem, ...]:
    """A cover of everything up to `border`, made from the highest summaries down."""
    if border == 0:
        return ()
    parts = CoverParts(inputs)
    return _best(parts, parts.up_to(border), room=round(cap * NUMBERS.cover_filled_share))


def grown_cover(inputs: Inputs, previous: ViewPlan, *, border: int, cap: int) -> tuple[CoverItem, ...] | None:
    """The items of a plan with what stands for the messages up to a new border behind them.

    `None` where what is new could not even be told in short: then the cover is made anew, its old end briefer.
    """
    parts = CoverParts(inputs)
    free = cap - tokens_of(previous.items, gap_tokens=parts.gap_tokens)
    new = inputs.runtime.store.tree.level_1_between(inputs.ref, after=previous.border, up_to=border)
    highest = _highest(inputs, inputs.library.add(new), after=previous.border, up_to=border)
    fresh = [parts.choice(one) for one in highest]
    least = sum(choice.readable.tokens for choice in fresh)
    if least > free:
        return None
    return (*previous.items, *_best(parts, fresh, room=max(round(free * NUMBERS.cover_appended_share), least)))


def selected_cover(inputs: Inputs, *, border: int, room: int) -> tuple[CoverItem, ...]:
    """What the original selection shows of everything up to `border`; what it leaves out stands there as headlines.

    The selection knows neither facts nor quoted questions: how much room there is, is judged before they take theirs.
    """
    tree, library = inputs.runtime.store.tree, inputs.library
    parts = CoverParts(inputs)
    top: Node | None = None
    for level in range(tree.height(inputs.ref) - 1, 2, -1):
        found = library.add(tree.newest(inputs.ref, level=level, up_to=border, limit=1))
        if found and not parts.barred.of(found[0]):
            top = parts.whole(found[0])
            break
    at_most = room // _LEAST_SUMMARY_TOKENS + 1
    level_2 = library.add(tree.newest(inputs.ref, level=2, up_to=border, limit=at_most))
    level_1 = library.add(tree.newest(inputs.ref, level=1, up_to=border, limit=at_most))
    chosen = selected(
        top,
        [parts.whole(one) for one in level_2 if not parts.barred.of(one)],
        [parts.whole(one) for one in level_1 if not parts.barred.of(one)],
        room=room,
        before_facts=room + inputs.policy.of("facts") + inputs.policy.queries,
    )
    return _with_rest(parts, chosen, border=border, cap=room)


def cover_of_levels(inputs: Inputs, *, border: int, cap: int, levels: tuple[int, ...]) -> tuple[CoverItem, ...]:
    """What a view of certain levels shows of everything up to `border`: fine where recent, coarse where old.

    The newest summaries of each level that no finished summary of a higher one of these levels stands for. What they
    do not stand for is told in headlines.
    """
    tree, parts = inputs.runtime.store.tree, CoverParts(inputs)
    at_most = cap // _LEAST_SUMMARY_TOKENS + 1
    wanted: list[Summary] = []
    reach = border
    for level in sorted(set(levels)):
        found = inputs.library.add(tree.newest(inputs.ref, level=level, up_to=reach, limit=at_most))
        parents = list(dict.fromkeys(one.parent_id for one in found if one.parent_id is not None))
        above = {one.id: one for one in inputs.library.add(tree.by_id(inputs.ref, parents))}
        mine = [
            one
            for one in found
            if not parts.barred.of(one)
            and (level == max(levels) or not parts.may_stand(above.get(one.parent_id or ""), border))
        ]
        wanted += mine
        reach = min((one.first_seq - 1 for one in mine), default=reach)
    left = round(cap * NUMBERS.cover_levels_share)
    chosen: list[Node] = []
    for one in sorted(wanted, key=lambda one: -one.last_seq):
        node = parts.choice(one).within(left)
        if node.resolution == "headline":
            break
        chosen.append(node)
        left -= node.tokens
    return _with_rest(parts, chosen, border=border, cap=cap)


def lowered_cover(inputs: Inputs, items: Sequence[CoverItem], *, less: int) -> tuple[CoverItem, ...]:
    """`items` with `less` fewer tokens, wherever one line leaves that: first the oldest more briefly, then joined."""
    if less <= 0:
        return tuple(items)
    parts = CoverParts(inputs)
    nodes = nodes_of(items)
    parts.read([node.id for node in nodes])
    chosen = list(in_order(items))
    excess = less
    for resolution in ("short", "headline"):
        for place, item in enumerate(chosen):
            if excess <= 0 or not isinstance(item, Node) or item.id not in inputs.library.summaries:
                continue
            forms = parts.choice(inputs.library.summaries[item.id]).forms
            brief = next((form for form in forms if form.resolution == resolution), forms[0])
            if brief.tokens < item.tokens:
                excess -= item.tokens - brief.tokens
                chosen[place] = brief
    if excess <= 0:
        return tuple(chosen)
    cap = tokens_of(chosen, gap_tokens=parts.gap_tokens) - excess
    return joined_oldest(chosen, room=cap, most=cap, joined=parts.joined, gap_tokens=parts.gap_tokens)


def summarised_groups(inputs: Inputs, groups: Sequence[Group]) -> dict[int, Node]:
    """For each of `groups` that a finished summary stands for, by its `first_seq`, the headline of that summary.

    Such a summary may stand for messages that are shown as well: then no border could move over it. None where no
    summary may take the place of messages.
    """
    settings = inputs.settings
    if not (settings.condensation.automatic and settings.tree.enabled):
        return {}
    if settings.condensation.strategies.primary == "truncation":
        return {}
    mine = {group.first_seq: group.entries[0].summary_id for group in groups}
    ids = sorted({one for one in mine.values() if one is not None})
    if not ids:
        return {}
    parts = CoverParts(inputs)
    parts.read(ids)
    known = inputs.library.summaries
    shown = {
        one: parts.choice(known[one]).briefest
        for one in ids
        if one in known and known[one].state.finished and not parts.barred.of(known[one])
    }
    return {seq: shown[one] for seq, one in mine.items() if one in shown}


def _best(parts: CoverParts, found: Sequence[Choice | Joint | Gap], *, room: int) -> tuple[CoverItem, ...]:
    return best_cover(found, room=room, below=parts.below, joined=parts.joined, gap_tokens=parts.gap_tokens)


def _with_rest(parts: CoverParts, chosen: Sequence[Node], *, border: int, cap: int) -> tuple[CoverItem, ...]:
    """`chosen` with headlines for everything up to `border` that they do not stand for."""
    room = cap - sum(node.tokens for node in chosen)
    rest = parts.up_to(border, beside=chosen)
    lines: list[CoverItem] = [part.briefest if isinstance(part, Choice) else part for part in rest]
    if tokens_of(lines, gap_tokens=parts.gap_tokens) > room:
        lines = list(
            joined_oldest(merged_gaps(lines), room=room, most=room, joined=parts.joined, gap_tokens=parts.gap_tokens)
        )
    return merged_gaps([*chosen, *lines])


def _highest(inputs: Inputs, level_1: Sequence[Summary], *, after: int, up_to: int) -> list[Summary]:
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
