"""Retrieves what answers a question: candidates of both indexes, ranked together, filled into a budget.

The text index always answers. The vector index adds to it where it can; where it lags, the newest passages are embedded
first, and where it is down or belongs to another embedder, that is reported and the words alone decide.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import EmbedderMismatchError, IndexUnavailableError, StorageError
from langchain_tiered_memory.recall.filling import Offer, PassageOffer, fill
from langchain_tiered_memory.recall.indexing import brought_up, queue_lost, report_outage, usable_index
from langchain_tiered_memory.recall.questions import read_question
from langchain_tiered_memory.recall.ranking import Candidate, Collection, PassageCandidate, RankedEntry, rank
from langchain_tiered_memory.summaries.rendering import (
    Quoted,
    is_new_sitting,
    recall_block,
    sitting_header,
)
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.transcript.derived_writes import may_write, note_unwritten
from langchain_tiered_memory.types.records import Entry, LeftOut, utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_tiered_memory.protocols import VectorIndex
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.transcript.entry_reads import Moment
    from langchain_tiered_memory.types.drafts import SearchFilters
    from langchain_tiered_memory.types.records import Passage, SessionRef, Summary, TextStatistics

_LABELS = frozenset({"user", "assistant", "human", "ai", "system", "tool"})
"""Names that are labels, not persons."""
_ASKED_CHARS = 2000
_ASKED_TERMS = 64
"""A question may be a document that somebody pasted: more than this of it is not looked up."""
_POINTER_TOKENS = 16
_FILLINGS = 8
"""Times that a room is filled, each with the last one's error mended."""
_WELL_FILLED = 0.9
"""A block that takes this share of its room is left as it is: quotes are priced one by one, and cost a little less
together."""
_FRAMING_BEYOND_A_QUOTE = 1
_NAME_BEYOND_A_QUOTE = 2
"""What an entry's count has over its quote (`speaker: text` and a line break), as messages and names are framed."""
_LEAST_OF_OWN = (0.1, 0.35)
"""What an entry must score beside what is said, in parts of what that scores itself: for brief messages, which are
often questions, and for long ones, of which every old talk shares some words. Measured on chats
(`benchmarks/cost_curve.py`): the evidence of questions stays, and of what others recalled three quarters go."""
_TELLING_NATS = (20.0, 60.0)
"""Where a message counts as brief and as long: the sum of the idf of its terms."""
_ANSWERED = 0.5
"""Of what a message scores itself, from which on the answer before it is what it goes on with, or something older what
it asks for: a third the answer has for standing beside it alone, whatever is said."""
_RARE = 3
"""Passages that a term may stand in to be looked up whatever else is said: the message itself is one of them."""
_LITTLE = 1.25
"""A message that tells less than so many unique words, none of them rare, is small talk unless it asks."""
_ASKS = re.compile("[?\uff1f\u061f\u037e]")
"""Question marks."""
_NEAR_MISSES = 10
"""Best entries that did not fit, as named in the account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Everything that was found for a question, ranked."""

    ranked: tuple[RankedEntry, ...]
    entries: Mapping[int, Entry]
    """Those that were read whole."""
    passages: Mapping[int, tuple[Passage, ...]]
    sittings: Mapping[int, int]
    hits: frozenset[int]
    """`seq`s that an index named; the others only stand beside one."""
    asked_nats: float
    """How much the question's terms tell together: the sum of their idf, of those that were looked up."""
    unique_nats: float
    """How much a term tells that stands in one passage alone."""
    rarest: int
    """Passages that have the rarest of them; 0 where there is none."""

    def is_hit(self, seq: int) -> bool:
        """Whether an index named this entry."""
        return seq in self.hits


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The recalled part of a context."""

    text: str = ""
    tokens: int = 0
    """Of `text`."""
    quotes: tuple[Quoted, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def find(
    runtime: Runtime, ref: SessionRef, query: str, *, filters: SearchFilters | None = None, best: int | None = None
) -> Found:
    """Rank the messages of a session for a question.

    Args:
        runtime: The memory.
        ref: The session.
        query: The question.
        filters: Which messages may be found.
        best: So many of the best hits are read whole, for who needs no more of them; `None`: all that are ranked.
    """
    limit = runtime.settings.recall.candidates
    query = asked(query)
    terms = search_terms(query)
    statistics = runtime.store.text_index.statistics(ref, terms)
    weights = telling(statistics)
    lexical = runtime.store.text_index.seqs(ref, weights, limit=limit, filters=filters)
    similar = similar_passages(runtime, ref, query, level=0, limit=limit)
    dense = runtime.store.text_index.by_id(ref, list(similar), filters=filters)
    hits = lexical | {passage.seq for passage in dense if passage.level == 0}
    reach = runtime.settings.recall.neighbours
    around = {seq + step for seq in hits for step in range(-reach, reach + 1)}
    transcript = runtime.store.transcript
    near: Sequence[Entry | Moment] = (transcript.by_seq if best is None else transcript.moments)(ref, sorted(around))
    tracks = filters.tracks if filters is not None else None
    said = {one.seq: one for one in near if tracks is None or one.track in tracks}
    passages: dict[int, list[Passage]] = {}
    for passage in runtime.store.text_index.of_entries(ref, sorted(said)):
        passages.setdefault(passage.seq, []).append(passage)
    sittings = _sittings(said.values(), gap_seconds=runtime.settings.recall.sitting_gap_seconds)
    speakers = {one.name for one in said.values() if one.name and one.name.lower() not in _LABELS}
    last_at = max((one.at for one in said.values()), default=0.0)
    candidates = [
        Candidate(
            sequence=seq,
            sitting=sittings[seq],
            passages=tuple(
                PassageCandidate(terms=passage.terms, similarity=similar.get(passage.id)) for passage in found
            ),
            speaker=said[seq].name or "",
            by_person=_is_person(said[seq]),
            time=utc(said[seq].at),
        )
        for seq, found in passages.items()
    ]
    ranked = rank(
        read_question(query, speakers=speakers, now=utc(last_at)),
        candidates,
        collection=Collection(
            passages=statistics.passages,
            average_terms=statistics.average_terms,
            document_frequency=statistics.document_frequency,
        ),
    )
    if best is None:
        entries = {one.seq: one for one in said.values() if isinstance(one, Entry)}
    else:
        entries = _best_hits(runtime, ref, [one.sequence for one in ranked if one.sequence in hits], count=best)
    return Found(
        ranked=tuple(ranked),
        entries=entries,
        passages={seq: tuple(found) for seq, found in passages.items()},
        sittings=sittings,
        hits=frozenset(hits),
        asked_nats=sum(weights.values()),
        unique_nats=math.log(1 + max(statistics.passages, 1)),
        rarest=min((statistics.document_frequency[term] for term in weights), default=0),
    )


def _best_hits(runtime: Runtime, ref: SessionRef, seqs: Sequence[int], *, count: int) -> dict[int, Entry]:
    """The first `count` of these entries that can be read."""
    found: dict[int, Entry] = {}
    for start in range(0, len(seqs), max(count, 1)):
        if len(found) >= count:
            break
        found |= {one.seq: one for one in runtime.store.transcript.by_seq(ref, seqs[start : start + count])}
    return found


def asked(query: str) -> str:
    """The part of a question that is looked up: of a pasted document its beginning and its end."""
    return query if len(query) <= 2 * _ASKED_CHARS else f"{query[:_ASKED_CHARS]}\n{query[-_ASKED_CHARS:]}"


def search_terms(query: str) -> list[str]:
    """Its terms, each once; of too many the first and the last."""
    terms = list(dict.fromkeys(analyse(query)))
    half = _ASKED_TERMS // 2
    return terms if len(terms) <= _ASKED_TERMS else terms[:half] + terms[-half:]


def _is_person(entry: Entry | Moment) -> bool:
    """Whether a person said it: the user, or anybody who goes by a name of their own."""
    return entry.role == "user" or bool(entry.name and entry.name.lower() not in _LABELS)


def telling(statistics: TextStatistics) -> dict[str, float]:
    """The terms worth looking up, with their idf; common ones are left out while there are others."""
    total = max(statistics.passages, 1)
    known = {term: count for term, count in statistics.document_frequency.items() if count}
    rare = {term: count for term, count in known.items() if count < statistics.ceiling}
    return {term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in (rare or known).items()}


def similar_passages(runtime: Runtime, ref: SessionRef, query: str, *, level: int, limit: int) -> dict[int, float]:
    """The nearest passages of a level, by id, with their cosine; none where there is no index to ask."""
    index = _index_to_ask(runtime, ref)
    if index is None:
        return {}
    where = {"level": level}
    runtime.store.database.end_snapshot()  # the question is embedded, and a server may be asked
    try:
        found = index.search(query, session_keys=[ref.key], limit=limit, where=where)
        if len(found) < limit and _has_lost(runtime, ref, index, level=level, known=len(found)):
            again = _index_to_ask(runtime, ref)
            if again is not None:
                found = again.search(query, session_keys=[ref.key], limit=limit, where=where)
    except IndexUnavailableError as error:
        report_outage(runtime, error, ref.session_id)
        return {}
    return dict(found)


def _index_to_ask(runtime: Runtime, ref: SessionRef) -> VectorIndex | None:
    """The index, with the session's newest passages where that can be written; `None` where there is none to ask."""
    try:
        if may_write(runtime):
            return brought_up(runtime, ref=ref, limit=runtime.settings.recall.catch_up, newest_first=True)[1]
    except StorageError as error:
        note_unwritten(runtime, ref.session_id, error)
    try:
        return usable_index(runtime)
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        report_outage(runtime, error, ref.session_id)
    except StorageError as error:
        note_unwritten(runtime, ref.session_id, error)
    return None


