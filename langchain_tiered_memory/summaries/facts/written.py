"""The facts of a summary that a model wrote: its statements, in its own words.

Who reads the messages keeps the record. A model was shown them and decided what matters, so each of its bullets is a
fact, traced to the message that it comes from, and no rule reads the messages a second time. What it marks as what must
last weighs most; the others weigh what their wording does.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries import marks
from langchain_tiered_memory.summaries.facts.clauses import statement
from langchain_tiered_memory.summaries.facts.reading import SPEAKERS, fact_stated
from langchain_tiered_memory.summaries.facts.related import SAYS_NOT_WHAT
from langchain_tiered_memory.summaries.facts.signs import LASTING, lasting
from langchain_tiered_memory.summaries.facts.supersession import AUTHORITY
from langchain_tiered_memory.summaries.writers.sections import lines_of, sentences_of
from langchain_tiered_memory.text.identifiers import folded, identifiers
from langchain_tiered_memory.text.noun_phrases import normalised
from langchain_tiered_memory.text.readings import READ_CHARS
from langchain_tiered_memory.text.sentences import pieces
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.summaries.writers.sections import ItemKind, Line
    from langchain_tiered_memory.types.records import Entry, Fact, FactKind


_KINDS: dict[ItemKind, FactKind] = {"decision": "decision", "open": "question"}
"""What the section says of its statements; elsewhere their words do."""
MAX_CHARS = 300
"""Of a bullet: a longer one is read sentence by sentence."""
MOST_UNMARKED = math.nextafter(LASTING, 0)
"""The weight of a statement that nobody marked, at most."""
_LABEL_WORDS = 8
_NAMED_WORTH = 3.0
"""Of a figure, name or code that a message shares with a statement, in terms that no other message has."""
_OF_TOOLS = 0.4
"""Of what a tool's result shares with a statement, that a person's message shares at least: a file that was read has
most words of what is said of it. Sentences that are a tool's alone are labelled before."""

STATED = 0.8
"""Share of a fact's terms that one sentence of the prose has where it states the fact."""


class _Sources:
    """The messages of a summary, by the terms that few of them have."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        read = [(entry, entry.text[:READ_CHARS]) for entry in entries]
        self._said = [(entry, frozenset(analyse(text)), text.casefold()) for entry, text in read]
        self._having = Counter(term for _, terms, _ in self._said for term in terms)
        self._spoken = [entry for entry in entries if entry.role in SPEAKERS]

    def of(self, text: str) -> tuple[Entry, tuple[int, ...]] | None:
        """The message that a statement comes from, and its number; `None` where it is rather a tool's.

        Where no message shares a word with it, it rests on all that was said, on nobody's authority but the least.
        """
        terms, named = frozenset(analyse(text)), identifiers(text)
        shared = {
            entry.seq: math.fsum(1 / self._having[term] for term in terms & said)
            + _NAMED_WORTH * sum(one in low for one in named)
            for entry, said, low in self._said
        }
        best = max(self._spoken, key=lambda entry: (shared[entry.seq], entry.seq), default=None)
        if best is None or shared[best.seq] < _OF_TOOLS * max(shared.values()):
            return None
        if shared[best.seq]:
            return best, (best.seq,)
        least = min(self._spoken, key=lambda entry: AUTHORITY[entry.role])
        return least, tuple(entry.seq for entry in self._spoken)

    def of_tool(self, text: str) -> tuple[Entry, tuple[int, ...]] | None:
        """The tool's result that a find comes from; `None` where none has a word of it."""
        terms = frozenset(analyse(text))
        shared = [(len(terms & said), entry.seq, entry) for entry, said, _ in self._said if entry.role == "tool"]
        count, _, best = max(shared, default=(0, 0, None), key=lambda one: one[:2])
        return (best, (best.seq,)) if count and best is not None else None


def has_statements(text: str) -> bool:
    """Whether a summary is written in statements, a bullet each, as our prompts ask. Prose is not taken apart."""
    return any(line.bullet for line in lines_of(text))


