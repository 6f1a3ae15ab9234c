"""What a model wrote that may say what forgotten messages said, though it does not stand for them.

A summary stands for its messages, and its writer has read more than these: the other stretches of its call, notes of
earlier messages, summaries below and beside it, an agent's whole request. Two rules find what it may have told of that:

- What one call wrote together read the same, and may say it in any words. Each text names the summaries that were
  written with it, and the notes that its writer was shown (`beside`), so none that read the messages or a note of them
  is missed; of a text from before that was kept, those of its reach count.
- Anything else that forgotten messages said has reached a text by their words. A sentence is an echo of them where it
  says something that they say, that nothing which the text stands for says, and that none of the messages which are
  left says either: a word alone, or several words together. What is in everybody's mouth is no such word. Figures and
  days are held against each other in one form, however they are written.

The texts of rules quote what they stand for, and are held against it like any other.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, get_args

from sqlalchemy import Connection, select

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.messages.message_text import text_of
from langchain_tiered_memory.sql.schema import entries, facts, passages, revisions, sessions, summaries, unpacked
from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.checks.unsourced import values_in
from langchain_tiered_memory.summaries.facts.related import COMMON_TERMS
from langchain_tiered_memory.summaries.facts.rows import IS_READ, listed
from langchain_tiered_memory.summaries.rendering import day
from langchain_tiered_memory.summaries.tree.condense import MOST
from langchain_tiered_memory.summaries.writers.sections import FORMS
from langchain_tiered_memory.text.identifiers import DATE
from langchain_tiered_memory.text.lexicon import FUNCTION_WORDS
from langchain_tiered_memory.text.sentences import sentences
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.transcript.append import chunks
from langchain_tiered_memory.types.records import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_DAY_SECONDS = 86_400
_FORM = "="
"""How a figure or a day in the form of ours begins: no term does."""
_TWO_DIGITS = 10
_OF_A_DAY = 2
"""Its month and its number; which is which, nobody knows of `3/4`."""
_MOST_OF_A_DAY = 31
_DIGITS = re.compile(r"\d{1,4}")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_OURS = (
    *(section.heading for form in FORMS.values() for section in form),
    *(marks.STILL_OPEN, marks.NOT_ANSWERED, marks.WAITING, marks.TOOL_SAID, marks.CORRECTED, marks.KEEP_MARK),
    *(marks.NOTE, marks.CODE, "Answer Open Reply asked requested talked about used"),
    *get_args(Role),
)
"""What stands in summaries whatever they tell."""
_TELLS_NOTHING = COMMON_TERMS.union(
    analyse(" ".join(_OURS)), *(analyse(" ".join(words)) for words in FUNCTION_WORDS.values())
)


def telling(text: object) -> frozenset[str]:
    """The words of a text that tell something: no common ones, no single figures or letters.

    Figures and days stand among them in one form besides, as they may be written in another.
    """
    return _words(text).union(_in_one_form(text)) if isinstance(text, str) else frozenset()


def _words(text: str) -> frozenset[str]:
    return frozenset(one for one in analyse(text) if len(one) > 1 or not one.isascii()) - _TELLS_NOTHING


def _in_one_form(text: str) -> Iterator[str]:
    """The figures of a text but single ones, and its days without their years, each in the form of ours."""
    yield from (f"{_FORM}{value}" for value in values_in(text) if value >= _TWO_DIGITS)
    for match in DATE.finditer(text):
        numbers = [int(one) for one in _DIGITS.findall(match[0])]
        if named := [number for number, month in enumerate(_MONTHS, 1) if month in match[0].casefold()]:
            numbers = [*named, *numbers[:1]]
        elif len(numbers) > _OF_A_DAY:  # year, month, day; day, month, year; month, day, year
            numbers = numbers[1:3] if numbers[0] > _MOST_OF_A_DAY else numbers[:2]
        if len(numbers) == _OF_A_DAY and ":" not in match[0][:3]:
            yield f"{_FORM}{min(numbers)}/{max(numbers)}"


def words_of(connection: Connection, key: int, seqs: Sequence[int]) -> frozenset[str]:
    """What messages of a session say that tells something, in each wording that they had."""
    found: set[str] = set()
    for part in chunks(list(seqs)):
        mine = (entries.c.session_key == key, entries.c.seq.in_(part))
        for text, name in connection.execute(select(entries.c.text, entries.c.name).where(*mine)):
            found |= telling(text) | _named(name)
        former = select(revisions.c.payload).where(revisions.c.session_key == key, revisions.c.seq.in_(part))
        for payload in connection.scalars(former):
            found |= telling(_said_in(payload))
    return frozenset(found)


def _named(name: object) -> frozenset[str]:
    return telling(unpacked(name)) if isinstance(name, str) else frozenset()


def _number(value: object) -> float:
    """A number of a column; 0 for what damage put there."""
    return value if isinstance(value, int | float) and math.isfinite(value) else 0


def _said_in(payload: str) -> str:
    try:
        return text_of(decode(payload))
    except UnknownMessageError:
        return str(payload)  # damaged: its words stand in it somewhere


def written_beside(connection: Connection, key: int, read: Collection[str]) -> list[str]:
    """The summaries of a session that a model wrote in one call with any of these, or where it was shown any."""
    wanted = frozenset(read)
    columns = ("first_seq", "id", "level", "track", "beside", "model", "by_rules")
    query = select(*(summaries.c[name] for name in columns)).where(summaries.c.session_key == key)
    found: dict[str, None] = {}
    unsaid: dict[str, list[str]] = defaultdict(list)
    for row in sorted(connection.execute(query), key=lambda row: _number(row.first_seq)):
        if row.beside is not None:
            if not wanted.isdisjoint(listed(row.beside, str)):
                found[row.id] = None
        elif row.level == 1 and not row.by_rules and row.model not in (None, marks.RULES):
            unsaid[row.track].append(row.id)
    for ids in unsaid.values():
        # From before it was kept: a call wrote so many, one behind the other.
        for place in (place for place, one in enumerate(ids) if one in wanted):
            found |= dict.fromkeys(ids[max(place - MOST + 1, 0) : place + MOST])
    return [one for one in found if one not in wanted]


def echoes(connection: Connection, keys: Sequence[int], said: frozenset[str]) -> dict[int, tuple[list[str], list[str]]]:
    """What of these sessions, from which the messages that said this are gone, says it still.

    One pass over their messages, by the terms that the index has of them, and one over all that is derived. Gives, by
    the key of their session, ids of summaries, and of notes that join others.
    """
    for part in chunks(list(keys)):
        titles = connection.scalars(select(sessions.c.title).where(sessions.c.key.in_(part)))
        said = said.difference(*map(_named, titles))
    derived = {key: _derived(connection, key, said) for key in keys} if said else {}
    said = frozenset[str]().union(*(words for rows in derived.values() for row in rows for words, _ in row.told))
    heard: list[set[str]] = []
    doubtful: list[tuple[int, bool, str, frozenset[str]]] = []
    for key, rows in derived.items() if said else ():
        messages = _messages(connection, key, said)
        heard += messages.values()
        doubtful += ((key, *one) for one in _doubtful(connection, key, rows, messages, said))
    having: dict[str, list[set[str]]] = {one: [] for *_, words in doubtful for one in words}
    for here in heard:
        for one in having.keys() & here:
            having[one].append(here)
    found: dict[int, tuple[list[str], list[str]]] = {}
    for key, is_note, name, words in doubtful:
        fewest = min((having[one] for one in words), key=len)
        if not any(words <= here for here in fewest):  # else a message that is left says so
            found.setdefault(key, ([], []))[is_note].append(name)
    return found


def _messages(connection: Connection, key: int, said: frozenset[str]) -> dict[int, set[str]]:
    """Which of some words each message of a session says."""
    found: dict[int, set[str]] = defaultdict(set)
    mine = (passages.c.session_key == key, passages.c.level == 0)
    for seq, terms in connection.execute(select(passages.c.seq, passages.c.terms).where(*mine)):
        found[seq] |= said.intersection(terms.split() if isinstance(terms, str) else ())
    named = select(entries.c.seq, entries.c.name).where(entries.c.session_key == key, entries.c.name.is_not(None))
    for seq, name in connection.execute(named):
        found[seq] |= said & _named(name)
    if _has_forms(said):
        # The index has figures and days as they are written.
        for seq, text in connection.execute(select(entries.c.seq, entries.c.text).where(entries.c.session_key == key)):
            found[seq] |= said.intersection(_in_one_form(text) if isinstance(text, str) else ())
    return found


def _has_forms(words: frozenset[str]) -> bool:
    return any(one.startswith(_FORM) for one in words)


class _Derived(NamedTuple):
    """What was made of messages, by what it says of those that are gone."""

    is_note: bool
    """Whether it joins notes; else it is a summary."""
    id: str
    above: str | None
    of: list[int]
    """A note's messages."""
    told: list[tuple[frozenset[str], list[frozenset[str]]]]
    """Of each text their words in it, and those of each sentence."""


