"""Search over messages and every level of summaries, ranked together; and the way back from a summary to its detail."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from langchain_tiered_memory import telemetry
from langchain_tiered_memory.errors import IndexUnavailableError, InvalidInputError, NotFoundError
from langchain_tiered_memory.models.traces import traced
from langchain_tiered_memory.recall.filling import asks_again, wording_of
from langchain_tiered_memory.recall.finding import (
    CANDIDATES,
    asked,
    find,
    hit_of,
    index_to_ask,
    search_terms,
    similar_passages,
    telling,
)
from langchain_tiered_memory.recall.fusion import best_of_each
from langchain_tiered_memory.recall.indexing import is_left_alone, report_outage
from langchain_tiered_memory.recall.ranking import WEIGHTS
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.types.records import Entry, Hit, SessionRef, Summary

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.drafts import SearchFilters
    from langchain_tiered_memory.types.records import Passage

_SUMMARY_WEIGHT = 0.9
"""A summary that matches as well as a message tells less precisely."""


def find_summaries(
    runtime: Runtime, ref: SessionRef, query: str, *, level: int, filters: SearchFilters | None = None
) -> list[tuple[Summary, float, Passage]]:
    """The best summaries of a level within its quota, best first: how well each matches (0 to 1), and its best passage.

    Of the words that are asked for, those that messages have and no summary of this level counts as the rarest: what
    shares only the common ones of a question does not pass for its answer.
    """
    query = asked(query)
    terms_asked = search_terms(query)
    statistics = runtime.store.text_index.statistics([ref], terms_asked, level=level)
    weights = telling(statistics)
    absent = [term for term in dict.fromkeys(terms_asked) if not statistics.document_frequency.get(term)]
    said = runtime.store.text_index.statistics([ref], absent, ceiling=1).document_frequency if absent else {}
    unsaid = sum(count > 0 for count in said.values()) * math.log(1 + (statistics.passages + 0.5) / 0.5)
    limit = CANDIDATES
    lexical = runtime.store.text_index.find([ref], weights, level=level, limit=limit, filters=filters)
    similar = similar_passages(runtime, [ref], query, level=level, limit=limit)
    named = list(dict.fromkeys([*(one.id for one in lexical), *similar]))
    read = {one.id: one for one in runtime.store.text_index.by_id(ref, named, filters=filters)}
    whole = (sum(weights.values()) + unsaid) or 1.0
    best: dict[str, tuple[float, Passage]] = {}
    for passage in (read[one] for one in named if one in read):
        terms = set(passage.terms.split())
        shared = sum(weight for term, weight in weights.items() if term in terms) / whole
        near = max(similar.get(passage.id, 0.0), 0.0)
        score = _SUMMARY_WEIGHT * (0.5 * shared + 0.5 * near if similar else shared)
        if passage.summary_id is not None and score > best.get(passage.summary_id, (0.0, passage))[0]:
            best[passage.summary_id] = (score, passage)
    chosen = sorted(best.items(), key=lambda item: (-item[1][0], item[1][1].seq))
    chosen = chosen[: runtime.settings.recall.quota(level)]
    summaries = {one.id: one for one in runtime.store.tree.by_id(ref, [one for one, _ in chosen])}
    return [
        (summaries[one], score, passage)
        for one, (score, passage) in chosen
        if one in summaries and summaries[one].state.finished
    ]


_SPAN = re.compile(r"(?P<first>\d{1,15})(?:-(?P<last>\d{1,15}))?")
_DEEPEST = 64


TOP_K = "gen_ai.retrieval.top_k"


def search(
    runtime: Runtime,
    session_id: str,
    query: str,
    *,
    k: int,
    levels: Sequence[int] | None,
    filters: SearchFilters,
) -> list[Hit]:
    """The best hits over messages and summaries, each level within its quota.

    Raises:
        InvalidInputError: when `k` is below 1.
    """
    if k < 1:
        msg = f"k is {k}: ask for at least one hit"
        raise InvalidInputError(msg)
    ref = runtime.store.transcript.find(session_id)
    if ref is None or not query.strip():
        return []
    with (
        telemetry.operation("search_memory", {telemetry.CONVERSATION: session_id, TOP_K: k}) as note,
        traced("search", {"query": query, "k": k}, session_id=session_id, wanted=runtime.settings.traces) as trace,
    ):
        with runtime.store.database.snapshot():  # messages and summaries of one state, in one transaction
            hits = _best(runtime, ref, query, k=k, levels=levels, filters=filters)
        note({telemetry.RECORDS: len(hits)})
        trace.outputs |= {
            "hits": [{"id": hit.id, "level": hit.level, "score": hit.score, "text": hit.text} for hit in hits]
        }
    return hits


def _best(
    runtime: Runtime, ref: SessionRef, query: str, *, k: int, levels: Sequence[int] | None, filters: SearchFilters
) -> list[Hit]:
    wanted = sorted(set(levels)) if levels is not None else range(runtime.store.tree.height(ref))
    hits: list[Hit] = []
    for level in wanted:
        if level == 0:
            hits += _messages(runtime, ref, query, filters=filters)
        else:
            hits += _summaries(runtime, ref, query, level=level, filters=filters)
    return sorted(hits, key=lambda hit: (-hit.score, hit.level, hit.seq))[:k]


def _messages(runtime: Runtime, ref: SessionRef, query: str, *, filters: SearchFilters) -> list[Hit]:
    quota = runtime.settings.recall.quota(0)
    found = find(runtime, ref, query, filters=filters)
    asked = frozenset(analyse(query))
    scores: dict[int, float] = {}
    said = set[str]()
    for one in found.ranked:
        entry = found.entries.get(one.sequence)
        if entry is not None and one.sequence in found.hits and wording_of(entry) not in said:
            said.add(wording_of(entry))
            # An earlier asking is no answer; one that says nothing else was ranked so already.
            again = one.adds and asks_again(entry, asked)
            scores[one.sequence] = one.score * (1 - WEIGHTS.contentless if again else 1)
    allowed = sorted((one for one in found.ranked if one.sequence in scores), key=lambda one: -scores[one.sequence])
    best = max(scores.values(), default=1.0) or 1.0
    return [
        hit_of(
            one,
            found.entries[one.sequence],
            found.passages[one.sequence],
            score=scores[one.sequence] / best,
        )
        for one in allowed[:quota]
    ]


def _summaries(runtime: Runtime, ref: SessionRef, query: str, *, level: int, filters: SearchFilters) -> list[Hit]:
    found = find_summaries(runtime, ref, query, level=level, filters=filters)
    return [
        Hit(
            level=level,
            id=one.id,
            text=one.text,
            passage=one.text[passage.start : passage.stop],
            score=score,
            seq=one.last_seq,
            at=one.last_at,
            track=one.track or "",
            kind="summary",
            tokens=one.tokens,
        )
        for one, score, passage in found
    ]


def _named(runtime: Runtime, ref: SessionRef, wanted: str, *, track: str, alone: bool) -> Summary | Entry:
    """The message whose id is `wanted`; else the one summary, or else the one message, whose id begins so."""
    found: list[Summary | Entry] = []
    only = track if alone else None
    exact = runtime.store.transcript.by_id(ref, [wanted], track=only)
    if exact:
        return _of_track(exact, wanted, track=track)
    found += runtime.store.tree.by_prefix(ref, wanted, track=only)
    if not found:
        begun = runtime.store.transcript.by_prefix(ref, wanted, track=only)
        copies = {entry.id: [one for one in begun if one.id == entry.id] for entry in begun}
        found += [_of_track(there, message_id, track=track) for message_id, there in copies.items()]
    if not found:
        raise _unknown(ref.session_id, wanted, only)
    if len(found) > 1:
        msg = f"{wanted!r} is the prefix of more than one id in the session {ref.session_id!r}: give more of it"
        raise InvalidInputError(msg)
    return found[0]


def _of_span(runtime: Runtime, ref: SessionRef, wanted: str, *, track: str | None) -> list[Summary | Entry]:
    """What a view shows behind the numbers of its messages, `451-600`; the message with a number, `412`."""
    span = _SPAN.fullmatch(wanted)
    if span is None or runtime.store.transcript.by_id(ref, [wanted], track=track):
        return []
    first = int(span["first"])
    if span["last"] is not None:
        return list(runtime.store.tree.of_span(ref, first, int(span["last"]), track=track))
    return [entry for entry in runtime.store.transcript.by_seq(ref, [first]) if track in (None, entry.track)]


def _of_track(copies: Sequence[Entry], message_id: str, *, track: str) -> Entry:
    """The track's own message of that id; else that of others, which may be several that say the same."""
    own = next((entry for entry in copies if entry.track == track), copies[0])
    if own.track != track and len({entry.digest for entry in copies}) > 1:
        tracks = ", ".join(repr(entry.track) for entry in copies)
        msg = f"the id {message_id!r} has different words on the tracks {tracks}: use a session on one of them"
        raise InvalidInputError(msg)
    return own


