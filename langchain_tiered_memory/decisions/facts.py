"""Durable facts: what must not fade however often the prose above it is condensed again.

A fact is a sentence of the conversation, word for word, shortened around what matters. Only forms that announce
themselves are taken (an order, a decision, a figure with its noun, a path, a named open question), so that ordinary
talk yields few. Tool results and system prompts yield none: what a web page claims is not a decision, and nothing it
says may become an instruction. Each fact keeps who said it. The list travels upward beside the summaries; a correction
takes the place of what it corrects, though an assistant never takes back what its user said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions import cues
from langchain_tiered_memory.decisions.identifiers import CODE, DATE, EMAIL, NUMBER, PATH, URL
from langchain_tiered_memory.decisions.sentences import sentences
from langchain_tiered_memory.decisions.superseding import cap_facts, merge_facts, render_facts, subject_words
from langchain_tiered_memory.records import Entry, Fact, FactKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["cap_facts", "extract_facts", "merge_facts", "render_facts", "shorten"]

MAX_WORDS = 40
"""Longest fact, in words; what is longer is shortened around its cue."""

MAX_FACTS_PER_ENTRY = 6
"""Of one message, in the order of the kinds: a pasted log must not crowd out the conversation."""

_MAX_CHARS = 320  # of a text without blanks between its words
_MIN_WORDS = 3
_MIN_GOAL_WORDS = 5
_MAX_LINE_CHARS = 2000  # a longer sentence is a blob: nothing in it was said by anybody
_MAX_TEXT_CHARS = 60_000  # of one message, half from each end: a pasted file states no decisions
_TALKS = frozenset({"user", "assistant", "other"})
_KIND_ORDER: tuple[FactKind, ...] = ("goal", "constraint", "decision", "number", "question", "path", "identifier")

_COPULA = (
    r"(?:(?:is|are|was|were|will be|should be|becomes?|costs?|equals|remains?)(?: now| still| actually| currently"
    r"| about| around| set to| exactly"
    r"| capped at| fixed at| on| at| up to| only)*|(?:has|have) (?:been )?(?:changed|moved|raised|lowered|cut|set"
    r"|increased|reduced) to"
    r"|(?:changed|moved|raised|lowered|cut|set|increased|reduced|went up|came down) (?:from .{1,20} )?to|now"
    r"|est(?: de)?|sont|ist|sind|betr\u00e4gt|es(?: de)?|:|=|\u662f|\u4e3a|\u306f)"
)
_VALUE = rf"(?:{DATE.pattern}|{CODE.pattern}|{NUMBER.pattern})"
_STATED = re.compile(
    rf"\b(?P<noun>(?:[^\W\d_][\w'-]*[ ]){{0,5}}[^\W\d_][\w'-]*)(?:[ ]"
    rf"|(?=[:=\u662f\u4e3a\u306f])){_COPULA}[ ]?(?:the |an? |[$\u20ac\u00a3]?)?(?P<value>{_VALUE})",
    re.IGNORECASE,
)
_OF = re.compile(
    rf"\b(?P<noun>(?:budget|limit|cap|price|cost|fee|size|timeout|threshold|target|quota|total|salary|rent|score"
    rf"|version|weight|height|age|population|capacity)) of (?:about |around |up to )?(?P<value>{_VALUE})",
    re.IGNORECASE,
)
_REPAIRED = re.compile(
    rf"(?P<value>{_VALUE})[, ]+(?:and )?not (?:at |on |the )?(?P<wrong>{_VALUE}|[`\"']?[\w./-]+)", re.IGNORECASE
)
_CODE_NAME = re.compile(rf"{EMAIL.pattern}|{URL.pattern}|{CODE.pattern}")
_POINT = re.compile(r"\b(?:for|as|of) (?:the|our|my|this) ((?:\w+ )?[^\W\d]\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Found:
    kind: FactKind
    start: int
    stop: int
    subject: str = ""


def extract_facts(entries: Sequence[Entry], *, goal_seq: int | None = None) -> list[Fact]:
    """The durable facts of `entries`, in their order, corrections applied.

    Args: entries: Messages in order, of one session. goal_seq: `seq` of the session's first user message, where its
            ask is the goal. `None`: the first user message of `entries`, provided that they start with the session's
            first entry.
    """
    if goal_seq is None and entries and entries[0].seq == 1:
        goal_seq = next((entry.seq for entry in entries if entry.role == "user"), None)
    found: list[Fact] = []
    for entry in entries:
        if entry.role in _TALKS:
            found.extend(_of_entry(entry, goal=entry.seq == goal_seq))
    return merge_facts([], found)


def _of_entry(entry: Entry, *, goal: bool) -> list[Fact]:
    text = entry.text
    if len(text) > _MAX_TEXT_CHARS:
        text = f"{text[: _MAX_TEXT_CHARS // 2]}\n{text[-_MAX_TEXT_CHARS // 2 :]}"
    said = [sentence for sentence in sentences(text) if len(sentence) <= _MAX_LINE_CHARS]
    facts: list[Fact] = []
    seen: set[str] = set()
    asked = _ask(said) if goal else None
    for sentence in said:
        found = _Found("goal", 0, 0, "goal") if sentence == asked else _look(sentence, entry)
        if found is None or (not goal and _too_short(sentence)):
            continue
        if found.kind in ("path", "identifier"):
            if found.subject in seen:
                continue
            seen.add(found.subject)
        shortened = shorten(sentence, around=(found.start, found.stop))
        facts.append(
            Fact(kind=found.kind, text=shortened, seq=entry.seq, at=entry.at, by=entry.role, subject=found.subject)
        )
    if len(facts) > MAX_FACTS_PER_ENTRY:
        best = sorted(facts, key=lambda fact: _KIND_ORDER.index(fact.kind))[:MAX_FACTS_PER_ENTRY]
        facts = [fact for fact in facts if any(fact is one for one in best)]
    return facts


def _too_short(sentence: str) -> bool:
    return sentence.isascii() and len(sentence.split()) < _MIN_WORDS


def _ask(said: Sequence[str]) -> str | None:
    """The sentence of a first message that states what is wanted, or `None` where it is small talk."""
    substantial = [one for one in said if len(one.split()) >= _MIN_GOAL_WORDS or not one.isascii()]
    for one in substantial:
        low = cues.lowered(one)
        if cues.GOAL.search(low) or cues.IMPERATIVE.match(low):
            return one
    return next((one for one in substantial if PATH.search(one) or URL.search(one)), None)


def _look(sentence: str, entry: Entry) -> _Found | None:
    """The strongest kind that a sentence announces. Constraints are taken from people only: advice is no constraint."""
    asks = sentence.rstrip().endswith(("?", "\uff1f", "\u061f"))
    low = cues.lowered(sentence)
    if not asks and entry.role != "assistant":
        order = cues.ORDER.match(low) or cues.CONSTRAINT.search(low)
        if order and not cues.SMALL_TALK.match(low):
            return _Found("constraint", order.start(), order.end(), _point(sentence))
    if not asks and (decided := cues.DECISION.search(low)):
        return _Found("decision", decided.start(), decided.end(), _point(sentence))
    if not asks and (number := _number(sentence, entry)):
        return number
    if open_point := cues.QUESTION.search(low):
        return _Found("question", open_point.start(), open_point.end(), _point(sentence))
    for kind, pattern in _NAMED:
        if entry.role != "assistant" and (match := pattern.search(sentence)):
            return _Found(kind, match.start(), match.end(), match[0].casefold())
    return None


_NAMED: tuple[tuple[FactKind, re.Pattern[str]], ...] = (("path", PATH), ("identifier", _CODE_NAME))


def _number(sentence: str, entry: Entry) -> _Found | None:
    """A figure with the noun that it belongs to, or one that takes back another ("8443, not 8080")."""
    for match in _stated(sentence):
        words = subject_words(match["noun"], speaker=entry.name or entry.role)
        if words and _tells(match["value"]):
            return _Found("number", match.start(), match.end(), " ".join(words))
    repaired = _REPAIRED.search(sentence)
    if repaired and _tells(repaired["value"]):
        return _Found("number", repaired.start(), repaired.end())
    return None


def _stated(sentence: str) -> Iterator[re.Match[str]]:
    if any(char.isdigit() for char in sentence):
        yield from _STATED.finditer(sentence)
        yield from _OF.finditer(sentence)


def _tells(value: str) -> bool:
    """Whether a figure is more than a count of one digit."""
    return sum(char.isdigit() for char in value) > 1 or not value.strip().isdigit()


def _point(sentence: str) -> str:
    """What a decision or constraint is about, where it says so ("... for the logo")."""
    match = _POINT.search(sentence)
    return " ".join(subject_words(match[1])) if match else ""


def shorten(sentence: str, *, around: tuple[int, int], max_words: int = MAX_WORDS) -> str:
    """`sentence`, or at most `max_words` of its words around a span, with an ellipsis where something is missing."""
    words = list(re.finditer(r"\S+", sentence))
    if len(words) <= max_words and len(sentence) <= _MAX_CHARS:
        return sentence
    first = next((index for index, word in enumerate(words) if word.end() > around[0]), 0)
    first = max(0, min(first - max_words // 4, len(words) - max_words))
    start, stop = words[first].start(), words[min(first + max_words, len(words)) - 1].end()
    if stop - start > _MAX_CHARS:
        start = max(start, min(around[0] - _MAX_CHARS // 4, stop - _MAX_CHARS))
        stop = min(stop, start + _MAX_CHARS)
    return ("\u2026" if start > 0 else "") + sentence[start:stop].strip() + ("\u2026" if stop < len(sentence) else "")
