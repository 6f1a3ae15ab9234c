"""The cover of a view: which summaries stand for what is older, at which resolution, without gap or overlap.

A cover starts from the highest summaries, each as a headline, which together stand for everything condensed. What is
left of its room is given out from its recent end: headlines become summaries in short, then whole, then what stands
below them. Where not even the headlines fit, the oldest are joined into one line. So what is condensed is always
told, however briefly. Pure: the caller reads what stands below, renders and counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NEWEST_SHARE = 0.4
"""Of the room that is left, what the newest stretch may take before the next older one chooses. The last share goes
to the oldest, and what nobody took is offered once more, the newest first."""
JOINED_SHARE = 0.6
"""Where the headlines alone do not fit, the oldest are joined until the rest take this share: so the newest are told
in more than a line, and the next ones need not be joined at once."""
OPENED_FROM = 1.25
"""A summary is opened into the level below it where the room is so many times what it takes itself."""

Resolution: TypeAlias = Literal["headline", "short", "whole"]
GapReason: TypeAlias = Literal["of_branch", "slid", "pruned"]
"""`of_branch`: their summary also stands for messages of another branch, and cannot be shown on this one; `slid`,
`pruned`: the guard left them out."""


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
    resolution: Resolution = "whole"
    text: str = ""
    """As rendered, where it is not shown whole, or without what is over: so it stays until it is condensed again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Messages that nothing tells of: they are not condensed yet, or cannot be shown. One line."""

    first_seq: int
    last_seq: int
    entry_count: int
    why: GapReason | None = None
    """`None`: they are not condensed yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """Neighbours that have no room for a line each, in one headline."""

    first_seq: int
    last_seq: int
    entry_count: int
    """Messages that its summaries stand for."""
    ids: tuple[str, ...]
    """The summaries, oldest first."""
    tokens: int = 0
    text: str = ""
    gaps: tuple[Gap, ...] = ()
    """Messages between them that nothing tells of."""


