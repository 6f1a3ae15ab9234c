"""Examines one session for `verify()`: its totals, and what is wrong with each message, summary and fact.

Facts are read again from messages and summaries without a model, and written anew where they differ.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.messages.ingest import passage_drafts
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.reports import Problem
from langchain_tiered_memory.summaries.derived_checks import (
    Coverage,
    coverage_of,
    derived_again,
    entry_problems,
    same_passages,
    source_identity,
    summary_problems,
)
from langchain_tiered_memory.summaries.facts.rows import as_stored
from langchain_tiered_memory.summaries.tree.fact_reading import facts_of_summary_again, read_all
from langchain_tiered_memory.types.drafts import counter_mark, digest_of_summary

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry, Fact, SessionRef, Summary


_PAGE = 2000
Seen: TypeAlias = Callable[[int], None]
"""Told how many more messages were looked at."""
_ESTIMATES: tuple[Literal["cl100k_base", "o200k_base"], ...] = ("cl100k_base", "o200k_base")
"""What counted where tiktoken's encodings were not at hand."""


@dataclass(slots=True)
class Tally:
    """What a session's messages added up to, and what was wrong."""

    entries: int = 0
    tokens: int = 0
    passages: int = 0
    terms: int = 0
    under: dict[str, list[tuple[str, bytes | None]]] = field(default_factory=dict)
    """Ids and identities of what says that it stands under a summary, until all that the summary names was seen."""
    coverages: dict[str, Coverage] = field(default_factory=dict)
    """By summary: of a long history its messages' texts are never held together."""
    problems: list[Problem] = field(default_factory=list)
    mend_entries: list[Entry] = field(default_factory=list)
    mend_summaries: list[Summary] = field(default_factory=list)
    last_at: float | None = None
    other_counts: int = 0
    """Of another counter than ours: right or wrong, ours cannot say."""
    recount_entries: list[Entry] = field(default_factory=list)
    recount_summaries: list[Summary] = field(default_factory=list)


def agreed(runtime: Runtime, ref: SessionRef, *, seen: Seen = lambda _: None) -> tuple[Tally, int]:
    """`examined`, looked at twice where something seems wrong: what others are just writing is no fault."""
    tally, count = examined(runtime, ref, seen=seen)
    if tally.problems:
        first = tally.problems
        tally, count = examined(runtime, ref)
        tally.problems = [problem for problem in tally.problems if problem in first]
        suspects = {problem.what for problem in tally.problems}
        tally.mend_entries = [one for one in tally.mend_entries if f"{ref.session_id}/{one.id}" in suspects]
        tally.mend_summaries = [one for one in tally.mend_summaries if f"{ref.session_id}/{one.id}" in suspects]
    return tally, count


def examined(runtime: Runtime, ref: SessionRef, *, seen: Seen = lambda _: None) -> tuple[Tally, int]:
    """What one session's rows add up to and what is wrong with them; and its number of summaries."""
    inspection = runtime.store.inspection
    kept = inspection.summary_rows(ref)
    summaries = {summary.id: summary for summary, _, _ in kept}
    tally = Tally()
    pages = inspection.counted_pages(ref)
    while page := next(pages, []):
        _examine_page(runtime, ref, page, summaries, tally)
        seen(len(page))
    for summary in summaries.values():
        if summary.parent_id is not None:
            _note_under(tally, summaries, summary.parent_id, summary.id, summary.text, track=None)
    _end_coverages(tally, summaries)
    for start in range(0, len(kept), _PAGE):
        _examine_summaries(runtime, ref, kept[start : start + _PAGE], summaries, tally)
    kept_totals = runtime.store.transcript.totals(ref)
    for name in ("entries", "tokens", "passages", "terms", "last_at"):
        if kept_totals and kept_totals[name] != getattr(tally, name):
            detail = f"{name}: {kept_totals[name]} kept, {getattr(tally, name)} counted"
            tally.problems.append(Problem(kind="wrong_total", what=ref.session_id, detail=detail))
    tally.problems += _run_problems(runtime, ref)
    tally.problems += fact_problems(runtime, ref, summaries.values())
    return tally, len(summaries)


