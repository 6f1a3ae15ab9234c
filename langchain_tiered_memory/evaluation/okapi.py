"""Okapi BM25, in the variant of the rank-bm25 package that the published figures were made with.

Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond* (2009), with k1 = 1.5 and b = 0.75. A
term that stands in more than half of the texts would get a negative weight; as in rank-bm25's `BM25Okapi` it gets
0.25 of the average weight instead.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_K1 = 1.5
_B = 0.75
_FLOOR = 0.25
"""Share of the average weight that a term gets whose own would be negative."""


class Okapi:
    """BM25 over a fixed list of texts.

    Args:
        texts: Each as its terms, at least one.
    """

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        counts = [Counter(terms) for terms in texts]
        holders: dict[str, list[tuple[int, int]]] = {}
        for index, counted in enumerate(counts):
            for term, count in counted.items():
                holders.setdefault(term, []).append((index, count))
        lengths = np.array([len(terms) for terms in texts], dtype=float)
        self._length_terms = _K1 * (1 - _B + _B * lengths / lengths.mean())
        self._postings = {
            term: (np.array([index for index, _ in rows]), np.array([count for _, count in rows], dtype=float))
            for term, rows in holders.items()
        }
        self._weights = _weights({term: len(rows) for term, rows in holders.items()}, len(texts))
        self._size = len(texts)

    def scores(self, query: Sequence[str]) -> NDArray[np.float64]:
        """The score of each text for the terms of `query`; a term that comes twice counts twice."""
        scores = np.zeros(self._size)
        for term in query:
            if term in self._postings:
                where, counts = self._postings[term]
                scores[where] += self._weights[term] * (counts * (_K1 + 1) / (counts + self._length_terms[where]))
        return scores


def _weights(document_counts: dict[str, int], size: int) -> dict[str, float]:
    raw = {term: math.log(size - n + 0.5) - math.log(n + 0.5) for term, n in document_counts.items()}
    floor = _FLOOR * sum(raw.values()) / len(raw) if raw else 0.0
    return {term: floor if weight < 0 else weight for term, weight in raw.items()}