def facts_written(text: str, entries: Sequence[Entry]) -> tuple[Fact, ...]:
    """The facts of a level-1 summary that a model wrote.

    `text` is as it is stored, marks of what must last included. Messages of tools and system prompts yield none.
    """
    sources = _Sources(entries)
    found: dict[str, Fact] = {}
    stated_by = tuple(_stated(text))
    marked, before = sum(line.lasts for _, line in stated_by), itertools.count(0.5)
    for said, line in stated_by:
        stands = next(before) / marked if line.lasts else 1.0
        source = sources.of_tool(said) if line.by_tool else sources.of(said)
        if source is None:
            continue
        entry, numbers = source
        stated = statement(said, entry)
        stated = replace(stated, kind=_KINDS.get(line.kind, stated.kind), subject=labelled(said) or stated.subject)
        weight = lasting(stated.weight, before=stands) if line.lasts else min(stated.weight, MOST_UNMARKED)
        fact = replace(fact_stated(said, stated, entry), sources=numbers, weight=weight, by_model=True)
        fact = replace(fact, instead_of=marks.instead_of(line.whole), ends=marks.ends(line.whole))
        found.setdefault(fact.id, fact)
    return tuple(found.values())


def labelled(text: str) -> str:
    """The subject of a statement that names it before a colon: "the ferry's budget: 640 euros"."""
    label, colon, value = text.partition(": ")
    return normalised(label) if colon and value and label.count(" ") < _LABEL_WORDS else ""


def _stated(text: str) -> Iterator[tuple[str, Line]]:
    """What the bullets and sentences of a summary state, each with its line; of tools' finds what lasts or ends.

    What no source has is stated by none but a note that must last, which says so.
    """
    lead = ""
    for line in lines_of(text):
        unmarked = marks.without_marks(line.words)
        if line.is_code or not unmarked or line.whole.startswith((marks.STILL_OPEN, marks.NOT_ANSWERED)):
            continue
        if line.by_tool and not (line.lasts or marks.instead_of(line.whole) or marks.ends(line.whole)):
            continue
        if line.kind == "overview" and not line.bullet and not line.lasts:
            continue
        is_below = line.bullet[:1].isspace()
        doubtful = marks.NOTE in unmarked and not line.lasts
        plain = "" if doubtful else unmarked.removeprefix(marks.TOOL_MARK).strip()
        whole = f"{lead} {plain}" if is_below and lead else plain
        if not is_below:
            lead = plain if plain.endswith(":") else ""
        if not any(map(str.isalnum, plain)) or plain.endswith(":"):
            continue
        yield from ((one, line) for one in ((whole,) if len(whole) <= MAX_CHARS else sentences_of(whole)))


def only_ends(fact: Fact) -> bool:
    """Whether a model's statement only says that others are over: "done: the ferry is booked"."""
    return fact.by_model and bool(fact.ends or fact.instead_of) and fact.weight < LASTING


def stated_in(prose: str, facts: Sequence[Fact]) -> list[bool]:
    """Which facts a text states already: in one sentence, with all their names and figures and most of their words."""
    lines = [(folded(piece.text), frozenset(analyse(piece.text))) for piece in pieces(prose) if piece.kind != "code"]
    by_term: dict[str, list[int]] = {}
    for number, (_, terms) in enumerate(lines):
        for term in terms:
            by_term.setdefault(term, []).append(number)
    return [_is_stated(fact, lines, by_term) for fact in facts]


def _is_stated(fact: Fact, lines: Sequence[tuple[str, frozenset[str]]], by_term: dict[str, list[int]]) -> bool:
    terms = frozenset(analyse(fact.text))
    if only_ends(fact):
        terms -= SAYS_NOT_WHAT
    known = [by_term.get(term, ()) for term in sorted(terms)]
    if not terms or not any(known):
        return False
    value = folded(fact.value)
    subject = frozenset(analyse(fact.subject))
    named = [one for one in identifiers(fact.text) if not one.replace(" ", "").isalpha()]
    for number in min((one for one in known if one), key=len):
        said, its = lines[number]
        if len(terms & its) >= STATED * len(terms) and (not value or value in said):
            return True
        if value and subject <= its and subject and all(one in said for one in (value, *named)):
            return True
    return False
