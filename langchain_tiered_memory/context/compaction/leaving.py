"""Messages leave a view without a summary: the window slides, or what is least important to the task is pruned.

Each gives the smaller view and the ledger's rows of what left, or the same view where there was nothing to do. Parts of
files leave before any message: what is quoted twice is lost least.

The window takes the older half between the first message and the recent ones, as in the condensation-mechanism design,
or keeps the first message and the last few. It looks at whole groups, so no call is parted from its results, and names
what it leaves out by each group's `first_seq`, oldest first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.compaction.pruning import priority_of, prune
from langchain_tiered_memory.context.compaction.pruning_items import prune_items
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.required_messages import (
    FINISHED_TASKS,
    answered_before,
    kept_by_kind,
    queries_before,
    run_at_hand,
)
from langchain_tiered_memory.context.view.cover_builder import lowered_cover, summarised_groups
from langchain_tiered_memory.context.view.fact_section import facts_of_view
from langchain_tiered_memory.context.view.file_retention import with_fewer_parts, with_files
from langchain_tiered_memory.context.view.rendered_view import RenderedView, count_earlier, seen_with, words_shown
from langchain_tiered_memory.context.view.task_lists import with_tasks
from langchain_tiered_memory.extensions import TruncationQuestion
from langchain_tiered_memory.messages.groups import as_groups
from langchain_tiered_memory.summaries.critical_groups import critical_groups
from langchain_tiered_memory.summaries.tree.cover import Gap, merged_gaps, nodes_of, summary_ids_of
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.context.compaction.pruning import Priority
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.summaries.tree.cover import GapReason
    from langchain_tiered_memory.types.records import Entry, Group

_LINE_TOKENS = 32
"""A line that names what was left out."""
_REPEATS = 3
"""Times that a window is slid on, because the lines for what left take room themselves."""


def slid_view(inputs: Inputs, rendered: RenderedView, *, room: int) -> tuple[RenderedView, tuple[LeftOut, ...]]:
    """`rendered` with older groups left out until it takes no more than `room`, by the sliding window that was chosen.

    The user's own selector is asked first. Groups with constraints, decisions or unresolved errors stay while there is
    room without them. A window that would not make the view smaller is not slid.
    """
    start, room_tokens = rendered, room
    keep = _LAST if inputs.settings.condensation.strategies.window == "last" else None
    rendered, left = _with_fewer_parts(inputs, rendered, room=room)
    if left and rendered.tokens <= room:
        return rendered, left
    unread = earlier = count_earlier(inputs, rendered)
    for attempt in range(_REPEATS):
        groups = as_groups(rendered.tail)
        room = _room_of_groups(rendered, room_tokens)
        required = _required(inputs, groups, since=rendered.plan.since)
        critical = critical_groups(groups) | _of_priority(groups, 2) if not attempt else frozenset[int]()
        going = _leaving_first(groups, must_stay=required, room=room)
        going |= _selected(inputs, groups, must_stay=required, room=room)
        for spared in (critical, frozenset[int]()) if critical else (critical,):
            rest = [group for group in groups if group.first_seq not in going]
            begins, stays = rendered.plan.border == 0, required | spared
            going |= {*out_of_window(rest, must_stay=stays, room_tokens=room, keep=keep, keeps_first=begins)}
            if _tokens(groups, without=going) <= room:
                break
        if not (going or earlier):
            break
        rendered, rows = _without(inputs, rendered, going, why="slid", earlier=earlier)
        earlier = 0
        left += rows
        if rendered.tokens <= room_tokens:
            break
    if rendered.tokens >= start.tokens and not unread:
        rendered, left = start, ()
    leaner = _leaner(inputs, rendered)
    stands = {(node.id, node.resolution) for node in nodes_of(leaner.plan.items)}
    lower = [node for node in nodes_of(rendered.plan.items) if (node.id, node.resolution) not in stands]
    return leaner, left + tuple(
        LeftOut(what=node.id, reason="no room for it: shown more briefly", tokens=node.tokens) for node in lower
    )


def _with_fewer_parts(inputs: Inputs, rendered: RenderedView, *, room: int) -> tuple[RenderedView, tuple[LeftOut, ...]]:
    """Before a message has to go, parts of files do: what is quoted twice is lost least."""
    smaller = with_fewer_parts(inputs, rendered, room=room)
    if smaller is rendered:
        return rendered, ()
    gone = rendered.tokens - smaller.tokens
    return smaller, (LeftOut(what="parts of files", reason="no room for them", tokens=gone),)


def _required(inputs: Inputs, groups: Sequence[Group], *, since: int) -> frozenset[int]:
    """Groups that no step takes out of a view; `since`: that of the provider's compaction which it begins with."""
    required, always = inputs.required, _of_priority(groups, 1)
    return (
        required.held
        | {since}
        | _newest([group for group in groups if group.first_seq in always], room=inputs.policy.of("pinned"))
        | frozenset(
            group.first_seq
            for group in groups
            if group.last_seq >= required.guard or any(entry.pinned for entry in group.entries)
        )
    )


