"""What one summary is written from, and what becomes of what was written: committed, put off, or given back.

Its writer is shown statements that were kept of earlier messages, where its own may be about them: so it can say what
is changed or done, and need not say again what holds. Shown all of them, it would read the record as often as it
writes.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import CondensationError, TieredMemoryError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.file_calls import file_calls
from langchain_tiered_memory.messages.groups import as_groups, unfinished_calls
from langchain_tiered_memory.messages.ingest import passage_drafts
from langchain_tiered_memory.sql.schema import storable
from langchain_tiered_memory.summaries.checks.measures import information_loss
from langchain_tiered_memory.summaries.checks.unsourced import without_marked
from langchain_tiered_memory.summaries.derived_checks import sources_digest
from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.summaries.facts.related import alike_in_form, in_turn, related
from langchain_tiered_memory.summaries.facts.written import stated_in
from langchain_tiered_memory.summaries.marks import CORRECTED, PERSON, RULES
from langchain_tiered_memory.summaries.tree.fact_reading import facts_from, facts_of_chunk, is_read_by_rules
from langchain_tiered_memory.summaries.tree.sizing import cut_to_size, target_and_cap
from langchain_tiered_memory.summaries.writers.jobs import Condensed, CondenseJob, SourceText
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.fencing import plain_name
from langchain_tiered_memory.text.identifiers import kept_share
from langchain_tiered_memory.text.similarity import near_duplicates
from langchain_tiered_memory.transcript.outbox import deliver
from langchain_tiered_memory.types.drafts import Written
from langchain_tiered_memory.types.outcomes import OF_THE_ANSWER, FailureReason
from langchain_tiered_memory.types.records import Spent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from langchain_tiered_memory.messages.file_calls import FileCall
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry, Fact, SessionRef, Summary
    from langchain_tiered_memory.types.runs import FileOperation

_FACTS_BESIDE = 500
"""Of the facts below a summary of a higher level, how many of the weightiest its writer is told and judged by."""
_MAX_DOUBLINGS = 30
_LEAST_WAIT_SECONDS = 1.0
"""Before a summary is looked at again, whatever is asked for: the same moment would bring the same failure."""
_FIRST_WAIT_SECONDS = 5.0
"""After the first failed attempt; twice as long after each further one."""
_LONGEST_WAIT_SECONDS = 3600.0
"""Between attempts and between remakes of a degraded summary: a model that came back is used within the hour."""

LOOKED_AT = 1_000
"""Statements that are compared with the messages, the newest: what is changed or done is mostly recent."""
_SHARE = 0.45
"""Of the messages' tokens, what such statements may take. Of 46 statements that later calls of eight readers' runs
corrected, 43 stood among them, for 620 tokens a call. With 0.3 37 did, for 430; with all of them 46, for 1,180."""
_LEAST_TOKENS = 60
"""What they may take however short the messages are: about four of them."""
_WORK_BESIDE = 100
"""Messages: enough to tell how a tool answers."""
LINE_TOKENS = 4
"""Of the number before one, and of its line break."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A leased summary, and what it is written from."""

    summary: Summary
    job: CondenseJob
    facts: tuple[Fact, ...]
    entries: tuple[Entry, ...] = ()
    """Level 1: its messages."""
    from_tools: bool = False


def read_work(runtime: Runtime, ref: SessionRef, summary: Summary) -> Work | None:
    """What a leased summary is written from; `None`, and the lease is given back, where that cannot be read."""
    entries: Sequence[Entry] = ()
    facts: Sequence[Fact]
    participants: tuple[str, ...] = ()
    if summary.level == 1:
        entries = runtime.store.transcript.by_id(ref, summary.sources, track=summary.track)
        sources, facts = _entry_sources(runtime, ref, entries), facts_of_chunk(entries)
        participants = tuple(dict.fromkeys(source.speaker for source in sources if source.speaker))
        from_tools = any(entry.role == "tool" for entry in entries)
    else:
        below = runtime.store.tree.by_id(ref, summary.sources)
        sources = _summary_sources(below, runtime.store.facts.of_summaries(ref, [one.id for one in below]))
        facts = runtime.store.facts.for_span(ref, summary.first_seq, summary.last_seq, limit=_FACTS_BESIDE)
        from_tools = any(one.from_tools for one in below)
    if len(sources) < len(summary.sources):
        missing = len(summary.sources) - len(sources)
        error = CondensationError(f"{missing} of its {len(summary.sources)} sources cannot be read")
        put_off(runtime, ref, summary, error, wait_seconds=_LONGEST_WAIT_SECONDS)
        return None
    job = _job(runtime, ref, summary, sources=sources, facts=facts, participants=participants)
    return Work(summary=summary, job=job, facts=tuple(facts), entries=tuple(entries), from_tools=from_tools)