def _derived(connection: Connection, key: int, said: frozenset[str]) -> list[_Derived]:
    """Summaries of a session, the lowest first, and then the notes that join others.

    Other facts are read in those texts and in the messages below them, and say nothing else.
    """
    names = ("level", "id", "parent_id", "text", "error", "verdict_note")
    query = select(*(summaries.c[name] for name in names)).where(summaries.c.session_key == key)
    found: list[_Derived] = []
    for row in sorted(connection.execute(query), key=lambda row: _number(row.level)):
        told = _told((row.text, row.error, row.verdict_note), said)
        found.append(_Derived(is_note=False, id=row.id, above=row.parent_id, of=[], told=told))
    joining = select(*(facts.c[name] for name in ("id", "sources", "text", "subject", "value")))
    for row in connection.execute(joining.where(facts.c.session_key == key, ~IS_READ)):
        told = _told((row.text, row.subject, row.value), said)
        found.append(_Derived(is_note=True, id=row.id, above=None, of=listed(row.sources, int), told=told))
    return found


def _told(texts: Iterable[object], said: frozenset[str]) -> list[tuple[frozenset[str], list[frozenset[str]]]]:
    """Of each text that says some of the words `said` those words, and those of each sentence."""
    found: list[tuple[frozenset[str], list[frozenset[str]]]] = []
    has_forms = _has_forms(said)
    for text in texts:
        told = marks.without_instead(text) if isinstance(text, str) else ""
        words = said & (telling(told) if has_forms else _words(told))
        if words:
            found.append((words, [words & telling(one) for one in sentences(told)] if len(words) > 1 else []))
    return found