def _of_priority(groups: Sequence[Group], *rows: Priority) -> frozenset[int]:
    """The groups that the caller gave kinds of these rows of the matrix."""
    return frozenset(group.first_seq for group in groups if priority_of(group.entries) in rows)


def _leaving_first(groups: Sequence[Group], *, must_stay: frozenset[int], room: int) -> set[int]:
    """What leaves before any other: all that is always pruned, then what is kept if there is space, oldest first."""
    pruned, spare = _of_priority(groups, 4) - must_stay, _of_priority(groups, 3) - must_stay
    going = set(pruned)
    for group in groups:
        if _tokens(groups, without=going) <= room:
            break
        if group.first_seq in spare:
            going.add(group.first_seq)
    return going


def without_pruned_kinds(inputs: Inputs, rendered: RenderedView) -> tuple[RenderedView, tuple[LeftOut, ...]]:
    """`rendered` without what the caller gave a kind that is always pruned, in whichever way it becomes smaller."""
    groups = as_groups(rendered.tail)
    going = _of_priority(groups, 4) - _required(inputs, groups, since=rendered.plan.since)
    if not going:
        return rendered, ()
    kinds = {group.first_seq: f"its kind is {group.entries[0].kind}" for group in groups if group.first_seq in going}
    return _without(inputs, rendered, going, why="pruned", earlier=count_earlier(inputs, rendered), reasons=kinds)


def _newest(groups: Sequence[Group], *, room: int) -> frozenset[int]:
    """The newest groups that together fit `room`."""
    kept: set[int] = set()
    for group in reversed(groups):
        room -= group.tokens
        if room < 0:
            break
        kept.add(group.first_seq)
    return frozenset(kept)


def _tokens(groups: Sequence[Group], *, without: Collection[int] = ()) -> int:
    return sum(group.tokens for group in groups if group.first_seq not in without)


def _selected(inputs: Inputs, groups: Sequence[Group], *, must_stay: frozenset[int], room: int) -> set[int]:
    views = inputs.runtime.condenser.views
    if views.truncation_selector is None:
        return set()
    inputs.runtime.store.database.end_snapshot()  # a selector is somebody else's code, in a thread of its own
    question = TruncationQuestion(groups=tuple(groups), must_stay=must_stay, room_tokens=room)
    answer = views.select_truncation(question, session_id=inputs.ref.session_id)
    return set(chosen_by(answer, groups, must_stay=must_stay))


def pruned_view(inputs: Inputs, rendered: RenderedView, *, target: int) -> tuple[RenderedView, tuple[LeftOut, ...]]:
    """`rendered` without what matters least to the task at hand, down to `target` raw tokens where that can be."""
    rendered, fewer = _with_fewer_parts(inputs, rendered, room=target)
    if fewer and rendered.tokens <= target:
        return rendered, fewer
    reasons = dict(pruning_plan(inputs, rendered, target=target))
    if not reasons:
        return rendered, fewer
    earlier = count_earlier(inputs, rendered)
    smaller, left = _without(inputs, rendered, reasons, why="pruned", earlier=earlier, reasons=reasons)
    return smaller, fewer + left