CoverItem: TypeAlias = Node | Joint | Gap


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A summary with each way to show it, the briefest first; no way that takes as much as a fuller one."""

    forms: tuple[Node, ...]

    @property
    def whole(self) -> Node:
        """With all its text."""
        return self.forms[-1]

    @property
    def briefest(self) -> Node:
        """The headline; or the whole, where it is no longer than that."""
        return self.forms[0]

    @property
    def readable(self) -> Node:
        """The briefest way that says more than a line, where there is one."""
        return next((form for form in self.forms if form.resolution != "headline"), self.whole)

    def within(self, room: int) -> Node:
        """The fullest way within `room` tokens; the briefest, where none is."""
        return next((form for form in reversed(self.forms) if form.tokens <= room), self.briefest)


def forms_of(headline: Node, short: Node, whole: Node) -> tuple[Node, ...]:
    """The ways to show a summary, the briefest first, without those that save nothing."""
    shorter = [short] if short.tokens < whole.tokens else []
    least = (*shorter, whole)[0].tokens
    return (*([headline] if headline.tokens < least else []), *shorter, whole)


def in_order(items: Sequence[CoverItem]) -> tuple[CoverItem, ...]:
    """Items in the order of what they stand for."""
    return tuple(sorted(items, key=lambda item: (item.first_seq, item.last_seq)))


def nodes_of(items: Sequence[CoverItem]) -> list[Node]:
    """The items that show one summary."""
    return [item for item in items if isinstance(item, Node)]


def gaps_of(items: Sequence[CoverItem]) -> list[Gap]:
    """What nothing tells of, also between neighbours that were joined."""
    found: list[Gap] = []
    for item in items:
        if isinstance(item, Gap):
            found.append(item)
        elif isinstance(item, Joint):
            found += item.gaps
    return found


def summary_ids_of(items: Sequence[CoverItem]) -> tuple[str, ...]:
    """The summaries that are told, in a line of their own or in a joint one."""
    ids: list[str] = []
    for item in items:
        if isinstance(item, Node):
            ids.append(item.id)
        elif isinstance(item, Joint):
            ids += item.ids
    return tuple(ids)


def merged_gaps(items: Sequence[CoverItem]) -> tuple[CoverItem, ...]:
    """Neighbouring gaps of one kind become one."""
    result: list[CoverItem] = []
    for item in in_order(items):
        last = result[-1] if result else None
        if isinstance(item, Gap) and isinstance(last, Gap) and item.why == last.why:
            result[-1] = replace(
                last, last_seq=max(last.last_seq, item.last_seq), entry_count=last.entry_count + item.entry_count
            )
        else:
            result.append(item)
    return tuple(result)


def tokens_of(items: Sequence[CoverItem], *, gap_tokens: Callable[[Gap], int]) -> int:
    """Tokens of a cover as rendered."""
    return sum(gap_tokens(item) if isinstance(item, Gap) else item.tokens for item in items)


def best_cover(
    parts: Sequence[Choice | Joint | Gap],
    *,
    room: int,
    below: Callable[[Choice], Sequence[Choice]],
    joined: Callable[[Sequence[CoverItem]], Joint],
    gap_tokens: Callable[[Gap], int],
) -> tuple[CoverItem, ...]:
    """A cover of all `parts` in `room` tokens, wherever one joint line fits; each as full as its share allows.

    `below` gives the summaries right below one, none where it is not to be opened; `joined` one line for neighbours.
    """
    lines = merged_gaps([part for part in parts if not isinstance(part, Choice)])
    choices = [part for part in parts if isinstance(part, Choice)]
    left = room - tokens_of(lines, gap_tokens=gap_tokens)
    if sum(choice.briefest.tokens for choice in choices) > left:
        headlines: list[CoverItem] = [*lines, *(choice.briefest for choice in choices)]
        told = joined_oldest(
            headlines, room=round(JOINED_SHARE * room), most=room, joined=joined, gap_tokens=gap_tokens
        )
        shown = {node.id for node in nodes_of(told)}
        lines = tuple(item for item in told if not isinstance(item, Node))
        choices = [choice for choice in choices if choice.whole.id in shown]
        left = room - tokens_of(lines, gap_tokens=gap_tokens)
    return in_order([*lines, *allotted(choices, room=left, below=below)])


def joined_oldest(
    items: Sequence[CoverItem],
    *,
    room: int,
    most: int,
    joined: Callable[[Sequence[CoverItem]], Joint],
    gap_tokens: Callable[[Gap], int],
) -> tuple[CoverItem, ...]:
    """`items` with as many of the oldest in one line as it takes to come down to `room`.

    The newest stands alone where that fits in `most` tokens.
    """
    ordered = in_order(items)
    behind = tokens_of(ordered, gap_tokens=gap_tokens)
    last = len(ordered) - 1
    for count, item in enumerate(ordered, 1):
        behind -= gap_tokens(item) if isinstance(item, Gap) else item.tokens
        if count == 1 or behind > (most if count == last else room):
            continue
        line = joined(ordered[:count])
        if line.tokens + behind <= (most if count >= last else room):
            return (line, *ordered[count:])
    return (joined(ordered),) if summary_ids_of(ordered) else ordered


def allotted(
    choices: Sequence[Choice], *, room: int, below: Callable[[Choice], Sequence[Choice]], readable: bool = False
) -> tuple[Node, ...]:
    """Each summary at the fullest resolution that its share of `room` allows, the newest choosing first.

    First as many as can be are told in more than a line, those that stand for most messages before all others; then
    these are shown whole, the newest first: what was condensed last is nearest to what is being done. What is left is
    shared out to open what stands below, the newest choosing first, and what a share was too small for is offered
    again. The briefest form of each stands even where they do not fit; with `readable` one that says more than a line.
    """
    least = [(choice.readable if readable else choice.briefest).tokens for choice in choices]
    left = room - sum(least)
    widest_first = sorted(range(len(choices)), key=lambda place: (-choices[place].whole.entry_count, -place))
    newest_first = range(len(choices) - 1, -1, -1)
    steps: tuple[tuple[Callable[[Choice], Node], Sequence[int]], ...] = (
        (lambda one: one.readable, widest_first),
        (lambda one: one.whole, newest_first),
    )
    for form, order in steps:
        for place in order:
            more = form(choices[place]).tokens - least[place]
            if more <= left:
                least[place] += more
                left -= more
    chosen: dict[int, tuple[Node, ...]] = {}
    to_share = max(left, 0)
    for place in range(len(choices) - 1, -1, -1):
        share = to_share if place == 0 else round(to_share * max(NEWEST_SHARE, 1 / (place + 1)))
        to_share -= share
        chosen[place] = _fullest(choices[place], share + least[place], below)
        left -= _tokens(chosen[place]) - least[place]
    for place in range(len(choices) - 1, -1, -1):
        taken = _tokens(chosen[place])
        fuller = _fullest(choices[place], max(left, 0) + taken, below)
        if _tokens(fuller) > taken:
            chosen[place] = fuller
            left -= _tokens(fuller) - taken
    return tuple(node for place in range(len(choices)) for node in chosen[place])


def _fullest(choice: Choice, room: int, below: Callable[[Choice], Sequence[Choice]]) -> tuple[Node, ...]:
    """What tells most of a summary within `room`: a form of its own, or those below it, each at least in short."""
    own = choice.within(room)
    if choice.whole.level > 1 and room >= OPENED_FROM * own.tokens:
        children = below(choice)
        if children and sum(child.readable.tokens for child in children) <= room:
            opened = allotted(children, room=room, below=below, readable=True)
            if own.tokens < _tokens(opened) <= room:
                return opened
    return (own,)


def _tokens(nodes: Sequence[Node]) -> int:
    return sum(node.tokens for node in nodes)
