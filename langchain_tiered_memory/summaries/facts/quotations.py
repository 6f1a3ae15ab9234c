"""Which parts of a message are its author's own words, and which they quote, forward or paste.

Told by form alone. What stands in quote marks as a sentence, or behind a `>`, is no word of the author's and left out.
Headers or a rule above a forwarded message, a letter from its salutation to the name below it, and what stands below a
line that ends with a colon are mostly somebody else's: that is kept under a speaker of its own, and takes the place of
nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.frames import frame_of
from langchain_tiered_memory.summaries.writers.extractive_calls import call_start

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.types.records import Entry, Fact

_QUOTED = "quoted"
"""The speaker of what a message quotes: it is not known who said it."""
_CITED = re.compile(r"[ \t]{0,8}>")
_RULE = re.compile(r"[ \t]{0,8}[-_=*]{3,80}[ \t]?\w[^\n]{0,80}[-_=*:]{1,80}[ \t]{0,8}")
_HEADER = re.compile(r"[\w-]{2,20}(?: [\w-]{1,20})?[:\uff1a][ \t]+\S")
_ITEM = re.compile(r"[ \t]{0,8}(?:[-*+\u2022]|\d{1,3}[.)])[ \t]")
_SENTENCE_ENDS = (".", "!", "?", "\u3002", "\uff01", "\uff1f", ":", "\uff1a", ";")
_MARKED = re.compile(
    r"\"[^\"\n]{3,2000}\"|\u201c[^\u201c\u201d\n]{3,2000}\u201d|\u201e[^\u201e\u201c\u201d\n]{3,2000}[\u201c\u201d]"
    r"|\u00ab[^\u00ab\u00bb\n]{3,2000}\u00bb|\u300c[^\u300c\u300d\n]{3,2000}\u300d"
)
_SENTENCE_WORDS = 3
_LETTER_LINES = 3
_FRAME_WORDS = 5
"""Of a salutation ("Dear Mrs. Ann Miller,") or the name below a letter."""


def is_quoted(fact: Fact) -> bool:
    """Whether somebody else's words state a fact."""
    return fact.speaker.startswith(_QUOTED)


def speaker_of(entry: Entry, *, quoted: bool) -> str:
    """Who says what a message states, or quotes."""
    name = entry.name or ""
    return " by ".join(filter(None, (_QUOTED, name))) if quoted else name


def parts_of_message(entry: Entry, text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a message in their order, without quotations, each with whether it is mostly somebody else's.

    What an assistant hands to its tools is none: code that it writes and patterns that it looks for state nothing.
    """
    lines = (text[: call_start(text)] if entry.calls else text).split("\n")
    own = len(lines) if entry.role == "assistant" else _first_handed_over(lines)
    yield without_quotations(lines[:own]), False
    yield without_quotations(lines[own:]), True


def without_quotations(lines: Sequence[str]) -> str:
    """Lines of a text without those that cite another, and without sentences in quote marks."""
    kept: list[str] = []
    text, start = "\n".join(line for line in lines if not _CITED.match(line)), 0
    for match in _MARKED.finditer(text):
        said, before = match[0][1:-1].strip(), text[start : match.start()].rstrip(" \t")
        stands_alone = not before or before.endswith((":", "\uff1a", "\n")) or said.endswith(_SENTENCE_ENDS)
        if stands_alone and (said.count(" ") + 1 >= _SENTENCE_WORDS or not said.isascii()):
            kept.append(text[start : match.start()])
            start = match.end()
    return "\n".join((*kept, text[start:])) if kept else text


def _first_handed_over(lines: list[str]) -> int:
    """The number of the first line of what a message forwards or pastes below its own; else how many there are."""
    said = [line.strip() for line in lines]
    for place, line in enumerate(said[:-1]):
        if not line:
            continue
        behind = next((one for one in said[place + 1 :] if one), "")
        if _RULE.fullmatch(line) or (_HEADER.match(line) and _HEADER.match(said[place + 1]) and _is_mail(said[place:])):
            return place
        if line.endswith((":", "\uff1a")) and behind and not _ITEM.match(behind) and frame_of(line).words:
            return place + 1
        if _is_letter(said[place:]):
            return place
    return len(lines)


def _is_mail(lines: list[str]) -> bool:
    """Whether these lines begin with headers, and go on below a blank one."""
    return "" in lines and any(lines[lines.index("") :])


def _is_letter(lines: list[str]) -> bool:
    """Whether these lines are a letter: a salutation that ends with a comma, and below the text somebody's name."""
    said = [line for line in lines if line]
    return (
        len(said) >= _LETTER_LINES
        and said[0].endswith((",", "\uff0c"))
        and said[0].count(" ") < _FRAME_WORDS
        and not said[-1].endswith(_SENTENCE_ENDS)
        and said[-1].count(" ") < _FRAME_WORDS
    )
