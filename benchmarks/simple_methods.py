"""Simple methods of choosing what a model gets to see, to measure a memory against.

Each ranks the turns of a conversation for a question (or takes the latest) and fills the budget with whole turns; a
turn that no longer fits is passed over and the next one tried. They are strong: fusing stemmed BM25 with sentence
vectors is what many memory products do.

The prices are the same for every method (`evidence.py`). Turns are whole or absent.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import snowballstemmer

from benchmarks.asked_conversations import WINDOW, countable
from benchmarks.evidence import Outcome, measure, outcome_of, priced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from langchain_core.embeddings import Embeddings
    from numpy.typing import NDArray

    from benchmarks.evidence import Measured, PricedTurns
    from langchain_tiered_memory.conversations import Conversation
    from langchain_tiered_memory.protocols import TokenCounter

    Order: TypeAlias = NDArray[np.intp]
    Scores: TypeAlias = NDArray[np.floating]


_K1 = 1.5
_B = 0.75
_FLOOR = 0.25
"""Share of the average weight that a term gets whose own would be negative."""
Chosen: TypeAlias = dict[str, dict[int, frozenset[int]]]
"""Per method and budget, the indexes of the turns shown."""
HALF: Final = "half window, half fused"
USER_ONLY: Final = "user turns only"
"""As `fused chunked`, but knowing that questions are about what the user said: reported, and nobody's target."""
_FUSION = 60
"""Cormack, Clarke and Büttcher, *Reciprocal Rank Fusion* (2009): the constant of their experiments."""
_TRIED = 1000
"""Ranked turns that are tried before a method stops."""
_NOTHING_FITS = 8
"""With fewer tokens left than this no turn is tried."""
_CHUNK_WORDS = 100
_STOPWORDS = frozenset(
    (  # noqa: SIM905 - sixty words read better as a sentence
        "a an and are as at be but by did do does for from had has have he her his how i in is it its me my of on "
        "or our she so that the their them they this to was we were what when where which who whom why will with "
        "would you your"
    ).split()
)
_LATIN_WORD = re.compile(r"[a-z0-9]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_USERS = ("user", "human")


class Basket:
    """Takes turns while they fit the budget."""

    def __init__(self, turns: PricedTurns, max_tokens: int) -> None:
        self._turns = turns
        self._dated: set[int] = set()
        self.taken: set[int] = set()
        """Indexes of the turns in it."""
        self.left = max_tokens
        """Tokens still to spend."""

    def offer(self, indexes: Iterable[int]) -> bool:
        """Take all of these turns if they fit together, else none; says whether they fitted."""
        new = {index for index in indexes if index not in self.taken}
        sittings = {self._turns.sittings[index] for index in new}
        cost = sum(self._turns.costs[index] for index in new)
        cost += sum(self._turns.header_costs[sitting] for sitting in sittings - self._dated)
        if cost > self.left:
            return False
        self.left -= cost
        self.taken.update(new)
        self._dated |= sittings
        return True


class Okapi:
    """Okapi BM25, in the variant of the rank-bm25 package that the published figures were made with.

    Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25 and Beyond* (2009), with k1 = 1.5 and b = 0.75.
    A term that stands in more than half of the texts would get a negative weight; as in rank-bm25's `BM25Okapi` it gets
    0.25 of the average weight instead. Each text comes as its terms, at least one.
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
        self._size = len(texts)
        weights = {
            term: math.log(self._size - len(rows) + 0.5) - math.log(len(rows) + 0.5) for term, rows in holders.items()
        }
        floor = _FLOOR * sum(weights.values()) / len(weights) if weights else 0.0
        self._weights = {term: floor if weight < 0 else weight for term, weight in weights.items()}

    def scores(self, query: Sequence[str]) -> NDArray[np.float64]:
        """The score of each text for the terms of `query`; a term that comes twice counts twice."""
        scores = np.zeros(self._size)
        for term in query:
            if term in self._postings:
                where, counts = self._postings[term]
                scores[where] += self._weights[term] * (counts * (_K1 + 1) / (counts + self._length_terms[where]))
        return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexes:
    """What the methods search in one conversation."""

    turns: PricedTurns
    spans: tuple[tuple[int, int], ...]
    """Of each sitting, its first turn and the one after its last."""
    by_user: tuple[bool, ...]
    """Whether a turn is by the user of an assistant (roles `user` and `human`)."""
    words: Okapi
    stems: Okapi
    vectors: NDArray[np.float32] | None
    """One per turn; `None` without an embedder, and then there are no dense methods."""
    chunk_vectors: NDArray[np.float32] | None
    chunk_owners: NDArray[np.intp]
    """Of each chunk, the index of its turn."""


def index_turns(turns: PricedTurns, embeddings: Embeddings | None) -> Indexes:
    """Everything the methods need to know of a conversation before a question comes."""
    chunks = [(index, chunk) for index, line in enumerate(turns.lines) for chunk in _chunks(line)]
    return Indexes(
        turns=turns,
        spans=_spans(turns),
        by_user=tuple(line.partition(": ")[0] in _USERS for line in turns.lines),
        words=Okapi([_words(line) or ["_"] for line in turns.lines]),
        stems=Okapi([_stems(line) or ["_"] for line in turns.lines]),
        vectors=embedded(embeddings, turns.lines) if embeddings else None,
        chunk_vectors=embedded(embeddings, [chunk for _, chunk in chunks]) if embeddings else None,
        chunk_owners=np.array([index for index, _ in chunks], dtype=np.intp),
    )


def _spans(turns: PricedTurns) -> tuple[tuple[int, int], ...]:
    sittings = turns.sittings
    starts = [0, *(index for index in range(1, len(sittings)) if sittings[index] != sittings[index - 1])]
    bounds = dict(
        zip((sittings[start] for start in starts), zip(starts, [*starts[1:], len(sittings)], strict=True), strict=True)
    )
    return tuple(bounds.get(number, (0, 0)) for number in range(len(turns.header_costs)))


def choose(indexes: Indexes, question: str, budgets: Sequence[int], *, vector: Scores | None, seed: int) -> Chosen:
    """What each method shows for `question` within each of `budgets`, in tokens; `vector` is for the dense methods."""
    turns, size = indexes.turns, len(indexes.turns.ids)

    def filled(order: Iterable[int], *, neighbours: int = 0) -> Callable[[int], set[int]]:
        return lambda budget: _fill(indexes, order, Basket(turns, budget), neighbours=neighbours)

    stems = _hits(indexes.stems.scores(_stems(question)))
    methods: dict[str, Callable[[int], set[int]]] = {
        "random turns": filled(np.random.default_rng(seed).permutation(size)),
        WINDOW: turns.window,
        "BM25": filled(_then_latest(_hits(indexes.words.scores(_words(question))), size)),
        "BM25 stemmed": filled(_then_latest(stems, size)),
    }
    if vector is not None and indexes.vectors is not None and indexes.chunk_vectors is not None:
        dense, best = _best_first(indexes.vectors @ vector), np.full(size, -1.0)
        np.maximum.at(best, indexes.chunk_owners, indexes.chunk_vectors @ vector)
        chunks = _best_first(best)
        fused, fused_scores = _fuse(size, [stems, dense])
        fused_chunks, _ = _fuse(size, [stems, chunks])
        methods |= {
            "dense": filled(dense),
            "fused": filled(fused),
            "fused ±1": filled(fused, neighbours=1),
            "fused ±2": filled(fused, neighbours=2),
            "full sessions": lambda budget: _sessions(indexes, fused_scores, Basket(turns, budget)),
            "dense chunked": filled(chunks),
            "fused chunked": filled(fused_chunks),
            HALF: lambda budget: _half_and_half(indexes, fused, budget),
        }
        if any(indexes.by_user):
            methods[USER_ONLY] = filled([index for index in fused_chunks if indexes.by_user[index]])
    return {name: {budget: frozenset(fill(budget)) for budget in budgets} for name, fill in methods.items()}


def _best_first(scores: Scores) -> Order:
    return np.argsort(-scores, kind="stable")


def _hits(scores: Scores) -> Order:
    """Best first, without turns that share no word with the question."""
    order = _best_first(scores)
    return order[scores[order] > 0]


def _fuse(size: int, orders: Iterable[Order]) -> tuple[Order, Scores]:
    scores = np.zeros(size)
    for order in orders:
        scores[order] += 1.0 / (_FUSION + 1 + np.arange(len(order)))
    return _best_first(scores), scores


def _then_latest(order: Order, size: int) -> list[int]:
    """The hits, then everything else from the end backwards."""
    hits: list[int] = order.tolist()
    seen = set(hits)
    return hits + [index for index in range(size - 1, -1, -1) if index not in seen]


def _fill(indexes: Indexes, order: Iterable[int], basket: Basket, *, neighbours: int = 0) -> set[int]:
    """Fill `basket` in `order`: each hit, then its neighbours in the same sitting, nearest first."""
    for rank, hit in enumerate(order):
        if rank == _TRIED or basket.left < _NOTHING_FITS:
            break
        index = int(hit)
        first, stop = indexes.spans[indexes.turns.sittings[index]]
        basket.offer([index])
        for distance in range(1, neighbours + 1):
            for near in (index - distance, index + distance):
                if first <= near < stop:
                    basket.offer([near])
    return basket.taken


def _half_and_half(indexes: Indexes, fused: Order, budget: int) -> set[int]:
    basket = Basket(indexes.turns, budget // 2)
    basket.offer(indexes.turns.window(budget // 2))
    basket.left += budget - budget // 2
    return _fill(indexes, fused, basket, neighbours=1)


def _sessions(indexes: Indexes, scores: Scores, basket: Basket) -> set[int]:
    """Whole sittings, by their best turn."""
    best = np.array([scores[first:stop].max() if stop > first else -1.0 for first, stop in indexes.spans])
    for sitting in _best_first(best):
        basket.offer(range(*indexes.spans[sitting]))
    return basket.taken


def _words(text: str) -> list[str]:
    return [word for word in _LATIN_WORD.findall(text.lower()) if word not in _STOPWORDS]


def _stems(text: str) -> list[str]:
    return [_stem(word) for word in _words(text)]


_stem = cache(snowballstemmer.stemmer("english").stemWord)


def _chunks(line: str) -> list[str]:
    """A line in pieces of a few sentences, at most about 100 words, each with the speaker's name in front."""
    speaker, _, text = line.partition(": ")
    pieces: list[list[str]] = [[]]
    for sentence in _SENTENCE_END.split(text):
        words = sentence.split()
        if len(words) > _CHUNK_WORDS:
            whole = len(words) // _CHUNK_WORDS * _CHUNK_WORDS
            whole -= _CHUNK_WORDS if whole == len(words) else 0  # the last piece stays open, as a short sentence would
            pieces += [words[start : start + _CHUNK_WORDS] for start in range(0, whole, _CHUNK_WORDS)] + [[]]
            words = words[whole:]
        if len(pieces[-1]) + len(words) > _CHUNK_WORDS:
            pieces.append([])
        pieces[-1] = pieces[-1] + words
    return [f"{speaker}: {' '.join(words)}" for words in pieces if words] or [line]


def embedded(embeddings: Embeddings, texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors, rounded to half precision as in the published figures, so that near-ties fall the same way."""
    return np.array(embeddings.embed_documents(list(texts)), dtype=np.float32).astype(np.float16).astype(np.float32)


def measured_beside(
    conversation: Conversation, budgets: Sequence[int], *, counter: TokenCounter, embeddings: Embeddings | None
) -> Measured:
    """What `measure` finds, with the outcomes of the simple methods; without `embeddings` there are no dense ones."""
    found = measure(conversation, budgets, counter=counter, embeddings=embeddings)
    questions = countable(conversation)
    if not questions:
        return found
    turns = priced(conversation, counter.count_text)
    indexes = index_turns(turns, embeddings)
    vectors = embedded(embeddings, [question.text for question in questions]) if embeddings else None
    outcomes: list[Outcome] = []
    for number, question in enumerate(questions):
        vector = None if vectors is None else vectors[number]
        for method, by_budget in choose(indexes, question.text, budgets, vector=vector, seed=number).items():
            for budget, chosen in by_budget.items():
                whole = frozenset(turns.ids[index] for index in chosen)
                outcomes.append(outcome_of(turns, question, method, budget, whole))
    ours = [one for one in found.outcomes if one.method != WINDOW]
    return replace(found, outcomes=(*outcomes, *ours))
