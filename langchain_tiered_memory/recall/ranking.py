"""Ranks what the indexes found for a question: which entries of a conversation answer it.

The parts, in their order: BM25 over passages and their cosine similarity, each brought to 0..1; the best passage of an
entry speaks for it; a weighted sum of the two; then what stands around an entry counts as well, as an answer often
stands beside the words of its question: its neighbours and the best of its sitting. Last come signals of the question:
who is named, when, and whether a time is asked for. What an entry costs is not judged here but where a budget is filled
(`filling`). The figures were chosen on three sets of conversations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from langchain_tiered_memory.recall.fusion import (
    Places,
    Scores,
    above_floor,
    best_of_each,
    bm25,
    from_neighbours,
    over_best,
    sitting_means,
)
from langchain_tiered_memory.recall.questions import Question
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.text.time_expressions import Interval
from langchain_tiered_memory.types.records import TextStatistics

TIME_TERMS = frozenset(
    analyse(
        "yesterday today tonight tomorrow ago last next week month year weekend morning night day monday tuesday"
        " wednesday thursday friday saturday sunday january february march april june july august september october"
        " november december spring summer autumn fall winter recently since soon just"
    )
)
"""Terms of entries that tell when."""

_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWeights:
    """The parameters of the ranking."""

    lexical: float = 0.5
    """Share of BM25 in the fused score; the rest is similarity."""
    similar_passages: int = 300
    """Depth of the similarity scale: the passage of this rank and all below count 0. Fetch at least as many."""
    before: tuple[float, ...] = (0.3, 0.15)
    """What the entry one before, two before, ... adds to an entry, as a factor of its own fused score."""
    after: tuple[float, ...] = (0.25, 0.15)
    """The same for the entries that follow."""
    sitting: float = 0.3
    """What the sitting adds: a factor of the mean of its best entries."""
    sitting_best: int = 2
    """How many entries stand for a sitting."""
    speaker: float = 0.6
    """How much more an entry counts that is said by the one speaker whom the question names."""
    person: float = 0.3
    """How much more an entry counts that a person said, not an assistant: questions are mostly about their facts."""
    time: float = 1.0
    """How much more an entry counts that is of the time which the question names."""
    time_decay_days: float = 2.0
    """An event is also told of afterwards: days (plus `time_decay_share`) after which that counts 1/e as much."""
    time_decay_share: float = 0.15
    """The share of the named interval's own length that is added to `time_decay_days`."""
    time_words: float = 0.2
    """How much more an entry with time words counts when a time is asked for."""
    contentless: float = 0.6
    """How much less an entry without any term counts ("Wow!"); fades as terms come in. So much less counts also what
    says nothing but the question's own words: an earlier asking is no answer."""
    contentless_terms: float = 3.0
    """The number of terms at which that loss has fallen to 1/e."""


WEIGHTS = RankingWeights()
"""The parameters, as they were chosen."""


class Candidate(NamedTuple):
    """An entry that an index found, or that stands beside one: a question weighs a thousand."""

    sequence: int
    """Its place in the conversation."""
    sitting: int
    """Which sitting it belongs to; neighbours of another sitting are none."""
    terms: tuple[str, ...]
    """Of each of its passages in their order, as the text index stores them: `analyse(text)`, joined by spaces."""
    similarities: tuple[float | None, ...]
    """Of each passage the cosine with the question, -1 to 1; `None` where the vector index did not return it."""
    speaker: str = ""
    """Who said it, spelt as in the `speakers` that the question was read with."""
    by_person: bool = False
    """Whether a person said it, in a conversation with an assistant or with other persons."""
    time: datetime | None = None
    """When it was said; with a time zone if and only if the question's `now` had one."""


class RankedEntry(NamedTuple):
    """An entry with its score."""

    sequence: int
    score: float
    """Higher is better; comparable within one question only."""
    own_score: float
    """Without what the sitting that matches least adds, for every entry gains that much: where all was said in one
    sitting, as much as its best entries are worth. So what matches nothing has next to nothing."""
    passage_scores: tuple[float, ...]
    """The fused score of each passage, in their order, 0 to 1."""
    shared: tuple[float, ...] = ()
    """For each stretch of the question how much the terms tell that the best passage shares with it, in nats."""
    adds: bool = True
    """Whether it says anything that the question does not."""


