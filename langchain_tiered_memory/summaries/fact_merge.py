"""Merges facts: which one supersedes which.

The rule is conservative: a fact is superseded only by a later one of its kind that is about the same thing and says
otherwise. Where it is not clear which of several earlier facts is corrected, all of them stay. So they do where the
later one weighs less: what a user said is taken back by a user, not by an assistant; what either said, not by a tool.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.figures import states_figure
from langchain_tiered_memory.text.identifiers import identifiers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Fact, FactKind, Role

SIMILARITY = 0.8
"""Jaccard similarity of words from which two facts of a kind, with the same figures and names, are one."""

WEIGHT: dict[Role, int] = {"user": 2, "other": 2, "system": 2, "assistant": 1, "tool": 0}
"""Whose word counts against whose. `other` is also who said a fact that was kept before facts had a speaker."""
_MAX_SUBJECT_WORDS = 4
_WORD = re.compile(r"\w+(?:['\u2019]\w+)?")
_EMPTY_WORDS_TEXT = (
    "a an the our my your his her its their this that these those some any new old current currently actual "
    "actually now so but and or also well oh ok okay yes no sorry is are was were be been it he she they we i you "
    "there here what which who of for in on at to by from with as per about than then just only really correct "
    "right final total exact same first as has have had will should would could can the one thing le la les un "
    "une de du des der die das ein eine den el los las una que since why if when line lines step page"
)
_EMPTY_WORDS = frozenset(_EMPTY_WORDS_TEXT.split())
_TAKEN_BACK = re.compile(
    r"\b(?:not|instead of|rather than|no longer|from|replaces?|replacing|drop(?:ping|ped)?"
    r"|over)\b[\s\"'`]{0,8}(?:the |a |at |on |in |use |using ){0,3}[\"'`]?"
    r"(?P<wrong>[$\u20ac\u00a3]?\w[\w.,:/-]{0,80}\w|\w)",
    re.IGNORECASE,
)


def subject_words(noun: str, *, speaker: str = "") -> list[str]:
    """The words of a noun phrase that say what it is about; `speaker` joins where it says "my"."""
    words = [word.casefold() for word in _WORD.findall(noun)]
    own = [speaker.casefold()] if speaker and "my" in words else []
    telling = [singular(word) for word in words if word not in _EMPTY_WORDS and len(word) > 1 and not word[0].isdigit()]
    return [*own, *telling[-_MAX_SUBJECT_WORDS:]] if telling else []


def singular(word: str) -> str:
    """A word without a plural's ending."""
    word = word.removesuffix("'s").removesuffix("\u2019s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word  # noqa: PLR2004 - "bus", "gas" keep theirs


def merge_facts(older: Sequence[Fact], newer: Sequence[Fact]) -> list[Fact]:
    """Both lists as one, oldest first: corrected facts replaced, of near-equal ones the earlier kept.

    A near-equal one of somebody whose word weighs more takes the place of the earlier: the user confirmed it.
    """
    kept: dict[int, Fact] = {}
    said: dict[int, frozenset[str]] = {}
    alike: dict[tuple[FactKind, frozenset[str]], list[int]] = {}  # near-equal ones have the same names and figures
    of_kind: dict[FactKind, list[int]] = {}
    for number, fact in enumerate(sorted((*older, *newer), key=lambda one: one.seq)):
        said[number] = words_of(fact.text)
        key = (fact.kind, identifiers(fact.text))
        near = (one for one in alike.get(key, ()) if one in kept)
        same = next((one for one in near if _same(fact, said[number], kept[one], said[one])), None)
        if same is not None and WEIGHT[fact.by] <= WEIGHT[kept[same].by]:
            continue
        about = [kept.pop(same)] if same is not None else []
        corrected = _corrected_by(fact, [kept[one] for one in of_kind.get(fact.kind, ()) if one in kept])
        for one in [one for one in of_kind.get(fact.kind, ()) if one in kept]:
            if any(kept[one] is other for other in corrected):
                del kept[one]
        about = [*corrected[-1:], *about]
        if not fact.subject and about:
            fact = replace(fact, subject=about[-1].subject)  # noqa: PLW2901 - it names what "it" is from here on
        kept[number] = fact
        alike.setdefault(key, []).append(number)
        of_kind.setdefault(fact.kind, []).append(number)
    return list(kept.values())


def words_of(text: str) -> frozenset[str]:
    """The words of a text, casefolded."""
    return frozenset(word.casefold() for word in _WORD.findall(text))


def _same(fact: Fact, said: frozenset[str], other: Fact, other_said: frozenset[str]) -> bool:
    """Whether two facts of one kind with the same names and figures say the same."""
    if fact.text == other.text:
        return True
    shared = len(said & other_said)
    return shared >= SIMILARITY * len(said | other_said) and bool(said) and _negated(said) == _negated(other_said)


def _negated(words: frozenset[str]) -> bool:
    return any(word in ("not", "never", "no", "without") or word.endswith(("n't", "n\u2019t")) for word in words)


def _corrected_by(fact: Fact, kept: Sequence[Fact]) -> list[Fact]:
    """The earlier fact that `fact` takes the place of: one, or a figure's every earlier value."""
    if fact.kind in ("goal", "question"):
        return []
    says_so = bool(cues.CORRECTION.search(cues.lowered(fact.text)))
    corrects = says_so or (fact.kind == "number" and states_figure(fact.text))
    wrong = [match["wrong"].casefold() for match in _TAKEN_BACK.finditer(fact.text)]
    about = frozenset(fact.subject.split())
    same: list[Fact] = []
    wider: list[Fact] = []
    denied: list[Fact] = []
    for other in kept:
        if WEIGHT[fact.by] < WEIGHT[other.by]:
            continue
        theirs = frozenset(other.subject.split())
        if wrong and _denies(fact, wrong, other) and (corrects or about & theirs):
            denied.append(other)
        elif about and about == theirs and corrects:
            same.append(other)
        elif about and theirs and (about < theirs or theirs < about) and says_so:
            wider.append(other)
    if denied:
        return denied if len({other.subject for other in denied}) == 1 and (len(denied) == 1 or about) else []
    if same:
        return same[-1:] if fact.kind in ("decision", "constraint") else same
    return wider if len(wider) == 1 else []


def _denies(fact: Fact, wrong: Sequence[str], other: Fact) -> bool:
    """Whether `fact` takes back what `other` states, and is about the same by its subject or a shared word."""
    stated = words_of(other.text)
    if not any(one in stated or words_of(one) <= stated for one in wrong):
        return False
    theirs, about = frozenset(other.subject.split()), frozenset(fact.subject.split())
    if about and theirs:
        return bool(about & theirs)
    if fact.kind == "number":
        return True
    ignored = frozenset(wrong) | _EMPTY_WORDS
    return bool((words_of(fact.text) & stated) - ignored - _COMMON)


_COMMON_TEXT = "use using go decided agreed chose let let's we'll stick switch must never always not do don't with"
_COMMON = frozenset(_COMMON_TEXT.split())