def pruning_plan(inputs: Inputs, rendered: RenderedView, *, target: int) -> tuple[tuple[int, str], ...]:
    """What would leave a view to bring it down to `target` raw tokens, and why: first `seq`s of groups, in their order.

    What must be shown and the newest groups stay, whatever they are.
    """
    groups = as_groups(rendered.tail)
    newest = _newest(groups, room=round(NUMBERS.newest_share * target))
    stays = _required(inputs, groups, since=rendered.plan.since) | newest
    run = run_at_hand(inputs, groups, newest_finished=FINISHED_TASKS)
    items = prune_items(run, now=inputs.runtime.now(), must_stay=stays)
    return tuple(prune(items, target_tokens=max(_room_of_groups(rendered, target), 0)).items())


def _room_of_groups(rendered: RenderedView, target: int) -> int:
    """Raw tokens for a view's groups where all of it takes `target`."""
    return target - rendered.head_tokens - _LINE_TOKENS + rendered.masked_away


def _without(
    inputs: Inputs,
    rendered: RenderedView,
    going: Collection[int],
    *,
    why: GapReason,
    earlier: int,
    reasons: Mapping[int, str] | None = None,
) -> tuple[RenderedView, tuple[LeftOut, ...]]:
    """`rendered` without the groups that begin at `going`, nor the `earlier` messages that were not even read."""
    plan, groups = rendered.plan, as_groups(rendered.tail)
    gone = [group for group in groups if group.first_seq in going]
    stays = [entry for group in groups if group.first_seq not in going for entry in group.entries]
    recent = [entry.seq for entry in stays if entry.seq >= plan.tail_from]
    tail_from = min(recent, default=rendered.tail[-1].seq + 1 if rendered.tail else plan.tail_from)
    newer = [group for group in gone if group.first_seq not in plan.kept]
    spans: list[Gap] = list(plan.left_spans)
    if earlier:
        last = rendered.recent_from - 1
        spans.append(Gap(first_seq=plan.tail_from, last_seq=last, entry_count=earlier, why=why))
    told = summarised_groups(inputs, newer)
    items = {item.id: item for item in told.values()}
    spans += [
        Gap(first_seq=group.first_seq, last_seq=group.last_seq, entry_count=len(group.entries), why=why)
        for group in newer
        if group.first_seq not in told
    ]
    hidden = {*plan.left, *(group.first_seq for group in newer)}
    reaching = {group.first_seq for group in groups if group.last_seq >= tail_from}
    smaller = replace(
        plan,
        items=(*plan.items, *(items[one] for one in items if one not in summary_ids_of(plan.items))),
        tail_from=tail_from,
        left=tuple(sorted(seq for seq in hidden if seq >= tail_from or seq in reaching)),
        kept=tuple(seq for seq in plan.kept if seq not in going),
        left_spans=tuple(gap for gap in merged_gaps(spans) if isinstance(gap, Gap)),
        queries=queries_before(inputs, lambda entry: entry.seq < tail_from or entry.group in hidden),
        answers=answered_before(inputs, tail_from, since=plan.since),
        provisional=True,
        always=kept_by_kind(inputs, plan),
    )
    there = {entry.seq for entry in stays}
    smaller = with_tasks(inputs, smaller, rendered.tail, is_shown=lambda entry: entry.seq in there)
    rows = tuple(
        LeftOut(
            what=f"{group.first_seq}-{group.last_seq}",
            reason=f"{why}: {reasons[group.first_seq]}" if reasons else "left out by the sliding window",
            tokens=group.tokens,
        )
        for group in gone
    )
    if earlier:
        span = f"{plan.tail_from}-{rendered.recent_from - 1}"
        rows = (LeftOut(what=span, reason="left out: not condensed yet, and no room"), *rows)
    kept: tuple[Entry, ...] = tuple(sorted(stays, key=lambda entry: entry.seq))
    rendered = seen_with(inputs, smaller, kept)
    return with_files(inputs, rendered), rows


