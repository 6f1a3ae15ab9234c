"""What `identifiers` recognises, as it stands in the text: in its order, in its spelling, figures with their noun."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.identifiers import QUOTED, SHAPES, TAKEN, URL, marks_of
from langchain_tiered_memory.text.terms import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_tiered_memory.text.identifiers import Marks

_RANKS = (0, 0, 0, 1, 0, 1)
"""Of each of `SHAPES`."""
_NAME, _BARE = 2, 3
_TRAILING = ".,;:!?'\"\u2019\u201d)]}"
_MIN_BARE_DIGITS = 2
_MAX_QUOTED_WORDS = 6
_MAX_CHARS = 120
_NOUN_BEHIND = re.compile(r"[ \u00a0-]([^\W\d_]{3,30})\b")
_WORD = re.compile(r"[^\W\d_][\w'-]*")
_ENDS = re.compile(r"[.!?;,)\]](?:[ \u00a0]|$)|[\u3002\uff01\uff1f\uff0c\x00]")
_UNSPACED_BEFORE = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]{1,6}[ :\uff1a=]?$")
_UNSPACED_BEHIND = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]{1,4}")
_LOOK_CHARS = 60
_WORDS_BEFORE = 3
_LONG_WORD, _SHORT_WORD = 4, 3  # function words are short in every language that spaces its words
_NO_NAME = frozenset("i'm i'll i've i'd ok okay yes yeah no wow oh hey hi hello thanks lol omg".split())  # noqa: SIM905 - a list to be read


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a text names."""

    text: str
    """As it stands there, a figure with its noun."""
    key: str
    """Itself, casefolded, as `identifiers` gives it."""
    rank: int
    """0: nobody could guess it; 1: dates and symbols; 2: names and quotes; 3: a bare figure."""


def findings(text: str) -> Iterator[Finding]:
    """What `text` names, line by line and kind after kind, repetitions included. Never raises."""
    for line in text.splitlines():
        yield from _in_line(line)


def _in_line(line: str) -> Iterator[Finding]:
    marks = marks_of(line)
    for kind, start, stop in marks.shapes:
        found = line[start:stop].rstrip(_TRAILING if SHAPES[kind][0] is URL else ".")
        if found and len(found) <= _MAX_CHARS:
            yield _finding(found, found, _RANKS[kind])
    for start, stop in marks.figures:
        figure = line[start:stop].strip(_TRAILING)
        told = figure.lstrip("+-")
        if sum(map(str.isdigit, figure)) < _MIN_BARE_DIGITS and told.isdigit():
            continue
        is_counted = told.replace(",", "").replace(".", "").isdigit()
        phrase = _with_noun(marks.left, start, stop, figure) if is_counted else figure
        yield _finding(phrase, figure, 0 if phrase != figure or not told.isdigit() else _BARE)
    yield from _named(marks)


def _named(marks: Marks) -> Iterator[Finding]:
    for match in QUOTED.finditer(marks.left):
        quoted = next(group for group in match.groups() if group).strip(_TRAILING)
        if TAKEN not in quoted and 0 < len(quoted.split()) <= _MAX_QUOTED_WORDS:
            yield _finding(quoted, quoted, _NAME)
    for start, stop in marks.names:
        name = marks.left[start:stop]
        if len(name) > 1 and name.casefold() not in _NO_NAME:
            yield _finding(name, name, _NAME)


def _finding(shown: str, named: str, rank: int) -> Finding:
    text = " ".join(shown.replace(";", ",").split())
    return Finding(text, " ".join(named.casefold().split()), rank)


def _with_noun(text: str, start: int, stop: int, figure: str) -> str:
    """The figure with the word behind it, or the one before it: `12 replicas`, `port is 8443`."""
    behind = _NOUN_BEHIND.match(text, stop) or _UNSPACED_BEHIND.match(text, stop)
    if behind and behind[0].strip(" \u00a0-").casefold() not in STOP_WORDS:
        return f"{figure}{behind[0]}"
    head = text[max(0, start - _LOOK_CHARS) : start]
    unspaced = _UNSPACED_BEFORE.search(head)
    return f"{unspaced[0] if unspaced else _noun_before(head)}{figure}"


def _noun_before(head: str) -> str:
    """The end of `head` from the last word on that tells something: `port is `. Empty where there is none near."""
    clause = _ENDS.split(head)[-1]
    words = list(_WORD.finditer(clause))[-_WORDS_BEFORE:]
    for least in (_LONG_WORD, _SHORT_WORD):
        for word in reversed(words):
            if len(word[0]) >= least and word[0].casefold() not in STOP_WORDS:
                return clause[word.start() :]
    return ""
