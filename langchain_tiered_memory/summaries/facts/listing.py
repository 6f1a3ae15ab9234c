"""How chosen facts read: in the words in which they were said, what is about one subject on one line.

A model's sentence stands as it is. Of a clause only the announcement of a correction goes, and its full stop.

A statement is listed far from where it was said. What it calls "it" or "them", the question that it answers in three
words, the line that its list stands under: each stands right before it, in its message or in the message before. There
it is taken from, in the words of whoever said it. What points back to nothing that can be shown tells nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.clauses import BRIEF_CHARS, points_back, read
from langchain_tiered_memory.summaries.facts.supersession import rivals
from langchain_tiered_memory.summaries.marks import TOOL_MARK
from langchain_tiered_memory.summaries.rendering import day, speaker_of
from langchain_tiered_memory.text.fencing import neutralised, plain_name
from langchain_tiered_memory.text.lexicon import lowered
from langchain_tiered_memory.text.readings import read_once
from langchain_tiered_memory.text.sentences import asks
from langchain_tiered_memory.text.small_talk import reacts
from langchain_tiered_memory.text.statements import clause_cut, leans, statements

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_tiered_memory.types.records import Entry, Fact, FactKind, Role

_SAID_BY: dict[Role, str] = {"assistant": "assistant", "tool": "tool"}
"""Who is named above what they said, with a name or without one. Nobody where it is the user's own."""
MAX_LINE_CHARS = 150
"""A subject stands before more than that once again: a value far from its subject is hard to place."""

_ANNOUNCED = re.compile(
    r"(?:(?:(?:small|slight|quick|minor|last[- ]minute) )?(?:correction|change|update)"
    r"(?: (?:on|for|about|to|of)(?: the)? (?=[^:,]{1,60}[:,])| ?[:,-] ?(?:the )?)"
    r"|scratch what i said(?: about| on)?(?: the)? ?[:,]? ?|scratch that[,:.] ?|actually,? "
    r"|change of plans?[,:]? (?:for |on |about )?(?:the )?"
    r"|sorry, i (?:mixed (?:things|it|that|them) up|was wrong|misread|mistyped"
    r"|misspoke)\b[^:,]{0,20}[:,] (?:for (?:the )?)?|sorry, |(?:no|oh|hang on),? wait,? "
    r"|i (?:was wrong|misspoke|changed my mind) (?:about|on) [^.:,]{1,60}[.:,] |i was wrong about (?:the )?"
    r"|wait, |no, |nope, )",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\([^\n()]{0,200}\)")
"""What would read as the name of a speaker: a fact loses its brackets."""
_YEAR_CHARS = 5
"""Of a date as `day` gives it: a year is told once."""


def facts_list(facts: Sequence[Fact]) -> str:
    """The facts, a line a subject, in the order in which subjects were first spoken of; empty for none.

    A clause of a speaker stands under their name in brackets, in the order in which they first spoke: "I" means them.
    The user's come first and without a heading where no name is known; an assistant's say so, so that they do not pass
    for a user's. A model's sentences name who speaks, each on a line. The day stands above what was said on it, where
    it changes. Where two values are told of one thing, each has its date, the newer first.
    """
    said: dict[tuple[bool, str], dict[str, list[Fact]]] = {}
    doubtful = rivals(facts)
    newest: dict[tuple[bool, str], int] = {}
    for fact in sorted(facts, key=lambda one: (one.seq, one.id)):
        about = said.setdefault(headed(fact), {})
        about.setdefault((not fact.by_model and fact.subject) or fact.id, []).append(fact)
        if fact.id in doubtful:
            newest[headed(fact)] = fact.seq
    shown: list[str] = []
    order = {whose: (whose[0], whose[1] != "", -newest.get(whose, 0), place) for place, whose in enumerate(said)}
    for whose in sorted(said, key=order.__getitem__):
        shown += [f"({whose[1]})"] if whose[1] else []
        today = ""
        for mine in said[whose].values():
            if (when := day(mine[0].at)) != today:
                shown.append(f"{when.removeprefix(today[:_YEAR_CHARS]) if today else when}:")
                today = when
            shown += _lines(mine, doubtful)
    return neutralised("\n".join(shown))


def headed(fact: Fact) -> tuple[bool, str]:
    """Whether another than a user says a fact, and the heading under which it stands; a model's sentence says it."""
    if fact.by_model:
        return False, ""
    role = _SAID_BY.get(fact.by, "")
    return role != "", " ".join(part for part in (role, plain_name(fact.speaker, fact.by)) if part)


def line_of(fact: Fact) -> str:
    """A fact as it stands in the list by itself."""
    if fact.by_model:
        line = " ".join(fact.text.replace("**", "").split()).rstrip(" .")
        line = f"{TOOL_MARK} {line}" if fact.by == "tool" else line
    else:
        line = _stated(fact.text)
    return line.strip("() ") if _HEADING.fullmatch(line) else line


def _lines(facts: Sequence[Fact], doubtful: Collection[str]) -> list[str]:
    """Facts of one subject and speaker, joined to lines of a bounded length."""
    lines: list[str] = []
    for fact in sorted(facts, key=lambda one: -one.seq if one.id in doubtful else 0):
        other_day = fact.id in doubtful or day(fact.at) != day(facts[0].at)
        when = day(fact.at).removeprefix("" if fact.id in doubtful else day(facts[0].at)[:_YEAR_CHARS])
        line = f"{line_of(fact)} ({when})" if other_day else line_of(fact)
        if lines and len(lines[-1]) + len(line) <= MAX_LINE_CHARS:
            lines[-1] = f"{lines[-1]}; {_without_subject(fact.subject, line)}"
        else:
            lines.append(line)
    return lines


@read_once
def _stated(text: str) -> str:
    """The words of a clause without the announcement of a correction and a full stop."""
    said = " ".join(text.replace("**", "").split()).rstrip(" .!")
    announced = _ANNOUNCED.match(said)
    if announced and announced.end() < len(said):
        said = said[announced.end() :]
    return said.lstrip("-\u2013\u2014 ")


def _without_subject(subject: str, line: str) -> str:
    """A further fact on a subject's line, without a subject that it begins with."""
    bare = line[4:] if line.startswith(("The ", "the ")) else line
    return bare[len(subject) + 1 :] if subject and bare.casefold().startswith(f"{subject} ") else line


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
    """Whether a sentence may hold what the next one speaks of: no "Wow!", and none that goes back to what was said."""
    return text.count(" ") >= _LEAST_BLANKS and not reacts(lowered(text))


def _replying(before: Entry | None, fact: Fact) -> str | None:
    """A fact with what it answers: the question of the message before, else the last that this tells."""
    if before is None or len(before.text) > BRIEF_CHARS:
        return None
    said = [one.text for one in _statements(before.text) if not one.is_code and not points_back(one.text)]
    asked = [one for one in said if asks(one) and _says(one)]
    told = asked or [one for one in said if _says(one)]
    if not told:
        return None
    after = f"{speaker_of(before)} asked" if asked else f"after {speaker_of(before)}"
    return f"{fact.text.rstrip('.')} ({after}: {clause_cut(told[-1], most_chars=_MOST_CHARS)})"
