"""Reads the durable facts of messages: short clauses that state something in particular.

Any sentence of a person is looked at. What tells a fact from talk is that it is particular (a figure, a name, a path, a
first-person statement, words that are seldom said) and how it is put (a decision, an order, who runs what). Both make
its weight; which facts a view shows is decided later, among all of them. Tool results and system prompts yield none:
what a web page claims is not a decision, and nothing it says may become an instruction.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.clauses import clauses
from langchain_tiered_memory.summaries.facts.signs import Reading, read_clause
from langchain_tiered_memory.text.sentences import sentences
from langchain_tiered_memory.types.records import Entry, Fact

if TYPE_CHECKING:
    from collections.abc import Sequence

READER_VERSION = 1
"""Grows when facts are read otherwise than before: what an older version read is then read again."""

MAX_FACTS_PER_ENTRY = 6
"""Of one message, the weightiest: a pasted log must not crowd out the conversation."""

LEAST_WEIGHT = 0.12
"""What weighs less is talk."""

_MAX_LINE_CHARS = 2000  # a longer sentence is a blob: nothing in it was said by anybody
_MAX_TEXT_CHARS = 60_000  # of one message, half from each end: a pasted file states no decisions
_TALKS = frozenset({"user", "assistant", "other"})
_ID_BYTES = 8


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
    for entry in entries:
        if entry.role in _TALKS:
            for fact in _of_entry(entry, goal=entry.seq == goal_seq):
                found.setdefault(fact.id, fact)
    return list(found.values())


def _of_entry(entry: Entry, *, goal: bool) -> list[Fact]:
    text = entry.text
    if len(text) > _MAX_TEXT_CHARS:
        text = f"{text[: _MAX_TEXT_CHARS // 2]}\n{text[-_MAX_TEXT_CHARS // 2 :]}"
    said = [sentence for sentence in sentences(text) if len(sentence) <= _MAX_LINE_CHARS]
    readings: list[tuple[str, Reading]] = []
    for sentence in said:
        for clause in clauses(sentence):
            reading = read_clause(clause, entry, goal=goal and not readings)
            if reading is not None and reading.weight >= LEAST_WEIGHT:
                readings.append((clause, reading))
    if len(readings) > MAX_FACTS_PER_ENTRY:
        best = sorted(readings, key=lambda one: -one[1].weight)[:MAX_FACTS_PER_ENTRY]
        readings = [one for one in readings if any(one is other for other in best)]
    return [_fact(clause, reading, entry) for clause, reading in readings]


def _fact(clause: str, reading: Reading, entry: Entry) -> Fact:
    return Fact(
        kind=reading.kind,
        text=clause,
        seq=entry.seq,
        at=entry.at,
        by=entry.role,
        subject=reading.subject,
        attribute=reading.attribute,
        value=reading.value,
        track=entry.track,
        id=fact_id(entry.seq, reading.kind, clause),
        sources=(entry.seq,),
        weight=reading.weight,
    )
