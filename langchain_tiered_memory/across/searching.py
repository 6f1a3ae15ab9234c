"""Finds what the sessions of one user say about a question: messages of all of them, ranked together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory import telemetry
from langchain_tiered_memory.recall.finding import (
    CANDIDATES,
    NEIGHBOURS,
    asked,
    candidate_of,
    hit_of,
    search_terms,
    similar_passages,
    sittings_of,
    telling,
)
from langchain_tiered_memory.recall.questions import read_question, repeats
from langchain_tiered_memory.recall.ranking import rank
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.types.records import utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.recall.ranking import Candidate, RankedEntry
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.drafts import SearchFilters
    from langchain_tiered_memory.types.records import Entry, Hit, Passage, SessionRef

_APART = 2**40
"""Between the numbers of two sessions where they are ranked together: no message stands beside one of another."""
_READ = 3
"""Times as many messages as are asked for are read: equal texts, and earlier askings, leave some out."""


def search_across(
    runtime: Runtime,
    user: str,
    query: str,
    *,
    k: int,
    besides: str | None = None,
    filters: SearchFilters | None = None,
) -> list[Hit]:
    """The messages of a user's sessions that answer a question best, best first, each text once.

    Args:
        runtime: The memory.
        user: Whose sessions.
        query: The question.
        k: How many at most.
        besides: The session that is left out.
        filters: Which messages may be found.
    """
    refs = runtime.store.across.sessions(user, besides=besides)
    if not refs or not query.strip():
        return []
    with telemetry.operation("search_memory", {"gen_ai.retrieval.top_k": k}) as span:
        with runtime.store.database.snapshot():
            hits = _best(runtime, refs, asked(query), k=k, filters=filters)
        span.note({telemetry.RECORDS: len(hits)})
    return hits


def _best(
    runtime: Runtime, refs: Sequence[SessionRef], query: str, *, k: int, filters: SearchFilters | None
) -> list[Hit]:
    index, limit = runtime.store.text_index, CANDIDATES
    statistics = index.statistics(refs, search_terms(query))
    lexical = index.find(refs, telling(statistics), limit=limit, filters=filters)
    named = {(one.session_key, one.seq) for one in lexical}
    similar = similar_passages(runtime, refs, query, level=0, limit=limit)
    keys = {ref.key for ref in refs}
    dense = (one for one in index.by_id(None, list(similar), filters=filters) if one.session_key in keys)
    named |= {(one.session_key, one.seq) for one in dense if one.level == 0}
    hits: dict[int, set[int]] = {}
    for key, seq in named:
        hits.setdefault(key, set()).add(seq)
    candidates: dict[int, tuple[Candidate, Sequence[Passage]]] = {}
    for number, ref in enumerate(refs, 1):
        for one, passages in _beside(
            runtime, ref, hits.get(ref.key, set()), filters, similar=similar, offset=number * _APART
        ):
            candidates[one.sequence] = (one, passages)
    known = {term: count for term, count in statistics.document_frequency.items() if count}
    times = [one.time for one, _ in candidates.values() if one.time is not None]
    question = read_question(query, speakers=set(), now=max(times, default=utc(runtime.now())), known=known)
    figures = replace(statistics, passages=max(statistics.passages, 1), document_frequency=known)
    ranked = rank(question, [one for one, _ in candidates.values()], collection=figures)
    places = {ref.key: number for number, ref in enumerate(refs, 1)}
    hit = {places[key] * _APART + seq for key, seq in named}
    best = [one for one in ranked if one.sequence in hit]
    return _read(runtime, refs, best, {at: passages for at, (_, passages) in candidates.items()}, query, k=k)


def _beside(
    runtime: Runtime,
    ref: SessionRef,
    hits: set[int],
    filters: SearchFilters | None,
    *,
    similar: dict[int, float],
    offset: int,
) -> list[tuple[Candidate, Sequence[Passage]]]:
    """The hits of a session and what stands beside them, as they are ranked."""
    if not hits:
        return []
    reach, tracks = NEIGHBOURS, filters.tracks if filters is not None else None
    around = {seq + step for seq in hits for step in range(-reach, reach + 1)}
    near = runtime.store.transcript.moments(ref, sorted(around))
    said = {one.seq: one for one in near if tracks is None or one.track in tracks}
    passages: dict[int, list[Passage]] = {}
    for passage in runtime.store.text_index.of_entries(ref, sorted(said)):
        passages.setdefault(passage.seq, []).append(passage)
    sittings = sittings_of(said.values(), gap_seconds=runtime.settings.recall.sitting_gap_seconds)
    return [
        (
            candidate_of(said[seq], found, sitting=offset + sittings[seq], similar=similar, sequence=offset + seq),
            found,
        )
        for seq, found in passages.items()
    ]


def _read(
    runtime: Runtime,
    refs: Sequence[SessionRef],
    best: Sequence[RankedEntry],
    passages: dict[int, Sequence[Passage]],
    query: str,
    *,
    k: int,
) -> list[Hit]:
    """The best as hits, each text once; what only asks the same is left out."""
    terms, seen = frozenset(analyse(query)), set[str]()
    top = best[0].score if best else 1.0
    hits: list[Hit] = []
    for one, ref, entry in _entries(runtime, refs, best[: k * _READ], at_once=k):
        if len(hits) == k:
            break
        if entry.text in seen or repeats(entry.text, terms):
            continue
        seen.add(entry.text)
        score = one.score / (top or 1.0)
        hits.append(hit_of(one, entry, passages[one.sequence], score=score, session_id=ref.session_id))
    return hits


def _entries(
    runtime: Runtime, refs: Sequence[SessionRef], wanted: Sequence[RankedEntry], *, at_once: int
) -> Iterator[tuple[RankedEntry, SessionRef, Entry]]:
    """These messages in their order, so many read at once: seldom are all of them needed."""
    for start in range(0, len(wanted), at_once):
        part = wanted[start : start + at_once]
        by_session: dict[int, list[int]] = {}
        for one in part:
            by_session.setdefault(one.sequence // _APART, []).append(one.sequence % _APART)
        read = {
            number * _APART + entry.seq: (refs[number - 1], entry)
            for number, seqs in by_session.items()
            for entry in runtime.store.transcript.by_seq(refs[number - 1], sorted(seqs))
        }
        yield from ((one, *read[one.sequence]) for one in part if one.sequence in read)
