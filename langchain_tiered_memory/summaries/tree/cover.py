"""The cover of a view: which summaries stand for what is older, without gap or overlap, within a cap.

A cover starts from the highest summaries, which together stand for everything condensed. It is refined from its recent
end while the cap lasts; what does not fit becomes one line that names its span. Pure: the flow fetches children and
counts tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

FILLED_SHARE = 0.85
"""A cover made anew fills this share of its cap, so that the next condensations can append behind it instead of
changing its first bytes."""
PROSE_SHARE = 0.3
"""A cover is refined into this share of what it may fill; facts take the rest."""
APPENDED_SHARE = 0.9
"""What a condensation appends may fill this share of the room that is left."""


GapReason: TypeAlias = Literal["of_branch", "not_in_view", "slid", "pruned"]
"""`of_branch`: their summary also stands for messages of another branch, and cannot be shown on this one;
`not_in_view`: the view does not show their level; `slid`, `pruned`: the guard left them out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A summary as part of a cover."""

    id: str
    level: int
    first_seq: int
    last_seq: int
    entry_count: int
    tokens: int
    """As rendered in the view."""
    facts: tuple[int, ...] | None = None
    """Indexes of the summary's facts that are shown beneath it; `None`: all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Neighbouring nodes that do not fit, or messages that are not condensed yet: one line."""

    first_seq: int
    last_seq: int
    entry_count: int
    ids: tuple[str, ...]
    """Summaries to expand; empty for messages that no summary stands for yet."""
    why: GapReason | None = None
    """`None`: they do not fit, or (without `ids`) are not condensed yet."""


CoverItem: TypeAlias = Node | Gap


def in_order(items: Sequence[CoverItem]) -> tuple[CoverItem, ...]:
    """Items in the order of what they stand for."""
    return tuple(sorted(items, key=lambda item: (item.first_seq, item.last_seq)))


def nodes_of(items: Sequence[CoverItem]) -> list[Node]:
    """The items that show a summary."""
    return [item for item in items if isinstance(item, Node)]


def merged_gaps(items: Sequence[CoverItem]) -> tuple[CoverItem, ...]:
    """Neighbouring gaps of one kind become one."""
    result: list[CoverItem] = []
    for item in in_order(items):
        last = result[-1] if result else None
        if isinstance(item, Gap) and isinstance(last, Gap) and _alike(item, last):
            result[-1] = replace(
                last,
                last_seq=max(last.last_seq, item.last_seq),
                entry_count=last.entry_count + item.entry_count,
                ids=last.ids + item.ids,
            )
        else:
            result.append(item)
    return tuple(result)


def _alike(one: Gap, other: Gap) -> bool:
    return bool(one.ids) == bool(other.ids) and one.why == other.why


def between(nodes: Sequence[Node], *, border: int) -> list[Gap]:
    """Lines for what lies before, between and behind `nodes`, up to `border`; counted by `seq`s."""
    lines: list[Gap] = []
    reached = 0
    for node in (*in_order(nodes), None):
        starts = node.first_seq if node is not None else border + 1
        if starts > reached + 1:
            span = starts - 1 - reached
            lines.append(Gap(first_seq=reached + 1, last_seq=starts - 1, entry_count=span, ids=(), why="not_in_view"))
        reached = max(reached, node.last_seq if node is not None else border)
    return lines


def newest_gap(items: Sequence[CoverItem], *, tried: frozenset[str]) -> Gap | None:
    """The most recent gap whose last summary was not looked into yet."""
    gaps = [item for item in items if isinstance(item, Gap) and item.ids and item.ids[-1] not in tried]
    return max(gaps, key=lambda gap: gap.last_seq, default=None)


def opened(
    items: Sequence[CoverItem], gap: Gap, last: Node, below: Sequence[Node], *, rest_ends: int
) -> tuple[CoverItem, ...]:
    """`items` with the last summary of a gap, `last`, taken out of it and replaced by what stands below it.

    Args:
        items: The cover.
        gap: One of its gaps.
        last: The summary that the gap's last id names.
        below: What stands below that.
        rest_ends: The last message that the gap's other summaries stand for: behind `last`'s own first one, where
            tracks are interleaved.
    """
    rest = gap.ids[:-1]
    left: list[CoverItem] = []
    if rest:
        left = [
            Gap(
                first_seq=gap.first_seq,
                last_seq=max(rest_ends, gap.first_seq),
                entry_count=max(gap.entry_count - last.entry_count, 0),
                ids=rest,
            )
        ]
    return in_order([item for item in items if item is not gap] + left + list(below))