def _run_problems(runtime: Runtime, ref: SessionRef) -> list[Problem]:
    """What is wrong with the files that a session touched."""
    found: list[Problem] = []
    for seq in runtime.store.inspection.orphan_touches(ref):
        detail = "files are noted that a message touched which is gone"
        found.append(Problem(kind="orphan_file_access", what=f"{ref.session_id}/{seq}", detail=detail))
    return found


def _examine_page(
    runtime: Runtime,
    ref: SessionRef,
    page: Sequence[tuple[Entry, int | None]],
    summaries: Mapping[str, Summary],
    tally: Tally,
) -> None:
    rows = runtime.store.inspection.passages_of(ref, seqs=[entry.seq for entry, _ in page])
    by_seq: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        by_seq.setdefault(row.seq, []).append(place)
        tally.passages += 1
        tally.terms += row.terms.count(" ") + 1
    for entry, mark in page:
        mine = [rows[place] for place in by_seq.get(entry.seq, ())]
        again = derived_again(entry, counter=runtime.counter, passage_words=runtime.settings.recall.passage_words)
        is_ours = again is None or _is_ours(runtime, entry, mark, again.draft.tokens)
        found = entry_problems(
            entry, again, passages=mine, summary_ids=summaries.keys(), where=ref.session_id, is_ours=is_ours
        )
        if not is_ours:
            tally.other_counts += 1
            tally.recount_entries.append(entry)
        tally.last_at = entry.at if tally.last_at is None else max(tally.last_at, entry.at)
        tally.problems += found
        if found:
            tally.mend_entries.append(entry)
        tally.entries += 1
        tally.tokens += entry.tokens
        if entry.summary_id is not None:
            _note_under(tally, summaries, entry.summary_id, entry.id, entry.text, track=entry.track)


def _examine_summaries(
    runtime: Runtime,
    ref: SessionRef,
    kept: Sequence[tuple[Summary, str, int | None]],
    summaries: dict[str, Summary],
    tally: Tally,
) -> None:
    for summary, kept_digest, mark in kept:
        found = summary_problems(
            summary,
            coverage=tally.coverages.get(summary.id) or coverage_of(summary, ()),
            summaries=summaries,
            says=digest_of_summary(summary.text, summary.facts),
            kept_digest=kept_digest,
            where=ref.session_id,
        )
        if summary.state.finished:
            rows = runtime.store.inspection.passages_of(ref, summary_ids=[summary.id])
            again = passage_drafts(summary.text, max_words=runtime.settings.recall.passage_words)
            if not same_passages(rows, again):
                detail = "its passages are not what its text gives"
                found.append(Problem(kind="wrong_index_rows", what=f"{ref.session_id}/{summary.id}", detail=detail))
            tokens = tokens_of_summary(runtime, summary)
            if summary.facts:
                pass  # its list of facts goes, and it is counted anew, when its facts are read
            elif tokens != summary.tokens and mark == counter_mark(runtime.counter.fingerprint):
                detail = f"{summary.tokens} tokens stored, {tokens} counted"
                found.append(Problem(kind="wrong_count", what=f"{ref.session_id}/{summary.id}", detail=detail))
            elif tokens != summary.tokens:
                tally.other_counts += 1
                tally.recount_summaries.append(summary)
        tally.problems += found
        if found:
            tally.mend_summaries.append(summary)


