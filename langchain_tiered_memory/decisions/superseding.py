"""Which fact takes the place of which, and which facts stay when they do not all fit.

The rule is conservative: a fact is superseded only by a later one of its kind that is about the same thing and says
otherwise. Where it is not clear which of several earlier facts is corrected, all of them stay. So they do where the
later one weighs less: what a user said is taken back by a user, not by an assistant; what either said, not by a tool.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions import cues
from langchain_tiered_memory.decisions.identifiers import identifiers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.records import Fact, FactKind, Role

SIMILARITY = 0.8
"""Jaccard similarity of words from which two facts of a kind, with the same figures and names, are one."""

LABELS: dict[FactKind, str] = {
    "goal": "Goal",
    "constraint": "Constraint",
    "decision": "Decision",
    "number": "Figure",
    "path": "Path",
    "identifier": "Identifier",
    "question": "Open question",
}
"""How `render_facts` names the kinds."""

_WEIGHT: dict[Role, int] = {"user": 2, "other": 2, "system": 2, "assistant": 1, "tool": 0}
"""Whose word counts against whose. `other` is also who said a fact that was kept before facts had a speaker."""
_SAID_BY: dict[Role, str] = {"assistant": "assistant", "tool": "tool"}
"""What a line says of its speaker. Nothing where it is the user's own."""
_ROUNDS: tuple[FactKind, ...] = (
    "constraint", "decision", "constraint", "decision", "number", "question", "number", "path", "identifier",
)  # fmt: skip
_KINDS: tuple[FactKind, ...] = ("goal", "constraint", "decision", "number", "path", "identifier", "question")
_MAX_SUBJECT_WORDS = 4
_WORD = re.compile(r"\w+(?:['\u2019]\w+)?")
_EMPTY_WORDS_TEXT = (
    "a an the our my your his her its their this that these those some any new old current currently actual "
    "actually now so but and or also well oh ok okay yes no sorry is are was were be been it he she they we i you "
    "there here what which who of for in on at to by from with as per about than then just only really correct "
    "right final total exact same first as has have had will should would could can the one thing le la les un "
    "une de du des der die das ein eine den el los las una que since why if when line lines step page"
)
_EMPTY_WORDS = frozenset(_EMPTY_WORDS_TEXT.split())
_TAKEN_BACK = re.compile(
    r"\b(?:not|instead of|rather than|no longer|from|replaces?|replacing|drop(?:ping|ped)?"
    r"|over)\b[\s\"'`]*(?:the |a |at |on |in |use |using )*[\"'`]?(?P<wrong>[$\u20ac\u00a3]?[\w][\w.,:/-]*\w|\w)",
    re.IGNORECASE,
)


def subject_words(noun: str, *, speaker: str = "") -> list[str]:
    """The words of a noun phrase that say what it is about; `speaker` joins where it says "my"."""
    words = [word.casefold() for word in _WORD.findall(noun)]
    own = [speaker.casefold()] if speaker and "my" in words else []
    telling = [
        _singular(word) for word in words if word not in _EMPTY_WORDS and len(word) > 1 and not word[0].isdigit()
    ]
    return [*own, *telling[-_MAX_SUBJECT_WORDS:]] if telling else []


def _singular(word: str) -> str:
    word = word.removesuffix("'s").removesuffix("\u2019s")
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word  # noqa: PLR2004 - "bus", "gas" keep theirs


def merge_facts(older: Sequence[Fact], newer: Sequence[Fact]) -> list[Fact]:
    """Both lists as one, oldest first: corrected facts replaced, of near-equal ones the earlier kept.

    A near-equal one of somebody whose word weighs more takes the place of the earlier: the user confirmed it.
    """
    kept: list[Fact] = []
    words: dict[int, frozenset[str]] = {}
    for fact in sorted((*older, *newer), key=lambda one: one.seq):
        said = _words(fact.text)
        same = next((other for other in kept if _same(fact, said, other, words[id(other)])), None)
        if same is not None:
            if _WEIGHT[fact.by] <= _WEIGHT[same.by]:
                continue
            kept.remove(same)
        corrected = _corrected_by(fact, kept)
        for other in corrected:
            kept.remove(other)
        about = [*corrected[-1:], *([same] if same is not None else [])]
        if not fact.subject and about:
            fact = replace(fact, subject=about[-1].subject)  # noqa: PLW2901 - it names what "it" is from here on
        kept.append(fact)
        words[id(fact)] = said
    return kept


def _words(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))


def _same(fact: Fact, said: frozenset[str], other: Fact, other_said: frozenset[str]) -> bool:
    if fact.kind != other.kind:
        return False
    if fact.text == other.text:
        return True
    shared = len(said & other_said)
    alike = shared >= SIMILARITY * len(said | other_said)
    return (
        alike
        and bool(said)
        and identifiers(fact.text) == identifiers(other.text)
        and _negated(said) == _negated(other_said)
    )


