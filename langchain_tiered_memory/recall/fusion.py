"""The arithmetic of ranking: BM25, and how scores are normalised, gathered and spread. Arrays in, arrays out."""

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from langchain_tiered_memory.text.terms import BM25_LENGTH_SHARE, BM25_SATURATION

Scores = NDArray[np.float64]
Places = NDArray[np.intp]


def bm25(
    terms: Collection[str],
    passages: Sequence[Sequence[str]],
    *,
    stretches: Sequence[Collection[str]] = (),
    passage_count: int,
    average_terms: float,
    document_frequency: Mapping[str, int],
) -> tuple[Scores, Scores, dict[str, float]]:
    """BM25 of each passage (its terms in `passages`) for the query `terms`; 0 where none occurs.

    A query of several `stretches` is long: it is scored stretch by stretch, and of those the root of the sum of squares
    is taken, so that a passage which has all of one stands before one that has a word of each.

    Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), equation 3.15, with the
    inverse document frequency that Lucene uses (never negative). The last three figures are of the whole index, so
    that a score does not depend on which candidates stand beside it.

    A stretch holds terms, and pairs of them joined by a space. That a passage too has both side by side tells more than
    that it has both: as much as few of the others with both have them so, and it would hardly be by chance. In the
    scores pairs do not count, for what is said in other words is found by single ones.

    Returns:
        The scores; for each stretch a row of what its terms and pairs in each passage tell together, in nats; and what
        each term and each pair tells.
    """
    lengths = np.array([len(passage) for passage in passages], dtype=np.float64)
    saturation = BM25_SATURATION * (1 - BM25_LENGTH_SHARE + BM25_LENGTH_SHARE * lengths / max(average_terms, 1.0))
    together = stretches or (frozenset(terms),)
    pairs = frozenset(one for stretch in together for one in stretch if " " in one)
    wanted = frozenset(terms)
    counts = defaultdict[str, Scores](lambda: np.zeros(len(passages)))
    for place, passage in enumerate(passages):
        there = wanted.intersection(passage)
        for term in there:
            counts[term][place] = passage.count(term)
        for one in pairs.intersection(side_by_side(passage, there)):
            counts[one][place] = 1
    nats = {term: idf_of(document_frequency.get(term, 0), passage_count) for term in wanted}
    for one in pairs & counts.keys():
        first, second = one.split(" ")
        both, others = np.count_nonzero(counts[first] * counts[second]), np.count_nonzero(counts[one]) - 1
        nats[one] = math.log(both / (others + 1 / max(average_terms, 1.0)))
    scores, shared = np.zeros((2, len(together), len(passages)))
    for term in sorted(nats.keys() & counts.keys()):  # in one order, so that equal passages score equally everywhere
        count = counts[term]
        score = nats[term] * (BM25_SATURATION + 1) * count / (count + saturation) if term in wanted else 0.0
        for row, stretch in enumerate(together):
            if term in stretch:
                scores[row] += score
                shared[row] += np.where(count > 0, nats[term], 0.0)
    return (scores[0] if len(together) == 1 else np.sqrt(np.square(scores).sum(axis=0))), shared, nats


def side_by_side(words: Sequence[str], among: Collection[str]) -> list[str]:
    """Each two words that stand side by side, both `among` these, joined by a space."""
    beside = pairwise(words) if len(among) > 1 else ()
    return [f"{one} {after}" for one, after in beside if one in among and after in among]


def idf_of(frequency: int, passage_count: int) -> float:
    """How much a term tells that stands in so many of the passages, in nats."""
    there = min(max(frequency, 1), passage_count)
    return math.log1p((passage_count - there + 0.5) / (there + 0.5))


def over_best(scores: Scores) -> Scores:
    """`scores` (at least 0) as shares of the best; all 0 if that is 0."""
    best = float(scores.max(initial=0.0))
    return scores / (best if best > 0 else 1.0)


def above_floor(similarities: Sequence[float | None], *, depth: int) -> Scores:
    """Similarities between the best (1) and the `depth`th best (0); 0 below and where there is none.

    A fixed depth keeps the scale where it is, however many more the index returned.
    """
    known = np.array([np.nan if value is None else value for value in similarities], dtype=np.float64)
    found = np.sort(known[~np.isnan(known)])[::-1]
    if not len(found):
        return np.zeros(len(known))
    best, floor = found[0], found[min(depth, len(found)) - 1]
    if best <= floor:
        return np.where(np.isnan(known), 0.0, 1.0)
    scaled: Scores = np.clip((np.nan_to_num(known, nan=floor) - floor) / (best - floor), 0.0, 1.0)
    return scaled


def best_of_each(scores: Scores, owners: Places, *, count: int) -> Scores:
    """For each of `count` owners the best of its scores (at least 0); 0 for one that has none."""
    best = np.zeros(count)
    np.maximum.at(best, owners, scores)
    return best


def from_neighbours(
    scores: Scores,
    sequences: Places,
    sittings: Places,
    *,
    before: Sequence[float],
    after: Sequence[float],
) -> Scores:
    """What each entry gets from those before and after it in the same sitting.

    `before[0]` is the factor for the entry directly before, `before[1]` for the one before that; `after` alike. Entries
    are in the order of `sequences`, which may have gaps: an entry that is no candidate gives nothing.
    """
    gained = np.zeros(len(scores))
    for reach in range(1, max(len(before), len(after)) + 1):
        place = np.searchsorted(sequences, sequences + reach)
        earlier = np.flatnonzero(place < len(sequences))
        later = place[earlier]
        beside = (sequences[later] == sequences[earlier] + reach) & (sittings[later] == sittings[earlier])
        earlier, later = earlier[beside], later[beside]
        if reach <= len(before):
            gained[later] += before[reach - 1] * scores[earlier]
        if reach <= len(after):
            gained[earlier] += after[reach - 1] * scores[later]
    return gained


def sitting_means(scores: Scores, sittings: Places, *, best: int) -> Scores:
    """For each entry the mean of the `best` best scores of its sitting (of all, where it has fewer)."""
    order = np.lexsort((-scores, sittings))
    starts = np.flatnonzero(np.r_[True, np.diff(sittings[order]) != 0])
    rank_within = np.arange(len(scores)) - np.repeat(starts, np.diff(np.r_[starts, len(scores)]))
    top = rank_within < best
    sums = np.add.reduceat(np.where(top, scores[order], 0.0), starts)
    counts = np.add.reduceat(top.astype(np.float64), starts)
    means = np.empty(len(scores))
    means[order] = np.repeat(sums / counts, np.diff(np.r_[starts, len(scores)]))
    return means
