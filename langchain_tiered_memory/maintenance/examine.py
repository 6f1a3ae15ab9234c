"""Examines one session for `verify()`: its totals, and what is wrong with each message, summary and fact.

What is derived is derived again, without a model, and written anew where it differs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_tiered_memory.maintenance.inspection import index_rows
from langchain_tiered_memory.maintenance.remedies import Discarding, fault
from langchain_tiered_memory.messages.ingest import derived_again, passage_drafts
from langchain_tiered_memory.summaries.derived_checks import (
    Source,
    coverage_faults,
    entry_faults,
    source_of,
    summary_faults,
)
from langchain_tiered_memory.summaries.facts.rows import as_stored
from langchain_tiered_memory.summaries.tree.fact_reading import facts_of_summary_again
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.drafts import counter_mark, digest_of_summary

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

    from langchain_tiered_memory.maintenance.remedies import Fault, Remedy
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry, Fact, SessionRef, Summary


Seen: TypeAlias = Callable[[int], None]
"""Told how many more messages were looked at."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What is wrong with a session's messages, summaries and facts."""

    faults: list[Fault] = field(default_factory=list)
    recounts: list[Callable[[], object]] = field(default_factory=list)
    """What counts anew what another counter than ours counted: right or wrong, ours cannot say."""


def agreed(runtime: Runtime, ref: SessionRef, *, seen: Seen = lambda _: None) -> Examined:
    """`examined`, looked at twice where something seems wrong: what others are just writing is no fault."""
    found = examined(runtime, ref, seen=seen)
    return Examined(seen_again(found.faults, lambda: examined(runtime, ref).faults), found.recounts)


def seen_again(found: Sequence[Fault], look: Callable[[], list[Fault]]) -> list[Fault]:
    """Of these faults those that a second look finds too."""
    first = {one.problem for one in found}
    return [one for one in look() if one.problem in first] if first else []


def examined(runtime: Runtime, ref: SessionRef, *, seen: Seen = lambda _: None) -> Examined:
    """What is wrong with one session's rows."""
    inspection = runtime.store.inspection
    kept = inspection.summary_rows(ref)
    summaries = {summary.id: summary for summary, _ in kept}
    found = Examined()
    pages = inspection.counted_pages(ref)
    while page := next(pages, []):
        _examine_page(runtime, ref, page, summaries, found)
        seen(len(page))
    _examine_summaries(runtime, ref, kept, summaries, found)
    with runtime.store.database.snapshot():
        kept_totals, totals = runtime.store.transcript.totals(ref), inspection.totals(ref)
    for name, total in totals.items() if kept_totals else ():
        if kept_totals[name] != total:
            detail = f"{name}: {kept_totals[name]} kept, {total} counted"
            found.faults.append(fault("wrong_total", ref.session_id, detail, partial(inspection.mend_totals, ref)))
    found.faults.extend(_fact_faults(runtime, ref, summaries.values()))
    return found


def _examine_page(
    runtime: Runtime,
    ref: SessionRef,
    page: Sequence[tuple[Entry, int | None]],
    summaries: Mapping[str, Summary],
    found: Examined,
) -> None:
    by_seq: dict[int, list[dict[str, Any]]] = {}
    for row in runtime.store.inspection.passages_of(ref, seqs=[entry.seq for entry, _ in page]):
        by_seq.setdefault(row["seq"], []).append(row)
    own_mark = counter_mark(runtime.counter.fingerprint)
    for entry, mark in page:
        again = derived_again(entry.payload, counter=runtime.counter)
        # What agrees with our count is as good as ours.
        is_ours = again is None or mark == own_mark or again.draft.tokens == entry.tokens
        is_indexed = again is None or by_seq.get(entry.seq, []) == index_rows(ref, entry, again.passages)
        wrong = entry_faults(entry, again, is_indexed=is_indexed, is_ours=is_ours)
        found.faults.extend(_faults(ref, entry, wrong, partial(_write_again, runtime, ref, entry)))
        if not is_ours:
            found.recounts.append(partial(_write_again, runtime, ref, entry, is_indexed=True))
        if entry.summary_id is not None and entry.summary_id not in summaries:
            what, lost = f"{ref.session_id}/{entry.id}", entry.summary_id
            detail = f"its summary {lost} is gone"
            found.faults.append(fault("missing_summary", what, detail, Discarding(lost), about=lost))