@contextmanager
def given_back(runtime: Runtime, *summaries: Summary, without: Collection[str] = ()) -> Iterator[None]:
    """Give leases back where a flow is cancelled, closed or broken: others need not wait until they run out.

    Those of `without`, looked at in the end, were seen to meanwhile.
    """
    try:
        yield
    except BaseException as error:
        # No request can be made of a flow that is being closed, so this is called here; a flow never runs on an event
        # loop.
        for summary in summaries:
            if summary.id in without:
                continue
            with suppress(TieredMemoryError):
                runtime.store.tree.fail(
                    summary,
                    owner=runtime.worker,
                    error=f"interrupted: {type(error).__name__}",
                    retry_at=runtime.now(),
                    spent=Spent(),
                )
        raise


def commit(
    runtime: Runtime,
    ref: SessionRef,
    work: Work,
    condensed: Condensed,
    *,
    follows: Collection[str] = (),
    shown: Iterable[str] = (),
) -> bool:
    """Make a text count, and tell of it; `False` where the lease was lost.

    `follows`, the summaries that are written together, is as for `Tree.commit`; `shown` are the notes that their
    writer was shown.
    """
    summary = work.summary
    beside = (*(one for one in follows if one != summary.id), *shown)
    written = replace(_written(runtime, work.job, condensed), from_tools=work.from_tools, beside=beside)
    if condensed.degraded:
        _tell_stand_in(runtime, ref, summary, condensed.model, error=condensed.error, cause=condensed.reason)
        written = replace(written, retry_at=runtime.now() + _wait_seconds(summary))
    if summary.level == 1:
        found = facts_from(written.text, work.entries, work.facts, by_rules=is_read_by_rules(written))
        written = replace(written, facts=found)
    else:
        told = stated_in(written.text, work.facts)
        taken_up = tuple(fact.id for fact, is_told in zip(work.facts, told, strict=True) if is_told)
        written = replace(written, taken_up=taken_up)
    now = runtime.now()
    attempt = f"rules:{now}" if written.by_rules else f"{summary.attempts}"
    event = runtime.event(
        EventName.SUMMARY_MADE,
        f"level {summary.level}, {summary.entry_count} messages, {work.job.source_tokens} to {written.tokens} tokens",
        session_id=ref.session_id,
        event_id=f"{summary.id}:{attempt}",
        summary_id=summary.id,
        level=summary.level,
        degraded=written.degraded,
        cut_lines=condensed.cut_lines,
    )
    owed = runtime.owed(event)
    done = runtime.store.tree.commit(ref, summary, written, owner=runtime.worker, now=now, event=owed, follows=follows)
    if done:
        deliver(runtime, event, owed)
    return done


def put_off(
    runtime: Runtime, ref: SessionRef, summary: Summary, error: CondensationError, *, wait_seconds: float | None = None
) -> None:
    """Give the lease back until another attempt. A wait for somebody else's minute or recovery counts as none."""
    if wait_seconds is None:
        wait_seconds = _wait_seconds(summary)
    is_attempt = error.retry_after_seconds is None
    # A view wants it from a model, which failed as often as it may: what rules wrote stands in for it.
    degrades = summary.by_rules and is_attempt and summary.attempts >= runtime.settings.tree.attempts
    if error.retry_after_seconds is not None:
        wait_seconds = min(max(error.retry_after_seconds, _LEAST_WAIT_SECONDS), _LONGEST_WAIT_SECONDS)
    runtime.store.tree.fail(
        summary,
        owner=runtime.worker,
        error=str(error),
        retry_at=runtime.now() + wait_seconds,
        spent=error.spent,
        reason=error.reason,
        is_attempt=is_attempt,
        degrades=degrades,
    )
    if degrades and not summary.degraded:
        runtime.condenser.stands_in()
        _tell_stand_in(runtime, ref, summary, RULES, error=str(error), cause=error.reason)
    runtime.report(
        EventName.CONDENSATION_FAILED if is_attempt else EventName.CONDENSATION_WAITS,
        str(error),
        session_id=ref.session_id,
        summary_id=summary.id,
        attempt=summary.attempts,
        retry_in_seconds=wait_seconds,
        cause=error.reason,
    )


def _tell_stand_in(
    runtime: Runtime, ref: SessionRef, summary: Summary, writer: str, *, error: str | None, cause: FailureReason | None
) -> None:
    """Tell that a degraded summary stands until a better one is made."""
    runtime.report(
        EventName.CONDENSATION_FELL_BACK,
        f"{writer} wrote it instead, attempt {summary.attempts}: {error}",
        session_id=ref.session_id,
        summary_id=summary.id,
        cause=cause,
    )


def _wait_seconds(summary: Summary) -> float:
    """Before the next attempt."""
    doubled: float = _FIRST_WAIT_SECONDS * 2.0 ** min(max(summary.attempts - 1, 0), _MAX_DOUBLINGS)
    return min(doubled, _LONGEST_WAIT_SECONDS)


def _entry_sources(runtime: Runtime, ref: SessionRef, entries: Sequence[Entry]) -> tuple[SourceText, ...]:
    same = near_duplicates([entry.text for entry in entries]) if runtime.settings.tree.semantic_deduplication else {}
    waiting = unfinished_calls(entries)
    calls = _calls_on_files(runtime, ref, entries)
    done = {one.call_id: one.does for one in calls if not one.refused}
    refusals = {one.answer_seq for one in calls if one.refused and one.kind is not None and one.writes}
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
            states_nothing=_states_nothing(entry, done.get(entry.answers or "")),
            is_refusal=entry.seq in refusals,
        )
        for position, entry in enumerate(entries)
    )


