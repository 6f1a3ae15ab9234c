"""Reads the durable facts of messages: short clauses that state something in particular.

Any sentence of a person is looked at. What tells a fact from talk is that it is particular (a figure, a name, a path, a
first-person statement, words that are seldom said) and how it is put (a decision, an order, who runs what). Both make
its weight; which facts a view shows is decided later, among all of them. Tool results and system prompts yield none:
what a web page claims is not a decision, and nothing it says may become an instruction.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.changes import supposes
from langchain_tiered_memory.summaries.facts.clauses import clauses, trimmed
from langchain_tiered_memory.summaries.facts.quotations import parts_of_message, speaker_of
from langchain_tiered_memory.summaries.facts.statements import BRIEF_CHARS, Statement, is_ask, named_in, read_clause
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.sentences import ASKS, pieces
from langchain_tiered_memory.types.records import Entry, Fact

if TYPE_CHECKING:
    from collections.abc import Sequence

READER_VERSION = 2
"""Grows when facts are read otherwise than before: what an older version read is then read again."""

MAX_FACTS_PER_ENTRY = 6
"""Of one message, the weightiest: a pasted log must not crowd out the conversation."""

LEAST_WEIGHT = 0.008
"""What weighs less is talk."""

_MAX_LINE_CHARS = 2000  # a longer sentence is a blob: nothing in it was said by anybody
_MAX_TEXT_CHARS = 60_000  # of one message, half from each end: a pasted file states no decisions
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


def fact_id(seq: int, kind: str, text: str) -> str:
    """The stable id of a fact: a digest of its message's number, its kind and its text, 16 characters."""
    said = f"{seq}\x00{kind}\x00{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=_ID_BYTES).hexdigest()


def read_facts(entries: Sequence[Entry], *, goal_seq: int | None = None) -> list[Fact]:
    """The facts that `entries` state, in their order; none is merged or superseded here.

    Args: entries: Messages in order, of one session. goal_seq: `seq` of the session's first user message, where its
            ask is the goal. `None`: the first user message of `entries`, provided that they start with the session's
            first entry.
    """
    if goal_seq is None and entries and entries[0].seq == 1:
        goal_seq = next((entry.seq for entry in entries if entry.role == "user"), None)
    found: dict[str, Fact] = {}
    asked = ""
    for entry in entries:
        if entry.role in SPEAKERS:
            facts, asked = _of_entry(entry, goal=entry.seq == goal_seq, asked=asked)
            for fact in facts:
                found.setdefault(fact.id, fact)
    return list(found.values())


def _of_entry(  # noqa: C901 - one walk over the clauses of a message, with what was spoken of
    entry: Entry, *, goal: bool, asked: str
) -> tuple[list[Fact], str]:
    """The facts of one message, and what the question that it ends with is about."""
    text = entry.text
    if len(text) > _MAX_TEXT_CHARS:
        text = f"{text[: _MAX_TEXT_CHARS // 2]}\n{text[-_MAX_TEXT_CHARS // 2 :]}"
    found: list[tuple[str, Statement, bool]] = []
    advises = entry.role == "assistant" and len(text) > BRIEF_CHARS
    about, asks, announced = asked, False, ""
    said = ((piece, quoted) for part, quoted in parts_of_message(entry, text) for piece in pieces(part))
    for piece, quoted in said:
        if piece.kind not in ("sentence", "item") or len(piece.text) > _MAX_LINE_CHARS:
            continue
        if advises and not _PARTICULAR.search(piece.text):
            continue
        for clause in clauses(piece.text):
            if announced:
                clause, announced = f"{announced} {clause}", ""  # noqa: PLW2901 - one statement in two sentences
            elif _only_announces(clause) or _AMOUNT.fullmatch(clause):
                announced = clause
                continue
            stated = read_clause(clause, entry, about=about, listed=piece.kind == "item")
            if stated is None:
                continue
            if goal and is_ask(stated.text):
                stated, goal = replace(stated, kind="goal"), False
            if stated.weight >= LEAST_WEIGHT:
                found.append((trimmed(stated.text, keep=stated.span), stated, quoted))
            about = stated.named or about
        asks = piece.text.rstrip().endswith(ASKS)
        if asks:
            about = named_in(piece.text) or about
    if len(found) > MAX_FACTS_PER_ENTRY:
        best = sorted(found, key=lambda one: -one[1].weight)[:MAX_FACTS_PER_ENTRY]
        found = [one for one in found if any(one is other for other in best)]
    read = [fact_stated(clause, stated, entry, quoted=quoted) for clause, stated, quoted in found]
    return read, about if asks else ""


def _only_announces(clause: str) -> bool:
    """Whether a clause says that something was wrong, and the next one what is right: "I was wrong about it."."""
    return clause.count(" ") < _ANNOUNCING_WORDS and _TAKES_BACK.match(cues.lowered(clause)) is not None


def asserted_text(entry: Entry, *, max_chars: int) -> str:
    """What a message says itself, clause by clause: no question, quotation, supposition or pasted code of it."""
    said = (piece for part, _ in parts_of_message(entry, entry.text[:max_chars]) for piece in pieces(part))
    found = (one for piece in said if piece.kind in ("sentence", "item") for one in clauses(piece.text))
    return "\n".join(one for one in found if not supposes(one))


def fact_stated(clause: str, stated: Statement, entry: Entry, *, quoted: bool = False) -> Fact:
    """What a clause of a message states, or quotes, as a fact of that message."""
    return Fact(
        kind=stated.kind,
        text=clause,
        seq=entry.seq,
        at=entry.at,
        by=entry.role,
        speaker=speaker_of(entry, quoted=quoted),
        subject=stated.subject,
        attribute=stated.attribute,
        value=stated.value,
        track=entry.track,
        id=fact_id(entry.seq, stated.kind, clause),
        sources=(entry.seq,),
        weight=stated.weight,
    )
