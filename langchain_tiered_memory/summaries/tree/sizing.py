"""How large a summary should be, and how one that is too large is cut without leaving half a thought.

A cut keeps what is worth most for its tokens, as the extractive condenser weighs statements, wherever it stands: facts,
figures and decisions before chat. Bullets, sentences and blocks of code stay whole, in their order; a heading whose
section has gone goes too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.marks import is_kept, is_marked
from langchain_tiered_memory.summaries.writers.ranking import Unit, in_order_of_worth, kind_of, telling
from langchain_tiered_memory.summaries.writers.sections import kind_of_heading
from langchain_tiered_memory.text.identifiers import names
from langchain_tiered_memory.text.sentences import FENCE, pieces
from langchain_tiered_memory.text.truncation import most_fitting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from langchain_tiered_memory.settings import LevelSettings

HEADROOM = 1.15
"""A summary may exceed what its writer is told to aim at by this factor: for a writer that counts badly, for marks and
labels, and for what the audit appends."""

_OF_NOTES = 1.5
"""What a summary with notes that must last may have, in sizes of one without: its writer is told a size in words, and
names, figures and codes have more tokens a word than prose."""

LEAST_TOKENS = 40
"""What a summary of very little may have: in fewer nothing is said."""

_LASTS = 10.0
"""How much more than its wording a line weighs of which its writer says that it must last: the others go first."""
_ORIENTS = 3.0
"""How much more a line of an overview with names weighs: as much as wording such as a decision's adds."""
_MAX_CHARS_PER_TOKEN = 200  # no tokenizer packs more of a real text into one token
_HEADING = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+\S|\*\*[^*\n]+\*\*:?[ \t]*$)")
_BULLET = re.compile(r"^[ \t]*(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+\S")
_ELLIPSIS = "\u2026"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """What a summary should aim at and what it may not exceed, in tokens."""

    target_tokens: int
    max_tokens: int


def target_and_cap(level: LevelSettings, source_tokens: int) -> Size:
    """The size of a summary of `source_tokens` tokens: its cap with everything in it, and what to aim at below that.

    The cap is the level's ratio of the source, at least `min_tokens`, at most `max_tokens`, and never more than the
    source itself.
    """
    ceiling = max(1, min(level.max_tokens, source_tokens))
    cap = min(max(round(source_tokens * level.target_ratio), level.min_tokens, LEAST_TOKENS), ceiling)
    return Size(target_tokens=max(1, round(cap / HEADROOM)), max_tokens=cap)


def most_tokens(text: str, *, max_tokens: int, source_tokens: int) -> int:
    """What a text that a model wrote may have at most: never more than its sources."""
    return max(1, min(round(_OF_NOTES * max_tokens) if is_kept(text) else max_tokens, source_tokens))


@dataclass(frozen=True, slots=True)
class Cut:
    """A text within its size."""

    text: str
    """Empty where not even a word fits."""
    lines: int = 0
    """Bullets, sentences and blocks that had to go."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A bullet, a sentence or a block of code, and the heading it stands under."""

    text: str
    heading: str
    section: int


def cut_to_size(text: str, *, max_tokens: int, count_text: Callable[[str], int]) -> Cut:
    """`text`, cut to at most `max_tokens`: what is worth most of it, in its order, no heading without content.

    A single sentence that is too long is cut between words and marked with an ellipsis.
    """
    text = text.strip()
    if count_text(text) <= max_tokens:
        return Cut(text)
    lines = list(_lines(text[: max(1, max_tokens) * _MAX_CHARS_PER_TOKEN]))
    tokens = [count_text(line.text) for line in lines]
    order = list(in_order_of_worth([_weighed(line, size) for line, size in zip(lines, tokens, strict=True)]))
    chosen: list[int] = []
    room = max_tokens
    headed = set[int]()
    for place in order:
        line = lines[place]
        heading = count_text(line.heading) if line.heading and line.section not in headed else 0
        if tokens[place] + heading <= room:
            chosen.append(place)
            headed.add(line.section)
            room -= tokens[place] + heading
    while chosen:
        cut = _joined([lines[place] for place in sorted(chosen)])
        if count_text(cut) <= max_tokens:
            return Cut(cut, len(lines) - len(chosen))
        chosen.pop()
    best = lines[order[0]].text if order else text
    return Cut(_cut_words(best, max_tokens, count_text), len(lines))


def _weighed(line: _Line, tokens: int) -> Unit:
    """A line as the extractive condenser weighs it: by its wording, what it names and the section it stands in.

    What must last comes first, and what ends that, then an overview that names whom or what the rest is about.
    """
    known = kind_of_heading(line.heading) if line.heading else None
    kind = kind_of(line.text) if known is None or known in ("point", "overview") else known
    orients = known == "overview" and names(line.text)
    more = _LASTS if is_marked(line.text) else _ORIENTS if orients else 1.0
    return Unit(line.text, kind, 0, tokens, weight=more * telling(line.text))


def _lines(text: str) -> Iterator[_Line]:
    """What says something, each with its heading. What stands before the first heading has none."""
    heading, section = "", 0
    for unit in _units(text):
        if _HEADING.match(unit):
            heading, section = unit.strip(), section + 1
        else:
            yield _Line(unit, heading, section)


def _units(text: str) -> Iterator[str]:
    """Headings, bullets, sentences of prose (the first of a line after a line break) and blocks of code."""
    code = list[str]()
    fence = ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence:
            code.append(line)
            if mark and line.strip() == mark[1]:
                yield "\n".join(code)
                fence, code = "", []
        elif mark:
            fence, code = mark[1], [line]
        elif _HEADING.match(line) or _BULLET.match(line):
            yield line.rstrip()
        elif line.strip():
            yield from (piece.text for piece in pieces(line))
    if code:
        yield "\n".join([*code, fence])


def _joined(lines: Sequence[_Line]) -> str:
    """The text again: bullets and code on lines of their own, sentences of prose side by side."""
    blocks = list[str]()
    for _, section in groupby(lines, key=lambda line: line.section):
        told = list[str]()
        heading = ""
        for line in section:
            heading = line.heading
            own_line = [one for one in (line.text, *told[-1:]) if _BULLET.match(one) or FENCE.match(one)]
            if own_line or not told:
                told.append(line.text)
            else:
                told[-1] = f"{told[-1]} {line.text}"
        blocks.append("\n".join([*([heading] if heading else []), *told]))
    return "\n\n".join(blocks)


def _cut_words(sentence: str, max_tokens: int, count_text: Callable[[str], int]) -> str:
    """As many leading characters as fit, back to the last blank where there is one."""
    low = most_fitting(len(sentence), lambda chars: count_text(sentence[:chars] + _ELLIPSIS) <= max_tokens)
    kept = sentence[:low].rstrip()
    if low < len(sentence) and " " in kept and not sentence[low : low + 1].isspace():
        kept = kept.rpartition(" ")[0].rstrip()
    return kept + _ELLIPSIS if kept else ""
