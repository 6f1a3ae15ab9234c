"""What a clause states: its kind, its subject, attribute and value, and how much it weighs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.phrases import Phrase, phrases
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.figures import mentioned_figure, repaired_figure, stated_figures
from langchain_tiered_memory.text.identifiers import CODE, EMAIL, PATH, URL

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Entry, FactKind

_BRIEF_CHARS = 600
_CODE_NAME = re.compile(rf"{EMAIL.pattern}|{URL.pattern}|{CODE.pattern}")
_NAME = re.compile(r"(?<=[\w,;(\"] )[^\W\d_a-z][^\W\d_]*[^\W\d_A-Z]+(?:[ -][^\W\d_a-z][^\W\d_]+){0,3}")
_FULL = re.compile(r"[^\W\d_a-z][^\W\d_A-Z]+(?: [^\W\d_a-z][^\W\d_A-Z]+){1,2}")
_FIRST = re.compile(r"\b(?:i|my|we|our|i'm|i've|we're|we've)\b", re.IGNORECASE)
_SECOND = re.compile(r"\b(?:you|your|you're|you've|yours)\b", re.IGNORECASE)
_LEAST_WORDS = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """What a clause states."""

    kind: FactKind
    subject: str
    attribute: str
    value: str
    weight: float


def read_clause(clause: str, entry: Entry, *, goal: bool) -> Reading | None:
    """What `clause` states; `None` where it is talk."""
    low = cues.lowered(clause)
    if goal and (cues.GOAL.search(low) or cues.IMPERATIVE.match(low)):
        return Reading("goal", "goal", "", "", 1.0)
    if clause.isascii() and len(clause.split()) < _LEAST_WORDS:
        return None
    found = phrases(clause)
    subject = topic(found)
    kind, value, weight = _kind(clause, low, entry)
    if kind is None:
        return None
    if entry.role == "assistant" and len(entry.text) > _BRIEF_CHARS:
        weight *= 0.4
    if cues.SMALL_TALK.match(low):
        weight *= 0.6
    if _SECOND.search(low):
        weight *= 0.6
    if _FIRST.search(low):
        weight += 0.1
    return Reading(kind, subject, "", value, round(min(weight, 1.0), 3))


def topic(found: list[Phrase]) -> str:
    """The noun phrase that a clause is about: with most words, behind a preposition before one that is not."""
    best = max(found, key=lambda one: (len(one.words), one.before != ""), default=None)
    return " ".join(best.key) if best else ""


def _kind(clause: str, low: str, entry: Entry) -> tuple[FactKind | None, str, float]:
    if entry.role != "assistant" and (cues.ORDER.match(low) or cues.CONSTRAINT.search(low)):
        return "constraint", "", 0.6
    value, shape = value_of(clause)
    if cues.DECISION.search(low):
        return "decision", value, 0.6
    if shape:
        return shape, value, 0.5
    if cues.TAKEN_BACK.search(low):
        return "decision", "", 0.5
    name = _NAME.search(clause)
    return "statement", name[0] if name else "", 0.3 if name else 0.2


def value_of(clause: str) -> tuple[str, FactKind | None]:
    """What a clause says of its subject where its form tells it: a path, code, figure or full name."""
    for kind, pattern in (("path", PATH), ("identifier", _CODE_NAME)):
        if match := pattern.search(clause):
            return match[0], kind  # type: ignore[return-value]
    for match in stated_figures(clause):
        return match["value"], "number"
    if repaired := repaired_figure(clause):
        return repaired["value"], "number"
    if figure := mentioned_figure(clause):
        return figure[0], "number"
    if name := _FULL.search(clause):
        return name[0], "identifier"
    return "", None
