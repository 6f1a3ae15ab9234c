"""Cuts a text into passages, and into the pieces that a summary or a fact quotes whole: sentences, items, code.

A passage is what is embedded, indexed, and shown where the whole message would cost too much: a few sentences. Its
atoms are sentences and lines; a fenced block of code is one atom while it fits, and a line that announces the next
("The steps:") goes with it. Passages cover the message exactly, so that two offsets are all that must be kept of one.

Pieces need not cover the text: blank lines and list marks fall away. Written for transcripts in any language: full
stops of several scripts end a sentence, a short list of abbreviations does not, and a fenced block is one piece.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

ASKS = ("?", "\uff1f", "\u061f", "\u037e")
STOPS = (".", "!", "\u2026", "\u3002", "\uff01", *ASKS)
"""How a question, and any sentence, ends."""
_ASKS = re.compile(rf"[{''.join(ASKS)}]\W{{0,16}}\Z")

PieceKind: TypeAlias = Literal["sentence", "item", "heading", "code"]

FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})")
"""How a line begins that opens or closes a block of code."""
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]+(\S.*)")
_ITEM = re.compile(r"^[ \t]*(?:[-*+\u2022\u00b7\u2013]|\(?\d{1,3}[.)]|\[[ xX]\])[ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)")
_MARKS = ".!?\u2026\u061f\u06d4\u0964"
_UNSPACED_MARKS = "\u3002\uff01\uff1f"
_FACE = r"(?:[:;]['-]?[()DP]|<3|[\u2600-\u27bf\U0001f300-\U0001faff]\ufe0f?)"
"""An emoticon or an emoji: in chat it stands where others put a full stop. Repeated within bounds, not possessively:
a possessive group that fails gives nothing back in Python before 3.11.5."""
_END = re.compile(  # a run of marks is entered at its first, and never given back: thousands of dots are one ellipsis
    rf"(?<![{_MARKS}])[{_MARKS}]++[\"'\u201d\u2019)\]*]*+(?:[ \t]{{1,4}}{_FACE}{{1,8}}(?=\s)){{0,2}}[ \t]++(?=\S)"
    rf"|(?<![{_UNSPACED_MARKS}])[{_UNSPACED_MARKS}]++[\u300d\u300f\u201d\u2019]*+[ \t]*+(?=\S)"
    rf"|(?<=[^\s\d] ){_FACE}{{1,8}}[ \t]++(?=[^\W\d_a-z])"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(.])(?:[A-Za-z]|ft|feat|Mrs?|Ms|Drs?|Prof|St|Sr|Jr|vs|etc|approx|[Ff]ig|[Nn]o|[Vv]ol|[Cc]f|[Ee]x|e\.g|i\.e"
    r"|a\.m|p\.m|z\.B|d\.h|bzw|ca|Nr|p\.ej|n\u00b0)\.$"
)
_SHORT_FORM = re.compile(
    r"(?:\b(?:approx|dept|incl|excl|resp|est|min|max|avg|temp|misc|tel|ext|ref|orig|cont|dist|freq|abbr|asst|assoc"
    r"|govt|intl|mgmt|natl|qty|req|spec|std|vol|wk|yr|hrs?|mins?|secs?|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|O[ck]t|Nov|De[cz]"
    r"|Mon|Tues?|Wed|Thurs?|Fri|Sat|Sun|Inc|Ltd|Corp|Co|Jr|Sr|Ave|Blvd|Rd|inkl|exkl|ggf|evtl|usw|vgl|Str|Abs|Tel)"
    r"|[^\W\d_]\.\w{1,20}|\W(?!(?:am|at|be|by|do|go|he|in|is|it|me|my|no|of|ok|on|or|so|to|up|us|we)\.)\w{1,2}|\W|\d|\.)\.$"
)
"""Before a word in small letters, what ends with a full stop in the middle of a sentence."""
_DAY = re.compile(r"(?:^|\W)\d{1,2}\.$")
_MONTH = re.compile(
    r"(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
    r"|(?:Jan|Feb|Apr|Aug|Sept?|Okt|Nov|Dez)\.)(?!\w)"
)
"""Behind a number with a full stop a date, as German writes it: "am 4. Mai"."""
_MIN_WRAPPED_CHARS = 50  # a shorter line that lacks its full stop was ended on purpose
_LOOK_BACK = 40
"""Characters before a full stop that say what it belongs to."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One quotable piece, without the list or heading mark it stood behind."""

    text: str
    kind: PieceKind
    follows: bool = False
    """Whether it stands in the same line or item as the piece before it."""


