"""Search over messages and every level of summaries, ranked together; and the way back from a summary to its detail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.terms import analyse
from langchain_tiered_memory.errors import (
    EmbedderMismatchError,
    IndexUnavailableError,
    InvalidInputError,
    NotFoundError,
)
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.indexing import usable_index
from langchain_tiered_memory.flows.recall import find, telling
from langchain_tiered_memory.records import Entry, Hit, SessionRef, Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.drafts import SearchFilters
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import Passage

_SUMMARY_WEIGHT = 0.9
"""A summary that matches as well as a message tells less precisely."""
_DEEPEST = 64


def search(
    house: House,
    session_id: str,
    query: str,
    *,
    k: int,
    levels: Sequence[int] | None,
    filters: SearchFilters,
) -> Flow[list[Hit]]:
    """The best hits over messages and summaries, each level within its quota.

    Raises:
        InvalidInputError: when `k` is below 1.
    """
    if k < 1:
        msg = f"k is {k}: ask for at least one hit"
        raise InvalidInputError(msg)
    ref = yield from do(house.store.transcript.find, session_id)
    if ref is None or not query.strip():
        return []
    quotas = house.settings.recall
    wanted = levels if levels is not None else range((yield from do(house.store.tree.height, ref)))
    hits: list[Hit] = []
    for level in wanted:
        if level == 0:
            hits += yield from _messages(house, ref, query, quota=quotas.quota_messages, filters=filters)
        else:
            quota = {1: quotas.quota_level_1, 2: quotas.quota_level_2}.get(level, quotas.quota_higher)
            hits += yield from _summaries(house, ref, query, level=level, quota=quota, filters=filters)
    return sorted(hits, key=lambda hit: (-hit.score, hit.level, hit.seq))[:k]


def _messages(house: House, ref: SessionRef, query: str, *, quota: int, filters: SearchFilters) -> Flow[list[Hit]]:
    found = yield from find(house, ref, query, filters=filters)
    allowed = [one for one in found.ranked if found.is_hit(one.sequence)][:quota]
    best = max((one.score for one in allowed), default=1.0) or 1.0
    hits = []
    for one in allowed:
        entry = found.entries[one.sequence]
        pieces = found.passages[one.sequence]
        top = pieces[max(range(len(pieces)), key=lambda place: one.passage_scores[place])]
        hits.append(
            Hit(
                level=0,
                id=entry.id,
                text=entry.text,
                passage=entry.text[top.start : top.stop],
                score=one.score / best,
                seq=entry.seq,
                at=entry.at,
                track=entry.track,
                role=entry.role,
                kind=entry.kind,
                name=entry.name,
                tokens=entry.tokens,
            )
        )
    return hits


def _summaries(
    house: House, ref: SessionRef, query: str, *, level: int, quota: int, filters: SearchFilters
) -> Flow[list[Hit]]:
    statistics = yield from do(house.store.text_index.statistics, ref, analyse(query), level=level)
    weights = telling(statistics)
    limit = house.settings.recall.candidates
    lexical = yield from do(house.store.text_index.find, ref, weights, level=level, limit=limit, filters=filters)
    similar = yield from _similar(house, ref, query, level=level, limit=limit)
    dense = yield from do(house.store.text_index.by_id, ref, list(similar), filters=filters)
    whole = sum(weights.values()) or 1.0
    scored: dict[str, tuple[float, Passage]] = {}
    for passage in {one.id: one for one in (*lexical, *dense)}.values():
        terms = set(passage.terms.split())
        shared = sum(weight for term, weight in weights.items() if term in terms) / whole
        near = max(similar.get(passage.id, 0.0), 0.0)
        score = _SUMMARY_WEIGHT * (0.5 * shared + 0.5 * near if similar else shared)
        if passage.summary_id is not None and score > scored.get(passage.summary_id, (0.0, passage))[0]:
            scored[passage.summary_id] = (score, passage)
    best = sorted(scored.items(), key=lambda item: -item[1][0])[:quota]
    summaries = yield from do(house.store.tree.by_id, ref, [one for one, _ in best])
    return [
        Hit(
            level=level,
            id=summary.id,
            text=summary.text,
            passage=summary.text[scored[summary.id][1].start : scored[summary.id][1].stop],
            score=scored[summary.id][0],
            seq=summary.last_seq,
            at=summary.last_at,
            track=summary.track or "",
            kind="summary",
            tokens=summary.tokens,
        )
        for summary in summaries
    ]


def _similar(house: House, ref: SessionRef, query: str, *, level: int, limit: int) -> Flow[dict[int, float]]:
    try:
        index = yield from usable_index(house)
        if index is None:
            return {}
        found = yield from do(index.search, query, session_keys=[ref.key], limit=limit, where={"level": level})
        return dict(found)
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        house.report("vectors_unavailable", str(error), session_id=ref.session_id)
        return {}


def expand(house: House, session_id: str, summary_id: str, *, depth: int | None) -> Flow[list[Summary | Entry]]:
    """What a summary stands for: the level below it, `depth` levels down, or with `None` the messages.

    Raises:
        NotFoundError: when the session has no such summary.
    """
    ref = yield from do(house.store.transcript.find, session_id)
    found = (yield from do(house.store.tree.by_prefix, ref, summary_id)) if ref is not None else []
    if ref is None or not found:
        msg = f"the session {session_id!r} has no summary {summary_id!r}"
        raise NotFoundError(msg)
    level: list[Summary | Entry] = list(found[:1])
    for _ in range(_DEEPEST if depth is None else max(depth, 1)):
        if not any(isinstance(one, Summary) for one in level):
            break
        below: list[Summary | Entry] = []
        for one in level:
            if isinstance(one, Entry):
                below.append(one)
            elif one.level == 1:
                below += yield from do(house.store.transcript.by_id, ref, one.sources)
            else:
                below += yield from do(house.store.tree.by_id, ref, one.sources)
        level = below
    return level
