"""What `identifiers` recognises, as it stands in the text: in its order, in its spelling, figures with their noun."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.identifiers import CODE, DATE, EMAIL, NAME, NUMBER, PATH, QUOTED, SYMBOL, URL
from langchain_tiered_memory.text.terms import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_DIGIT = re.compile(r"\d")
_SHAPES = (  # with their rank, and the cheapest sign that a line has one: most have none
    (URL, 0, re.compile("://")),
    (EMAIL, 0, re.compile("@")),
    (PATH, 0, re.compile(r"[/\\]|\w\.\w")),
    (DATE, 1, _DIGIT),
    (CODE, 0, _DIGIT),
    (SYMBOL, 1, re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}|\w_|\(\)|--|\w\.\w")),
)
_NAME, _BARE = 2, 3
_TRAILING = ".,;:!?'\"\u2019\u201d)]}"
_TAKEN = "\x00"
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


def findings(text: str, *, bare: bool = True) -> Iterator[Finding]:
    """What `text` names, line by line and kind after kind, repetitions included. Never raises.

    Args:
        text: Any text.
        bare: Whether names, quotes and figures without a noun are wanted.
    """
    for line in text.splitlines():
        yield from _in_line(line, bare=bare)


def _in_line(line: str, *, bare: bool) -> Iterator[Finding]:
    for pattern, rank, sign in _SHAPES:
        if sign.search(line) is None:
            continue
        matches = list(pattern.finditer(line))
        for match in matches:
            found = match[0].rstrip(_TRAILING if pattern is URL else ".")
            if found and len(found) <= _MAX_CHARS:
                yield _finding(found, found, rank)
        line = _without(line, matches)  # so that no part of it is found again as a figure or a name
    for match in NUMBER.finditer(line) if _DIGIT.search(line) else ():
        figure = match[0].strip(_TRAILING)
        told = figure.lstrip("+-")
        if sum(map(str.isdigit, figure)) < _MIN_BARE_DIGITS and told.isdigit():
            continue
        phrase = figure if not told.replace(",", "").replace(".", "").isdigit() else _with_noun(line, match, figure)
        if bare or phrase != figure or not told.isdigit():
            yield _finding(phrase, figure, 0 if phrase != figure or not told.isdigit() else _BARE)
    if bare:
        yield from _named(line)


def _named(text: str) -> Iterator[Finding]:
    for match in QUOTED.finditer(text):
        quoted = next(group for group in match.groups() if group).strip(_TRAILING)
        if _TAKEN not in quoted and 0 < len(quoted.split()) <= _MAX_QUOTED_WORDS:
            yield _finding(quoted, quoted, _NAME)
    for match in NAME.finditer(text):
        if len(match[0]) > 1 and match[0].casefold() not in _NO_NAME:
            yield _finding(match[0], match[0], _NAME)


def _finding(shown: str, named: str, rank: int) -> Finding:
    text = " ".join(shown.replace(";", ",").split())
    return Finding(text, " ".join(named.casefold().split()), rank)


def _without(line: str, matches: Sequence[re.Match[str]]) -> str:
    """`line` with every match blanked, all else in its place."""
    if not matches:
        return line
    kept: list[str] = []
    at = 0
    for match in matches:
        kept += (line[at : match.start()], _TAKEN * len(match[0]))
        at = match.end()
    return "".join((*kept, line[at:]))


def _with_noun(text: str, match: re.Match[str], figure: str) -> str:
    """The figure with the word behind it, or the one before it: `12 replicas`, `port is 8443`."""
    behind = _NOUN_BEHIND.match(text, match.end()) or _UNSPACED_BEHIND.match(text, match.end())
    if behind and behind[0].strip(" \u00a0-").casefold() not in STOP_WORDS:
        return f"{figure}{behind[0]}"
    head = text[max(0, match.start() - _LOOK_CHARS) : match.start()]
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