def _examine_summaries(
    runtime: Runtime,
    ref: SessionRef,
    kept: Sequence[tuple[Summary, RowMapping]],
    summaries: Mapping[str, Summary],
    found: Examined,
) -> None:
    children: dict[str | None, list[Source]] = {}
    for one in summaries.values():
        children.setdefault(one.parent_id, []).append(source_of(one))
    coverages: dict[str, list[tuple[str, str]]] = {}
    for part in chunks(list(summaries)):  # of a long history its messages' texts are never held together
        under = {name: list(children.get(name, ())) for name in part}
        for entry in runtime.store.inspection.entries_under(ref, part):
            under[str(entry.summary_id)].append(source_of(entry))
        coverages |= {name: coverage_faults(summaries[name], found_under) for name, found_under in under.items()}
    for summary, row in kept:
        again = partial(_write_summary_again, runtime, ref, summary)
        broken = coverages[summary.id] + summary_faults(
            summary,
            summaries=summaries,
            is_changed=digest_of_summary(summary.text) != row["text_digest"],
            has_moment=row["retry_at"] is not None,
        )
        wrong = list(broken)
        if summary.state.finished:
            rows = runtime.store.inspection.passages_of(ref, summary_ids=[summary.id])
            drafts = passage_drafts(summary.text)
            if rows != index_rows(ref, summary, drafts):
                wrong.append(("wrong_index_rows", "its passages do not match its text or its place"))
            tokens = runtime.counter.count_text(summary.text)
            if tokens != summary.tokens and row["counter"] == counter_mark(runtime.counter.fingerprint):
                wrong.append(("wrong_count", f"{summary.tokens} tokens stored, {tokens} counted"))
            elif tokens != summary.tokens:
                found.recounts.append(partial(again, is_indexed=True))
        found.faults.extend(_faults(ref, summary, wrong, Discarding(summary.id) if broken else again))


def _faults(ref: SessionRef, owner: Entry | Summary, found: Iterable[tuple[str, str]], remedy: Remedy) -> list[Fault]:
    """Faults of a message or a summary, by kind and detail, with what mends them all."""
    return [fault(kind, f"{ref.session_id}/{owner.id}", detail, remedy) for kind, detail in found]


def _write_again(runtime: Runtime, ref: SessionRef, entry: Entry, *, is_indexed: bool = False) -> None:
    """Derive anew what follows from a message that is what it was; its index rows too, unless `is_indexed`."""
    again = derived_again(entry.payload, counter=runtime.counter)
    if again is not None and again.draft.digest == entry.digest:
        runtime.store.inspection.mend_entry(ref, entry.seq, again.draft)
        if not is_indexed:
            runtime.store.inspection.replace_passages(ref, entry, again.passages)


def _write_summary_again(runtime: Runtime, ref: SessionRef, summary: Summary, *, is_indexed: bool = False) -> None:
    """As `_write_again`, for a summary."""
    if not is_indexed:
        drafts = passage_drafts(summary.text)
        runtime.store.inspection.replace_passages(ref, summary, drafts)
    if summary.state.finished:
        tokens, counter = runtime.counter.count_text(summary.text), runtime.counter.fingerprint
        runtime.store.inspection.recount_summary(summary, tokens=tokens, counter=counter)


_OF_OTHERS = frozenset({"mentions", "status", "superseded_by"})
"""What summaries above and other facts make of a fact; the rest follows from its messages."""


def _fact_faults(runtime: Runtime, ref: SessionRef, summaries: Iterable[Summary]) -> list[Fault]:
    """Summaries whose facts are not what their messages and their text state; those that wait to be read are left."""
    read = runtime.store.facts.read_summaries(ref)
    found: list[Fault] = []
    for page in chunks([summary for summary in summaries if summary.id in read]):
        kept = runtime.store.facts.of_summaries(ref, [summary.id for summary in page])
        for summary in page:
            again = {fact.id: as_stored(fact) for fact in facts_of_summary_again(runtime, ref, summary)}
            is_right = {fact.id for fact in kept[summary.id]} == again.keys() and all(
                _own(fact) == _own(again[fact.id]) and fact.mentions >= again[fact.id].mentions
                for fact in kept[summary.id]
            )
            if not is_right:
                detail, what = "its facts do not match its messages", f"{ref.session_id}/{summary.id}"
                remedy = partial(runtime.store.facts.unsettle, ref, [summary.id])
                found.append(fault("wrong_facts", what, detail, remedy, about=summary.id))
    return found


def note_of_unread(runtime: Runtime, refs: Iterable[SessionRef]) -> tuple[str, ...]:
    """Summaries that wait to be read: no fault, for the worker reads them."""
    count = sum(runtime.store.facts.unread_count(ref) for ref in refs)
    return (f"the facts of {count} summaries are not read yet: flush() or doctor() reads them",) if count else ()


def _own(fact: Fact) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(fact).items() if name not in _OF_OTHERS}
