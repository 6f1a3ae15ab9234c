"""Figures in a sentence: which it states of a noun, and which it only mentions beside one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.identifiers import CODE, DATE, NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterator

_COPULA = (
    r"(?:(?:is|are|was|were|will be|should be|becomes?|costs?|equals|remains?)(?: now| still| actually| currently"
    r"| about| around| set to| exactly"
    r"| capped at| fixed at| on| at| up to| only){0,4}|(?:has|have) (?:been )?(?:changed|moved|raised|lowered|cut|set"
    r"|increased|reduced) to"
    r"|(?:changed|moved|raised|lowered|cut|set|increased|reduced|went up|came down) (?:from .{1,20} )?to|now"
    r"|(?:comes?|came|adds? up|added up|amounts?|amounted) to"
    r"|est(?: de)?|sont|ist|sind|betr\u00e4gt|es(?: de)?|:|=|\u662f|\u4e3a|\u306f)"
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