def fitted(items: Sequence[CoverItem], *, cap: int, gap_tokens: Callable[[Gap], int]) -> tuple[CoverItem, ...]:
    """`items` within `cap` tokens: what does not fit becomes gaps.

    The highest levels stay longest, for they say most of the history per token; among equals the more recent.
    """
    chosen = merged_gaps(items)
    while tokens_of(chosen, gap_tokens=gap_tokens) > cap:
        nodes = nodes_of(chosen)
        if not nodes:
            return as_one_gap(chosen)
        weakest = min(nodes, key=lambda node: (node.level, node.last_seq))
        gap = Gap(
            first_seq=weakest.first_seq,
            last_seq=weakest.last_seq,
            entry_count=weakest.entry_count,
            ids=(weakest.id,),
        )
        chosen = merged_gaps([gap if item is weakest else item for item in chosen])
    return chosen


def as_one_gap(items: Sequence[CoverItem]) -> tuple[CoverItem, ...]:
    """One line for everything that `items` stand for."""
    if len(items) < 2:  # noqa: PLR2004 - one is one
        return tuple(items)
    ids = [(item.id,) if isinstance(item, Node) else item.ids for item in in_order(items)]
    return (
        Gap(
            first_seq=min(item.first_seq for item in items),
            last_seq=max(item.last_seq for item in items),
            entry_count=sum(item.entry_count for item in items),
            ids=tuple(one for some in ids for one in some),
        ),
    )


def tokens_of(items: Sequence[CoverItem], *, gap_tokens: Callable[[Gap], int]) -> int:
    """Tokens of a cover as rendered."""
    return sum(gap_tokens(item) if isinstance(item, Gap) else item.tokens for item in items)


def next_to_refine(items: Sequence[CoverItem], *, tried: frozenset[str]) -> Node | None:
    """The node to look into next: the most recent above level 1 that was not tried yet."""
    open_nodes = [node for node in nodes_of(items) if node.level > 1 and node.id not in tried]
    return max(open_nodes, key=lambda node: (node.last_seq, node.level), default=None)


def refined(items: Sequence[CoverItem], node: Node, children: Sequence[Node]) -> tuple[CoverItem, ...]:
    """`items` with `node` replaced by the level below it."""
    return in_order([item for item in items if item is not node] + list(children))


def selected(
    top: Node | None, level_2: Sequence[Node], level_1: Sequence[Node], *, room: int, threshold: int, share: float
) -> tuple[Node, ...]:
    """The selection that this package's design began with: no cover, but the levels in a fixed order of preference.

    With less than `threshold` tokens of room the top level alone; else recent level-2 summaries within `share` of it,
    then the top level, then recent level-1 summaries that no chosen level 2 covers. Source: the algorithm
    `selectOptimalContext` of the hierarchical-compression design.

    Args:
        top: The newest summary of the highest level above 2, if there is one.
        level_2: Level-2 summaries, newest first.
        level_1: Level-1 summaries, newest first.
        room: Tokens.
        threshold: See above.
        share: See above.
    """
    if room < threshold and top is not None:
        return (top,) if top.tokens <= room else ()
    chosen: list[Node] = []
    left = round(room * share)
    for node in level_2:
        if node.tokens > left:
            break
        chosen.append(node)
        left -= node.tokens
    left = room - sum(node.tokens for node in chosen)
    if top is not None and top.tokens <= left:
        chosen.append(top)
        left -= top.tokens
    shown = [(node.first_seq, node.last_seq) for node in chosen if node.level == 2]  # noqa: PLR2004 - the level's name
    for node in level_1:
        if any(first <= node.first_seq and node.last_seq <= last for first, last in shown):
            continue
        if node.tokens > left:
            break
        chosen.append(node)
        left -= node.tokens
    return tuple(sorted(chosen, key=lambda node: (node.first_seq, -node.level)))