def _has_lost(runtime: Runtime, ref: SessionRef, index: VectorIndex, *, level: int, known: int) -> bool:
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


def _sittings(entries: Iterable[Entry | Moment], *, gap_seconds: float) -> dict[int, int]:
    numbers: dict[int, int] = {}
    number, last_at = 0, None
    for entry in sorted(entries, key=lambda one: one.seq):
        if last_at is not None and is_new_sitting(last_at, entry.at, gap_seconds=gap_seconds):
            number += 1
        numbers[entry.seq] = number
        last_at = entry.at
    return numbers


def recall(
    runtime: Runtime,
    ref: SessionRef,
    query: str,
    *,
    room: int,
    code_room: int,
    shown: frozenset[int],
    summaries: Sequence[Summary] = (),
    filters: SearchFilters | None = None,
    said_at: int | None = None,
    found: Found | None = None,
) -> Recalled:
    """Quote what answers a question within `room` tokens, without what the context already shows.

    Args:
        runtime: The memory.
        ref: The session.
        query: The question.
        room: Tokens of the whole block, fence and headers included.
        code_room: The most that code and tool output may take of it.
        shown: `seq`s of entries that stand in the context already, or are the question itself.
        summaries: Stand behind the quotes.
        filters: Which messages may be found.
        said_at: `seq` of the message that is the question, where it is what the user said last in a conversation that
            goes on: then what answers it much less well than it would itself is not worth its room, and small talk
            brings nothing back.
        found: What `find` gave for this question with these filters, where it was asked before.
    """
    count = runtime.counter.count_text
    least = count(recall_block((), sitting_gap_seconds=1.0, summaries=summaries))
    if room <= least + _POINTER_TOKENS or not query.strip():
        return Recalled()
    found = find(runtime, ref, query, filters=filters) if found is None else found
    least_score = _least_score(found, query, said_at)
    ranked = [one for one in found.ranked if one.sequence not in shown and one.own_score >= least_score]
    offers = _offers(found, ranked, code_room=code_room)
    headers = {number: count(sitting_header(found.entries[seq].at)) + 1 for seq, number in _openings(found).items()}
    best = Recalled()
    budget = room - least
    for _ in range(_FILLINGS):
        # Prices are those counted once for each message; the block itself is counted whole, and the budget mended.
        filling = fill(offers, max_tokens=budget, header_tokens=headers)
        quotes = tuple(_quoted(found, one.sequence, one.passages) for one in filling.shown)
        text = recall_block(
            quotes, sitting_gap_seconds=runtime.settings.recall.sitting_gap_seconds, summaries=summaries
        )
        tokens = count(text)
        if quotes and best.tokens < tokens <= room:
            best = Recalled(text=text, tokens=tokens, quotes=quotes, left_out=_missed(found, ranked, quotes))
        if room * _WELL_FILLED <= tokens <= room or not quotes:
            break
        # What overshoots may be priced too low throughout, as tool outputs are, whose lines are set apart.
        budget += room - tokens if tokens <= room else min(room - tokens, -(room // 50))
    return best


def wanted_tokens(found: Found, query: str, *, said_at: int, shown_from: int) -> int:
    """About how many tokens `recall` would quote beside what the user said last, had it all room that there is.

    Args:
        found: What `find` gave for it.
        query: What was said.
        said_at: Its `seq`.
        shown_from: Messages of the same track from this `seq` on stand in the context in any case.
    """
    least = _least_score(found, query, said_at)
    track = found.entries[said_at].track if said_at in found.entries else None
    worth = [found.entries[one.sequence] for one in found.ranked if one.own_score >= least]
    hidden = [entry for entry in worth if entry.seq < shown_from or (track is not None and entry.track != track)]
    return sum(_price(entry) + _POINTER_TOKENS for entry in hidden)


def goes_on(found: Found, *, said_at: int, shown_from: int) -> bool:
    """Whether what the user said last goes on with what the assistant said last: nothing older matches it as well.

    Args:
        found: What `find` gave for it.
        said_at: Its `seq`.
        shown_from: Messages from this `seq` on stand in the context in any case.
    """
    shown = (one for one in found.ranked if shown_from <= one.sequence < said_at)
    answered = max((one.own_score for one in shown if found.entries[one.sequence].role == "assistant"), default=0.0)
    own, older = _own_score(found, said_at), _older_score(found, shown_from)
    return answered >= max(_ANSWERED * own, older) > 0.0


def asks_back(found: Found, query: str, *, said_at: int, shown_from: int) -> bool:
    """Whether what the user said last is a question, or is answered by something older, however it is put.

    Args:
        found: What `find` gave for it.
        query: What was said.
        said_at: Its `seq`.
        shown_from: Messages from this `seq` on stand in the context in any case.
    """
    if _ASKS.search(query):
        return True
    return _older_score(found, shown_from) >= _ANSWERED * _own_score(found, said_at) > 0.0


def _own_score(found: Found, said_at: int) -> float:
    """What a message scores itself; 0 where it was not found."""
    return next((one.own_score for one in found.ranked if one.sequence == said_at), 0.0)


def _older_score(found: Found, shown_from: int) -> float:
    """The best score of what stands in no context in any case."""
    return max((one.own_score for one in found.ranked if one.sequence < shown_from), default=0.0)


def _least_score(found: Found, query: str, said_at: int | None) -> float:
    """The score from which on an entry is worth its room beside a message of a conversation that goes on."""
    own = next((one.own_score for one in found.ranked if one.sequence == said_at), None)
    if own is None:
        return 0.0
    if found.rarest > _RARE and found.asked_nats < _LITTLE * found.unique_nats and not _ASKS.search(query):
        return math.inf
    low, high = _LEAST_OF_OWN
    brief, long = _TELLING_NATS
    return own * (low + (high - low) * min(max((found.asked_nats - brief) / (long - brief), 0.0), 1.0))


def _openings(found: Found) -> dict[int, int]:
    """The first candidate of each sitting."""
    first: dict[int, int] = {}
    for seq in sorted(found.sittings):
        first.setdefault(found.sittings[seq], seq)
    return {seq: number for number, seq in first.items()}


def _missed(found: Found, ranked: Sequence[RankedEntry], quotes: Sequence[Quoted]) -> tuple[LeftOut, ...]:
    quoted = {one.entry.seq for one in quotes}
    missed = [found.entries[one.sequence] for one in ranked if one.sequence not in quoted]
    return tuple(
        LeftOut(what=entry.id, reason="did not fit into recall", tokens=entry.tokens) for entry in missed[:_NEAR_MISSES]
    )


def is_code(entry: Entry) -> bool:
    """Whether an entry is code or tool output, which has a room of its own."""
    return entry.role == "tool" or entry.kind in ("code", "tool_output") or "```" in entry.text


def _offers(found: Found, ranked: Sequence[RankedEntry], *, code_room: int) -> list[Offer]:
    offers: list[Offer] = []
    code = 0
    for one in ranked:
        entry = found.entries[one.sequence]
        tokens = _price(entry)
        if is_code(entry) and entry.role != "user":
            if code + tokens > code_room:
                continue
            code += tokens
        total = max(len(entry.text), 1)
        pieces = tuple(
            PassageOffer(
                score=score,
                tokens=_POINTER_TOKENS + math.ceil(tokens * (passage.stop - passage.start) / total * 1.2),
            )
            for passage, score in zip(found.passages[one.sequence], one.passage_scores, strict=True)
        )
        offers.append(
            Offer(
                sequence=one.sequence,
                score=one.score,
                tokens=tokens,
                sitting=found.sittings[one.sequence],
                passages=pieces if len(pieces) > 1 else (),
            )
        )
    return offers


def _price(entry: Entry) -> int:
    """Tokens of an entry as one quote, from the count that was made when it came in."""
    return max(entry.tokens - _FRAMING_BEYOND_A_QUOTE - (_NAME_BEYOND_A_QUOTE if entry.name else 0), 1)


def _quoted(found: Found, seq: int, chosen: tuple[int, ...] | None) -> Quoted:
    entry = found.entries[seq]
    if chosen is None:
        return Quoted(entry=entry)
    pieces = tuple(entry.text[found.passages[seq][one].start : found.passages[seq][one].stop] for one in chosen)
    return Quoted(entry=entry, passages=pieces)
