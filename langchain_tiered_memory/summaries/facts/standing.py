"""Gives a statement that does not stand by itself what it points back to: "A friend made it" is of no use alone.

A statement is listed far from where it was said. What it calls "it" or "them", the question that it answers in three
words, the line that its list stands under: each stands right before it, in its message or in the message before. There
it is taken from, in the words of whoever said it. What points back to nothing that can be shown tells nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.statements import BRIEF_CHARS, points_back, read
from langchain_tiered_memory.summaries.rendering import speaker_of
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.readings import read_once
from langchain_tiered_memory.text.sentences import ASKS
from langchain_tiered_memory.text.statements import clause_cut, leans, statements

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Entry, Fact, FactKind

_statements = read_once(statements)
_ANSWERS = re.compile(
    r"(?:since|for|about|around|almost|nearly|just|only|at|in|on|by|from|with|because|to|both|neither|mostly|\d)\b",
    re.IGNORECASE,
)
"""How a statement begins that is the rest of a sentence: the question before it has the other part."""
_SETTLED: frozenset[FactKind] = frozenset({"decision", "constraint", "goal"})
_BRIEF_BLANKS = 7
"""Of such a statement: with more blanks between its words it says what of."""
_LEAST_BLANKS = 3
_MOST_CHARS = 110
"""Of what stands before a statement."""


def standing_alone(fact: Fact, entry: Entry, before: Entry | None) -> str | None:
    """The words of a fact, behind what they need to be understood; `None` where nothing can give that.

    Args:
        fact: What `entry` states.
        entry: Its message.
        before: The message before it, by anybody.
    """
    said = _statements(entry.text)
    clause = fact.text.strip("\u2026").rstrip(".!")
    place = next((place for place, one in enumerate(said) if clause in " ".join(one.text.split())), None)
    low = fact.text.casefold()
    named = " " in fact.subject and all(word in low for word in fact.subject.split())
    names_subject = leans(fact.text) and fact.value != "" and named  # "it's 40 weeks for the tax return"
    leaning = points_back(fact.text) and not names_subject
    if place is None:  # it was put together where it was read
        return fact.text if names_subject else _or_alone(None, fact)
    whole = said[place]
    if whole.text.count("; ") > 1 and "; " not in clause:  # an item: the whole list, behind the line above it
        return _within(whole.text, clause) or fact.text
    earlier = [one.text for one in said[:place] if not one.is_code and _says(one.text)]
    if not leaning:
        answers = not earlier and fact.text.count(" ") < _BRIEF_BLANKS and _ANSWERS.match(fact.text)
        return (_replying(before, fact) if answers else None) or fact.text
    lead = whole.text.partition(clause)[0].strip()
    if _says(lead) and not points_back(lead):
        return _within(whole.text, clause) or f"{clause_cut(lead, most_chars=_MOST_CHARS)} {fact.text}"
    if earlier and not points_back(earlier[-1]):
        return f"{clause_cut(earlier[-1], most_chars=_MOST_CHARS)} {fact.text}"
    return _or_alone(_replying(before, fact), fact)


def _within(whole: str, clause: str) -> str:
    """A sentence cut to its room, where that leaves the clause in it; else nothing."""
    cut = clause_cut(whole, most_chars=2 * _MOST_CHARS)
    return cut if clause in " ".join(cut.split()) else ""


def _or_alone(said: str | None, fact: Fact) -> str | None:
    """What is said with what it needs, else the fact alone, unless it has a word for what nobody sees.

    What was settled is told even so.
    """
    settled = fact.kind in _SETTLED or (fact.value != "" and "settles" in read(fact.text).signs)
    is_told = said is not None or (points_back(fact.text) and not settled)
    return said if is_told else fact.text


def _says(text: str) -> bool:
    """Whether a sentence may hold what the next one speaks of: no "Wow!", no greeting."""
    return text.count(" ") >= _LEAST_BLANKS and not cues.SMALL_TALK.match(cues.lowered(text))


def _replying(before: Entry | None, fact: Fact) -> str | None:
    """A fact with what it answers: the question of the message before, else the last that this tells."""
    if before is None or len(before.text) > BRIEF_CHARS:
        return None
    said = [one.text for one in _statements(before.text) if not one.is_code and not points_back(one.text)]
    asked = [one for one in said if one.endswith(ASKS) and _says(one)]
    told = asked or [one for one in said if _says(one)]
    if not told:
        return None
    after = f"{speaker_of(before)} asked" if asked else f"after {speaker_of(before)}"
    return f"{fact.text.rstrip('.')} ({after}: {clause_cut(told[-1], most_chars=_MOST_CHARS)})"
