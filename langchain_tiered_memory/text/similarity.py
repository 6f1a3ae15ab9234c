"""Finds texts that say nearly the same as an earlier one, so that a condensation tells it once.

Near means: nearly the same words in nearly the same order (Jaccard similarity of runs of four words, Broder 1997),
*and* the same numbers, negations and identifiers. Two build logs that differ in one figure are two things, however
much they share; so only texts with the same of these are compared.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.readings import READ_CHARS, read_once

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

SIMILARITY = 0.8
"""Least Jaccard similarity of what counts as near-equal."""

_SHINGLE_WORDS = 4
_MIN_WORDS = 8  # "Yes, please." twice answers two questions
_COMPARED = 32  # of the texts with the same of these, the latest
_WORD = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]|\\w+(?:['\u2019]\\w+)?"
)
_NEGATION = re.compile(
    r"(?:no|not|never|none|cannot|without|nicht|kein\w{0,4}|nie|ne|pas|jamais|non|nunca|sin|\w{1,12}n['\u2019]t|\u4e0d"
    r"|\u6ca1|\u672a|\u7121)\Z"
)


_MARKS = ".,:;!\u2026\"'()[]`*\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u3002\uff01\u3001\uff0c"


@read_once
def wording(text: str) -> str:
    """The words of a text, by which two say the same: in one case, without the marks around them but a question's."""
    return " ".join([bare for word in text.casefold().split() if (bare := word.strip(_MARKS))])


def near_duplicates(texts: Sequence[str]) -> dict[int, int]:
    """Index of each near-duplicate -> index of the first text that says nearly the same (itself no duplicate).

    Texts of fewer than eight words are never duplicates, and of a blob only an equal one is. Case and spacing do not
    matter. Deterministic.
    """
    found: dict[int, int] = {}
    equal: dict[str, int] = {}
    telling: dict[tuple[str, ...], list[tuple[int, frozenset[str]]]] = {}
    for index, text in enumerate(texts):
        words = _WORD.findall(text)
        if len(words) < _MIN_WORDS:
            continue
        key = " ".join(text.casefold().split())
        if key in equal:
            found[index] = equal[key]
            continue
        equal[key] = index
        if len(text) > READ_CHARS:
            continue
        folded = [word.casefold() for word in words]
        runs = (" ".join(folded[start : start + _SHINGLE_WORDS]) for start in range(len(folded) - _SHINGLE_WORDS + 1))
        shingles = frozenset(runs)
        others = telling.setdefault(tuple(sorted(_telling(words))), [])
        twin = next((other for other, its in others[-_COMPARED:] if are_alike(shingles, its)), None)
        if twin is not None:
            found[index] = equal[key] = twin
            continue
        others.append((index, shingles))
    return found


def are_alike(one: AbstractSet[str], other: AbstractSet[str]) -> bool:
    """Whether two sets are near-equal."""
    return len(one & other) >= SIMILARITY * len(one | other)


def _telling(words: Sequence[str]) -> Iterator[str]:
    """The words that change what is said: with digits, negating, or with capitals inside."""
    for word in words:
        low = word.casefold()
        if word[1:] != low[1:] or _NEGATION.match(low) or "_" in word or any(map(str.isdigit, word)):
            yield low