def _note_under(
    tally: Tally, summaries: Mapping[str, Summary], summary_id: str, source_id: str, text: str, *, track: str | None
) -> None:
    """Note a source of a summary; once as many were seen as it names, only what they add up to is kept."""
    summary = summaries.get(summary_id)
    if summary is None:
        return  # named as missing where its source is looked at
    is_source = track == (summary.track if summary.level == 1 else None)
    under = tally.under.setdefault(summary_id, [])
    under.append((source_id, source_identity(source_id, text) if is_source else None))
    if len(under) == len(summary.sources) and summary_id not in tally.coverages:
        tally.coverages[summary_id] = coverage_of(summary, tally.under.pop(summary_id))


def _end_coverages(tally: Tally, summaries: Mapping[str, Summary]) -> None:
    """Compare those under which fewer stand than they name, or more."""
    for summary_id, under in tally.under.items():
        seen = tally.coverages.get(summary_id)
        if seen is None:
            tally.coverages[summary_id] = coverage_of(summaries[summary_id], under)
        else:
            more = ", ".join(one for one, _ in under[:3])
            tally.coverages[summary_id] = replace(seen, differs=seen.differs or f"it does not name {more}")


def tokens_of_summary(runtime: Runtime, summary: Summary) -> int:
    """What a summary counts: its text."""
    return runtime.counter.count_text(summary.text)


def _is_ours(runtime: Runtime, entry: Entry, mark: int | None, tokens: int) -> bool:
    """Whether a message's tokens are our counter's. Of counts from before marks, those that an estimate gives are its.

    What agrees with our count is as good as ours.
    """
    if mark is not None or tokens == entry.tokens:
        return mark == counter_mark(runtime.counter.fingerprint) or tokens == entry.tokens
    try:
        message = decode(entry.payload)
    except UnknownMessageError:
        return True
    return all(EstimatingCounter(name).count_message(message) != entry.tokens for name in _ESTIMATES)


_FACTS_PAGE = 200
_OF_OTHERS = frozenset({"mentions", "status", "superseded_by"})
"""What summaries above and other facts make of a fact; the rest follows from its messages."""


def fact_problems(runtime: Runtime, ref: SessionRef, summaries: Iterable[Summary]) -> list[Problem]:
    """Summaries whose facts are not what their messages and their text state; those that wait to be read are left."""
    read = runtime.store.facts.read_summaries(ref)
    wanted = [summary for summary in summaries if summary.id in read]
    found: list[Problem] = []
    for start in range(0, len(wanted), _FACTS_PAGE):
        page = wanted[start : start + _FACTS_PAGE]
        kept = runtime.store.facts.of_summaries(ref, [summary.id for summary in page])
        for summary in page:
            again = {fact.id: as_stored(fact) for fact in facts_of_summary_again(runtime, ref, summary)}
            if not _agree(kept[summary.id], again):
                detail = "its facts are not what its messages state"
                what = f"{ref.session_id}/{summary.id}"
                found.append(Problem(kind="wrong_facts", what=what, detail=detail, about=summary.id))
    return found


def note_of_unread(runtime: Runtime, refs: Iterable[SessionRef]) -> tuple[str, ...]:
    """Summaries that wait to be read: no fault, for the worker reads them."""
    count = sum(runtime.store.facts.unread_count(ref) for ref in refs)
    return (f"the facts of {count} summaries are yet to be read: flush() or doctor() reads them",) if count else ()


def mend_facts(runtime: Runtime, ref: SessionRef, problems: Iterable[Problem], *, every: bool = False) -> None:
    """Read facts again where they differ, and those that wait; `every`: those of all the session's summaries."""
    wrong = [problem.about for problem in problems if problem.kind == "wrong_facts" and problem.about]
    runtime.store.facts.unsettle(ref, None if every else wrong)
    read_all(runtime, ref)


def _agree(kept: list[Fact], again: dict[str, Fact]) -> bool:
    if {fact.id for fact in kept} != again.keys():
        return False
    return all(_own(fact) == _own(again[fact.id]) and fact.mentions >= again[fact.id].mentions for fact in kept)


def _own(fact: Fact) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(fact).items() if name not in _OF_OTHERS}
