"""Whose words a finished summary quotes: above level 1 nobody else says who takes part."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.marks import TOOL_MARK
from langchain_tiered_memory.summaries.writers.extractive_phrases import DATE, TOLD_PEOPLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LABELLED = re.compile(
    rf"^(?:[-*+] )?(?:Open: )?(?P<speaker>[^:()\n]{{1,60}}?)(?: \({DATE}\)(?: asked)?| asked): ", re.MULTILINE
)
_BETWEEN = re.compile(r", | and ")
_OTHERS = re.compile(r"\d{1,6} others")
_NO_NAMES = frozenset({"The user", "The assistant", "the user", "the assistant", "The speaker", "the speaker"})


def speakers_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Names that our summaries quote by: those of their overviews, and those that stand before a day or `asked`."""
    return tuple(dict.fromkeys(name for text in texts for name in _named(text)))


def _named(text: str) -> Iterator[str]:
    told = TOLD_PEOPLE.match(text)
    for name in _BETWEEN.split(told["people"]) if told else ():
        if name not in _NO_NAMES and not _OTHERS.fullmatch(name):
            yield name
    yield from (one["speaker"] for one in _LABELLED.finditer(text) if not one["speaker"].startswith(TOOL_MARK))
