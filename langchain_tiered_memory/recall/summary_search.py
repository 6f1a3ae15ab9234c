"""Summaries of one level that answer a question: shared words weighed by how telling they are, and similarity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.recall.finding import asked, search_terms, similar_passages, telling

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.drafts import SearchFilters
    from langchain_tiered_memory.types.records import Passage, SessionRef, Summary

_SUMMARY_WEIGHT = 0.9
"""A summary that matches as well as a message tells less precisely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSummary:
    """A summary, how well it matches (0 to 1), and its best passage."""

    summary: Summary
    score: float
    passage: Passage


def find_summaries(
    runtime: Runtime, ref: SessionRef, query: str, *, level: int, quota: int, filters: SearchFilters | None = None
) -> list[FoundSummary]:
    """The best `quota` summaries of a level, best first.

    Of the words that are asked for, those that messages have and no summary of this level counts as the rarest: what
    shares only the common ones of a question does not pass for its answer.
    """
    query = asked(query)
    terms_asked = search_terms(query)
    statistics = runtime.store.text_index.statistics(ref, terms_asked, level=level)
    weights = telling(statistics)
    absent = [term for term in dict.fromkeys(terms_asked) if not statistics.document_frequency.get(term)]
    said = runtime.store.text_index.statistics(ref, absent, ceiling=1).document_frequency if absent else {}
    unsaid = sum(count > 0 for count in said.values()) * math.log(1 + (statistics.passages + 0.5) / 0.5)
    limit = runtime.settings.recall.candidates
    lexical = runtime.store.text_index.find(ref, weights, level=level, limit=limit, filters=filters)
    similar = similar_passages(runtime, ref, query, level=level, limit=limit)
    dense = runtime.store.text_index.by_id(ref, list(similar), filters=filters)
    whole = (sum(weights.values()) + unsaid) or 1.0
    best: dict[str, tuple[float, Passage]] = {}
    for passage in {one.id: one for one in (*lexical, *dense)}.values():
        terms = set(passage.terms.split())
        shared = sum(weight for term, weight in weights.items() if term in terms) / whole
        near = max(similar.get(passage.id, 0.0), 0.0)
        score = _SUMMARY_WEIGHT * (0.5 * shared + 0.5 * near if similar else shared)
        if passage.summary_id is not None and score > best.get(passage.summary_id, (0.0, passage))[0]:
            best[passage.summary_id] = (score, passage)
    chosen = sorted(best.items(), key=lambda item: (-item[1][0], item[1][1].seq))[:quota]
    summaries = {one.id: one for one in runtime.store.tree.by_id(ref, [one for one, _ in chosen])}
    return [
        FoundSummary(summary=summaries[one], score=score, passage=passage)
        for one, (score, passage) in chosen
        if one in summaries and summaries[one].state.finished
    ]