def rank(
    question: Question, candidates: Sequence[Candidate], *, collection: TextStatistics
) -> tuple[list[RankedEntry], dict[str, float]]:
    """The candidates, best first, equal ones in the order of the conversation; and what each term tells, in nats.

    `collection` is all that was indexed.
    """
    entries = sorted((one for one in candidates if one.terms), key=lambda one: one.sequence)
    if not entries:
        return [], {}
    words = [terms.split() for entry in entries for terms in entry.terms]
    owners = np.repeat(np.arange(len(entries)), [len(entry.terms) for entry in entries])
    matched, shared_nats, nats = bm25(
        question.terms,
        words,
        stretches=[one.terms | one.pairs for one in question.stretches],
        passage_count=collection.passages,
        average_terms=collection.average_terms,
        document_frequency=collection.document_frequency,
    )
    lexical = over_best(matched)
    dense = above_floor([one for entry in entries for one in entry.similarities], depth=WEIGHTS.similar_passages)
    has_dense = dense.max(initial=0.0) > 0
    share = WEIGHTS.lexical if has_dense else 1.0
    fused = share * best_of_each(lexical, owners, count=len(entries))
    fused += (1 - share) * best_of_each(dense, owners, count=len(entries))
    shared_of = np.array([best_of_each(row, owners, count=len(entries)) for row in shared_nats])
    around, shared = _around(fused, entries)
    asked = question.terms.union(*(one.terms for one in question.stretches))
    adds = best_of_each(np.array([not asked.issuperset(one) for one in words]), owners, count=len(entries))
    signals = _signals(question, entries, words, owners)
    signals[(adds == 0) & (shared_of.sum(axis=0) > 0)] *= 1 - WEIGHTS.contentless
    scores = around * signals
    own_scores = scores - shared * signals
    order = np.argsort(-scores, kind="stable").tolist()
    # As lists: numbers are taken out of those faster than one by one out of an array.
    totals, owns, pieces = scores.tolist(), own_scores.tolist(), (share * lexical + (1 - share) * dense).tolist()
    rows, new = shared_of.T.tolist(), (adds > 0).tolist()
    starts = [*np.flatnonzero(np.diff(owners, prepend=-1)).tolist(), len(pieces)]
    found = [
        RankedEntry(
            sequence=entries[place].sequence,
            score=totals[place],
            own_score=owns[place],
            shared=tuple(rows[place][: len(question.stretches)]),
            adds=new[place],
            passage_scores=tuple(pieces[starts[place] : starts[place + 1]]),
        )
        for place in order
    ]
    return found, nats


def _around(fused: Scores, entries: Sequence[Candidate]) -> tuple[Scores, float]:
    """`fused` with what the neighbours and the sitting of each entry add; and what the sittings add to all alike."""
    sequences = np.array([entry.sequence for entry in entries])
    sittings = np.array([entry.sitting for entry in entries])
    neighbours = from_neighbours(fused, sequences, sittings, before=WEIGHTS.before, after=WEIGHTS.after)
    lifts = WEIGHTS.sitting * sitting_means(fused, sittings, best=WEIGHTS.sitting_best)
    return fused + neighbours + lifts, float(lifts.min())


def _signals(
    question: Question,
    entries: Sequence[Candidate],
    words: Sequence[Sequence[str]],
    owners: Places,
) -> Scores:
    """The factor that each entry's score is multiplied by."""
    term_counts = np.bincount(owners, weights=[len(terms) for terms in words], minlength=len(entries))
    tells_when = [not TIME_TERMS.isdisjoint(terms) for terms in words] if question.asks_when else []
    with_time = frozenset(owners[tells_when].tolist() if tells_when else ())
    factors = np.ones(len(entries))
    for place, entry in enumerate(entries):
        if entry.speaker in question.speakers:
            factors[place] += WEIGHTS.speaker
        if entry.by_person:
            factors[place] += WEIGHTS.person
        if place in with_time:
            factors[place] += WEIGHTS.time_words
        if question.intervals and entry.time:
            factors[place] += WEIGHTS.time * max(_closeness(entry.time, interval) for interval in question.intervals)
    return factors * (1 - WEIGHTS.contentless * np.exp(-term_counts / WEIGHTS.contentless_terms))


def _closeness(time: datetime, interval: Interval) -> float:
    """1 within the interval, falling to 0 after it, 0 before."""
    if time < interval.start:
        return 0.0
    if time < interval.stop:
        return 1.0
    length = (interval.stop - interval.start) / _DAY
    return math.exp(-((time - interval.stop) / _DAY) / (WEIGHTS.time_decay_days + WEIGHTS.time_decay_share * length))