def _doubtful(
    connection: Connection,
    key: int,
    derived: Sequence[_Derived],
    messages: Mapping[int, set[str]],
    said: frozenset[str],
) -> Iterator[tuple[bool, str, frozenset[str]]]:
    """Words of forgotten messages in what is derived that nothing which it stands for says, nor the days of that.

    Each with whether it is of a note that joins others, its id, or that of the summary, and the words that it says
    together: each by itself, and those of a sentence.
    """
    own: dict[str, set[str]] = defaultdict(set)
    of_message: dict[int, set[str]] = defaultdict(set)
    columns = (entries.c.seq, entries.c.at, entries.c.summary_id)
    for seq, at, above in connection.execute(select(*columns).where(entries.c.session_key == key)):
        of_message[seq] = messages[seq] | (said & _told_day(int(_number(at) // _DAY_SECONDS)))
        if above is not None:
            own[above] |= of_message[seq]
    for one in derived:
        if one.above is not None:
            own[one.above] |= own[one.id]
        mine = own[one.id].union(*(of_message[seq] for seq in one.of))
        for words, together in one.told:
            yield from ((one.is_note, one.id, frozenset({word})) for word in words - mine)
            yield from ((one.is_note, one.id, left) for some in together if len(left := some - mine) > 1)


@cache
def _told_day(number: int) -> frozenset[str]:
    """A day since 1970 as it is told beside what was said on it."""
    at = float(number * _DAY_SECONDS)
    try:
        return telling(f"{marks.date_of(at)} {day(at)}")
    except (OverflowError, OSError, ValueError):
        return frozenset()  # no day that there is: damage put it there