def pieces(text: str) -> list[Piece]:
    """The pieces of `text` in their order. Never raises; a text of blanks has none."""
    found: list[Piece] = []
    for kind, block in _blocks(text):
        if kind in ("code", "heading"):
            found.append(Piece(block, kind))
        else:
            found.extend(Piece(sentence, kind, place > 0) for place, sentence in enumerate(_sentences(block)))
    return found


def asks(sentence: str) -> bool:
    """Whether a sentence ends with a question mark; quotation marks, brackets and faces may stand behind it."""
    return _ASKS.search(sentence) is not None


def sentences(text: str) -> list[str]:
    """The sentences and list items of `text`: no headings, no code."""
    return [piece.text for piece in pieces(text) if piece.kind in ("sentence", "item")]


def _blocks(text: str) -> Iterator[tuple[PieceKind, str]]:  # noqa: C901 - one state machine over lines reads best whole
    """Lines, with wrapped ones joined, and fenced blocks whole."""
    fence, code = "", list[str]()
    kind: PieceKind = "sentence"
    waiting: list[str] = []
    chars = 0
    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence:
            code.append(line)
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and line.strip() == mark[1]:
                yield "code", "\n".join(code)
                fence, code = "", []
            continue
        if waiting and _continues(chars, waiting[-1], line):
            waiting.append(line.strip())
            chars += len(waiting[-1]) + 1
            continue
        if waiting:
            yield kind, " ".join(waiting)
            waiting, chars = [], 0
        if mark:
            fence, code = mark[1], [line]
        elif heading := _HEADING.match(line):
            yield "heading", heading[1].rstrip(" \t#") or heading[1]
        elif line.strip():
            item = _ITEM.match(line)
            kind, waiting = ("item", [line[item.end() :].strip()]) if item else ("sentence", [line.strip()])
            chars = len(waiting[0])
    if waiting:
        yield kind, " ".join(waiting)
    if code:
        yield "code", "\n".join([*code, fence])


def _continues(chars: int, line: str, following: str) -> bool:
    """Whether `following` goes on with a sentence of `chars` characters so far, whose last line was wrapped."""
    start = following.strip()[:1]
    return chars >= _MIN_WRAPPED_CHARS and start.islower() and line[-1:] not in ".!?:;" and not _ITEM.match(following)


def _goes_on(block: str, stop: int) -> bool:
    """Whether the full stop at `stop`, before a small letter, ends no sentence: "approx. ten", "file.py. it"."""
    return _SHORT_FORM.search(block, max(0, stop - _LOOK_BACK), stop + 1) is not None


def _sentences(block: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(block):
        mark = end[0].rstrip()
        closes_quietly = mark.startswith(".") and (
            _ABBREVIATION.search(block, max(0, end.start() - 8), end.start() + 1)
            or (_DAY.search(block, max(0, end.start() - 3), end.start() + 1) and _MONTH.match(block, end.end()))
            or (block[end.end()].islower() and (mark != "." or _goes_on(block, end.start())))
        )
        if closes_quietly:
            continue
        yield block[start : end.start() + len(mark)].strip()
        start = end.end()
    if block[start:].strip():
        yield block[start:].strip()


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
        yield from _sentences_of(text, Span(start, block.start()), max_words)
        span = Span(block.start(), block.end())
        words = sum(1 for _ in _WORD.finditer(text, span.start, span.stop))
        if words <= max_words:
            yield span, words
        else:
            yield from _sentences_of(text, span, max_words)
        start = block.end()
    yield from _sentences_of(text, Span(start, len(text)), max_words)


def _sentences_of(text: str, span: Span, max_words: int) -> Iterator[tuple[Span, int]]:
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
