"""Reads a question: which terms to look up, who and when it speaks of, and whether it asks for a time.

The names of the speakers are no search terms here. In a conversation of two, "Anna" stands in the turns that Bert
addresses to her, while what Anna did is what Anna says: a speaker's name prefers the turns of that speaker, and weighs
little as a word.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.text.time_expressions import Interval, find_intervals

_ASKS_WHEN = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time)\b"
    r"|\bhow (?:long|(?:many|much) (?:days?|weeks?|months?|years?))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A parsed query for the ranking."""

    terms: Mapping[str, float]
    """The terms to look up, each with its weight (1 for a common word, less for a speaker's name)."""

    speakers: frozenset[str] = frozenset()
    """The one speaker whom the question names; empty where it names none, or several."""

    intervals: tuple[Interval, ...] = ()
    """The times that it names."""

    asks_when: bool = False
    """Whether its answer is a point or a length of time."""


def read_question(
    text: str, *, speakers: Collection[str] = (), now: datetime | None = None, name_weight: float = 0.3
) -> Question:
    """Read `text`, a question about a conversation between `speakers` whose latest entry is of `now`.

    `speakers` are names of persons; leave out labels such as "user" and "assistant", which are words of many questions.
    Without `now` no time is read. `name_weight` is the weight of a speaker's name as a search term.
    """
    terms = dict.fromkeys(analyse(text), 1.0)
    names = {speaker: frozenset(analyse(speaker)) for speaker in speakers}
    named = frozenset(speaker for speaker, parts in names.items() if not parts.isdisjoint(terms))
    for part in frozenset().union(*names.values()):
        if part in terms:
            terms[part] = name_weight
    return Question(
        terms=terms,
        speakers=named if len(named) == 1 else frozenset(),
        intervals=tuple(find_intervals(text, now=now)) if now else (),
        asks_when=bool(_ASKS_WHEN.search(text)),
    )