def _unknown(session_id: str, wanted: str, track: str | None) -> NotFoundError:
    """The same words whether nobody has it, or another track than the one that is asked."""
    where = f"the track {track!r} of the session {session_id!r}" if track is not None else f"the session {session_id!r}"
    return NotFoundError(f"{where} has no summary and no message {wanted!r}")


def summary_named(runtime: Runtime, session_id: str, wanted: str, *, track: str, alone: bool) -> Summary:
    """The one summary that is named as for `expand`.

    Raises:
        NotFoundError: when the session has no such summary.
        InvalidInputError: when several are named so.
    """
    ref = runtime.store.transcript.find(session_id)
    found = _of_span(runtime, ref, wanted, track=track if alone else None) if ref is not None else []
    if ref is not None and not found:
        found = [_named(runtime, ref, wanted, track=track, alone=alone)]
    if len(found) > 1:
        msg = f"{wanted!r} names {len(found)} summaries: give the id of one, as tree() shows it"
        raise InvalidInputError(msg)
    if not found or not isinstance(found[0], Summary):
        msg = f"{_unknown(session_id, wanted, track if alone else None)} that is a summary: tree() lists them"
        raise NotFoundError(msg)
    return found[0]


def expand(
    runtime: Runtime, session_id: str, summary_id: str, *, depth: int | None, track: str, alone: bool = False
) -> list[Summary | Entry]:
    """What a summary stands for: the level below it, `depth` levels down, or with `None` the messages.

    Contexts name summaries by the numbers of their messages (`451-600`; several, where they are told in one line), and
    messages that they show in part by the beginning of their ids; beginnings of summaries' ids are understood too. A
    message gives itself: that of the `track`, where several have its id. With `alone` no other track is looked at, nor
    a summary that merges several.

    Raises:
        NotFoundError: when the session has no such summary or message.
        InvalidInputError: when several ids begin so, when other tracks have several messages of that id, or when
            `depth` is below 1.
    """
    ref = runtime.store.transcript.find(session_id)
    if depth is not None and depth < 1:
        msg = f"depth is {depth}: give 1 for the level below, or None for the messages"
        raise InvalidInputError(msg)
    if ref is None:
        raise _unknown(session_id, summary_id, track if alone else None)
    level = _of_span(runtime, ref, summary_id, track=track if alone else None)
    steps = (_DEEPEST if depth is None else depth) - (len(level) > 1)
    level = level or [_named(runtime, ref, summary_id, track=track, alone=alone)]
    for _ in range(steps):
        if not any(isinstance(one, Summary) for one in level):
            break
        below: list[Summary | Entry] = []
        for one in level:
            if isinstance(one, Entry):
                below.append(one)
            elif one.level == 1:
                below += runtime.store.transcript.by_id(ref, one.sources, track=one.track)
            else:
                below += runtime.store.tree.by_id(ref, one.sources)
        level = below
    return level


