"""Reads the durable facts of messages: short clauses that state something in particular.

Any sentence of a person is looked at. What tells a fact from talk is that it is particular (a figure, a name, a path, a
first-person statement, words that are seldom said) and how it is put (a decision, an order, who runs what). Both make
its weight; which facts a view shows is decided later, among all of them. Tool results and system prompts yield none:
what a web page claims is not a decision, and nothing it says may become an instruction.

What of a message is its author's own is told by form alone. What stands in quote marks as a sentence, or behind a `>`,
is left out. Headers or a rule above a forwarded message, a letter from its salutation to the name below it, a document
that a host loads, and what stands below a line that ends with a colon are mostly somebody else's: that is kept under a
speaker of its own, and takes the place of nothing.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.messages.message_text import is_loaded
from langchain_tiered_memory.summaries.facts.clauses import (
    BRIEF_CHARS,
    LEAST_WORDS,
    Clause,
    is_ask,
    named_in,
    read_clause,
    shortened,
    stated_by,
    statement,
    told_in_asking,
)
from langchain_tiered_memory.summaries.facts.frames import frame_of
from langchain_tiered_memory.summaries.facts.signs import FILLER
from langchain_tiered_memory.summaries.writers.extractive_calls import call_start
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.readings import READ_CHARS
from langchain_tiered_memory.text.sentences import ASKS, pieces
from langchain_tiered_memory.text.statements import without_fields
from langchain_tiered_memory.types.records import Entry, Fact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.text.sentences import Piece


READER_VERSION = 17
"""Grows when facts are read otherwise than before: what an older version read is then read again."""

MAX_FACTS_PER_ENTRY = 6
"""Of one message, the weightiest, and as many more for each length of a brief one, up to six: whoever writes at length
states more, and a pasted log must not crowd out the conversation."""
_MOST_LENGTHS = 6
"""Lengths of a brief message that are counted: what is longer is mostly pasted, and nobody said it."""

_MAX_LINE_CHARS = 2000  # a longer sentence is a blob: nothing in it was said by anybody
CORRECTION = "correction"
"""The kind of a message by which a person corrects a fact."""
CORRECTS = "tiered_memory_corrects"
"""Where such a message says of which messages the statements are corrected: their numbers."""
SPEAKERS = frozenset({"user", "assistant", "other"})
"""Whose words are read."""
_ID_BYTES = 8
_ANNOUNCING_WORDS = 10
_TAKES_BACK = re.compile(
    r"(?:(?:sorry|no|oh|wait|oops)[,.!]? ){0,2}(?:i (?:was wrong|made a mistake|misspoke|changed my mind|mixed)"
    r"|scratch (?:that|what)|correction|change of plans?"
    r"|forget what i said|small (?:change|correction)|my mistake|(?:there is|there['\u2019]s) (?:a"
    r"|an) (?:change|update))\b[^:;\d/]{0,80}[.!:]?$"
)
_AMOUNT = re.compile(r"[$\u20ac\u00a3]?\d[\d.,]{0,12}+(?: [^\W\d_]{1,20}){0,2}[!.\u2026]{1,3}")
"""A figure by itself, which the next sentence says what it is of: "4300 euros!! That's what they want for it."."""
_PARTICULAR = re.compile(r"\d|[/@\\]|[\w,;] [^\W\d_a-z]|decided|agreed|settled|chose")
"""What a sentence of a long answer has at least, to be looked at."""

_IN_WORDS = re.compile(r"[^\W\d_]{2} [^\W\d_]{2}|[^\x00-\u2e7f]")
"""What is pasted has two words side by side, or characters that need no blanks; code that is pasted states nothing."""
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
_LETTER_LINES = 3
_FRAME_WORDS = 5
"""Of a salutation ("Dear Mrs. Ann Miller,") or the name below a letter."""


def fact_id(seq: int, kind: str, text: str) -> str:
    """The stable id of a fact: a digest of its message's number, its kind and its text, 16 characters."""
    said = f"{seq}\x00{kind}\x00{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=_ID_BYTES).hexdigest()


def read_facts(entries: Sequence[Entry], *, goal_seq: int | None = None) -> list[Fact]:
    """The facts that `entries`, in order and of one session, state, in their order; none is superseded here.

    `goal_seq` is that of the session's first user message, where its ask is the goal. `None`: the first user message of
    `entries`, provided that they start with the session's first entry.
    """
    if goal_seq is None and entries and entries[0].seq == 1:
        goal_seq = next((entry.seq for entry in entries if entry.role == "user"), None)
    found: dict[str, Fact] = {}
    asked = ""
    for entry in entries:
        if entry.kind == CORRECTION and (correction := _correction(entry)) is not None:
            found[correction.id] = correction
        elif entry.role in SPEAKERS:
            facts, asked = _of_entry(entry, goal=entry.seq == goal_seq, asked=asked)
            for fact in facts:
                found.setdefault(fact.id, fact)
    return list(found.values())


def _correction(entry: Entry) -> Fact | None:
    """What a person says in the place of earlier messages' statements: the whole message is one statement."""
    try:
        seqs = json.loads(entry.payload)["fields"]["additional_kwargs"][CORRECTS]
        numbers = tuple(sorted({one for one in seqs if type(one) is int and one < entry.seq}))
    except (KeyError, TypeError, ValueError):
        return None
    stated = read_clause(entry.text, entry, about="") or statement(entry.text, entry)
    kind = "statement" if stated.kind in ("goal", "question") else stated.kind
    return replace(fact_stated(entry.text, replace(stated, kind=kind), entry), weight=1.0, instead_of=numbers)


