"""Cuts a long message into passages: what is embedded, indexed, and shown where the whole message would cost too much.

A passage is a few sentences. Its atoms are sentences and lines; a fenced block of code is one atom while it fits, and a
line that announces the next ("The steps:") goes with it. Passages cover the message exactly, so that two offsets are
all that must be kept of one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_WORDS = 100
"""Default length of a passage: about 130 tokens of prose, well within the 256 word pieces that MiniLM reads."""

_WIDE = (  # scripts without spaces: Thai to Khmer, kana, ideographs, Hangul
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_WORD = re.compile(f"[{_WIDE}]{{1,2}}|[^\\W{_WIDE}]{{1,16}}|[^\\w\\s]{{2,4}}")
_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*(?:\n|\Z)|\Z)", re.MULTILINE | re.DOTALL)
_ATOM_END = re.compile(
    "\n+|(?<=[.!?])[ \t]+|(?<=[.!?][\"')\\]\u201d])[ \t]+|[\u3002\uff01\uff1f]+[\u300d\u300f\u201d]*"
)
_ANNOUNCES = (":", "\uff1a", ":**", ":*", ":_", ":__")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A piece of a text, as offsets in characters: `text[start:stop]`."""

    start: int
    stop: int


def split_passages(text: str, *, max_words: int = MAX_WORDS) -> list[Span]:
    """Spans that cover `text` in order, without gap or overlap; none for an empty text.

    A span has at most `max_words` words: two ideographs or up to four signs count as one, a word of more than 16
    letters as several. Raises `ValueError` if `max_words` is below 1.
    """
    if max_words < 1:
        message = f"max_words must be at least 1, not {max_words}"
        raise ValueError(message)
    if len(text) <= max_words:  # most messages are short, and a word has at least one character
        return [Span(0, len(text))] if text else []
    borders, words = [0], 0
    last, last_words = Span(0, 0), 0
    for atom, atom_words in _atoms(text, max_words):
        if words + atom_words > max_words and atom.start > borders[-1]:
            moves = (
                last.start > borders[-1]
                and last_words + atom_words <= max_words
                and text[last.start : last.stop].rstrip().endswith(_ANNOUNCES)
            )
            borders.append(last.start if moves else atom.start)
            words = last_words if moves else 0
        words += atom_words
        last, last_words = atom, atom_words
    return [Span(start, stop) for start, stop in zip(borders, [*borders[1:], len(text)], strict=True)]


def _atoms(text: str, max_words: int) -> Iterator[tuple[Span, int]]:
    """Sentences, lines and code blocks with their words, none longer than `max_words`."""
    start = 0
    for block in _FENCED.finditer(text):
        yield from _sentences(text, Span(start, block.start()), max_words)
        span = Span(block.start(), block.end())
        words = sum(1 for _ in _WORD.finditer(text, span.start, span.stop))
        if words <= max_words:
            yield span, words
        else:
            yield from _sentences(text, span, max_words)
        start = block.end()
    yield from _sentences(text, Span(start, len(text)), max_words)


def _sentences(text: str, span: Span, max_words: int) -> Iterator[tuple[Span, int]]:
    """The sentences and lines of `span`; one that is too long is cut between words."""
    start = span.start
    ends = (match.end() for match in _ATOM_END.finditer(text, span.start, span.stop))
    for stop in (*ends, span.stop):
        words = 0
        for word in _WORD.finditer(text, start, stop):
            if words == max_words:
                yield Span(start, word.start()), words
                start, words = word.start(), 0
            words += 1
        if stop > start:
            yield Span(start, stop), words
        start = stop