def likeness(
    runtime: Runtime, ref: SessionRef, new: Collection[int], before: Sequence[Collection[int]]
) -> dict[int, float]:
    """Places in `before`, each some messages, with how near the nearest of them is to one of the messages `new`.

    That is told by the vectors that are stored of them: nothing is embedded twice. What all of them have in common
    tells nothing, so vectors are taken from their mean: what is near to everything is near to nothing. Without an index
    to ask, and of what has no vector yet, there is nothing.
    """
    index = None if is_left_alone(runtime) else index_to_ask(runtime, ref)
    if index is None:
        return {}
    said = runtime.store.text_index.said(ref, [*new, *(seq for seqs in before for seq in seqs)])
    passages = [one.passage for one in said]
    runtime.store.database.end_snapshot()  # a server may be asked
    try:
        vectors = index.vectors([one.id for one in passages])
    except IndexUnavailableError as error:
        report_outage(runtime, error, ref.session_id)
        return {}
    of_message: dict[int, list[int]] = {}
    for one in passages:
        if one.id in vectors:
            of_message.setdefault(one.seq, []).append(one.id)
    mine = [one for seq in new for one in of_message.get(seq, ())]
    owned = [(place, one) for place, seqs in enumerate(before) for seq in seqs for one in of_message.get(seq, ())]
    if not mine or not owned:
        return {}
    every = np.array([vectors[one] for one in mine] + [vectors[one] for _, one in owned], dtype=np.float64)
    every /= np.maximum(np.linalg.norm(every, axis=1, keepdims=True), 1e-12)
    every -= every.mean(axis=0)
    nearest = (every[len(mine) :] @ every[: len(mine)].T).max(axis=1)
    best = best_of_each(np.maximum(nearest, 0.0), np.array([place for place, _ in owned]), count=len(before))
    return {place: near for place, near in enumerate(best.tolist()) if near}