def _leaner(inputs: Inputs, rendered: RenderedView) -> RenderedView:
    """`rendered` with facts and a cover as much briefer as the rest needs. The next condensation makes it anew.

    They never take less than their least rooms, for the record stands whatever else is shown: where it does not fit
    then, it is the longest of the required messages that is shortened.
    """
    excess, plan = rendered.tokens - inputs.room, rendered.plan
    if excess <= 0 or not plan.items:
        return rendered
    history, facts = rendered.tokens_of("history"), rendered.tokens_of("facts")
    # Each gives up its part of what is missing.
    wanted = facts - math.ceil(excess * facts / max(facts + history, 1))
    wanted = max(wanted, min(inputs.policy.least_facts, facts))
    if wanted < facts:
        words = words_shown(inputs, plan)
        listed = facts_of_view(inputs, plan.items, border=plan.border, room=wanted, words=words)
        plan = replace(plan, facts=listed, provisional=True)
        rendered = seen_with(inputs, plan, rendered.tail)
    spare = rendered.tokens_of("history") - inputs.policy.least_cover
    items = lowered_cover(inputs, plan.items, less=min(rendered.tokens - inputs.room, spare))
    if items == plan.items:
        return rendered
    return seen_with(inputs, replace(plan, items=items, provisional=True), rendered.tail)


_PAIR = 2
"""A user's message and its answer leave together where nothing else decides."""
_LAST = 9
"""Messages that the window `last` keeps, besides the first one."""


def out_of_window(
    groups: Sequence[Group],
    *,
    must_stay: frozenset[int],
    room_tokens: int,
    keep: int | None = None,
    keeps_first: bool = True,
) -> tuple[int, ...]:
    """The groups to leave out, the oldest first, so that the rest fits: it is over its room only when no more may go.

    Each round takes the oldest groups that together have no more than half of the messages that may go: an even number
    of messages where such a run of whole groups exists, two messages if that is more, and at least one group.
    With `keep` all leaves that is not among the last so many messages, once there are more than `keep + 1`, and then
    one group after the other; a group that reaches past them leaves whole.

    Args:
        groups: Oldest first.
        must_stay: `first_seq` of groups that stay; the newest group always does.
        room_tokens: Raw tokens that the rest may take.
        keep: The last messages that stay while they fit; `None`: half of what may go leaves at once.
        keeps_first: Whether the oldest group begins the conversation, and so stays: not behind summaries.
    """
    movable = _movable(groups, must_stay, keeps_first=keeps_first)
    messages = sum(len(group.entries) for group in groups)
    outside = set[int]()
    if keep is not None and messages > keep + keeps_first:
        counts = itertools.accumulate(len(group.entries) for group in reversed(groups))
        outside = {group.first_seq for group, count in zip(reversed(groups), counts, strict=True) if count > keep}
    excess = _tokens(groups) - room_tokens
    going: list[Group] = []
    while movable and (excess > 0 or movable[0].first_seq in outside):
        count = _round(movable) if keep is None else 1
        going += movable[:count]
        excess -= _tokens(movable[:count])
        movable = movable[count:]
    return tuple(group.first_seq for group in going)


def chosen_by(selector_answer: object, groups: Sequence[Group], *, must_stay: frozenset[int]) -> tuple[int, ...]:
    """What of a `TruncationSelector`'s answer can be followed: groups that are there and may go, oldest first.

    The selector is somebody else's code: what is no collection of numbers says nothing. `groups` are as it was shown,
    `must_stay` as in `out_of_window`.
    """
    if not isinstance(selector_answer, Collection) or isinstance(selector_answer, str | bytes):
        return ()
    named = {one for one in selector_answer if isinstance(one, int) and not isinstance(one, bool)}
    movable = _movable(groups, must_stay, keeps_first=False)
    return tuple(group.first_seq for group in movable if group.first_seq in named)


def _movable(groups: Sequence[Group], must_stay: frozenset[int], *, keeps_first: bool) -> list[Group]:
    between = groups[1 if keeps_first else 0 : -1]
    return [group for group in between if group.first_seq not in must_stay]


def _round(movable: Sequence[Group]) -> int:
    """How many of `movable`, from the oldest on, leave in one round."""
    wanted = sum(len(group.entries) for group in movable) // 2
    messages = within = even = 0
    for number, group in enumerate(movable, 1):
        messages += len(group.entries)
        if messages > max(wanted, _PAIR):
            break
        if messages % 2 == 0:
            even = number
        if messages <= wanted:
            within = number
    return even or within or 1