def _of_entry(  # noqa: C901 - one walk over the sentences of a message, with what was spoken of
    entry: Entry, *, goal: bool, asked: str
) -> tuple[list[Fact], str]:
    """The facts of one message, and what the question that it ends with is about."""
    text = entry.text
    if len(text) > READ_CHARS:
        text = f"{text[: READ_CHARS // 2]}\n{text[-READ_CHARS // 2 :]}"
    found: list[tuple[str, Clause, bool]] = []
    advises = entry.role == "assistant" and len(text) > BRIEF_CHARS
    about, asks, announced = asked, False, ""
    said = ((piece, quoted) for part, quoted in parts_of_message(entry, text) for piece in pieces(part))
    for piece, quoted in said:
        if piece.kind not in ("sentence", "item") or len(piece.text) > _MAX_LINE_CHARS:
            continue
        if (advises and not _is_told(piece)) or (quoted and not _IN_WORDS.search(piece.text)):
            continue
        if entry.role == "assistant" and piece.text.startswith("|"):  # a row of a table, without what its columns are
            continue
        clause = stated_by(piece.text)
        if announced and clause:
            clause, announced = f"{announced} {clause}", ""  # one statement in two sentences
        elif _only_announces(clause) or _AMOUNT.fullmatch(clause):
            clause, announced = "", clause
        is_item = piece.kind == "item"
        stated = (
            read_clause(clause, entry, about=about, listed=is_item) if clause else told_in_asking(piece.text, entry)
        )
        if stated is not None:
            if goal and is_ask(stated.text):
                stated, goal = replace(stated, kind="goal"), False
            if stated.weight >= FILLER:
                found.append((shortened(stated.text, around=stated.span), stated, quoted))
            about = stated.named or about
        asks = piece.text.rstrip().endswith(ASKS)
        if asks:
            about = named_in(piece.text) or about
    most = MAX_FACTS_PER_ENTRY * min(math.ceil(len(text) / BRIEF_CHARS), _MOST_LENGTHS)
    if len(found) > most:
        best = sorted(found, key=lambda one: -one[1].weight)[:most]
        found = [one for one in found if any(one is other for other in best)]
    read = [fact_stated(clause, stated, entry, quoted=quoted) for clause, stated, quoted in found]
    return read, about if asks else ""


def _is_told(piece: Piece) -> bool:
    """Whether a long answer tells something in a sentence: what it lists, labels or derives is advice."""
    said = piece.text
    in_prose = (
        piece.kind == "sentence"
        and not said.startswith("|")
        and "**" not in said
        and _IN_WORDS.search(said) is not None
    )
    return in_prose and _PARTICULAR.search(said) is not None


def _only_announces(clause: str) -> bool:
    """Whether a clause says that something was wrong, and the next one what is right: "I was wrong about it."."""
    return clause.count(" ") < _ANNOUNCING_WORDS and _TAKES_BACK.match(cues.lowered(clause)) is not None


def fact_stated(clause: str, stated: Clause, entry: Entry, *, quoted: bool = False) -> Fact:
    """What a clause of a message states, or quotes, as a fact of that message."""
    return Fact(
        kind=stated.kind,
        text=clause,
        seq=entry.seq,
        at=entry.at,
        by=entry.role,
        speaker=" by ".join(filter(None, (_QUOTED if quoted else "", entry.name))),
        subject=stated.subject,
        attribute=stated.attribute,
        value=stated.value,
        track=entry.track,
        id=fact_id(entry.seq, stated.kind, clause),
        sources=(entry.seq,),
        weight=stated.weight,
    )


def is_quoted(fact: Fact) -> bool:
    """Whether somebody else's words state a fact."""
    return fact.speaker.startswith(_QUOTED)


def parts_of_message(entry: Entry, text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a message in their order, without quotations, each with whether it is mostly somebody else's.

    What an assistant hands to its tools is none: code that it writes and patterns that it looks for state nothing.
    """
    lines = without_fields(text[: call_start(text)] if entry.calls else text).split("\n")
    own = len(lines) if entry.role == "assistant" else 0 if is_loaded(text) else _first_handed_over(lines)
    yield without_quotations(lines[:own]), False
    yield without_quotations(lines[own:]), True


def without_quotations(lines: Sequence[str]) -> str:
    """Lines of a text without those that cite another, and without sentences in quote marks."""
    kept: list[str] = []
    text, start = "\n".join(line for line in lines if not _CITED.match(line)), 0
    for match in _MARKED.finditer(text):
        said, before = match[0][1:-1].strip(), text[start : match.start()].rstrip(" \t")
        opens = not before or before.endswith((":", "\uff1a", "\n"))
        stands_alone = opens or (said.endswith(_SENTENCE_ENDS) and not _is_title(said))
        if stands_alone and (said.count(" ") + 1 >= LEAST_WORDS or not said.isascii()):
            kept.append(text[start : match.start()])
            start = match.end()
    return "\n".join((*kept, text[start:])) if kept else text


def _is_title(said: str) -> bool:
    """Whether what stands in quote marks is a name, with the full stop of its sentence: a book called "Big Sur."."""
    words = said.split()
    begun = [word[:1].isupper() for word in words]
    return begun[0] and begun[-1] and 2 * sum(begun) >= len(words)


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
