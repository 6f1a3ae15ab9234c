"""Reads a question: which terms to look up, who and when it speaks of, and whether it asks for a time.

What is asked for seldom is all that is said: reasons, greetings and pasted logs stand beside it. So a message is read
in stretches, as long ones are in passages: what answers one of them answers the message, whatever else stands in it.

The names of the speakers are no search terms here. In a conversation of two, "Anna" stands in the turns that Bert
addresses to her, while what Anna did is what Anna says: a speaker's name prefers the turns of that speaker, and is
looked up as a word only where nothing else is asked.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from langchain_tiered_memory.recall.fusion import side_by_side
from langchain_tiered_memory.text.readings import read_once
from langchain_tiered_memory.text.sentences import asks, pieces
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.text.time_expressions import Interval, find_intervals

_ASKS_WHEN = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time)\b"
    r"|\bhow (?:long|(?:many|much) (?:days?|weeks?|months?|years?))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A sentence or a line of what is asked."""

    text: str
    terms: frozenset[str]
    pairs: frozenset[str] = frozenset()
    """Each two terms that stand side by side, joined by a space: such may be a name."""

    @property
    def asks(self) -> bool:
        """Whether it ends with a question mark."""
        return asks(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A parsed query for the ranking."""

    terms: frozenset[str]
    """The terms to look up."""
    stretches: tuple[Stretch, ...] = ()
    """Its sentences and lines; empty where all terms stand together."""
    speakers: frozenset[str] = frozenset()
    """The one speaker whom the question names; empty where it names none, or several."""
    intervals: tuple[Interval, ...] = ()
    """The times that it names."""
    asks_when: bool = False
    """Whether its answer is a point or a length of time."""


@read_once
def stretches_of(text: str) -> tuple[Stretch, ...]:
    """The sentences and lines of `text` that have terms, each once."""
    parts = (piece.text for line in text.splitlines() for piece in pieces(line))
    read = ((part, analyse(part)) for part in parts)
    found = (
        Stretch(text=part, terms=frozenset(words), pairs=frozenset(side_by_side(words, words))) for part, words in read
    )
    return tuple({one.terms: one for one in found if one.terms}.values())


def repeats(text: str, asked: Collection[str]) -> bool:
    """Whether `text` asks the same: one stretch has all of the terms `asked` that it has, and says nothing else."""
    stretches = stretches_of(text)
    best = max(stretches, key=lambda one: len(one.terms.intersection(asked)), default=None)
    if best is None or not best.terms.issubset(asked):
        return False
    return all(one.terms.intersection(asked) <= best.terms for one in stretches)


def read_question(
    text: str,
    *,
    speakers: Collection[str] = (),
    now: datetime | None = None,
    known: Collection[str] | None = None,
) -> Question:
    """Read `text`, a question about a conversation between `speakers` whose latest entry is of `now`.

    `speakers` are names of persons; leave out labels such as "user" and "assistant", which are words of many questions.
    Without `now` no time is read. Terms that are not `known` are not looked up, nor is a speaker's name
    beside others.
    """
    said = frozenset(analyse(text))
    names = {speaker: frozenset(analyse(speaker)) for speaker in speakers}
    named = frozenset(speaker for speaker, parts in names.items() if not parts.isdisjoint(said))
    terms = said if known is None else said.intersection(known)
    return Question(
        terms=terms.difference(*names.values()) or terms,
        stretches=stretches_of(text),
        speakers=named if len(named) == 1 else frozenset(),
        intervals=tuple(find_intervals(text, now=now)) if now else (),
        asks_when=bool(_ASKS_WHEN.search(text)),
    )
