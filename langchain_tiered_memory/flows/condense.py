"""Summaries are made: what is due is claimed, its sources are read, a condenser writes, and the result is committed.

Any process may do this at any time: a claim reserves what it covers, so that no two make the same summary, and a lease
that ran out is taken over. No transaction is held while a model writes.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.condensers.jobs import Condensed, CondenseJob, SourceText
from langchain_tiered_memory.decisions.deduplication import near_duplicates
from langchain_tiered_memory.decisions.drafting import passage_drafts
from langchain_tiered_memory.decisions.fact_lists import cap_facts, render_facts
from langchain_tiered_memory.decisions.facts import extract_facts
from langchain_tiered_memory.decisions.identifiers import kept_share
from langchain_tiered_memory.decisions.open_calls import unfinished_calls
from langchain_tiered_memory.decisions.quality import information_loss
from langchain_tiered_memory.decisions.sizing import target_and_cap
from langchain_tiered_memory.decisions.superseding import merge_facts
from langchain_tiered_memory.decisions.triggers import due_entries, due_summaries
from langchain_tiered_memory.decisions.verification import sources_digest
from langchain_tiered_memory.drafts import SummaryPlan, Written
from langchain_tiered_memory.errors import CondensationError, TieredMemoryError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.records import Spent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import Entry, Fact, SessionRef, Summary

_LOOK_AHEAD = 64
"""Messages read to find the next chunk; doubled while it is not among them."""
_WAITING_SUMMARIES = 64
_MAX_DOUBLINGS = 30
_LEAST_WAIT_SECONDS = 1.0
"""Before a summary is looked at again, whatever the settings say: the same moment would bring the same failure."""


def condense(house: House, ref: SessionRef) -> Flow[int]:
    """Make every summary of a session that is due now. Returns how many were committed."""
    made = 0
    while house.settings.tree.enabled:
        summary = yield from _claim_next(house, ref)
        if summary is None:
            break
        made += yield from _make(house, ref, summary)
    return made


def _claim_next(house: House, ref: SessionRef) -> Flow[Summary | None]:
    tree, settings = house.store.tree, house.settings.tree
    while True:
        now = house.now()
        due = yield from do(tree.due, ref, now=now, remake_stale=settings.regenerate_on_edit)
        if due is not None:
            if (yield from do(tree.lease, due, owner=house.worker, now=now, lease_seconds=settings.lease_seconds)):
                return replace(due, attempts=due.attempts + 1)
            continue
        plan = yield from _next_plan(house, ref)
        if plan is None:
            return None
        claimed = yield from do(
            tree.claim, ref, plan, owner=house.worker, now=now, lease_seconds=settings.lease_seconds
        )
        if claimed is not None:
            return claimed


def _next_plan(house: House, ref: SessionRef) -> Flow[SummaryPlan | None]:
    track: str | None = None
    while True:
        track = yield from do(house.store.tree.next_waiting_track, ref, after=track)
        if track is None:
            break
        plan = yield from _plan_level_1(house, ref, track)
        if plan is not None:
            return plan
    height = yield from do(house.store.tree.height, ref)
    for level in range(2, height + 1):
        # A level may have nothing that waits while the one above it is due.
        waiting = yield from do(house.store.tree.waiting_summaries, ref, level=level - 1, limit=_WAITING_SUMMARIES)
        chosen = house.settings.tree.level(level)
        due = due_summaries(waiting, chosen)
        if due is not None:
            sources = tuple(str(one) for one in due.sources)
            return SummaryPlan(id=uuid.uuid4().hex, level=level, strategy=chosen.strategy, source_ids=sources)
    return None


def _plan_level_1(house: House, ref: SessionRef, track: str) -> Flow[SummaryPlan | None]:
    chosen = house.settings.tree.level(1)
    limit = _LOOK_AHEAD
    while True:
        waiting = yield from do(house.store.tree.waiting_entries, ref, track=track, limit=limit)
        more = len(waiting) == limit
        due = due_entries(
            waiting,
            chosen,
            more=more,
            idle_seconds=house.settings.tree.idle_seconds,
            by_task=house.settings.tree.on_finished_task,
            now=house.now(),
        )
        if due is not None:
            seqs = tuple(int(one) for one in due.sources)
            strategy = house.settings.condensation.strategies.level_1 or chosen.strategy
            return SummaryPlan(id=uuid.uuid4().hex, level=1, strategy=strategy, track=track, source_seqs=seqs)
        if not more:
            return None
        limit *= 2


def _make(house: House, ref: SessionRef, summary: Summary) -> Flow[int]:
    if summary.level == 1:
        entries = yield from do(house.store.transcript.by_id, ref, summary.sources)
        sources, facts = _entry_sources(house, entries)
        participants = tuple(dict.fromkeys(source.speaker for source in sources if source.speaker))
        from_tools = any(entry.role == "tool" for entry in entries)
    else:
        below = yield from do(house.store.tree.by_id, ref, summary.sources)
        sources, facts, participants = _summary_sources(below)
        from_tools = any(one.from_tools for one in below)
    job = _job(house, ref, summary, sources=sources, facts=facts, participants=participants)
    try:
        written = yield from _write(house, ref, summary, job)
    except BaseException as error:
        # Cancelled, closed or broken on the way: others need not wait for the lease to end. No request can be made of a
        # flow that is being closed, so this is called here; a flow never runs on an event loop.
        with suppress(TieredMemoryError):
            house.store.tree.fail(
                summary,
                owner=house.worker,
                error=f"interrupted: {type(error).__name__}",
                retry_at=house.now(),
                spent=Spent(),
            )
        raise
    if written is None:
        return 0
    written = replace(written, from_tools=from_tools)
    done = yield from do(house.store.tree.commit, ref, summary, written, owner=house.worker, now=house.now())
    if done:
        house.report(
            "summary_made",
            f"level {summary.level}, {summary.entry_count} messages, {job.source_tokens} to {written.tokens} tokens",
            session_id=ref.session_id,
            summary_id=summary.id,
            level=summary.level,
            degraded=written.degraded,
        )
    return int(done)


def _entry_sources(house: House, entries: Sequence[Entry]) -> tuple[tuple[SourceText, ...], list[Fact]]:
    same = near_duplicates([entry.text for entry in entries]) if house.settings.tree.semantic_deduplication else {}
    waiting = unfinished_calls(entries)
    sources = tuple(
        SourceText(
            id=entry.id,
            text=entry.text,
            tokens=entry.tokens,
            at=entry.at,
            seq=entry.seq,
            speaker=entry.name or entry.role,
            role=entry.role,
            kind=entry.kind,
            same_as=entries[same[position]].id if position in same else None,
            open_calls=waiting.get(entry.id, ()),
        )
        for position, entry in enumerate(entries)
    )
    first_user = next((entry.seq for entry in entries if entry.role == "user"), None)
    is_beginning = bool(entries) and entries[0].seq <= 2  # noqa: PLR2004 - a system prompt may stand before it
    return sources, extract_facts(entries, goal_seq=first_user if is_beginning else None)


def _summary_sources(below: Sequence[Summary]) -> tuple[tuple[SourceText, ...], list[Fact], tuple[str, ...]]:
    facts: list[Fact] = []
    for summary in below:
        facts = merge_facts(facts, summary.facts)
    sources = tuple(
        SourceText(id=one.id, text=one.text, tokens=one.tokens, at=one.last_at, seq=one.last_seq) for one in below
    )
    return sources, facts, ()


def _job(
    house: House,
    ref: SessionRef,
    summary: Summary,
    *,
    sources: tuple[SourceText, ...],
    facts: list[Fact],
    participants: tuple[str, ...],
) -> CondenseJob:
    source_tokens = sum(source.tokens for source in sources)
    size = target_and_cap(house.settings.tree.level(summary.level), source_tokens)
    cap = house.settings.tree.facts_cap(summary.level)
    kept, _ = cap_facts(facts, max_tokens=cap, count_text=house.counter.count_text)
    return CondenseJob(
        level=summary.level,
        strategy=summary.strategy,
        sources=sources,
        facts=tuple(kept),
        target_tokens=size.target_tokens,
        max_tokens=size.max_tokens,
        session_id=ref.session_id,
        title=ref.title,
        participants=participants,
        first_at=summary.first_at,
        last_at=summary.last_at,
        message_count=summary.entry_count,
        temperature=house.settings.tree.temperature,
        attempt=summary.attempts,
        remake=summary.state.finished,
    )


def _write(house: House, ref: SessionRef, summary: Summary, job: CondenseJob) -> Flow[Written | None]:
    settings = house.settings.tree
    doubled = settings.backoff_seconds * 2 ** min(max(summary.attempts - 1, 0), _MAX_DOUBLINGS)
    wait = max(min(doubled, settings.max_backoff_seconds), _LEAST_WAIT_SECONDS)
    try:
        condensed = yield from house.condenser.condense(job)
    except CondensationError as error:
        yield from _put_off(house, ref, summary, error, wait_seconds=wait)
        return None
    written = yield from do(_written, house, job, condensed)
    if not condensed.degraded:
        return written
    house.report(
        "condensation_fell_back",
        f"{condensed.model} wrote in its stead, attempt {summary.attempts}: {condensed.error}",
        session_id=ref.session_id,
        summary_id=summary.id,
        cause=condensed.reason,
    )
    return replace(written, retry_at=house.now() + wait)


def _put_off(
    house: House, ref: SessionRef, summary: Summary, error: CondensationError, *, wait_seconds: float
) -> Flow[None]:
    """Give the lease back until another attempt. A wait for somebody else's minute or recovery counts as none."""
    is_attempt = error.retry_after_seconds is None
    if error.retry_after_seconds is not None:
        wait_seconds = max(error.retry_after_seconds, _LEAST_WAIT_SECONDS)
    yield from do(
        house.store.tree.fail,
        summary,
        owner=house.worker,
        error=str(error),
        retry_at=house.now() + wait_seconds,
        spent=error.spent,
        reason=error.reason,
        is_attempt=is_attempt,
    )
    house.report(
        "condensation_failed" if is_attempt else "condensation_waits",
        str(error),
        session_id=ref.session_id,
        summary_id=summary.id,
        attempt=summary.attempts,
        retry_in_seconds=wait_seconds,
        cause=error.reason,
    )


def _written(house: House, job: CondenseJob, condensed: Condensed) -> Written:
    count = house.counter.count_text
    room = max(0, job.source_tokens - condensed.tokens)
    cap = min(house.settings.tree.facts_cap(job.level), room)
    facts, _ = cap_facts(job.facts, max_tokens=cap, count_text=count)
    whole = condensed.text + ("\n" + render_facts(facts) if facts else "")
    texts = [source.text for source in job.sources]
    return Written(
        text=condensed.text,
        tokens=count(whole),
        facts=tuple(facts),
        model=condensed.model,
        spent=condensed.spent,
        kept_identifiers=kept_share(texts, whole),
        information_loss=information_loss(texts, condensed.text, facts),
        source_digest=sources_digest([(source.id, source.text) for source in job.sources]),
        passages=passage_drafts(condensed.text, max_words=house.settings.recall.passage_words),
        degraded=condensed.degraded,
        error=condensed.error,
        reason=condensed.reason,
    )
