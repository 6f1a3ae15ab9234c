"""Makes summaries: claims what is due, has it written, commits the result.

Any process may do this at any time: a claim reserves what it covers, so that no two make the same summary, and a lease
that ran out is taken over. No transaction is held while a model writes.

With a condensing model and `condensation.eager` off, rules write what falls due, at once and at no cost. The model is
asked for what a view wants, several at a time (`together`).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import stop_point
from langchain_tiered_memory.errors import CondensationError
from langchain_tiered_memory.summaries.tree.together import write_wanted
from langchain_tiered_memory.summaries.tree.triggers import due_entries, due_summaries
from langchain_tiered_memory.summaries.tree.works import commit, given_back, kept_before, put_off, read_work
from langchain_tiered_memory.types.drafts import SummaryPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef, Summary

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


def is_due(runtime: Runtime, ref: SessionRef) -> bool:
    """Whether a summary could be begun now that nobody has begun."""
    return runtime.settings.tree.enabled and _next_plan(runtime, ref) is not None


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
