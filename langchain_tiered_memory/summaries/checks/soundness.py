"""Whether a text can stand for its sources at all, judged by its words alone: no model, no dictionary, any language.

Three measures, each of which a text of a certain kind fails: one about something else (filler, another conversation,
another language, a refusal, the prompt repeated) shares few words with its sources; half a sentence or bare headings
say next to nothing of them; a question repeated has its words from one message among many. Rewording is no fault: a
summary by a real model shares half of its words and more (`benchmarks/unsound.py` has the rates).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from langchain_tiered_memory.summaries.marks import HEADING
from langchain_tiered_memory.text.identifiers import identifiers
from langchain_tiered_memory.text.readings import MEASURED_CHARS
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Unsound: TypeAlias = Literal["ungrounded", "says too little", "one source"]

_KEY_CHARS = 5
"""Longer terms count as the same where they begin alike: inflection, in languages that no stemmer here knows."""
_MANY_TERMS = 300
"""Of sources with more distinct terms than this, no larger part is asked for: a long log can be told in a line."""
_TERMS_OF_A_MESSAGE = 25
"""Of one message no more are asked for, so that a listing among few messages can be told in a line as well."""
_LITTLE_SAID = 25
"""Sources with fewer, and no figure among them, say little: "they greeted each other" is a sound summary."""
_LITTLE_SAID_BONUS = 2.0
"""That is told in other words more than anything else: a text that shares half as many is as sound."""
_LEAST_JUDGED = 8
"""A text with fewer terms of its own is not judged against such sources."""
_LEAST_GROUNDED = 0.4
"""Of a text's terms, what must stand in its sources: what has fewer is about something else."""
_LEAST_COVERED = 0.06
"""Of the sources' terms (of 300, or of the tokens asked for, where they are more), what a text must state."""
_FEW_TERMS, _MORE_WITH_EACH_DOUBLING, _MOST_GROUNDED = 250, 0.1, 0.75
"""Of sources with more distinct terms, any text on earth shares more: more is asked for, up to a bound."""
_NOTHING = frozenset({"none", "nothing", "n", "a", "na"})
"""Words of a section that says nothing."""
_ONE_SOURCE_SHARE, _REPEATED = 0.95, 0.9  # of the text's terms, and of the source's
_LEAST_SOURCES = 4
_MAIN_SOURCE_SHARE = 0.4
"""A source that has so much of all terms may well have all that matters."""
_WORD = re.compile(r"\w+")
_FRAME_TEXT = (
    "user assistant system tool ask answer discuss discussion conversation message talk speak mention tell note share "
    "express explain describe request provide suggest recommend confirm agree respond reply clarify thank greet "
    "greeting chat exchange summary summarize summarise overview key point theme topic decision decide action item "
    "technical detail unresolved open question issue problem none nothing session participant speaker earlier previous "
    "current context follow next step well also both about then after before during while other one two several "
    "various later still already including include regarding concerning state report various covered small "
    "general only"
)
FRAME = frozenset(term for word in _FRAME_TEXT.split() for term in analyse(word))
"""Words in which a summary is told: they say nothing of what it is about, wherever they stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Soundness:
    """How a text stands to its sources."""

    grounded: float
    """Share of its terms that stand in a source, 0 to 1; 1 where the sources are too long to tell."""
    stated: int = 0
    """Distinct terms of the text: the fewer, the more a single other word weighs in the share."""
    covered: float
    """Terms of the sources that it states, as a share of all of them; of 300, or of the tokens that it should have,
    where they are more than that."""
    terms: int = 0
    """Distinct terms of the sources."""
    from_one_source: bool
    """Whether it repeats one source among several that say as much."""


def soundness(
    text: str,
    sources: Sequence[str],
    known: Iterable[str] = (),
    *,
    target_tokens: int = _MANY_TERMS,
    are_messages: bool = False,
    say_little: bool = False,
) -> Soundness:
    """How `text` stands to `sources`.

    `known` is what its writer was told besides: names, a title, facts. It is not asked to state more terms than
    `target_tokens`. Sources that are messages may be long and say little; summaries are not. Where they `say_little`,
    and name no figure, a brief text is as sound as of a few terms, if it is no piece of one of them.
    """
    if sum(map(len, sources)) > MEASURED_CHARS:
        return _NOT_JUDGED
    each = [_keys(source) for source in sources]
    told = frozenset[str]().union(*each)
    prose = "\n".join(_prose(text))
    if _NOTHING.issuperset(_WORD.findall(prose.casefold())):
        return Soundness(grounded=0.0, covered=0.0, from_one_source=False)
    stated = _keys(prose)
    grounded = stated & (told | frozenset[str]().union(*map(_keys, known)))
    are_few, is_brief = len(told) < _LITTLE_SAID, len(stated) < _LEAST_JUDGED
    is_little = are_few or (say_little and is_brief and not _is_piece(prose, sources))
    if is_little and not any(_names_something(source) for source in sources):
        share = 1.0 if (are_few and is_brief) or not stated else len(grounded) / len(stated)
        return Soundness(grounded=min(1.0, _LITTLE_SAID_BONUS * share), covered=1.0, from_one_source=False)
    shared = stated & told
    one = max(each, key=lambda keys: len(shared & keys), default=frozenset[str]())
    many = sum(bool(keys) for keys in each) >= _LEAST_SOURCES
    alike = len(shared & one)
    worth = min(len(told), sum(min(len(keys), _TERMS_OF_A_MESSAGE) for keys in each)) if are_messages else len(told)
    copied = many and bool(shared) and alike >= _ONE_SOURCE_SHARE * len(shared) and alike >= _REPEATED * len(one)
    return Soundness(
        terms=len(told),
        stated=len(stated),
        grounded=len(grounded) / len(stated) if stated else 0.0,
        covered=len(shared) / max(1, min(_MANY_TERMS, worth, target_tokens)) if told else 1.0,
        from_one_source=copied and len(one) < _MAIN_SOURCE_SHARE * len(told),
    )


def shares(text: str, stretches: Iterable[Sequence[str]]) -> list[float] | None:
    """Which share of the terms of `text` stands in each stretch; `None` where it says too little to tell."""
    stated = _keys("\n".join(_prose(text)))
    if len(stated) < _LEAST_JUDGED:
        return None
    found = (frozenset[str]().union(*map(_keys, texts)) for texts in stretches)
    return [len(stated & told) / len(stated) for told in found]


def unsound(found: Soundness) -> Unsound | None:
    """Which measure a text fails, if any.

    A share of a few terms is known only roughly: it fails where it lies below by more than a share of so many varies by
    chance (its standard deviation).
    """
    doublings = max(0.0, math.log2(max(found.terms, 1) / _FEW_TERMS))
    more = max(0.0, min(_MORE_WITH_EACH_DOUBLING * doublings, _MOST_GROUNDED - _LEAST_GROUNDED))
    asked = _LEAST_GROUNDED + more
    varies = math.sqrt(asked * (1.0 - asked) / found.stated) if found.stated and found.grounded else 0.0
    if found.grounded < asked - varies:
        return "ungrounded"
    if found.covered < _LEAST_COVERED:
        return "says too little"
    return "one source" if found.from_one_source else None


_NOT_JUDGED = Soundness(grounded=1.0, covered=1.0, from_one_source=False)


def _keys(text: str) -> frozenset[str]:
    return frozenset(term[:_KEY_CHARS] for term in analyse(text) if term not in FRAME)


def _is_piece(prose: str, sources: Sequence[str]) -> bool:
    """Whether a text is what somebody said, in their words, or a part of it; who says it may stand before a colon."""
    said, *those = (f" {' '.join(_WORD.findall(text.casefold()))} " for text in (prose.rpartition(": ")[2], *sources))
    return any(said in one for one in those)


def _prose(text: str) -> Iterator[str]:
    """Lines that say something: headings stand whatever is below them."""
    return (line for line in text.splitlines() if not HEADING.match(line))


def _names_something(text: str) -> bool:
    return any(any(char.isdigit() for char in one) for one in identifiers(text))
