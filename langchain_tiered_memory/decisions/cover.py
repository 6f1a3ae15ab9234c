"""The cover of a view: which summaries stand for what is older, without gap or overlap, within a cap.

A cover starts from the highest summaries, which together stand for everything condensed. It is refined from its recent
end while the cap lasts; what does not fit becomes one line that names its span. Pure: the flow fetches children and
counts tokens.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

GROWTH_RESERVE = 0.5
"""A cover made anew fills this share of its cap, so that the next condensations can append behind it instead of
changing its first bytes."""
APPENDED_SHARE = 0.5
"""What a condensation appends may fill this share of the room that is left."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Neighbouring nodes that do not fit, or messages that are not condensed yet: one line."""

    first_seq: int
    last_seq: int
    entry_count: int
    ids: tuple[str, ...]
    """Summaries to expand; empty for messages that no summary stands for yet."""
    of_branch: bool = False
    """Whether their summary also stands for messages of another branch, and cannot be shown on this one."""


CoverItem: TypeAlias = Node | Gap


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPlan:
    """What a view shows besides the messages that come after it: fixed until the next condensation of the view."""

    border: int
    """Messages up to this number are stood for by `items`."""
    tail_from: int
    """The recent messages start here: `border + 1`, or earlier where groups were interleaved."""
    items: tuple[CoverItem, ...] = ()
    skip: tuple[str, ...] = ()
    """Level-1 summaries among `items` that cover messages at or behind `tail_from`."""
    queries: tuple[int, ...] = ()
    """`seq`s of user messages that stand behind the cover, because the recent messages did not show them."""
    ratio: float = 1.0
    """Billed per raw token, as known when the plan was made."""
    provisional: bool = False
    """Whether messages had to be left out that are not condensed yet."""

    def to_json(self) -> str:
        """As kept in the database."""
        return json.dumps(
            {
                "v": 1,
                "border": self.border,
                "tail_from": self.tail_from,
                "items": [_item_to_json(item) for item in self.items],
                "skip": self.skip,
                "queries": self.queries,
                "ratio": self.ratio,
                "provisional": self.provisional,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, payload: str) -> ViewPlan | None:
        """A kept plan, or `None` where another version wrote it."""
        stored = json.loads(payload)
        if stored.get("v") != 1:
            return None
        return cls(
            border=stored["border"],
            tail_from=stored["tail_from"],
            items=tuple(_item_from_json(item) for item in stored["items"]),
            skip=tuple(stored["skip"]),
            queries=tuple(stored["queries"]),
            ratio=stored["ratio"],
            provisional=stored["provisional"],
        )


def _item_to_json(item: CoverItem) -> dict[str, Any]:
    shared = {"first": item.first_seq, "last": item.last_seq, "count": item.entry_count}
    if isinstance(item, Gap):
        return shared | {"gap": item.ids, "of_branch": item.of_branch}
    return shared | {"id": item.id, "level": item.level, "tokens": item.tokens}


def _item_from_json(stored: dict[str, Any]) -> CoverItem:
    if "gap" in stored:
        return Gap(
            first_seq=stored["first"],
            last_seq=stored["last"],
            entry_count=stored["count"],
            ids=tuple(stored["gap"]),
            of_branch=stored["of_branch"],
        )
    return Node(
        id=stored["id"],
        level=stored["level"],
        first_seq=stored["first"],
        last_seq=stored["last"],
        entry_count=stored["count"],
        tokens=stored["tokens"],
    )


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
    return bool(one.ids) == bool(other.ids) and one.of_branch == other.of_branch


def newest_gap(items: Sequence[CoverItem], *, tried: frozenset[str]) -> Gap | None:
    """The most recent gap whose last summary was not looked into yet."""
    gaps = [item for item in items if isinstance(item, Gap) and item.ids and item.ids[-1] not in tried]
    return max(gaps, key=lambda gap: gap.last_seq, default=None)


def opened(items: Sequence[CoverItem], gap: Gap, last: Node, below: Sequence[Node]) -> tuple[CoverItem, ...]:
    """`items` with the last summary of a gap, `last`, taken out of it and replaced by what stands below it."""
    rest = gap.ids[:-1]
    left: list[CoverItem] = []
    if rest:
        before = min((node.first_seq for node in below), default=last.first_seq)
        left = [
            Gap(
                first_seq=gap.first_seq,
                last_seq=max(before - 1, gap.first_seq),
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
