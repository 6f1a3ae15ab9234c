"""Puts the pieces of a message together to statements that can stand alone.

A piece is what stands between two full stops or line breaks; in a list or a table that is often half a thought:
"Departure: 06:00 AM", "They listen on 8443". A statement joins short items with the line that announces them, and a
sentence that begins with "They" or "That" with the one before it; the marks of a page (bold, cells) are dropped. Every
word of a statement stands in the text, in the same order.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.readings import READ_CHARS
from langchain_tiered_memory.text.sentences import STOPS, asks, pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from langchain_tiered_memory.text.sentences import Piece

MAX_CHARS = 200
"""A statement that is longer was one sentence; `clause_cut` shortens it."""

MAX_JOINED_CHARS = 240
"""Of a line with the items that it announces (more follow by themselves), or of a question with its answer."""
_MAX_PAIR_CHARS = 220  # of a sentence that needs its predecessor, with it
_SHORT_WORDS = 9  # an item of no more words, without a full stop, is a part of its list
_LABEL_WORDS = 6  # an announcing line of no more words names its first item, however long that is
COLONS = (":", "\uff1a")
_EMPHASIS = re.compile(r"\*\*+|__+(?=\W|$)|(?<!\w)__+")
_WHOLLY_BOLD = re.compile(r"(?:\*\*|__)[^*_\n]{2,80}(?:\*\*|__):?")
_LEANS = re.compile(
    r"(?:and |but |so |then |because |also,? ){0,2}(?:he|she|they|it|that|this|these|those|such|both|which|there|its"
    r"|their|his|her|them|er|sie|es|das|dies\w{0,3}|il|elle|ils|elles|cela|\u00e7a|ellos|ellas|eso|esto"
    r"|for (?:example|instance)|the (?:one|ones|other|latter|former|same))"
    r"(?:['\u2019](?:s|re|ll|d|ve))?(?=[\s,])",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[;,\u2014\u2013\uff0c\uff1b\u3001](?=\s)|\s\u2013(?=\s)|\s\u2014(?=\s)|\)(?=\s)")
_OF_A_FILE = re.compile(
    r"[ \t]{0,10}\d{1,6}\u2192"
    r"|(?=[\w@+-]{0,200}[./])(?!\d)[\w./@+-]{1,200}\w[:-]\d{1,6}[:-](?!(?:\d{1,6}:)? \S)"
)
"""How a line begins that a program shows of a file: with its number, behind the file's name or alone. What a compiler
says of a line stands behind one blank."""
_MARKS = re.compile(r"\A[ \t]{0,40}(?:[#>*\u2022-]{1,6}[ \t]+){1,3}")
_FIELD = re.compile(r"<(?P<name>[a-z]{1,20}(?:-[a-z]{1,20}){1,4})>[^<>]{0,4000}</(?P=name)>")
"""What a program filled in: no element of HTML has such a name."""
_TAG = re.compile(
    r"</?(?:a|b|br|button|center|code|div|em|h[1-6]|hr|i|img|input|li|link|meta|ol|p|path|pre|section|small|span|strong"
    r"|sub|sup|svg|table|tbody|td|th|thead|tr|ul)\b[^<>]{0,300}>",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a message says in one breath."""

    text: str
    is_code: bool = False
    announces: bool = False
    """Whether it is the head of something that is not quoted with it."""
    leans: bool = False
    """Whether it begins with a word for something that was named before it."""


def statements(text: str) -> list[Statement]:
    """The statements of `text` in their order: no headings. Never raises."""
    return list(_leaned(_joined(piece for piece in pieces(text) if piece.kind != "heading")))


def shown_lines(text: str) -> list[str]:
    """The lines of what a program printed: no tags and marks, no numbered lines of a file, objects as their fields."""
    if text.lstrip()[:1] in ("{", "["):
        fields = _fields(text)
        if fields:
            return fields
    lines: list[str] = []
    for piece in pieces(text):
        if piece.kind == "code":
            lines += (" ".join(line.split()) for line in piece.text.splitlines()[1:-1])
        elif not _OF_A_FILE.match(piece.text):
            lines.append(" ".join(plain(_TAG.sub("", _MARKS.sub("", piece.text, count=1))).split()))
    return [line for line in lines if any(char.isalnum() for char in line)]


def without_fields(text: str) -> str:
    """What somebody said in a message, without elements that a program filled in."""
    return _FIELD.sub(" ", text) if "</" in text else text


