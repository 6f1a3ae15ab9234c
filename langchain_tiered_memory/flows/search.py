"""Search over messages and every level of summaries, ranked together; and the way back from a summary to its detail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import (
    InvalidInputError,
    NotFoundError,
)
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.recall import find
from langchain_tiered_memory.flows.summary_search import find_summaries
from langchain_tiered_memory.records import Entry, Hit, SessionRef, Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.drafts import SearchFilters
    from langchain_tiered_memory.flows.house import House

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
    wanted = sorted(set(levels)) if levels is not None else range((yield from do(house.store.tree.height, ref)))
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
    found = yield from find_summaries(house, ref, query, level=level, quota=quota, filters=filters)
    return [
        Hit(
            level=level,
            id=one.summary.id,
            text=one.summary.text,
            passage=one.summary.text[one.passage.start : one.passage.stop],
            score=one.score,
            seq=one.summary.last_seq,
            at=one.summary.last_at,
            track=one.summary.track or "",
            kind="summary",
            tokens=one.summary.tokens,
        )
        for one in found
    ]


def _named(house: House, ref: SessionRef, wanted: str) -> Flow[Summary | Entry]:
    """The message whose id is `wanted`; else the one summary, or else the one message, whose id begins so."""
    found: list[Summary | Entry] = []
    found += yield from do(house.store.transcript.by_id, ref, [wanted])
    if found:
        return found[0]
    found += yield from do(house.store.tree.by_prefix, ref, wanted)
    if not found:
        found += yield from do(house.store.transcript.by_prefix, ref, wanted)
    if not found:
        msg = f"the session {ref.session_id!r} has no summary and no message {wanted!r}"
        raise NotFoundError(msg)
    if len(found) > 1:
        msg = f"{wanted!r} is the beginning of more than one id in the session {ref.session_id!r}: give more of it"
        raise InvalidInputError(msg)
    return found[0]


def expand(house: House, session_id: str, summary_id: str, *, depth: int | None) -> Flow[list[Summary | Entry]]:
    """What a summary stands for: the level below it, `depth` levels down, or with `None` the messages.

    Contexts name summaries, and messages that they show in part, by the beginning of their ids: both are understood,
    and a message gives itself.

    Raises:
        NotFoundError: when the session has no such summary or message.
        InvalidInputError: when several ids begin so, or `depth` is below 1.
    """
    ref = yield from do(house.store.transcript.find, session_id)
    if depth is not None and depth < 1:
        msg = f"depth is {depth}: give 1 for the level below, or None for the messages"
        raise InvalidInputError(msg)
    if ref is None:
        msg = f"there is no session {session_id!r} yet, and so no summary {summary_id!r}"
        raise NotFoundError(msg)
    level: list[Summary | Entry] = [(yield from _named(house, ref, summary_id))]
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
