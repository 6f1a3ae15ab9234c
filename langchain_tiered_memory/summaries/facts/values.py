"""What form a value has, and which figures a sentence states: two values of one form can take each other's place."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.identifiers import CODE, DATE, EMAIL, NUMBER, PATH, URL

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMED = re.compile(rf"{EMAIL.pattern}|{URL.pattern}|{CODE.pattern}")
"""E-mail addresses, URLs, versions, codes and hashes."""
_UNIT_WORD = re.compile(r"[$\u20ac\u00a3\u00a5%\u00b0]|[^\W\d_]{1,20}")

_COPULA = (
    r"(?:(?:is|are|was|were|will be|should be|becomes?|costs?|equals|remains?)(?: now| still| actually| currently"
    r"| about| around| set to| exactly| capped at| fixed at| on| at| up to| only){0,4}|(?:has"
    r"|have) (?:been )?(?:changed|moved|raised|lowered|cut|set|increased|reduced) to|(?:changed|moved|raised|lowered"
    r"|cut|set|increased|reduced|went up|came down) (?:from .{1,20} )?to|now"
    r"|(?:comes?|came|adds? up|added up|amounts?|amounted) to|est(?: de)?|sont|ist|sind|betr\u00e4gt|es(?: de)?|:|="
    r"|\u662f|\u4e3a|\u306f)"
)
_VALUE = rf"(?:{DATE.pattern}|{CODE.pattern}|{NUMBER.pattern})"
_STATED = re.compile(
    rf"\b(?P<noun>(?:[^\W\d_][\w'-]{{0,40}}[ ]){{0,5}}[^\W\d_][\w'-]{{0,40}})(?:[ ]"
    rf"|(?=[:=\u662f\u4e3a\u306f])){_COPULA}[ ]?(?:the |an? |[$\u20ac\u00a3]?)?(?P<value>{_VALUE})",
    re.IGNORECASE,
)
_OF = re.compile(
    rf"\b(?P<noun>(?:budget|limit|cap|price|cost|fee|size|timeout|threshold|target|quota|total|salary|rent|score"
    rf"|version|weight|height|age|population|capacity)) of (?:about |around |up to )?(?P<value>{_VALUE})",
    re.IGNORECASE,
)
_REPAIRED = re.compile(
    rf"(?P<value>{_VALUE})[, ]+(?:and )?not (?:at |on |the )?(?P<wrong>{_VALUE}|[`\"']?[\w./-]{{1,80}})", re.IGNORECASE
)


class Shape(StrEnum):
    """The form of a value."""

    PATH = "path"
    CODE = "code"
    DATE = "date"
    FIGURE = "figure"
    NAME = "name"
    """Of more than one word."""
    WORDS = "words"
    """None of these: a choice, a single name, or nothing that was found."""


_SHAPES = ((Shape.PATH, PATH), (Shape.CODE, NAMED), (Shape.DATE, DATE), (Shape.FIGURE, NUMBER))


def shape_of(value: str) -> Shape:
    """The form of a value, as `statements` found it."""
    for shape, pattern in _SHAPES:
        if pattern.match(value):
            return shape
    return Shape.NAME if value[:1].isupper() and " " in value else Shape.WORDS


def unit_of(value: str) -> str:
    """The unit of a figure, in lower case, without a plural's ending; empty for none."""
    if shape_of(value) != Shape.FIGURE:
        return ""
    unit = _UNIT_WORD.search(value)
    return unit[0].lower().removesuffix("s") if unit else ""


def stated_figures(sentence: str) -> Iterator[re.Match[str]]:
    """Where a sentence says of a noun what its figure is: matches with `noun` and `value`."""
    if any(char.isdigit() for char in sentence):
        for pattern in (_STATED, _OF):
            yield from (match for match in pattern.finditer(sentence) if tells(match["value"]))


def repaired_figure(sentence: str) -> re.Match[str] | None:
    """Where a sentence takes back one figure for another ("8443, not 8080"), if it does."""
    match = _REPAIRED.search(sentence)
    return match if match and tells(match["value"]) else None


def tells(value: str) -> bool:
    """Whether a figure is more than a count of one digit."""
    return sum(char.isdigit() for char in value) > 1 or not value.strip().isdigit()


def states_figure(sentence: str) -> bool:
    """Whether a sentence says what a figure is, rather than only mentioning one."""
    return next(stated_figures(sentence), None) is not None or repaired_figure(sentence) is not None
