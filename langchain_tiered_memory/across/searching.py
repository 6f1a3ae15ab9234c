"""Finds what the sessions of one user say about a question: messages of all of them, ranked together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory import telemetry
from langchain_tiered_memory.recall.finding import APART, asked, find, hit_of
from langchain_tiered_memory.recall.questions import repeats
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.drafts import SearchFilters
    from langchain_tiered_memory.types.records import Hit, SessionRef


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
    """The best as hits, each text once; what only asks the same is left out."""
    found = find(runtime, refs[0], query, filters=filters, best=k, besides=refs[1:])
    best = [one for one in found.ranked if one.sequence in found.hits]
    terms, seen = frozenset(analyse(query)), set[str]()
    top = best[0].score if best else 1.0
    hits: list[Hit] = []
    for one in best:
        entry = found.entries.get(one.sequence)
        if len(hits) == k:
            break
        if entry is None or entry.text in seen or repeats(entry.text, terms):
            continue
        seen.add(entry.text)
        session_id, score = refs[one.sequence // APART].session_id, one.score / (top or 1.0)
        hits.append(hit_of(one, entry, found.passages[one.sequence], score=score, session_id=session_id))
    return hits
