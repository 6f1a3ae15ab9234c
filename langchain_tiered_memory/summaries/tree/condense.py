"""Makes summaries: claims what is due, has it written, commits the result.

Any process may do this at any time: a claim reserves what it covers, so that no two make the same summary, and a lease
that ran out is taken over. No transaction is held while a model writes.

With a condensing model and `condensation.eager` off, rules write what falls due, at once and at no cost. The model is
asked for what a view wants, several at a time (`together`).

When a summary is due follows from the messages alone, never from the moment somebody looks: a chunk is the shortest run
of whole groups at which a trigger holds, or that a pause or the end of a task closes. So two processes, or a restart,
plan the same summaries. A pause that still lasts is told from the clock, and closes the chunk where the next message
would: it cannot come with an earlier time, unless an old conversation is brought in piece by piece.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import stop_point
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.summaries.tree.together import write_wanted
from langchain_tiered_memory.summaries.tree.works import commit, given_back, kept_before, put_off, read_work
from langchain_tiered_memory.types.drafts import SummaryPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import LevelSettings
    from langchain_tiered_memory.types.drafts import WaitingEntry
    from langchain_tiered_memory.types.records import SessionRef, Summary

MIN_ENTRIES_BY_TIME = 2
"""Neither a pause nor the end of a task makes a summary of a single message."""
ABANDONED_AFTER = 8
"""A call is given up for dead when this many groups came after it; until then its group is not condensed."""
MIN_SOURCES = 2
"""A level above the first never stands for a single summary."""


def due_entries(
    waiting: Sequence[WaitingEntry],
    level: LevelSettings,
    *,
    more: bool,
    idle_seconds: float | None = None,
    by_task: bool = True,
    now: float | None = None,
) -> tuple[int, ...] | None:
    """The first chunk of messages that level 1 is due for, by their numbers; `None` when no trigger holds yet.

    `waiting` are the oldest messages of one track without a summary, in order; with `more`, further ones wait behind
    these. A pause of `idle_seconds` between the messages' own times ends a chunk of two messages or more, and so does
    the end of a task with `by_task`. `now` is for a pause that still lasts; `None` leaves it open until somebody speaks
    again. A chunk never has a message whose calls wait for their results, such as one that a person has yet to approve.
    """
    groups = _groups(waiting)
    taken: list[WaitingEntry] = []
    for position, group in enumerate(groups):
        # A pause closes the chunk before the message that ends it: a new sitting is another subject. What waits for a
        # result does not hold back what was closed before it.
        is_due = _waited(taken, group[0].at, level) or _paused(taken, group[0].at, idle_seconds)
        if not is_due:
            if position == len(groups) - 1 and more:
                return None  # the rest of this group may not have been read
            if position >= len(groups) - ABANDONED_AFTER and any(entry.waits for entry in group):
                return None  # its results may still come
            taken += group
            is_due = _reaches(len(taken), level.messages) or _reaches(
                sum(entry.tokens for entry in taken), level.tokens
            )
            is_due = is_due or _waited(taken, taken[-1].at, level)
        if by_task and len(taken) >= MIN_ENTRIES_BY_TIME:
            is_due = is_due or any(entry.ends_task for entry in group)
        if is_due:
            return tuple(entry.seq for entry in taken)
    # Nobody spoke since: the next message will find the same pause before it.
    is_due = now is not None and _paused(taken, now, idle_seconds)
    return tuple(entry.seq for entry in taken) if is_due else None


def _reaches(count: int, least: int | None) -> bool:
    return least is not None and count >= least


def _waited(taken: Sequence[WaitingEntry], now: float, level: LevelSettings) -> bool:
    return level.seconds is not None and len(taken) >= MIN_ENTRIES_BY_TIME and now - taken[0].at >= level.seconds


def _paused(taken: Sequence[WaitingEntry], now: float, idle_seconds: float | None) -> bool:
    if idle_seconds is None or len(taken) < MIN_ENTRIES_BY_TIME:
        return False
    return now - max(entry.at for entry in taken) >= idle_seconds


def _groups(waiting: Sequence[WaitingEntry]) -> list[list[WaitingEntry]]:
    """Whole groups in the order of their first entry; results that came in between others join their group."""
    by_group: dict[int, list[WaitingEntry]] = {}
    for entry in waiting:
        by_group.setdefault(entry.group, []).append(entry)
    return list(by_group.values())


def due_summaries(waiting: Sequence[Summary], level: LevelSettings) -> tuple[str, ...] | None:
    """The first chunk of summaries that a level is due for, by their ids, of the oldest that no higher one has taken.

    It never reaches past a summary that is unfinished or degraded: what a fallback wrote is made again before anything
    is built on it.
    """
    taken: list[Summary] = []
    for summary in waiting:
        if not summary.state.finished or summary.degraded:
            return None
        taken.append(summary)
        if len(taken) < MIN_SOURCES:
            continue
        if (
            _reaches(len(taken), level.sources)
            or _reaches(sum(one.tokens for one in taken), level.tokens)
            or _reaches(sum(one.entry_count for one in taken), level.messages)
        ):
            return tuple(one.id for one in taken)
    return None


_LOOK_AHEAD = 64
"""Messages read to find the next chunk; doubled while it is not among them."""
_WAITING_SUMMARIES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a view needs of a track in a model's words."""

    track: str
    up_to: int
    """The last message that it stands for, or soon will."""


