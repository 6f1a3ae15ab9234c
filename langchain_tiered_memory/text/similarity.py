"""Finds texts that say nearly the same as an earlier one, so that a condensation tells it once.

Near means: nearly the same words in nearly the same order (Jaccard similarity of runs of four words, Broder 1997),
*and* the same numbers, negations and identifiers. Two build logs that differ in one figure are two things, however
much they share. Candidates come from an index of each text's smallest shingle hashes (bottom-k sketch), so the cost
grows with the length of the texts and not with the number of pairs.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SIMILARITY = 0.8
"""Least Jaccard similarity of two texts that count as near-equal."""

_SHINGLE_WORDS = 4
_SKETCH_HASHES = 12  # two texts of similarity 0.8 share none of the twelve smallest about once in 10^8
_MAX_BUCKET = 32  # texts that share a boilerplate shingle: only the latest are compared
_MIN_WORDS = 8  # "Yes, please." twice answers two questions
_MAX_WORDS = 20_000  # beyond this only equal texts count: shingling a blob is not worth its seconds
_WORD = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]|\\w+(?:['\u2019]\\w+)?"
)
_NEGATION = re.compile(
    r"(?:no|not|never|none|cannot|without|nicht|kein\w{0,4}|nie|ne|pas|jamais|non|nunca|sin|\w{1,12}n['\u2019]t|\u4e0d"
    r"|\u6ca1|\u672a|\u7121)\Z"
)


_MARKS = ".,:;!\u2026\"'()[]`*\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u3002\uff01\u3001\uff0c"


def wording(text: str) -> str:
    """The words of a text, by which two say the same: in one case, without the marks around them but a question's."""
    return " ".join(filter(None, (word.strip(_MARKS) for word in text.casefold().split())))


@dataclass(frozen=True, slots=True)
class _Shape:
    shingles: frozenset[int]
    telling: Counter[str]
    """Words that change what is said: with digits, negating, or with capitals inside."""


def near_duplicates(texts: Sequence[str]) -> dict[int, int]:
    """Index of each near-duplicate -> index of the first text that says nearly the same (itself no duplicate).

    Texts of fewer than eight words are never duplicates. Case and spacing do not matter. Deterministic.
    """
    found: dict[int, int] = {}
    equal: dict[str, int] = {}
    shapes: dict[int, _Shape] = {}
    buckets: dict[int, list[int]] = {}
    for index, text in enumerate(texts):
        words = _WORD.findall(text)
        if len(words) < _MIN_WORDS:
            continue
        key = " ".join(text.casefold().split())
        if key in equal:
            found[index] = equal[key]
            continue
        equal[key] = index
        if len(words) > _MAX_WORDS:
            continue
        shape = _shape(words)
        sketch = sorted(shape.shingles)[:_SKETCH_HASHES]
        candidates = sorted({other for value in sketch for other in buckets.get(value, ())[-_MAX_BUCKET:]})
        twin = next((other for other in candidates if _alike(shape, shapes[other])), None)
        if twin is not None:
            found[index] = equal[key] = twin
            continue
        shapes[index] = shape
        for value in sketch:
            buckets.setdefault(value, []).append(index)
    return found


def _shape(words: list[str]) -> _Shape:
    folded = [word.casefold() for word in words]
    runs = (" ".join(folded[start : start + _SHINGLE_WORDS]) for start in range(len(folded) - _SHINGLE_WORDS + 1))
    telling = Counter(
        low
        for word, low in zip(words, folded, strict=True)
        if word[1:] != low[1:] or _NEGATION.match(low) or "_" in word or any(map(str.isdigit, word))
    )
    return _Shape(frozenset(zlib.crc32(run.encode("utf-8", "surrogatepass")) for run in runs), telling)


def _alike(one: _Shape, other: _Shape) -> bool:
    if one.telling != other.telling:
        return False
    shared = len(one.shingles & other.shingles)
    return shared >= SIMILARITY * (len(one.shingles) + len(other.shingles) - shared)
