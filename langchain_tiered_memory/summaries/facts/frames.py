"""What a statement says beside its value, so that two can be held against each other word by word, in any language.

Two statements in the same words but for one value state one thing twice. Every further word of the later one ("suppose
the budget is", "last year the budget was", "my boss believes the budget is") may say that it is not so, or not of this:
it needs no dictionary to see that there is one. The few words that say nothing but "this is how it is now" are data.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from langchain_tiered_memory.text.lexicon import word_set
from langchain_tiered_memory.text.noun_phrases import DETERMINERS, MAX_PHRASE_WORDS
from langchain_tiered_memory.text.readings import read_once
from langchain_tiered_memory.text.terms import UNSPACED

_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")
_UNSPACED_WORD = re.compile(f"[{UNSPACED}]")
_MARKS = ".,:;!?\"'()[]`*\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb\u3001\u3002\uff0c\uff1a\uff01\uff1f"

_SETTLES = re.compile(
    r"(?<!\w)(?:(?:from|as of|until) now(?: on)?|now|currently|these days|any ?more|actually|instead|correction|sorry"
    r"|wait|no(?=,)|oops|update(?=:)|jetzt|nun|inzwischen|mittlerweile|ab sofort|korrektur|nein|doch|maintenant"
    r"|d\u00e9sormais|correctif|rectification|en fait|finalement|ahora|ya|correcci\u00f3n|perd\u00f3n|agora|nu|n\u00e5"
    r"|corre\u00e7\u00e3o|ora|adesso|correzione|\u0442\u0435\u043f\u0435\u0440\u044c)(?!\w)"
    r"|\u66f4\u6b63|\u7ea0\u6b63|\u8a02\u6b63|\u73b0\u5728|\u76ee\u524d|\u73fe\u5728|\u4eca\u306f|\uc9c0\uae08\uc740"
)
"""Words that announce what holds now, or that something is put right; they add nothing to what is said."""
_TAKES_BACK = re.compile(
    r"[,\uff0c]\s?(?:(?:and|und|et|y|e) )?(?:not|nicht|pas|no|non|n\u00e3o|\u4e0d\u662f)\s?[^,]{1,60}$"
)
"""Behind a statement, the value that is no longer its own."""
_IS_SHORT = re.compile(r"(?<!\w)(it|that|this|he|she)['\u2019]s(?!\w)")
_NEGATES = re.compile(
    r"(?<!\w)(?:(?:do|does|did) not|\w{2,8}n['\u2019]t|not|no longer|nicht(?: mehr)?|kein\w*|n['\u2019e] ?|pas|plus|no"
    r"|non|n\u00e3o|\u043d\u0435)(?!\w)|\u4e0d|\u6ca1"
)
IS = word_set("is are am 's ist sind est sont es son \u00e9 s\u00e3o \u00e8 sono \u662f \u4e3a \u306f = costs equals")
"""Says in the present what something is."""
_POINTS = word_set("it that this they es er sie das il elle \u00e7a esto ello ele ela esso")
"""What stands for a subject that was named before."""
_OWN = frozenset({"i", "we", "ich", "wir", "je", "nous", "yo"})

_VARIES = re.compile(r"[\w./@:#-]{0,60}\d[\w./@:#-]{0,60}|\w{1,60}[_/@][\w./@-]{1,60}|(?<=\s)[A-Z]\w{0,60}", re.ASCII)
"""A figure, a path, a name: what differs between two times that one thing is said."""


class Frame(NamedTuple):
    """The words of a statement."""

    words: tuple[str, ...]
    """In lower case, without articles and without what only announces."""
    settles: bool
    """Whether it announces that this is how it is now."""
    negated: bool
    plain: frozenset[str]
    """Its words without a negation."""

    @property
    def named(self) -> tuple[str, ...]:
        """What it says that something is of; none where it does not say so, in the present."""
        return next((self.words[:at] for at, word in enumerate(self.words) if word in IS), ())

    @property
    def points_back(self) -> bool:
        """Whether its subject is a pronoun."""
        return bool(self.words) and self.words[0] in _POINTS


class Swap(NamedTuple):
    """What differs between two statements that are alike otherwise."""

    new: tuple[str, ...]
    old: tuple[str, ...]
    shared: frozenset[str]

    @property
    def is_told_of_now(self) -> bool:
        """Whether what both say is that something is so, in the present."""
        return not self.shared.isdisjoint(IS)


@read_once
def frame_of(text: str) -> Frame:
    """The words of a statement, as they are compared."""
    low = _IS_SHORT.sub(r"\1 is", _TAKES_BACK.sub("", text.casefold()))
    kept, announced = _SETTLES.subn(" ", low)
    without, denials = _NEGATES.subn(" ", kept)
    return Frame(
        _words(kept), announced > 0, denials > 0, frozenset(word.removesuffix("s") for word in _words(without))
    )


def _words(low: str) -> tuple[str, ...]:
    found = (word.strip(_MARKS) for word in _WORD.findall(low))
    return tuple(word for word in found if word and word not in DETERMINERS)


def swap_of(new: Frame, old: Frame) -> Swap | None:
    """The one place where two statements differ; `None` where they differ by more, or only one has something there.

    A statement of what "it" is fits one that says the same of a thing by its name.
    """
    mine, its = new.words, old.words
    if new.points_back:
        mine = mine[1:]
        its = its[its.index(mine[0]) :] if mine and mine[0] in its else its
    if mine[:1] != its[:1] and mine[-1:] != its[-1:]:
        return None  # as of most pairs: they share no begin and no end
    same = min(len(mine), len(its))
    before = next((at for at in range(same) if mine[at] != its[at]), same)
    most = same - before
    behind = next((at for at in range(most) if mine[-1 - at] != its[-1 - at]), most)
    differs = Swap(
        mine[before : len(mine) - behind],
        its[before : len(its) - behind],
        frozenset((*mine[:before], *mine[len(mine) - behind :])),
    )
    # Where more differs than a name has words, two statements say different things.
    fits = 0 < len(differs.new) <= MAX_PHRASE_WORDS and 0 < len(differs.old) <= MAX_PHRASE_WORDS
    return differs if fits and differs.shared else None


@read_once
def template_of(text: str) -> str:
    """What a statement shares with those that are alike but for a number or a name."""
    return " ".join(_VARIES.sub("*", text).casefold().split())


def of_two(new: Frame, old: Frame) -> bool:
    """Whether two statements in the same words name two things: they differ before the verb, too."""
    swap = swap_of(new, old)
    return swap is not None and not IS.isdisjoint(swap.new[1:]) and not IS.isdisjoint(swap.old[1:])


def contradicts(new: Frame, old: Frame) -> bool:
    """Whether both say the same, one of them that it is not so."""
    return new.negated != old.negated and new.plain == old.plain and bool(new.plain)


def parts_of(subject: str) -> frozenset[str]:
    """The words by which facts about one subject find each other; pairs of characters where none has blanks."""
    found: set[str] = set()
    for word in subject.split():
        pairs = {word[at : at + 2] for at in range(len(word) - 1)} if _UNSPACED_WORD.match(word) else ()
        found.update(pairs or (word,))
    return frozenset(found)


def subject_of(clause: str, value: str) -> str:
    """What a clause without a noun phrase is about: its words beside its value."""
    if frame_of(clause).points_back:
        return ""
    if clause.startswith(value):
        return " ".join(value.casefold().split()[:MAX_PHRASE_WORDS])
    low = " ".join(frame_of(clause).words).replace(value.casefold(), " ")
    words = [word for word in _words(low) if word.isalpha() and word not in IS | _POINTS | _OWN]
    if words and _UNSPACED_WORD.fullmatch(words[0]):
        return "".join(words[: 2 * MAX_PHRASE_WORDS])
    return " ".join(words[:MAX_PHRASE_WORDS])
