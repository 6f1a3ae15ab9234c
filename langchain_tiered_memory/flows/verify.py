"""`verify()`: everything that is derived is derived again and compared. Changes nothing, and never calls a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.drafting import passage_drafts
from langchain_tiered_memory.decisions.verification import (
    derived_again,
    entry_problems,
    same_passages,
    summary_problems,
)
from langchain_tiered_memory.drafts import digest_of_summary
from langchain_tiered_memory.errors import EmbedderMismatchError, IndexUnavailableError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.indexing import usable_index
from langchain_tiered_memory.reports import Problem, VerifyReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import Entry, SessionRef, Summary

_PAGE = 2000


@dataclass(slots=True)
class Tally:
    """What a session's messages added up to, and what was wrong."""

    entries: int = 0
    tokens: int = 0
    passages: int = 0
    terms: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    covered: dict[str, list[str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    mend_entries: list[Entry] = field(default_factory=list)
    mend_summaries: list[Summary] = field(default_factory=list)


def verify(house: House) -> Flow[VerifyReport]:
    """Look at everything, change nothing."""
    problems: list[Problem] = []
    damaged = yield from do(house.store.inspection.damaged_database)
    if damaged is not None:
        problems.append(Problem(kind="damaged_database", what=house.store.database.label, detail=damaged))
    sessions = yield from do(house.store.inspection.sessions)
    entries = summaries = 0
    for ref, _ in sessions:
        tally, count = yield from agreed(house, ref)
        problems += tally.problems
        entries, summaries = entries + tally.entries, summaries + count
    problems += yield from _index_problems(house)
    vectors, vector_problems = yield from _vector_problems(house)
    return VerifyReport(
        sessions=len(sessions),
        entries=entries,
        summaries=summaries,
        passages=(yield from do(house.store.inspection.passage_count)),
        vectors=vectors,
        problems=tuple(problems + vector_problems),
    )


def agreed(house: House, ref: SessionRef) -> Flow[tuple[Tally, int]]:
    """`examined`, looked at twice where something seems wrong: what others are just writing is no fault."""
    tally, count = yield from examined(house, ref)
    if tally.problems:
        first = tally.problems
        tally, count = yield from examined(house, ref)
        tally.problems = [problem for problem in tally.problems if problem in first]
        suspects = {problem.what for problem in tally.problems}
        tally.mend_entries = [one for one in tally.mend_entries if f"{ref.session_id}/{one.id}" in suspects]
        tally.mend_summaries = [one for one in tally.mend_summaries if f"{ref.session_id}/{one.id}" in suspects]
    return tally, count


def examined(house: House, ref: SessionRef) -> Flow[tuple[Tally, int]]:
    """What one session's rows add up to and what is wrong with them; and its number of summaries."""
    inspection = house.store.inspection
    kept = yield from do(inspection.summary_rows, ref)
    summaries = {summary.id: summary for summary, _ in kept}
    tally = Tally()
    pages = inspection.entry_pages(ref)
    while page := (yield from do(lambda: next(pages, []))):
        yield from _examine_page(house, ref, page, frozenset(summaries), tally)
    for summary in summaries.values():
        if summary.parent_id is not None:
            tally.covered.setdefault(summary.parent_id, []).append(summary.id)
        tally.texts[summary.id] = summary.text
    for start in range(0, len(kept), _PAGE):
        yield from _examine_summaries(house, ref, kept[start : start + _PAGE], summaries, tally)
    kept_totals = yield from do(house.store.transcript.totals, ref)
    for name in ("entries", "tokens", "passages", "terms"):
        if kept_totals and kept_totals[name] != getattr(tally, name):
            detail = f"{name}: {kept_totals[name]} kept, {getattr(tally, name)} counted"
            tally.problems.append(Problem(kind="wrong_total", what=ref.session_id, detail=detail))
    tally.problems += yield from _run_problems(house, ref)
    return tally, len(summaries)


def _run_problems(house: House, ref: SessionRef) -> Flow[list[Problem]]:
    """What is wrong with a session's checkpoints and with the files it touched."""
    found: list[Problem] = []
    kept = house.store.checkpoints.examined(ref)
    while (one := (yield from do(lambda: next(kept, None)))) is not None:
        checkpoint_id, wrong = one
        if wrong is not None:
            what = f"{ref.session_id}/{checkpoint_id}"
            found.append(Problem(kind="damaged_checkpoint", what=what, detail=wrong))
    for seq in (yield from do(house.store.inspection.orphan_touches, ref)):
        detail = "files are noted that a message touched which is gone"
        found.append(Problem(kind="orphan_file_access", what=f"{ref.session_id}/{seq}", detail=detail))
    return found


def _examine_page(
    house: House, ref: SessionRef, page: Sequence[Entry], summary_ids: frozenset[str], tally: Tally
) -> Flow[None]:
    rows = yield from do(house.store.inspection.passages_of, ref, seqs=[entry.seq for entry in page])
    by_seq: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        by_seq.setdefault(row.seq, []).append(place)
        tally.passages += 1
        tally.terms += row.terms.count(" ") + 1
    for entry in page:
        mine = [rows[place] for place in by_seq.get(entry.seq, ())]
        again = derived_again(entry, counter=house.counter, passage_words=house.settings.recall.passage_words)
        found = entry_problems(entry, again, passages=mine, summary_ids=summary_ids, where=ref.session_id)
        tally.problems += found
        if found:
            tally.mend_entries.append(entry)
        tally.entries += 1
        tally.tokens += entry.tokens
        tally.texts[entry.id] = entry.text
        if entry.summary_id is not None:
            tally.covered.setdefault(entry.summary_id, []).append(entry.id)


def _examine_summaries(
    house: House,
    ref: SessionRef,
    kept: Sequence[tuple[Summary, str]],
    summaries: dict[str, Summary],
    tally: Tally,
) -> Flow[None]:
    for summary, kept_digest in kept:
        sources = [(one, tally.texts[one]) for one in summary.sources if one in tally.texts]
        found = summary_problems(
            summary,
            sources=sources,
            covered=tally.covered.get(summary.id, ()),
            summaries=summaries,
            says=digest_of_summary(summary.text, summary.facts),
            kept_digest=kept_digest,
            where=ref.session_id,
        )
        if summary.state.finished:
            rows = yield from do(house.store.inspection.passages_of, ref, summary_ids=[summary.id])
            again = passage_drafts(summary.text, max_words=house.settings.recall.passage_words)
            if not same_passages(rows, again):
                detail = "its passages are not what its text gives"
                found.append(Problem(kind="wrong_index_rows", what=f"{ref.session_id}/{summary.id}", detail=detail))
        tally.problems += found
        if found:
            tally.mend_summaries.append(summary)


def _index_problems(house: House) -> Flow[list[Problem]]:
    orphans = yield from do(house.store.inspection.orphan_passages)
    found = [Problem(kind="orphan_index_row", what=str(one), detail="its owner is gone") for one in orphans]
    damaged = yield from do(house.store.inspection.damaged_text_index)
    if damaged is None:
        detail = "the full-text index does not hold what its rows say; rebuild_index() makes it anew"
        found.append(Problem(kind="damaged_text_index", what="text index", detail=detail))
    else:
        detail = "the full-text index and its row differ"
        found += [Problem(kind="damaged_text_index", what=str(one), detail=detail) for one in damaged]
    return found


def _vector_problems(house: House) -> Flow[tuple[int, list[Problem]]]:
    try:
        index = yield from usable_index(house)
        if index is None:
            return 0, []
        there = yield from do(index.ids)
        wanted: set[int] = set()
        after = 0
        while page := (
            yield from do(house.store.vector_queue.settled, fingerprint=index.fingerprint, after=after, limit=_PAGE)
        ):
            wanted.update(page)
            after = page[-1]
        waiting = set((yield from do(house.store.vector_queue.forgotten, limit=_PAGE)))
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        return 0, [Problem(kind="vectors_unavailable", what="Chroma", detail=str(error))]
    missing = [
        Problem(kind="missing_vector", what=str(one), detail="SQL says it is in Chroma")
        for one in sorted(wanted - there)
    ]
    extra = [
        Problem(kind="extra_vector", what=str(one), detail="no passage in SQL has it")
        for one in sorted(there - wanted - waiting)
    ]
    return len(there), missing + extra