def condense(
    runtime: Runtime, ref: SessionRef, wish: Wish | None = None, *, is_over: Callable[[], bool] = lambda: False
) -> Flow[int]:
    """Make every summary of a session that is due now. Returns how many were committed.

    `wish` is what a view needs besides what was wanted before. `is_over` is asked behind each summary, or each batch of
    a model's: whether to leave the rest for later.
    """
    made = 0
    while runtime.settings.tree.enabled:
        with runtime.store.database.snapshot():  # what is due is read at once, up to the claim of it
            summary = _claim_next(runtime, ref)
        if summary is not None:
            made += yield from _make(runtime, ref, summary)
            yield from stop_point()
            if is_over():
                break
            continue
        if wish is not None:
            want(runtime, ref, wish)
            wish = None
        written = yield from write_wanted(runtime, ref)
        if written is None:
            break
        made += written
        yield from stop_point()
        if is_over():
            break
    return made


def is_due(runtime: Runtime, ref: SessionRef, track: str | None = None) -> bool:
    """Whether a summary could be begun now that nobody has begun; where a track is named, of its messages."""
    if not runtime.settings.tree.enabled:
        return False
    return (_next_plan(runtime, ref) if track is None else _plan_level_1(runtime, ref, track)) is not None


def want(runtime: Runtime, ref: SessionRef, wish: Wish) -> bool:
    """Write down what a view needs. Returns whether a model has more to write than before."""
    if not runtime.condenser.writes_later:
        return False
    level = runtime.settings.condensation.model_from_level
    return runtime.store.tree.want(ref, level=level, track=wish.track, up_to=wish.up_to, now=runtime.now()) > 0


def _claim_next(runtime: Runtime, ref: SessionRef) -> Summary | None:
    tree, settings = runtime.store.tree, runtime.settings.tree
    while True:
        now = runtime.now()
        due = tree.due(ref, now=now, remake_stale=settings.regenerate_on_edit)
        if due is not None:
            if tree.lease(due, owner=runtime.worker, now=now, lease_seconds=settings.lease_seconds):
                return replace(due, attempts=due.attempts + 1)
            continue
        plan = _next_plan(runtime, ref)
        if plan is None:
            return None
        claimed = tree.claim(ref, plan, owner=runtime.worker, now=now, lease_seconds=settings.lease_seconds)
        if claimed is not None:
            return claimed


def _next_plan(runtime: Runtime, ref: SessionRef) -> SummaryPlan | None:
    track: str | None = None
    while True:
        track = runtime.store.tree.next_waiting_track(ref, after=track)
        if track is None:
            break
        plan = _plan_level_1(runtime, ref, track)
        if plan is not None:
            return plan
    height = runtime.store.tree.height(ref)
    for level in range(2, height + 1):
        # A level may have nothing that waits while the one above it is due.
        waiting = runtime.store.tree.waiting_summaries(ref, level=level - 1, limit=_WAITING_SUMMARIES)
        chosen = runtime.settings.tree.level(level)
        due = due_summaries(waiting, chosen)
        if due is not None:
            return SummaryPlan(id=uuid.uuid4().hex, level=level, strategy=chosen.strategy, source_ids=due)
    return None


def _plan_level_1(runtime: Runtime, ref: SessionRef, track: str) -> SummaryPlan | None:
    chosen = runtime.settings.tree.level(1)
    limit = _LOOK_AHEAD
    while True:
        waiting = runtime.store.tree.waiting_entries(ref, track=track, limit=limit)
        more = len(waiting) == limit
        due = due_entries(
            waiting,
            chosen,
            more=more,
            idle_seconds=runtime.settings.tree.idle_seconds,
            by_task=runtime.settings.tree.on_finished_task,
            now=runtime.now(),
        )
        if due is not None:
            strategy = runtime.settings.condensation.strategies.level_1 or chosen.strategy
            return SummaryPlan(id=uuid.uuid4().hex, level=1, strategy=strategy, track=track, source_seqs=due)
        if not more:
            return None
        limit *= 2


def _make(runtime: Runtime, ref: SessionRef, summary: Summary) -> Flow[int]:
    """Have one summary written: at once by rules, where a model shall do it when a view needs it."""
    work = read_work(runtime, ref, summary)
    if work is None:
        return 0
    later = not runtime.settings.condensation.eager and (summary.by_rules or not summary.state.finished)
    job = work.job if later else replace(work.job, kept=kept_before(runtime, ref, [work.job], track=summary.track))
    with given_back(runtime, summary):
        try:
            condensed = yield from runtime.condenser.condense(job, later=later)
        except CondensationError as error:
            put_off(runtime, ref, summary, error)
            return 0
    return int(commit(runtime, ref, work, condensed))
