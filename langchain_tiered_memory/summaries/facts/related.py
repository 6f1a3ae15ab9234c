"""Which statements that are kept a new message may be about: those it may change, before those it only names.

A change need not repeat a word: "due at the end of April", then "I hand in mid-July". So beside what shares words
stands what has a day, a month or a figure where the messages have one; and, where vectors are at hand, what is near.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import zip_longest
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.clauses import read
from langchain_tiered_memory.summaries.facts.signs import IN_WORDS, SETTLING
from langchain_tiered_memory.text.lexicon import COMMON
from langchain_tiered_memory.text.sentences import sentences
from langchain_tiered_memory.text.terms import BM25_LENGTH_SHARE, BM25_SATURATION, analyse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from langchain_tiered_memory.types.records import Fact

COMMON_TERMS = frozenset(analyse(" ".join(COMMON)))
"""Words that are rare only by chance: what they say is common."""
SAYS_NOT_WHAT = COMMON_TERMS | frozenset(analyse(" ".join(SETTLING)))
"""Words that say that something changes, and not what."""
_LEAST_WORDS = 2
"""That a sentence shares with a statement which it may be about."""
_FEW, _FEW_OF_A_CHANGE = 2, 5
"""Statements that have a word which is enough; the latter in a sentence that settles something, or has a figure of the
same form."""
SAME, _OF_THE_MOST_ALIKE = 0.2, 0.5
"""Of what a text and a statement tell, what is the same where it replaces it; and of that share of the statement most
like it."""
_OF_ITS_SUBJECT = 2 / 3
"""Of the words of what a statement is about, those in a text that replaces it. Of 265 notes that readers replaced 260
have this or both of the others; of 2,097 others that they were shown 169 have, and 1,238 share some word that is not
common."""
_FIGURE = re.compile(r"\d(?:[\d.,:/-]{0,20}\d)?")
_DIGITS = re.compile(r"\d+")
_WORD = re.compile(r"[a-z]{1,20}")
_CODE = re.compile(r"[#\w-]{0,40}[^\W\d][#\w-]{0,40}")
"""A word, and what is no figure because it is part of one: "QX-104"."""


def by_words(facts: Sequence[Fact], query: str) -> list[Fact]:
    """The facts that share words with a question, best first, by BM25."""
    wanted = list(dict.fromkeys(analyse(query)))
    said = [Counter(analyse(f"{fact.subject} {fact.attribute} {fact.text} {fact.value}")) for fact in facts]
    average = sum(map(Counter.total, said)) / len(said) if said else 1.0
    holders = {term: sum(term in one for one in said) for term in wanted}
    scored: list[tuple[float, Fact]] = []
    for fact, terms in zip(facts, said, strict=True):
        score = 0.0
        for term in wanted:
            if terms[term]:
                length = 1 - BM25_LENGTH_SHARE + BM25_LENGTH_SHARE * terms.total() / average
                rarity = math.log(1 + (len(facts) - holders[term] + 0.5) / (holders[term] + 0.5))
                score += rarity * terms[term] * (BM25_SATURATION + 1) / (terms[term] + BM25_SATURATION * length)
        if score:
            scored.append((score, fact))
    scored.sort(key=lambda one: (-one[0], -one[1].weight, -one[1].seq))
    return [fact for _, fact in scored]


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
        for term in frozenset(analyse(fact.text)) - SAYS_NOT_WHAT:
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


def alike(text: str, kept: Sequence[Fact]) -> list[float]:
    """Of what a text and each of some statements tell, the share that both tell: 0 to 1.

    A word tells the more the fewer of them have it. That something changes tells nothing of what.
    """
    theirs = [frozenset(analyse(fact.text)) - SAYS_NOT_WHAT for fact in kept]
    having, mine = Counter(term for terms in theirs for term in terms), frozenset(analyse(text)) - SAYS_NOT_WHAT

    def told(terms: frozenset[str]) -> float:
        return sum(math.log(1 + len(kept) / max(having[term], 1)) for term in sorted(terms))

    return [told(mine & its) / (math.sqrt(told(mine) * told(its)) or 1.0) for its in theirs]


def may_replace(kept: Sequence[Fact], text: str) -> set[int]:
    """Places of the statements that a text may stand in the place of: it names what they are about, or tells of them.

    In the latter case it tells of hardly another more. Words that are common count where a statement is about nothing
    else ("importer" has the stem of "important").
    """
    shares, mine = alike(text, kept), frozenset(analyse(text))
    least = max(SAME, _OF_THE_MOST_ALIKE * max(shares, default=0.0))
    terms = [frozenset(analyse(fact.subject)) for fact in kept]
    about = [its - SAYS_NOT_WHAT or its for its in terms]
    named = {place for place, its in enumerate(about) if its and len(its & mine) >= _OF_ITS_SUBJECT * len(its)}
    return named | {place for place, share in enumerate(shares) if share >= least}


def alike_in_form(kept: Sequence[Fact], texts: Sequence[str]) -> dict[int, float]:
    """Places of the statements that have figures, days or months where one sentence has such.

    Returns:
        How much that tells: by how few statements have the forms that are shared, and the less the more others there
        are in either.
    """
    mine = [_measures_in(fact.text) for fact in kept]
    having = Counter(form for forms in mine for form in forms)
    theirs = {_measures_in(one) for text in texts for one in sentences(text)}
    found: dict[int, float] = {}
    for place, forms in enumerate(mine):
        told = (
            sum(math.log(1 + len(kept) / having[form]) for form in sorted(forms & its)) / len(forms | its)
            for its in theirs
            if not forms.isdisjoint(its)
        )
        if best := max(told, default=0.0):
            found[place] = best
    return found


def in_turn(kept: Sequence[Fact], *found: Mapping[int, float]) -> Iterator[int]:
    """The places that were found, each once: the first of each of `found`, then the second; of equals the newest."""
    ranked = [sorted(one, key=lambda place: (one[place], kept[place].seq), reverse=True) for one in found]
    return iter(dict.fromkeys(place for row in zip_longest(*ranked) for place in row if place is not None))


def _measures_in(text: str) -> frozenset[str]:
    words = frozenset(_WORD.findall(text.casefold()))
    return _forms_in(_CODE.sub("", text)) | {name for name, said in IN_WORDS.items() if not said.isdisjoint(words)}


def _forms_in(text: str) -> frozenset[str]:
    return frozenset(_DIGITS.sub("0", figure) for figure in _FIGURE.findall(text))