def _fields(text: str) -> list[str]:
    """What an object or a list of objects says, each object's fields in a row; nothing where it is none."""
    try:
        value = json.loads(text) if len(text) <= READ_CHARS else None
    except (ValueError, RecursionError):
        return []
    rows: list[str] = []
    waiting = [("", value)] if value is not None else []
    while waiting:
        name, one = waiting.pop()
        if isinstance(one, dict):
            plain_ones = [f"{key} {_word(item)}" for key, item in one.items() if not isinstance(item, dict | list)]
            if plain_ones:
                rows.append((f"{name}: " if name else "") + ", ".join(plain_ones))
            waiting += [(str(key), item) for key, item in reversed(one.items()) if isinstance(item, dict | list)]
        elif isinstance(one, list):
            if one and not any(isinstance(item, dict | list) for item in one):
                rows.append((f"{name}: " if name else "") + ", ".join(map(_word, one)))
            else:
                waiting += [(name, item) for item in reversed(one)]
        else:
            rows.append(f"{name} {_word(one)}".strip())
    return rows


def _word(value: object) -> str:
    return " ".join(str(value).split())


def leans(text: str) -> bool:
    """Whether a sentence begins with a word for something that was named before it."""
    return _LEANS.match(text) is not None


def plain(text: str) -> str:
    """`text` without the marks of bold type, and a row of a table as its cells."""
    if text[:1] == "|" and text.rstrip()[-1:] == "|":
        cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
        head, *rest = [cell for cell in cells if any(char.isalnum() for char in cell)] or [""]
        text = f"{head}: {', '.join(rest)}" if rest else head
    if "**" in text or "__" in text:
        text = _EMPHASIS.sub("", text)
    return text.strip()


def clause_cut(text: str, *, most_chars: int, reach: int = 0) -> str:
    """`text`, or its clauses up to `most_chars`, with an ellipsis for the rest; between words where no clause ends.

    The words kept should contain the place `reach`; they begin with the clause before it where it lies beyond.
    """
    if len(text) <= most_chars:
        return text
    start = 0
    if reach > most_chars * 3 // 4:
        borders = [end.end() for end in _CLAUSE_END.finditer(text, 0, reach)]
        start = next((place for place in borders if reach - place < most_chars // 2), max(0, reach - most_chars // 4))
        start = text.find(" ", start) + 1 if start and text[start - 1 : start + 1].isalnum() else start
    kept = text[start : start + most_chars]
    if start + most_chars < len(text):
        ends = [end.start() for end in _CLAUSE_END.finditer(kept) if end.start() >= max(most_chars // 2, reach - start)]
        border = ends[-1] if ends else kept.rfind(" ", most_chars // 2)
        kept = f"{kept[:border] if border > 0 else kept}\u2026"
    return ("\u2026" if start else "") + kept.strip()


def _joined(given: Iterable[Piece]) -> Iterator[Statement]:
    """Items with the line that announces them."""
    lead = ""
    items: list[str] = []
    for piece in given:
        if piece.kind == "code":
            yield from _list_of(lead, items)
            lead, items = "", []
            yield Statement(piece.text, is_code=True)
            continue
        text = plain(piece.text)
        if not text:
            continue
        if text.endswith(COLONS) or _WHOLLY_BOLD.fullmatch(piece.text):
            yield from _list_of(lead, items)
            lead, items = text.rstrip(":\uff1a"), []
        elif _is_short(text) and (piece.kind == "item" or (lead and not piece.follows)):
            if items and len(lead) + sum(map(len, items)) + len(text) > MAX_JOINED_CHARS:
                yield from _list_of(lead, items)
                lead, items = "", []
            items.append(text)
        else:
            if items or len(lead.split()) > _LABEL_WORDS:
                yield from _list_of(lead, items)
                lead = ""
            yield Statement(f"{lead}: {text}" if lead else text)
            lead, items = "", []
    yield from _list_of(lead, items)


def _list_of(lead: str, items: list[str]) -> Iterator[Statement]:
    if items:
        yield Statement(f"{lead}: {'; '.join(items)}" if lead else "; ".join(items))
    elif lead:
        yield Statement(f"{lead}:", announces=True)


def _is_short(text: str) -> bool:
    return not text.endswith(STOPS) and len(text) < MAX_CHARS // 2 and len(text.split()) <= _SHORT_WORDS


def _leaned(given: Iterable[Statement]) -> Iterator[Statement]:
    """Sentences that lean on the one before them, with it."""
    before: Statement | None = None
    for one in given:
        if one.is_code or one.announces or not leans(one.text):
            if before:
                yield before
            before = one
        elif (
            before
            and not (before.is_code or before.announces)
            and len(before.text) + len(one.text) < _MAX_PAIR_CHARS
            and before.text.endswith(STOPS)
            and not asks(before.text)
            and not asks(one.text)
        ):
            before = Statement(f"{before.text} {one.text}", leans=before.leans)
        else:
            if before:
                yield before
            before = Statement(one.text, leans=True)
    if before:
        yield before
