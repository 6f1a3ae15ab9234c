"""Durable facts: statements that must not fade however often the prose above them is condensed again.

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

from langchain_tiered_memory.summaries.fact_merge import merge_facts, subject_words
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.figures import mentioned_figure, repaired_figure, stated_figures
from langchain_tiered_memory.text.identifiers import CODE, EMAIL, PATH, URL
from langchain_tiered_memory.text.sentences import sentences
from langchain_tiered_memory.types.records import Entry, Fact, FactKind

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_WORDS = 40
"""Longest fact, in words; what is longer is shortened around its cue."""

MAX_FACTS_PER_ENTRY = 6
"""Of one message, in the order of the kinds: a pasted log must not crowd out the conversation."""

_MAX_CHARS = 320  # of a text without blanks between its words
_MIN_WORDS = 3
_MIN_GOAL_WORDS = 5
_MAX_LINE_CHARS = 2000  # a longer sentence is a blob: nothing in it was said by anybody
_MAX_TEXT_CHARS = 60_000  # of one message, half from each end: a pasted file states no decisions
_BRIEF_CHARS = 600  # of an assistant's message: a longer one advises at length, and mentions much that nobody settled
_ANNOUNCES = ("?", "\uff1f", "\u061f", ":", "\uff1a")  # a question, or the head of a list: neither states anything
_TALKS = frozenset({"user", "assistant", "other"})
_KIND_ORDER: tuple[FactKind, ...] = ("goal", "constraint", "decision", "number", "question", "path", "identifier")

_UNBROKEN = re.compile(r"\S+")
_CODE_NAME = re.compile(rf"{EMAIL.pattern}|{URL.pattern}|{CODE.pattern}")
_FULL_NAME = re.compile(
    r"(?<![\w'\u2019.*#\"\u201c-])(?!(?:The|Der|Die|Das|Ein|Eine|Le|La|Les|El|Los|Las|My|Our|Your|His|Her"
    r"|Their|This|That|These|Those|In|On|At|By|For|From|To|With|And|But|Or|So"
    r"|If|When|Then|Hi|Hey|Hello|Dear|Thanks|Yes|No|Oh|Wow|Happy|Merry|Good|I|It|We|He|She|They|You|Is|Are|Was|Did|Do"
    r"|Does|Can|Could|Would|Will|Have|Has|Let|Also|Ask|Tell|Call|Actually|Sorry|Correction|Maybe|Yeah|Ok|Okay|Well)\b)"
    r"(?<!\b[Tt]he )[^\W\d_a-z][^\W\d_A-Z]+(?: [^\W\d_a-z][^\W\d_A-Z]+){1,2}(?![\w*\"\u201d-]|:)"
)
_TOPIC = re.compile(
    r"(?P<before>\b(?:for|of|to|at|on|in|about|with|after|under|as|von|f\u00fcr|pour|sur|para|sobre) )?"
    r"\b(?:the|our|my|der|die|das|den|dem|unser|unsere|le|la|les|notre|el|los|las|nuestro|nuestra) "
    r"(?P<noun>[^\W\d_][\w'-]*(?: [^\W\d_][\w'-]*)?)",
    re.IGNORECASE,
)


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
    seen: set[tuple[str, str]] = set()
    asked = _ask(said) if goal else None
    for sentence in said:
        found = _Found("goal", 0, 0, "goal") if sentence == asked else _look(sentence, entry)
        if found is None or (not goal and _too_short(sentence)):
            continue
        if found.kind in ("path", "identifier"):
            named = (found.subject, sentence[found.start : found.stop])
            if named in seen:
                continue
            seen.add(named)
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
    low = cues.lowered(sentence)
    if not sentence.rstrip().endswith(_ANNOUNCES):
        if entry.role != "assistant" and not cues.SMALL_TALK.match(low):
            order = cues.ORDER.match(low) or cues.CONSTRAINT.search(low)
            if order:
                return _Found("constraint", order.start(), order.end(), _topic(sentence))
        if decided := cues.DECISION.search(low):
            return _Found("decision", decided.start(), decided.end(), _topic(sentence))
        if number := _number(sentence, entry):
            return number
    if open_point := cues.QUESTION.search(low):
        return _Found("question", open_point.start(), open_point.end(), _topic(sentence))
    return _mentioned(sentence, low, entry)


def _number(sentence: str, entry: Entry) -> _Found | None:
    """A figure with the noun that it belongs to, or one that takes back another ("8443, not 8080")."""
    for match in stated_figures(sentence):
        words = subject_words(match["noun"], speaker=entry.name or entry.role)
        if words:
            return _Found("number", match.start(), match.end(), " ".join(words))
    repaired = repaired_figure(sentence)
    return _Found("number", repaired.start(), repaired.end(), _topic(sentence)) if repaired else None


def _mentioned(sentence: str, low: str, entry: Entry) -> _Found | None:
    """A path, a figure or somebody's full name beside the thing that it belongs to; or a correction of such a thing."""
    topic = _topic(sentence)
    asks = sentence.rstrip().endswith(_ANNOUNCES)
    advises = entry.role == "assistant" and len(entry.text) > _BRIEF_CHARS
    for kind, pattern in _NAMED:
        match = pattern.search(sentence)
        if match and (entry.role != "assistant" or (topic and not asks and not advises)):
            return _Found(kind, match.start(), match.end(), topic or match[0].casefold())
    if asks or advises or not topic or cues.SMALL_TALK.match(low):
        return None
    if figure := mentioned_figure(sentence):
        return _Found("number", figure.start(), figure.end(), topic)
    if name := _FULL_NAME.search(sentence):
        return _Found("identifier", name.start(), name.end(), topic)
    corrected = cues.TAKEN_BACK.search(low) if entry.role != "assistant" else None
    return _Found("decision", corrected.start(), corrected.end(), topic) if corrected else None


_NAMED: tuple[tuple[FactKind, re.Pattern[str]], ...] = (("path", PATH), ("identifier", _CODE_NAME))


def _topic(sentence: str) -> str:
    """What a sentence is about where it names it ("... for the harbour ferry"): the noun with most words, or the first.

    One behind a preposition goes before one that is not.
    """
    found = [(subject_words(match["noun"]), match["before"] is not None) for match in _TOPIC.finditer(sentence)]
    best = max(found, key=lambda one: (len(one[0]), one[1]), default=None)
    return " ".join(best[0]) if best else ""


def shorten(sentence: str, *, around: tuple[int, int], max_words: int = MAX_WORDS) -> str:
    """`sentence`, or at most `max_words` of its words around a span, with an ellipsis where something is missing."""
    words = list(_UNBROKEN.finditer(sentence))
    if len(words) <= max_words and len(sentence) <= _MAX_CHARS:
        return sentence
    first = next((index for index, word in enumerate(words) if word.end() > around[0]), 0)
    first = max(0, min(first - max_words // 4, len(words) - max_words))
    start, stop = words[first].start(), words[min(first + max_words, len(words)) - 1].end()
    if stop - start > _MAX_CHARS:
        start = max(start, min(around[0] - _MAX_CHARS // 4, stop - _MAX_CHARS))
        stop = min(stop, start + _MAX_CHARS)
    return ("\u2026" if start > 0 else "") + sentence[start:stop].strip() + ("\u2026" if stop < len(sentence) else "")
