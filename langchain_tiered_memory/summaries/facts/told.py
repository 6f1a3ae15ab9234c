"""Facts in the prose of a summary: which known ones it states, and what it states besides.

A model's sentence counts as a fact only where one of the messages it stands for says so: the words are looked up there,
and the fact carries the label of who said them. What only a tool or a system prompt says yields none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.clauses import clauses, trimmed
from langchain_tiered_memory.summaries.facts.quotations import without_quotations
from langchain_tiered_memory.summaries.facts.reading import LEAST_WEIGHT, SPEAKERS, asserted_text, fact_stated
from langchain_tiered_memory.summaries.facts.statements import statement
from langchain_tiered_memory.text.identifiers import identifiers
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Entry, Fact

STATED = 0.8
"""Share of a fact's terms that one sentence of the prose has where it states the fact."""
FOUND = 0.6
"""Share of a sentence's terms that a message has where the sentence comes from it."""
_MIN_TERMS = 3
_MAX_SOURCE_CHARS = 60_000


@dataclass(frozen=True, slots=True)
class _Line:
    folded: str
    terms: frozenset[str]


def stated_in(prose: str, facts: Sequence[Fact]) -> list[bool]:
    """Which facts a text states already: in one sentence, with all their names and figures and most of their words."""
    lines = [
        _Line(" ".join(piece.text.casefold().split()), frozenset(analyse(piece.text)))
        for piece in pieces(prose)
        if piece.kind != "code"
    ]
    by_term: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        for term in line.terms:
            by_term.setdefault(term, []).append(number)
    return [_is_stated(fact, lines, by_term) for fact in facts]


def _is_stated(fact: Fact, lines: Sequence[_Line], by_term: dict[str, list[int]]) -> bool:
    terms = frozenset(analyse(fact.text))
    known = [by_term.get(term, ()) for term in sorted(terms)]
    if not terms or not any(known):
        return False
    value = " ".join(fact.value.casefold().split())
    subject = frozenset(analyse(fact.subject))
    for number in min((one for one in known if one), key=len):
        line = lines[number]
        shared = len(terms & line.terms)
        if shared >= STATED * len(terms) and (not value or value in line.folded):
            return True
        if value and subject and value in line.folded and subject <= line.terms:
            return True
    return False


def facts_of_summary(text: str, sources: Sequence[Entry], known: Sequence[Fact]) -> tuple[list[Fact], list[str]]:
    """What a summary says of facts.

    Args:
        text: What a model wrote.
        sources: The messages that it stands for.
        known: The facts that were read from them.

    Returns: Facts that `text` states, a message says and `known` lacks, and the ids of known ones that it takes up.
    """
    taken_up = [fact.id for fact, stated in zip(known, stated_in(text, known), strict=True) if stated]
    texts = [
        asserted_text(entry, max_chars=_MAX_SOURCE_CHARS) if entry.role in SPEAKERS else entry.text[:_MAX_SOURCE_CHARS]
        for entry in sources
    ]
    said = [(entry, frozenset(analyse(one)), one.casefold()) for entry, one in zip(sources, texts, strict=True)]
    told = [(fact, frozenset(analyse(fact.text))) for fact in known]
    found: dict[str, Fact] = {}
    for piece in pieces(without_quotations(text.split("\n"))):
        if piece.kind not in ("sentence", "item"):
            continue
        for clause in clauses(piece.text):
            terms = frozenset(analyse(clause))
            source = _source_of(clause, terms, said)
            if source is None or source.role not in SPEAKERS or any(_covers(terms, other) for _, other in told):
                continue
            stated = statement(clause, source)
            if stated.weight < LEAST_WEIGHT:
                continue
            fact = fact_stated(trimmed(clause, keep=stated.span), stated, source)
            found.setdefault(fact.id, fact)
    return [fact for fact in found.values() if all(fact.id != other.id for other in known)], taken_up


def _source_of(clause: str, terms: frozenset[str], said: Sequence[tuple[Entry, frozenset[str], str]]) -> Entry | None:
    """The message that a clause comes from: with all its figures and names, and most of its words."""
    if len(terms) < _MIN_TERMS:
        return None
    named = identifiers(clause)
    best = max(
        (one for one in said if all(name in one[2] for name in named)),
        key=lambda one: len(terms & one[1]),
        default=None,
    )
    return best[0] if best and len(terms & best[1]) >= FOUND * len(terms) else None


def _covers(terms: frozenset[str], known: frozenset[str]) -> bool:
    return bool(known) and len(terms & known) >= STATED * min(len(terms), len(known))
