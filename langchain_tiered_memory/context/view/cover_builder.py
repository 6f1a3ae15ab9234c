"""Builds the cover of a view: the summaries that stand for older history, made anew, extended, selected or lowered.

`CoverParts` is what a cover is made of: the summaries, read, rendered at each resolution and counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.view.fact_section import CORRECTED
from langchain_tiered_memory.summaries.facts.signs import LASTING
from langchain_tiered_memory.summaries.marks import is_kept, without_over
from langchain_tiered_memory.summaries.rendering import gap_line, short_block, summary_block
from langchain_tiered_memory.summaries.resolutions import JOINT_TOKENS, headline_of, joint_headline
from langchain_tiered_memory.summaries.tree.cover import (
    Choice,
    CoverItem,
    Gap,
    Joint,
    Node,
    Resolution,
    best_cover,
    forms_of,
    gaps_of,
    in_order,
    joined_oldest,
    merged_gaps,
    nodes_of,
    summary_ids_of,
    tokens_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.types.records import Fact, Group, Summary


_ROOTS = 400
"""Highest summaries that are told one by one: a tree of 3 to 5 below each has a handful for each level."""
_OPENED = 64
"""Summaries that are opened while a cover is made."""
_TOPICS_OF = 12
"""Of the summaries that a joint line stands for, those whose words it may name: the highest, then the newest."""
JOINT_SHARE = 0.4
"""Of a cover, what the line for its oldest part may take: it stands for most of the past."""
_BLOCK_JOINT = 2
"""Tokens of the blank line between two parts of a block."""


@dataclass(slots=True)
class CoverParts:
    """Reads, renders and counts what one cover is made of; each summary once."""

    inputs: Inputs
    cap: int = 0
    """Of the cover, in tokens, where the line for its oldest part may take more than the least."""
    off: list[int] = field(init=False)
    """Numbers of the messages that are not shown, ascending."""
    counts: Counter[str] = field(init=False)
    """How many of them each level-1 summary stands for, by id."""
    only_track: str | None = None
    """The one track whose summaries may be shown; `None` where all may."""
    opened: dict[str, list[Choice]] = field(default_factory=dict)
    _over: list[Fact] | None = None
    """Notes that are over, the weightiest, once they were looked up."""

    def __post_init__(self) -> None:
        """Read what is not shown."""
        inputs, transcript = self.inputs, self.inputs.runtime.store.transcript
        self.off = sorted(inputs.off)
        hidden = transcript.by_seq(inputs.ref, self.off) if self.off else ()
        self.counts = Counter(one.summary_id for one in hidden if one.summary_id is not None)
        # Summaries above level 1 merge tracks: where the session has one alone, they are its own.
        if inputs.request.alone and set(transcript.tracks(inputs.ref)) != {inputs.track}:
            self.only_track = inputs.track

    def barred(self, summary: Summary) -> int:
        """How many messages that are not shown a summary stands for.

        Above level 1 it is 1 for any number: such a summary merges tracks, and what its span holds may not be its own.
        """
        if summary.level == 1:
            is_other = self.only_track is not None and summary.track != self.only_track
            return summary.entry_count if is_other else self.counts[summary.id]
        if self.only_track is not None:
            return 1
        at = bisect_left(self.off, summary.first_seq)
        return int(at < len(self.off) and self.off[at] <= summary.last_seq)

    def up_to(self, border: int, *, beside: Sequence[Node] = ()) -> list[Choice | Joint | Gap]:
        """Everything up to `border`: its highest summaries, and lines for messages that none tells of.

        Neither the nodes `beside`, which are shown already, nor what they stand for is among the parts.
        """
        tree, ref, library = self.inputs.runtime.store.tree, self.inputs.ref, self.inputs.library
        found: list[Choice | Joint | Gap] = []
        shown = {node.id for node in beside}
        waiting = library.add(tree.roots(ref, limit=_ROOTS))
        if len(waiting) == _ROOTS:
            older, line = self._before(waiting, border)
            waiting, found = [*older, *waiting], [*found, *line]
        while waiting:
            deeper: list[str] = []
            for one in waiting:
                touched = self.barred(one)
                if one.id in shown:
                    continue
                stands_above = any(
                    node.level < one.level and one.first_seq <= node.first_seq and node.last_seq <= one.last_seq
                    for node in beside
                )
                if one.level > 1 and (touched or one.last_seq > border or stands_above):
                    deeper.append(one.id)
                elif one.last_seq <= border and not touched:
                    found.append(self.choice(one))
                elif one.last_seq <= border and touched < one.entry_count:
                    left = one.entry_count - touched
                    found.append(Gap(first_seq=one.first_seq, last_seq=one.last_seq, entry_count=left, why="of_branch"))
            below = tree.children(deeper)
            waiting = library.add(one for children in below.values() for one in children)
        spans = tree.uncondensed(ref, track=self.inputs.track, up_to=border)
        found += [Gap(first_seq=first, last_seq=last, entry_count=count) for first, last, count in spans]

        def place(part: Choice | Joint | Gap) -> tuple[int, int]:
            item = part.whole if isinstance(part, Choice) else part
            return item.first_seq, item.last_seq

        return sorted(found, key=place)

    def choice(self, summary: Summary) -> Choice:
        """A summary at each resolution."""
        count, now = self.inputs.counter.count_text, self.as_it_holds(summary)

        def made() -> Choice:
            headline = self._node(now, "headline", headline_of(now, count_text=count))
            return Choice(forms=forms_of(headline, self._node(now, "short", short_block(now)), self.whole(summary)))

        return self.inputs.runtime.view_cache.forms(now, made)

    def whole(self, summary: Summary) -> Node:
        """A summary with all its text, but for the notes that are over."""
        now = self.as_it_holds(summary)
        text = summary_block(now, ends=True)
        node = self._node(now, "whole", text)
        return node if now is summary else replace(node, text=text)

    def as_it_holds(self, summary: Summary) -> Summary:
        """A summary without the notes that are over by now; as it is on a branch, where others may hold."""
        inputs = self.inputs
        if inputs.off or inputs.request.alone or not is_kept(summary.text):
            return summary
        if self._over is None:
            self._over = inputs.runtime.store.facts.corrected(inputs.ref, limit=CORRECTED)
        first, last = summary.first_seq, summary.last_seq
        over = {one.text for one in self._over if one.by_model and one.weight >= LASTING and first <= one.seq <= last}
        text = without_over(summary.text, over)
        return summary if text == summary.text else replace(summary, text=text)

    def newest(self, level: int, border: int, *, limit: int) -> list[Summary]:
        """The newest summaries of a level up to `border` that may be shown; of `limit` of them."""
        found = self.inputs.runtime.store.tree.newest(self.inputs.ref, level=level, up_to=border, limit=limit)
        return [one for one in self.inputs.library.add(found) if not self.barred(one)]

    def within(self, wanted: Sequence[Summary], room: int) -> list[Node]:
        """Of these summaries as many as `room` holds, at least in short, up to the first that it does not."""
        chosen: list[Node] = []
        for one in wanted:
            node = self.choice(one).within(room)
            if node.resolution == "headline":
                break
            chosen.append(node)
            room -= node.tokens
        return chosen

    def below(self, choice: Choice) -> list[Choice]:
        """The summaries right below one; none, once many were opened."""
        above = choice.whole.id
        if above not in self.opened:
            if len(self.opened) >= _OPENED:
                return []
            children = self.inputs.runtime.store.tree.children([above])[above]
            self.opened[above] = [self.choice(one) for one in self.inputs.library.add(children)]
        return self.opened[above]

    def joined(self, items: Sequence[CoverItem]) -> Joint:
        """One line for neighbours."""
        ids, gaps = summary_ids_of(items), tuple(gaps_of(items))
        told = sum(
            item.entry_count - (sum(gap.entry_count for gap in item.gaps) if isinstance(item, Joint) else 0)
            for item in items
            if not isinstance(item, Gap)
        )
        ordered = in_order(items)
        library = self.inputs.library.summaries
        known = [self.as_it_holds(library[one]) for one in ids if one in library]
        named = sorted(known, key=lambda one: (-one.level, -one.last_seq))[:_TOPICS_OF]
        first, last = ordered[0].first_seq, max(item.last_seq for item in ordered)
        count = self.inputs.counter.count_text
        untold = sum(gap.entry_count for gap in gaps)
        if named:
            named.sort(key=lambda one: one.first_seq)
            most = max(JOINT_TOKENS, round(JOINT_SHARE * self.cap))
            text = joint_headline(named, span=(first, last), count=told, untold=untold, count_text=count, most=most)
        else:
            text = gap_line(Gap(first_seq=first, last_seq=last, entry_count=told + untold))
        tokens = count(text) + _BLOCK_JOINT
        return Joint(first_seq=first, last_seq=last, entry_count=told, ids=ids, tokens=tokens, text=text, gaps=gaps)

    def gap_tokens(self, gap: Gap) -> int:
        """Counts the line that stands for a gap."""
        return self.inputs.counter.count_text(gap_line(gap)) + _BLOCK_JOINT

    def _before(self, read: Sequence[Summary], border: int) -> tuple[list[Summary], list[Joint]]:
        """What stands before the summaries that are told one by one: one line, for they may be any number.

        Where some of them may have to be barred, they are read whole.
        """
        tree, ref = self.inputs.runtime.store.tree, self.inputs.ref
        spans = tree.roots_before(ref, up_to=min(one.last_seq for one in read), without={one.id for one in read})
        if self.off or self.only_track is not None:
            return self.inputs.library.add(tree.by_id(ref, [one.id for one in spans])), []
        inside = [one for one in spans if one.last_seq <= border]
        self.inputs.summaries_with([one.id for one in inside[-_TOPICS_OF:]])
        crossing = self.inputs.library.add(tree.by_id(ref, [one.id for one in spans if one.last_seq > border]))
        return crossing, [self.joined(inside)] if inside else []

    def _node(self, summary: Summary, resolution: Resolution, text: str) -> Node:
        return Node(
            id=summary.id,
            level=summary.level,
            first_seq=summary.first_seq,
            last_seq=summary.last_seq,
            entry_count=summary.entry_count,
            tokens=self.inputs.counter.count_text(text) + _BLOCK_JOINT,
            resolution=resolution,
            text="" if resolution == "whole" else text,
        )


_LEAST_SUMMARY_TOKENS = 32
"""A summary with its header is hardly smaller: bounds how many a room can hold."""


def whole_cover(inputs: Inputs, *, border: int, cap: int) -> tuple[CoverItem, ...]:
    """A cover of everything up to `border`, made from the highest summaries down."""
    if border == 0:
        return ()
    parts, room = CoverParts(inputs, cap), round(cap * NUMBERS.cover_filled_share)
    found = parts.up_to(border)
    return best_cover(found, room=room, below=parts.below, joined=parts.joined, gap_tokens=parts.gap_tokens)


def grown_cover(inputs: Inputs, previous: ViewPlan, *, border: int, cap: int) -> tuple[CoverItem, ...] | None:
    """The items of a plan with what stands for the messages up to a new border behind them.

    `None` where what is new could not be told whole: then the cover is made anew, its old end briefer.
    """
    parts = CoverParts(inputs)
    known = inputs.summaries_with([node.id for node in nodes_of(previous.items) if node.resolution == "whole"])
    items = [
        parts.whole(known[item.id]) if isinstance(item, Node) and item.resolution == "whole" else item
        for item in previous.items
    ]
    free = cap - tokens_of(items, gap_tokens=parts.gap_tokens)
    new = inputs.runtime.store.tree.level_1_between(inputs.ref, after=previous.border, up_to=border)
    highest = _highest(inputs, inputs.library.add(new), after=previous.border, up_to=border)
    fresh = [parts.whole(one) for one in highest]
    return None if sum(node.tokens for node in fresh) > free else (*items, *fresh)


def selected_cover(inputs: Inputs, *, border: int, cap: int) -> tuple[CoverItem, ...]:
    """What the original selection shows of everything up to `border`; what it leaves out stands there as headlines.

    With less room than a threshold the top level alone; else recent level-2 summaries within a share of it, then the
    top level, then recent level-1 summaries that no chosen level 2 covers. Source: the algorithm
    `selectOptimalContext` of the hierarchical-compression design. It knows neither facts nor quoted questions: how much
    room there is, is judged before they take theirs.
    """
    parts = CoverParts(inputs)
    before_facts = cap + inputs.policy.of("facts") + inputs.policy.queries
    height = inputs.runtime.store.tree.height(inputs.ref)
    top = next((found for level in range(height - 1, 2, -1) if (found := parts.newest(level, border, limit=1))), [])
    level_2: list[Node] = []
    level_1: list[Summary] = []
    if not top or before_facts >= NUMBERS.selection_tokens:
        at_most = cap // _LEAST_SUMMARY_TOKENS + 1
        room = min(round(before_facts * NUMBERS.selection_share), cap)
        level_2 = parts.within(parts.newest(2, border, limit=at_most), room)
        covered = {node.id for node in level_2}
        level_1 = [one for one in parts.newest(1, border, limit=at_most) if one.parent_id not in covered]
    chosen = level_2
    for wanted in (top, level_1):
        chosen = [*chosen, *parts.within(wanted, cap - sum(node.tokens for node in chosen))]
    return _with_rest(parts, chosen, border=border, cap=cap)


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
        found = parts.newest(level, reach, limit=at_most)
        parents = list(dict.fromkeys(one.parent_id for one in found if one.parent_id is not None))
        above = {
            one.id
            for one in inputs.library.add(tree.by_id(inputs.ref, parents))
            if one.state.finished and one.last_seq <= border and not parts.barred(one)
        }
        mine = [one for one in found if level == max(levels) or one.parent_id not in above]
        wanted += mine
        reach = min((one.first_seq - 1 for one in mine), default=reach)
    newest = sorted(wanted, key=lambda one: -one.last_seq)
    chosen = parts.within(newest, round(cap * NUMBERS.cover_levels_share))
    return _with_rest(parts, chosen, border=border, cap=cap)


def lowered_cover(inputs: Inputs, items: Sequence[CoverItem], *, less: int) -> tuple[CoverItem, ...]:
    """`items` with `less` fewer tokens, wherever one line leaves that: first the oldest more briefly, then joined."""
    if less <= 0:
        return tuple(items)
    parts = CoverParts(inputs)
    known = inputs.summaries_with(summary_ids_of(items))
    chosen = list(in_order(items))
    excess = less
    for resolution in ("short", "headline"):
        for place, item in enumerate(chosen):
            if excess <= 0 or not isinstance(item, Node) or item.id not in known:
                continue
            forms = parts.choice(known[item.id]).forms
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
    mine = {group.first_seq: group.entries[0].summary_id for group in groups}
    ids = sorted({one for one in mine.values() if one is not None})
    if not ids or inputs.slides_only:
        return {}
    parts, known = CoverParts(inputs), inputs.summaries_with(ids)
    shown = {
        one: parts.choice(known[one]).briefest
        for one in ids
        if one in known and known[one].state.finished and not parts.barred(known[one])
    }
    return {seq: shown[one] for seq, one in mine.items() if one in shown}


def _with_rest(parts: CoverParts, chosen: Sequence[Node], *, border: int, cap: int) -> tuple[CoverItem, ...]:
    """`chosen` with headlines for everything up to `border` that they do not stand for."""
    room = cap - sum(node.tokens for node in chosen)
    rest = parts.up_to(border, beside=chosen)
    lines: list[CoverItem] = [part.briefest if isinstance(part, Choice) else part for part in rest]
    if tokens_of(lines, gap_tokens=parts.gap_tokens) > room:
        merged = merged_gaps(lines)
        lines = [*joined_oldest(merged, room=room, most=room, joined=parts.joined, gap_tokens=parts.gap_tokens)]
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