def _negated(words: frozenset[str]) -> bool:
    return any(word in ("not", "never", "no", "without") or word.endswith(("n't", "n\u2019t")) for word in words)


def _corrected_by(fact: Fact, kept: Sequence[Fact]) -> list[Fact]:
    """The earlier fact that `fact` takes the place of: one, or a figure's every earlier value."""
    if fact.kind not in ("number", "decision", "constraint"):
        return []
    corrects = fact.kind == "number" or bool(cues.CORRECTION.search(cues.lowered(fact.text)))
    wrong = [match["wrong"].casefold() for match in _TAKEN_BACK.finditer(fact.text)]
    about = frozenset(fact.subject.split())
    same: list[Fact] = []
    wider: list[Fact] = []
    denied: list[Fact] = []
    for other in kept:
        if other.kind != fact.kind or _WEIGHT[fact.by] < _WEIGHT[other.by]:
            continue
        theirs = frozenset(other.subject.split())
        if wrong and _denies(fact, wrong, other) and (corrects or about & theirs):
            denied.append(other)
        elif about and about == theirs and corrects:
            same.append(other)
        elif (
            about and theirs and (about < theirs or theirs < about) and cues.CORRECTION.search(cues.lowered(fact.text))
        ):
            wider.append(other)
    if denied:
        return denied if len(denied) == 1 else []
    if same:
        return same if fact.kind == "number" else same[-1:]
    return wider if len(wider) == 1 else []


def _denies(fact: Fact, wrong: Sequence[str], other: Fact) -> bool:
    """Whether `fact` takes back what `other` states, and is about the same by its subject or a shared word."""
    stated = _words(other.text)
    if not any(one in stated or _words(one) <= stated for one in wrong):
        return False
    theirs, about = frozenset(other.subject.split()), frozenset(fact.subject.split())
    if about and theirs:
        return bool(about & theirs)
    if fact.kind == "number":
        return True
    ignored = frozenset(wrong) | _EMPTY_WORDS
    return bool((_words(fact.text) & stated) - ignored - _COMMON)


_COMMON_TEXT = "use using go decided agreed chose let let's we'll stick switch must never always not do don't with"
_COMMON = frozenset(_COMMON_TEXT.split())


def cap_facts(
    facts: Sequence[Fact], *, max_tokens: int, count_text: Callable[[str], int]
) -> tuple[list[Fact], list[Fact]]:
    """Split facts into those that fit within `max_tokens` as `render_facts` writes them, and the overflow.

    The first goal and the latest stay first. Then kinds take turns, constraints and decisions twice as often as
    figures and ahead of them, the most recent of a kind first. Both lists keep the order they came in.
    """
    if max_tokens <= 0:
        return [], list(facts)
    if count_text(render_facts(facts)) <= max_tokens:
        return list(facts), []
    room = max_tokens - count_text(_TITLE) - 1
    chosen: list[int] = []
    for index in _by_importance(facts):
        tokens = count_text(_line(facts[index])) + 1
        if tokens <= room:
            chosen.append(index)
            room -= tokens
    while chosen and count_text(render_facts([facts[index] for index in sorted(chosen)])) > max_tokens:
        chosen.pop()
    kept = set(chosen)
    return (
        [fact for index, fact in enumerate(facts) if index in kept],
        [fact for index, fact in enumerate(facts) if index not in kept],
    )


def _by_importance(facts: Sequence[Fact]) -> list[int]:
    """Indexes of all facts, the most important first."""
    waiting: dict[FactKind, list[int]] = {kind: [] for kind in _KINDS}
    for index, fact in enumerate(facts):
        waiting[fact.kind].append(index)
    goals = waiting["goal"]
    order = [*goals[:1], *goals[1:][-1:]]
    while any(waiting[kind] for kind in _ROUNDS):
        order.extend(waiting[kind].pop() for kind in _ROUNDS if waiting[kind])
    return [*order, *goals[1:-1]]


_TITLE = "## Facts"


def render_facts(facts: Sequence[Fact]) -> str:
    """The list as it stands beneath a summary: grouped by kind, a line each. Empty for no facts.

    What an assistant or a tool said is marked, so that it does not pass for the user's own.
    """
    if not facts:
        return ""
    return "\n".join([_TITLE, *(_line(fact) for kind in _KINDS for fact in facts if fact.kind == kind)])


def _line(fact: Fact) -> str:
    said = frozenset(_singular(word) for word in _words(fact.text))
    subject = "" if fact.kind != "number" or said & frozenset(fact.subject.split()) else fact.subject
    about = ", ".join(one for one in (subject, _SAID_BY.get(fact.by, "")) if one)
    return f"- {LABELS[fact.kind]}{f' ({about})' if about else ''}: {' '.join(fact.text.split())}"
