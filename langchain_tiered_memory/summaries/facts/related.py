"""Which statements that are kept a new message may be about: those it may change, before those it only names."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.signs import SETTLING
from langchain_tiered_memory.summaries.facts.statements import read
from langchain_tiered_memory.text.lexicon import COMMON
from langchain_tiered_memory.text.sentences import sentences
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Fact

COMMON_TERMS = frozenset(analyse(" ".join(COMMON)))
"""Words that are rare only by chance: what they say is common."""
_SAYS_NOT_WHAT = COMMON_TERMS | frozenset(analyse(" ".join(SETTLING)))
"""Words that say that something changes, and not what."""
_LEAST_WORDS = 2
"""That a sentence shares with a statement which it may be about."""
_FEW, _FEW_OF_A_CHANGE = 2, 5
"""Statements that have a word which is enough; the latter in a sentence that settles something, or has a figure of the
same form."""
_FIGURE = re.compile(r"\d(?:[\d.,:/-]{0,20}\d)?")
_DIGITS = re.compile(r"\d+")


def form_of(value: str) -> str:
    """The form of a value that is a figure: "14:05" has that of "9:30"; empty for any other."""
    figure = _FIGURE.match(value)
    return _DIGITS.sub("0", figure[0]) if figure else ""


def related(kept: Sequence[Fact], texts: Sequence[str]) -> dict[int, float]:
    """Places of the statements that a sentence names something of, each with how likely it changes them.

    Words count of what a statement is about, and others that few statements have: how a thing was said tells nothing of
    which it is. One that few have is enough, and more may have it where the sentence settles something, or has a figure
    of the form that the statement has: "they changed her train, it's 15:40 now".

    Returns:
        How much is named, by how few statements have the words, and once more for each sign of a change, 0 to 2.
    """
    having: dict[str, list[int]] = {}
    about, figures = [frozenset(analyse(fact.subject)) for fact in kept], [_forms_in(fact.text) for fact in kept]
    for place, fact in enumerate(kept):
        for term in frozenset(analyse(fact.text)) - _SAYS_NOT_WHAT:
            having.setdefault(term, []).append(place)
    found: dict[int, float] = {}
    for sentence in (one for text in texts for one in sentences(text)) if kept else ():
        settles, forms = "settles" in read(sentence).signs, _forms_in(sentence)
        here: dict[int, list[str]] = {}
        for term in sorted(having.keys() & analyse(sentence)):
            for place in having[term]:
                here.setdefault(place, []).append(term)
        for place, terms in here.items():
            changes = settles + (not forms.isdisjoint(figures[place]))
            few = _FEW_OF_A_CHANGE if changes else _FEW
            words = [term for term in terms if term in about[place] or len(having[term]) <= few]
            named = any(len(having[term]) <= few for term in words)
            if named or len(words) >= _LEAST_WORDS:
                told = sum(math.log(1 + len(kept) / len(having[term])) for term in words)
                found[place] = max(found.get(place, 0.0), told * (1 + (changes if named else 0)))
    return found


def _forms_in(text: str) -> frozenset[str]:
    return frozenset(_DIGITS.sub("0", figure) for figure in _FIGURE.findall(text))
