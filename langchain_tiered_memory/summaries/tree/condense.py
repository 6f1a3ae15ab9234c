"""Makes summaries: claims what is due, reads its sources, has a condenser write, commits the result.

Any process may do this at any time: a claim reserves what it covers, so that no two make the same summary, and a lease
that ran out is taken over. No transaction is held while a model writes.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import stop_point
from langchain_tiered_memory.errors import CondensationError, TieredMemoryError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.ingest import passage_drafts
from langchain_tiered_memory.messages.open_calls import unfinished_calls
from langchain_tiered_memory.sql.schema import storable
from langchain_tiered_memory.summaries.checks.unsourced import without_marked
from langchain_tiered_memory.summaries.derived_checks import sources_digest
from langchain_tiered_memory.summaries.facts.told import facts_of_summary
from langchain_tiered_memory.summaries.tree.fact_reading import facts_of_chunk, told_in
from langchain_tiered_memory.summaries.tree.sizing import target_and_cap
from langchain_tiered_memory.summaries.tree.triggers import due_entries, due_summaries
from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob, SourceText
from langchain_tiered_memory.text.fencing import plain_name
from langchain_tiered_memory.text.identifiers import kept_share
from langchain_tiered_memory.text.information_loss import information_loss
from langchain_tiered_memory.text.similarity import near_duplicates
from langchain_tiered_memory.transcript.delivery import deliver
from langchain_tiered_memory.types.drafts import SummaryPlan, Written
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry, Fact, SessionRef, Summary

_LOOK_AHEAD = 64
"""Messages read to find the next chunk; doubled while it is not among them."""
_WAITING_SUMMARIES = 64
_FACTS_BESIDE = 500
"""Of the facts below a summary of a higher level, how many of the weightiest its writer is told and judged by."""
_MAX_DOUBLINGS = 30
_LEAST_WAIT_SECONDS = 1.0
"""Before a summary is looked at again, whatever the settings say: the same moment would bring the same failure."""


def condense(runtime: Runtime, ref: SessionRef) -> Flow[int]:
    """Make every summary of a session that is due now. Returns how many were committed."""
    made = 0
    while runtime.settings.tree.enabled:
        summary = _claim_next(runtime, ref)
        if summary is None:
            break
        made += yield from _make(runtime, ref, summary)
        yield from stop_point()
    return made


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
            sources = tuple(str(one) for one in due.sources)
            return SummaryPlan(id=uuid.uuid4().hex, level=level, strategy=chosen.strategy, source_ids=sources)
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
            seqs = tuple(int(one) for one in due.sources)
            strategy = runtime.settings.condensation.strategies.level_1 or chosen.strategy
            return SummaryPlan(id=uuid.uuid4().hex, level=1, strategy=strategy, track=track, source_seqs=seqs)
        if not more:
            return None
        limit *= 2


def _make(runtime: Runtime, ref: SessionRef, summary: Summary) -> Flow[int]:
    entries: Sequence[Entry] = ()
    if summary.level == 1:
        entries = runtime.store.transcript.by_id(ref, summary.sources, track=summary.track)
        sources, facts = _entry_sources(runtime, entries), facts_of_chunk(entries)
        participants = tuple(dict.fromkeys(source.speaker for source in sources if source.speaker))
        from_tools = any(entry.role == "tool" for entry in entries)
    else:
        below = runtime.store.tree.by_id(ref, summary.sources)
        sources, participants = _summary_sources(below), ()
        facts = runtime.store.facts.for_span(ref, summary.first_seq, summary.last_seq, limit=_FACTS_BESIDE)
        from_tools = any(one.from_tools for one in below)
    if len(sources) < len(summary.sources):
        missing = len(summary.sources) - len(sources)
        error = CondensationError(f"{missing} of the {len(summary.sources)} things that it covers cannot be read")
        wait = max(runtime.settings.tree.max_backoff_seconds, _LEAST_WAIT_SECONDS)
        _put_off(runtime, ref, summary, error, wait_seconds=wait)
        return 0
    job = _job(runtime, ref, summary, sources=sources, facts=facts, participants=participants)
    try:
        written = yield from _write(runtime, ref, summary, job)
    except BaseException as error:
        # Cancelled, closed or broken on the way: others need not wait for the lease to end. No request can be made of a
        # flow that is being closed, so this is called here; a flow never runs on an event loop.
        with suppress(TieredMemoryError):
            runtime.store.tree.fail(
                summary,
                owner=runtime.worker,
                error=f"interrupted: {type(error).__name__}",
                retry_at=runtime.now(),
                spent=Spent(),
            )
        raise
    if written is None:
        return 0
    written = replace(written, from_tools=from_tools)
    if summary.level == 1:
        written = replace(written, facts=told_in(written.text, entries, facts))
    else:
        _, taken_up = facts_of_summary(written.text, (), facts)
        written = replace(written, taken_up=tuple(taken_up))
    event = runtime.event(
        EventName.SUMMARY_MADE,
        f"level {summary.level}, {summary.entry_count} messages, {job.source_tokens} to {written.tokens} tokens",
        session_id=ref.session_id,
        event_id=f"{summary.id}:{summary.attempts}",
        summary_id=summary.id,
        level=summary.level,
        degraded=written.degraded,
    )
    done = runtime.store.tree.commit(ref, summary, written, owner=runtime.worker, now=runtime.now(), event=event)
    if done:
        deliver(runtime, event)
    return int(done)


def _entry_sources(runtime: Runtime, entries: Sequence[Entry]) -> tuple[SourceText, ...]:
    same = near_duplicates([entry.text for entry in entries]) if runtime.settings.tree.semantic_deduplication else {}
    waiting = unfinished_calls(entries)
    return tuple(
        SourceText(
            id=entry.id,
            text=entry.text,
            tokens=entry.tokens,
            at=entry.at,
            seq=entry.seq,
            speaker=plain_name(entry.name, entry.role) or entry.role,
            role=entry.role,
            kind=entry.kind,
            same_as=entries[same[position]].id if position in same else None,
            open_calls=waiting.get(entry.id, ()),
        )
        for position, entry in enumerate(entries)
    )


def _summary_sources(below: Sequence[Summary]) -> tuple[SourceText, ...]:
    return tuple(
        SourceText(id=one.id, text=one.text, tokens=one.tokens, at=one.last_at, seq=one.last_seq, first_at=one.first_at)
        for one in below
    )


def _job(
    runtime: Runtime,
    ref: SessionRef,
    summary: Summary,
    *,
    sources: tuple[SourceText, ...],
    facts: Sequence[Fact],
    participants: tuple[str, ...],
) -> CondenseJob:
    source_tokens = sum(source.tokens for source in sources)
    size = target_and_cap(runtime.settings.tree.level(summary.level), source_tokens)
    return CondenseJob(
        level=summary.level,
        strategy=summary.strategy,
        sources=sources,
        facts=tuple(facts),
        target_tokens=size.target_tokens,
        max_tokens=size.max_tokens,
        session_id=ref.session_id,
        title=ref.title,
        participants=participants,
        first_at=summary.first_at,
        last_at=summary.last_at,
        message_count=summary.entry_count,
        temperature=runtime.settings.tree.temperature,
        attempt=summary.attempts,
        remake=summary.state.finished,
    )


def _write(runtime: Runtime, ref: SessionRef, summary: Summary, job: CondenseJob) -> Flow[Written | None]:
    settings = runtime.settings.tree
    doubled = settings.backoff_seconds * 2 ** min(max(summary.attempts - 1, 0), _MAX_DOUBLINGS)
    wait = max(min(doubled, settings.max_backoff_seconds), _LEAST_WAIT_SECONDS)
    try:
        condensed = yield from runtime.condenser.condense(job)
    except CondensationError as error:
        _put_off(runtime, ref, summary, error, wait_seconds=wait)
        return None
    written = _written(runtime, job, condensed)
    if not condensed.degraded:
        return written
    runtime.report(
        EventName.CONDENSATION_FELL_BACK,
        f"{condensed.model} wrote in its stead, attempt {summary.attempts}: {condensed.error}",
        session_id=ref.session_id,
        summary_id=summary.id,
        cause=condensed.reason,
    )
    return replace(written, retry_at=runtime.now() + wait)


def _put_off(
    runtime: Runtime, ref: SessionRef, summary: Summary, error: CondensationError, *, wait_seconds: float
) -> None:
    """Give the lease back until another attempt. A wait for somebody else's minute or recovery counts as none."""
    is_attempt = error.retry_after_seconds is None
    if error.retry_after_seconds is not None:
        wait_seconds = max(error.retry_after_seconds, _LEAST_WAIT_SECONDS)
    runtime.store.tree.fail(
        summary,
        owner=runtime.worker,
        error=str(error),
        retry_at=runtime.now() + wait_seconds,
        spent=error.spent,
        reason=error.reason,
        is_attempt=is_attempt,
    )
    runtime.report(
        EventName.CONDENSATION_FAILED if is_attempt else EventName.CONDENSATION_WAITS,
        str(error),
        session_id=ref.session_id,
        summary_id=summary.id,
        attempt=summary.attempts,
        retry_in_seconds=wait_seconds,
        cause=error.reason,
    )


def _written(runtime: Runtime, job: CondenseJob, condensed: Condensed) -> Written:
    # As it will be stored: what is counted here is compared with what is read there.
    text = storable(condensed.text)
    beside = "\n".join((text, *(fact.text for fact in job.facts)))
    texts = [without_marked(source.text) for source in job.sources]
    return Written(
        text=text,
        tokens=runtime.counter.count_text(text),
        facts=(),
        model=condensed.model,
        spent=condensed.spent,
        kept_identifiers=kept_share(texts, beside),
        information_loss=information_loss(texts, text, job.facts),
        source_digest=sources_digest([(source.id, source.text) for source in job.sources]),
        passages=passage_drafts(text, max_words=runtime.settings.recall.passage_words),
        degraded=condensed.degraded,
        error=condensed.error,
        reason=condensed.reason,
        counter=runtime.counter.fingerprint,
    )
