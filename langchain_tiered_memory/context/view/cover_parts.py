"""What a cover is made of: the summaries that stand for a history, read, rendered at each resolution and counted."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.rendering import gap_line, short_block, summary_block
from langchain_tiered_memory.summaries.resolutions import headline_of, joint_headline
from langchain_tiered_memory.summaries.tree.cover import (
    Choice,
    CoverItem,
    Gap,
    Joint,
    Node,
    Resolution,
    forms_of,
    gaps_of,
    in_order,
    summary_ids_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.types.records import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Barred:
    """What a view does not show, as its summaries see it."""

    off: tuple[int, ...]
    """Numbers of the messages that are not shown, ascending."""
    counts: Mapping[str, int]
    """How many of them each level-1 summary stands for, by id."""
    only_track: str | None = None
    """The one track that is shown; `None` where all are."""

    def of(self, summary: Summary) -> int:
        """How many such messages a summary stands for.

        Above level 1 it is 1 for any number: such a summary merges tracks, and what its span holds may not be its own.
        """
        if summary.level == 1:
            is_other = self.only_track is not None and summary.track != self.only_track
            return summary.entry_count if is_other else self.counts.get(summary.id, 0)
        if self.only_track is not None:
            return 1
        at = bisect_left(self.off, summary.first_seq)
        return int(at < len(self.off) and self.off[at] <= summary.last_seq)


_ROOTS = 400
"""Highest summaries that are told one by one: a tree of 3 to 5 below each has a handful for each level."""
_OPENED = 64
"""Summaries that are opened while a cover is made."""
_TOPICS_OF = 12
"""Of the summaries that a joint line stands for, those whose words it may name: the highest, then the newest."""
_BLOCK_JOINT = 2
"""Tokens of the blank line between two parts of a block."""


@dataclass(slots=True)
class CoverParts:
    """Reads, renders and counts what one cover is made of; each summary once."""

    inputs: Inputs
    barred: Barred = field(init=False)
    """Which summaries must not be shown."""
    choices: dict[str, Choice] = field(default_factory=dict)
    opened: dict[str, list[Choice]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read what is not shown."""
        self.barred = _barred_from(self.inputs)

    def up_to(self, border: int, *, beside: Sequence[Node] = ()) -> list[Choice | Joint | Gap]:
        """Everything up to `border`: its highest summaries, and lines for messages that none tells of.

        Args:
            border: The last message.
            beside: Nodes that are shown already: neither they nor what they stand for is among the parts.
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
                touched = self.barred.of(one)
                if one.id in shown:
                    continue
                if one.level > 1 and (touched or one.last_seq > border or _stands_above(one, beside)):
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
        return sorted(found, key=lambda part: (part.first_seq, part.last_seq))

    def choice(self, summary: Summary) -> Choice:
        """A summary at each resolution."""
        known = self.choices.get(summary.id)
        if known is None:
            count = self.inputs.counter.count_text
            forms = forms_of(
                self._node(summary, "headline", headline_of(summary, count_text=count)),
                self._node(summary, "short", short_block(summary)),
                self.whole(summary),
            )
            known = Choice(
                id=summary.id,
                level=summary.level,
                first_seq=summary.first_seq,
                last_seq=summary.last_seq,
                entry_count=summary.entry_count,
                forms=forms,
            )
            self.choices[summary.id] = known
        return known

    def whole(self, summary: Summary) -> Node:
        """A summary with all its text."""
        return self._node(summary, "whole", summary_block(summary))

    def below(self, choice: Choice) -> list[Choice]:
        """The summaries right below one; none, once many were opened."""
        if choice.id not in self.opened:
            if len(self.opened) >= _OPENED:
                return []
            children = self.inputs.runtime.store.tree.children([choice.id])[choice.id]
            self.opened[choice.id] = [self.choice(one) for one in self.inputs.library.add(children)]
        return self.opened[choice.id]

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
        known = [library[one] for one in ids if one in library]
        named = sorted(known, key=lambda one: (-one.level, -one.last_seq))[:_TOPICS_OF]
        first, last = ordered[0].first_seq, max(item.last_seq for item in ordered)
        count = self.inputs.counter.count_text
        untold = sum(gap.entry_count for gap in gaps)
        if named:
            text = joint_headline(
                sorted(named, key=lambda one: one.first_seq),
                span=(first, last),
                count=told,
                untold=untold,
                count_text=count,
            )
        else:
            text = gap_line(Gap(first_seq=first, last_seq=last, entry_count=told + untold))
        return Joint(
            first_seq=first,
            last_seq=last,
            entry_count=told,
            ids=ids,
            tokens=count(text) + _BLOCK_JOINT,
            text=text,
            gaps=gaps,
        )

    def gap_tokens(self, gap: Gap) -> int:
        """Counts the line that stands for a gap."""
        return self.inputs.counter.count_text(gap_line(gap)) + _BLOCK_JOINT

    def may_stand(self, summary: Summary | None, border: int) -> bool:
        """Whether a summary may be shown up to `border`."""
        return (
            summary is not None
            and summary.state.finished
            and summary.last_seq <= border
            and not self.barred.of(summary)
        )

    def read(self, summary_ids: Sequence[str]) -> None:
        """Read what was not read yet."""
        library = self.inputs.library
        missing = [one for one in summary_ids if one not in library.summaries]
        if missing:
            library.add(self.inputs.runtime.store.tree.by_id(self.inputs.ref, missing))

    def _before(self, read: Sequence[Summary], border: int) -> tuple[list[Summary], list[Joint]]:
        """What stands before the summaries that are told one by one: one line, for they may be any number.

        Where some of them may have to be barred, they are read whole.
        """
        tree, ref = self.inputs.runtime.store.tree, self.inputs.ref
        spans = tree.roots_before(ref, up_to=min(one.last_seq for one in read), without={one.id for one in read})
        if self.barred.off or self.barred.only_track is not None:
            return self.inputs.library.add(tree.by_id(ref, [one.id for one in spans])), []
        inside = [one for one in spans if one.last_seq <= border]
        self.read([one.id for one in inside[-_TOPICS_OF:]])
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


def _stands_above(summary: Summary, nodes: Sequence[Node]) -> bool:
    """Whether one of `nodes` may stand below a summary."""
    return any(
        node.level < summary.level and summary.first_seq <= node.first_seq and node.last_seq <= summary.last_seq
        for node in nodes
    )


def _barred_from(inputs: Inputs) -> Barred:
    """Which summaries stand for messages that this view does not show."""
    counts: dict[str, int] = {}
    off = sorted(inputs.off)
    for entry in inputs.runtime.store.transcript.by_seq(inputs.ref, off) if off else ():
        if entry.summary_id is not None:
            counts[entry.summary_id] = counts.get(entry.summary_id, 0) + 1
    # Summaries above level 1 merge tracks: where the session has one alone, they are its own.
    others = inputs.alone and set(inputs.runtime.store.transcript.tracks(inputs.ref)) != {inputs.track}
    return Barred(off=tuple(off), counts=counts, only_track=inputs.track if others else None)
