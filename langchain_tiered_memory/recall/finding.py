"""Finds what may answer a question: candidates of both indexes, ranked together.

The text index always answers. The vector index adds to it where it can; where it lags, the newest passages are embedded
first, and where it is down or belongs to another embedder, that is reported and the words alone decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import EmbedderMismatchError, IndexUnavailableError, StorageError
from langchain_tiered_memory.recall.indexing import brought_up, is_left_alone, queue_lost, report_outage, usable_index
from langchain_tiered_memory.recall.questions import Question, Stretch, read_question
from langchain_tiered_memory.recall.ranking import Candidate, RankedEntry, rank
from langchain_tiered_memory.summaries.rendering import is_new_sitting
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.text.truncation import ends_of
from langchain_tiered_memory.transcript.outbox import may_write, note_unwritten
from langchain_tiered_memory.types.records import Hit, utc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_tiered_memory.recall.chroma.index import ChromaIndex
    from langchain_tiered_memory.recall.text_index import Said
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.drafts import SearchFilters
    from langchain_tiered_memory.types.records import Entry, Passage, SessionRef, TextStatistics

_LABELS = frozenset({"user", "assistant", "human", "ai", "system", "tool"})
"""Names that are labels, not persons."""
CANDIDATES = 300
"""Passages taken from each index before ranking."""
_LOOKED_BESIDE = 100
"""Of these, the best beside which is looked: what stands beside others is never worth its room."""
_NEIGHBOURS = 2
"""Entries on each side of those that are looked at too."""
_READ_WHOLE = 200
"""Of what is ranked, the best, those with the same terms as one: more than any context quotes."""
_STEPS = range(-_NEIGHBOURS, _NEIGHBOURS + 1)
APART = 2**40
"""Between the numbers of two sessions that are ranked together: no message stands beside one of another."""
_CATCH_UP = 64
"""Passages that a question embeds itself if the vector index lags. More are left to the background."""
_ASKED_CHARS = 2000
_ASKED_TERMS = 64
"""A question may be a document that somebody pasted: more than this of it is not looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Everything that was found for a question, ranked."""

    ranked: tuple[RankedEntry, ...]
    entries: Mapping[int, Entry]
    """The best, read whole."""
    passages: Mapping[int, Sequence[Passage]]
    sittings: Mapping[int, int]
    hits: frozenset[int]
    """`seq`s that an index named; the others only stand beside one."""
    stretches: tuple[Stretch, ...]
    """Of the question: what `RankedEntry.shared` tells of."""
    known_nats: tuple[float, ...]
    """For each of them how much its terms tell together that somebody else said."""
    known_terms: tuple[int, ...]
    """For each of them how many of its terms that are."""
    nats: Mapping[str, float]
    """How much each term of the question tells that somebody else said, and each two side by side beyond that."""
    passage_count: int
    """Of the session."""
    asked_at: int | None = None
    """`seq` of the message that is the question, where one is."""


def find(
    runtime: Runtime,
    ref: SessionRef,
    query: str,
    *,
    filters: SearchFilters | None = None,
    asked_at: int | None = None,
    besides: Sequence[SessionRef] | None = None,
    shown_from: int | None = None,
) -> Found:
    """Rank the messages of a session that pass the filters for a question, and read the best of them.

    `asked_at` is the `seq` of the message that is the question: it is not its own answer, and what nobody else said
    tells nothing of what is asked. With those of `besides` they are ranked together: theirs have the numbers `APART`
    and more above their own, twice that of the second, and so on. What stands before the reader in any case, from the
    `seq` `shown_from` on, is looked up by its words alone: whoever asks does not wait until it is embedded.
    """
    limit, refs = CANDIDATES, [ref, *(besides or ())]
    first = {one.key: APART * place for place, one in enumerate(refs)}
    query = asked(query)
    index, terms = runtime.store.text_index, search_terms(query)
    statistics = index.statistics(refs, terms)
    named = [
        first[one.session_key] + one.seq for one in index.find(refs, telling(statistics), limit=limit, filters=filters)
    ]
    similar = similar_passages(runtime, refs, query, level=0, limit=limit, before=shown_from)
    dense = index.by_id(ref if besides is None else None, list(similar), filters=filters)
    if shown_from is not None:  # whether the background came to embed these is no matter
        dense = [one for one in dense if one.seq < shown_from]
    similar = {one.id: similar[one.id] for one in dense}
    dense.sort(key=lambda one: -similar[one.id])
    alike = [first[one.session_key] + one.seq for one in dense if one.level == 0 and one.session_key in first]
    hits = {*named, *alike} - {asked_at}
    wanted = {place + step for place in (*named[:_LOOKED_BESIDE], *alike[:_LOOKED_BESIDE]) for step in _STEPS} | hits
    said: dict[int, list[Said]] = {}
    for number, one in enumerate(refs):
        seqs = [place % APART for place in wanted if place // APART == number]
        seqs += [asked_at] if one is ref and asked_at is not None else []
        for part in index.said(one, seqs, filters=filters):
            said.setdefault(first[one.key] + part.passage.seq, []).append(part)
    now = max((its[0].at for its in said.values()), default=0.0)
    own = [frozenset(part.passage.terms.split()) for part in said.pop(asked_at or 0, ())]
    elsewhere = {term: n - sum(term in one for one in own) for term, n in statistics.document_frequency.items()}
    known = {term: count for term, count in elsewhere.items() if count > 0}
    passage_count = max(statistics.passages - len(own), 1)
    speakers = {its[0].name for its in said.values() if its[0].name and its[0].name.lower() not in _LABELS}
    question = read_question(query, speakers=speakers if besides is None else set(), now=utc(now), known=known)
    sittings = _sittings_of(said)
    ranked, nats = rank(
        question,
        [
            _candidate_of(said[place], sitting=sittings[place], similar=similar, sequence=place, question=question)
            for place in said
        ],
        collection=replace(statistics, passages=passage_count, document_frequency=known),
    )
    # With all that have the same terms: a tool may have told the same all day, which must not take the others' places.
    alike_in_terms: dict[tuple[str, ...], list[int]] = {}
    for each in ranked:
        alike_in_terms.setdefault(tuple(part.passage.terms for part in said[each.sequence]), []).append(each.sequence)
    best = list(chain.from_iterable(islice(alike_in_terms.values(), _READ_WHOLE)))
    entries: dict[int, Entry] = {}
    for number, one in enumerate(refs):
        seqs = [place % APART for place in best if place // APART == number]
        entries |= {first[one.key] + entry.seq: entry for entry in runtime.store.transcript.by_seq(one, seqs)}
    return Found(
        ranked=tuple(ranked),
        entries=entries,
        passages={place: [part.passage for part in its] for place, its in said.items()},
        sittings=sittings,
        hits=frozenset(hits),
        stretches=question.stretches,
        known_nats=tuple(math.fsum(nats.get(term, 0.0) for term in one.terms) for one in question.stretches),
        known_terms=tuple(len(one.terms & known.keys()) for one in question.stretches),
        nats=nats,
        passage_count=passage_count,
        asked_at=asked_at,
    )


def _candidate_of(
    said: Sequence[Said], *, sitting: int, similar: Mapping[int, float], sequence: int, question: Question
) -> Candidate:
    """A message with its passages, as it is ranked, at its place among all that is; with its time where that counts."""
    who = said[0]
    return Candidate(
        sequence=sequence,
        sitting=sitting,
        terms=tuple(one.passage.terms for one in said),
        similarities=tuple(similar.get(one.passage.id) for one in said),
        speaker=who.name or "",
        by_person=who.role == "user" or bool(who.name and who.name.lower() not in _LABELS),
        time=utc(who.at) if question.intervals else None,
    )


def hit_of(one: RankedEntry, entry: Entry, passages: Sequence[Passage], *, score: float, session_id: str = "") -> Hit:
    """A message that was found, with the passage of it that answers best."""
    best = passages[max(range(len(passages)), key=lambda place: one.passage_scores[place])]
    return Hit(
        level=0,
        id=entry.id,
        text=entry.text,
        passage=entry.text[best.start : best.stop],
        score=score,
        seq=entry.seq,
        at=entry.at,
        track=entry.track,
        role=entry.role,
        kind=entry.kind,
        name=entry.name,
        tokens=entry.tokens,
        session_id=session_id,
    )


def asked(query: str) -> str:
    """The part of a question that is looked up: of a pasted document its beginning and its end."""
    return ends_of(query, _ASKED_CHARS)


def search_terms(query: str) -> list[str]:
    """Its terms, each once; of too many the first and the last."""
    terms = list(dict.fromkeys(analyse(query)))
    half = _ASKED_TERMS // 2
    return terms if len(terms) <= _ASKED_TERMS else terms[:half] + terms[-half:]


def telling(statistics: TextStatistics) -> dict[str, float]:
    """The terms worth looking up, with their idf; common ones are left out while there are others."""
    total = max(statistics.passages, 1)
    known = {term: count for term, count in statistics.document_frequency.items() if count}
    rare = {term: count for term, count in known.items() if count < statistics.ceiling}
    return {term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in (rare or known).items()}


def similar_passages(
    runtime: Runtime,
    refs: Sequence[SessionRef],
    query: str,
    *,
    level: int,
    limit: int,
    before: int | None = None,
) -> dict[int, float]:
    """The nearest passages of a level, by id, with their cosine; none where there is no index to ask.

    Whether the index has lost some is looked for where one session is asked. The newest that wait are embedded first;
    those of messages from the `seq` `before` on are not waited for.
    """
    alone = refs[0] if len(refs) == 1 else None
    index = None if is_left_alone(runtime) else index_to_ask(runtime, alone, before=before)
    if index is None:
        return {}
    asked_for: dict[str, Any] = {"session_keys": [ref.key for ref in refs], "limit": limit, "level": level}
    runtime.store.database.end_snapshot()  # the question is embedded, and a server may be asked
    try:
        found = index.search(query, **asked_for)
        if alone is not None and len(found) < limit and _has_lost(runtime, alone, index, level=level, known=len(found)):
            again = index_to_ask(runtime, alone, before=before)
            if again is not None:
                found = again.search(query, **asked_for)
    except IndexUnavailableError as error:
        report_outage(runtime, error, alone.session_id if alone is not None else None)
        return {}
    return dict(found)


def index_to_ask(runtime: Runtime, ref: SessionRef | None, *, before: int | None = None) -> ChromaIndex | None:
    """The index, with the newest passages, of one session or of all, where that can be written.

    Of a session's messages only those `before` a `seq`, where one is given. `None` where there is none to ask.
    """
    session_id = ref.session_id if ref is not None else None
    try:
        if may_write(runtime):
            return brought_up(runtime, ref=ref, limit=_CATCH_UP, newest_first=True, before=before)[1]
    except StorageError as error:
        note_unwritten(runtime, session_id, error)
    try:
        return usable_index(runtime)
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        report_outage(runtime, error, session_id)
    except StorageError as error:
        note_unwritten(runtime, session_id, error)
    return None


def _has_lost(runtime: Runtime, ref: SessionRef, index: ChromaIndex, *, level: int, known: int) -> bool:
    """Whether the index lacks what SQL takes for embedded; that waits to be embedded again then."""
    if not may_write(runtime):
        return False
    queue = runtime.store.vector_queue
    try:
        settled = queue.has_settled_beyond(ref, fingerprint=index.fingerprint, level=level, known=known)
        if settled:
            queue_lost(runtime)
    except StorageError as error:
        note_unwritten(runtime, ref.session_id, error)
        return False
    return settled


def _sittings_of(said: Mapping[int, Sequence[Said]]) -> dict[int, int]:
    """The dated sitting of each of these messages, by its place: a number that no other session has."""
    sittings: dict[int, int] = {}
    last = None
    for place in sorted(said):
        if last is None or place // APART != last // APART or is_new_sitting(said[last][0].at, said[place][0].at):
            sitting = place
        sittings[place], last = sitting, place
    return sittings
