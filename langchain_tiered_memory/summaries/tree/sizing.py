"""How large a summary should be, and how one that is too large is cut without leaving half a thought.

A cut takes the last items of the longest section first, so that the short sections (decisions, open items) survive.
Bullets, sentences and blocks of code stay whole; a heading whose section has gone goes too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.sentences import pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_tiered_memory.settings import LevelSettings

HEADROOM = 1.15
"""A summary may exceed what its writer is told to aim at by this factor: for a writer that counts badly, for marks and
labels, and for what the audit appends."""

LEAST_TOKENS = 40
"""What a summary of very little may have: in fewer nothing is said."""

_MAX_CHARS_PER_TOKEN = 200  # no tokenizer packs more of a real text into one token
_HEADING = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+\S|\*\*[^*\n]+\*\*:?[ \t]*$)")
_BULLET = re.compile(r"^[ \t]*(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+\S")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})")
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


@dataclass(slots=True)
class _Part:
    """A section while it is being cut: its heading and its items, each with the tokens it takes."""

    heading: str
    items: list[tuple[str, int]]
    heading_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.heading_tokens + sum(tokens for _, tokens in self.items)


def cut_at_sentence(text: str, *, max_tokens: int, count_text: Callable[[str], int]) -> str:
    """`text`, cut to at most `max_tokens`: whole bullets and sentences, no heading without content.

    A single sentence that is too long is cut between words and marked with an ellipsis. Empty where not even a word
    fits.
    """
    text = text.strip()
    if count_text(text) <= max_tokens:
        return text
    parts = list(_parts(text[: max(1, max_tokens) * _MAX_CHARS_PER_TOKEN], count_text))
    total = sum(part.tokens for part in parts)
    limit = max_tokens
    while True:
        while total > limit and _drop_one(parts):
            total = sum(part.tokens for part in parts)
        cut = _joined(parts)
        excess = count_text(cut) - max_tokens
        if excess <= 0:
            return cut
        if not _drop_one(parts):
            return _cut_words(parts[0].items[0][0] if parts else text, max_tokens, count_text)
        total = sum(part.tokens for part in parts)
        limit = max(0, min(limit, total) - max(0, excess - 1))


def _drop_one(parts: list[_Part]) -> bool:
    """Drop the last item of the longest section, or the last section where each has one item. False: nothing can go."""
    longest = max((part for part in parts if len(part.items) > 1), key=lambda part: part.tokens, default=None)
    if longest is not None:
        longest.items.pop()
        return True
    if len(parts) > 1:
        parts.pop()
        return True
    if parts and parts[0].heading:
        parts[0].heading, parts[0].heading_tokens = "", 0
        return True
    return False


def _parts(text: str, count_text: Callable[[str], int]) -> Iterator[_Part]:
    """Sections that have content. What stands before the first heading is a section without one."""
    part = _Part("", [])
    for line in _units(text):
        if _HEADING.match(line):
            if part.items:
                yield part
            part = _Part(line.strip(), [], count_text(line))
        else:
            part.items.append((line, count_text(line)))
    if part.items:
        yield part


def _units(text: str) -> Iterator[str]:
    """Headings, bullets, sentences of prose (the first of a line after a line break) and blocks of code."""
    code = list[str]()
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
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


def _joined(parts: list[_Part]) -> str:
    """The text again: bullets and code on lines of their own, sentences of prose side by side."""
    blocks = list[str]()
    for part in parts:
        lines = [part.heading] if part.heading else []
        for item, _ in part.items:
            own_line = _BULLET.match(item) or _FENCE.match(item)
            if (
                own_line
                or not lines
                or lines[-1] == part.heading
                or _BULLET.match(lines[-1])
                or _FENCE.match(lines[-1])
            ):
                lines.append(item)
            else:
                lines[-1] = f"{lines[-1]} {item}"
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _cut_words(sentence: str, max_tokens: int, count_text: Callable[[str], int]) -> str:
    """As many leading characters as fit, back to the last blank where there is one."""
    low, high = 0, len(sentence)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count_text(sentence[:middle] + _ELLIPSIS) <= max_tokens else (low, middle - 1)
    kept = sentence[:low].rstrip()
    if low < len(sentence) and " " in kept and not sentence[low : low + 1].isspace():
        kept = kept.rpartition(" ")[0].rstrip()
    return kept + _ELLIPSIS if kept else ""