def _calls_on_files(runtime: Runtime, ref: SessionRef, entries: Sequence[Entry]) -> list[FileCall]:
    """The answered calls on files; a strange answer is held against the last ones of the session."""
    groups = as_groups(entries)
    calls = file_calls(groups, runtime.settings.files)
    if any(one.is_strange for one in calls):
        seqs = runtime.store.files.worked_on(ref, track=entries[0].track, limit=_WORK_BESIDE)
        others = as_groups(runtime.store.transcript.groups_of(ref, seqs))
        everything = {group.first_seq: group for group in (*others, *groups)}
        calls = file_calls([everything[seq] for seq in sorted(everything)], runtime.settings.files)
    own = {entry.seq for entry in entries}
    return [one for one in calls if one.seq in own]


def _states_nothing(result: Entry, operation: FileOperation | None) -> bool:
    """Whether a result is what files say, and not that there are none; or a line that says that one was written."""
    if operation is None:
        return False
    has_lines = "\n" in result.text.strip()
    return has_lines if operation == "read" else not (has_lines or cues.FAILURE.search(cues.lowered(result.text)))


def _summary_sources(below: Sequence[Summary], stated: Mapping[str, Sequence[Fact]]) -> tuple[SourceText, ...]:
    return tuple(
        SourceText(
            id=one.id,
            text=one.text,
            tokens=one.tokens,
            at=one.last_at,
            seq=one.last_seq,
            first_at=one.first_at,
            over=frozenset(fact.text for fact in stated[one.id] if fact.by_model and fact.status != "active"),
        )
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
        is_alone=summary.reason in (FailureReason.MODEL_ERROR, FailureReason.TIMEOUT),
        remake=summary.state.finished,
        refused=summary.error or "" if summary.reason in OF_THE_ANSWER else "",
        correction=summary.verdict_note or "",
    )


def _written(runtime: Runtime, job: CondenseJob, condensed: Condensed) -> Written:
    # As it will be stored: what is counted here is compared with what is read there.
    text = storable(_corrected(runtime, job, condensed))
    texts = [without_marked(source.text) for source in job.sources]
    return Written(
        text=text,
        tokens=runtime.counter.count_text(text),
        facts=(),
        model=condensed.model,
        spent=condensed.spent,
        kept_identifiers=kept_share(texts, text),
        information_loss=information_loss(texts, text),
        source_digest=sources_digest([(source.id, source.text) for source in job.sources]),
        passages=passage_drafts(text),
        degraded=condensed.degraded,
        by_rules=condensed.by_rules,
        error=condensed.error,
        reason=condensed.reason,
        counter=runtime.counter.fingerprint,
    )


def _corrected(runtime: Runtime, job: CondenseJob, condensed: Condensed) -> str:
    """A text with what a person said of the one before it, where it does not say so in these words; within its size."""
    said = _in_plain(job.correction)
    if condensed.model == PERSON or said in _in_plain(condensed.text):
        return condensed.text
    line = f"\n\n{CORRECTED}{job.correction}"
    room = max(job.max_tokens - runtime.counter.count_text(line), 0)
    return cut_to_size(condensed.text, max_tokens=room, count_text=runtime.counter.count_text).text + line


def _in_plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".")


def kept_before(
    runtime: Runtime, ref: SessionRef, jobs: Sequence[CondenseJob], *, track: str | None
) -> tuple[Fact, ...]:
    """The statements that must last which these jobs' messages are most likely to change or finish.

    That is told by words that are shared, by the vectors of the messages where there are some, and by figures, days and
    months: they are taken in turn, as far as there is room, of what tools told one for each of what people said, whose
    notes share fewer names with new outputs. Of `jobs`, which one call writes, only the messages of level 1 are looked
    at.
    """
    sources = [source for job in jobs if job.level == 1 for source in job.sources]
    if not sources:
        return ()
    first = min(source.seq for source in sources)
    kept = runtime.store.facts.lasting(ref, before=first, track=track or "", limit=LOOKED_AT)
    texts = [source.text for source in sources]
    near = runtime.likeness(ref, [source.seq for source in sources], [{fact.seq, *fact.sources} for fact in kept])
    room = max(round(_SHARE * sum(source.tokens for source in sources)), _LEAST_TOKENS)
    found: list[Fact] = []
    measures = (related(kept, texts), near, alike_in_form(kept, texts))
    apart = (
        {place: likely for place, likely in one.items() if (kept[place].by == "tool") is by_tool}
        for one in measures
        for by_tool in (False, True)
    )
    for place in in_turn(kept, *apart):
        room -= runtime.counter.count_text(line_of(kept[place])) + LINE_TOKENS
        if room < 0:
            break
        found.append(kept[place])
    return tuple(sorted(found, key=lambda one: (one.seq, one.id)))
