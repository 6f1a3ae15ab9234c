"""A list of facts: which of them stay when they do not all fit, and how it reads beneath a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.fact_merge import WEIGHT, singular, words_of
from langchain_tiered_memory.text import lexicon as cues
from langchain_tiered_memory.text.identifiers import identifiers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.types.records import Fact, FactKind, Role

LABELS: dict[FactKind, str] = {
    "goal": "Goal",
    "constraint": "Constraints",
    "decision": "Decisions",
    "number": "Figures",
    "path": "Paths",
    "identifier": "Names",
    "question": "Open questions",
}
"""How `render_facts` names the kinds."""

_SAID_BY: dict[Role, str] = {"assistant": "assistant", "tool": "tool"}
"""What a line says of its speaker. Nothing where it is the user's own."""
_ROUNDS: tuple[FactKind, ...] = ("constraint", "decision", "number", "identifier", "path", "question")
_KINDS: tuple[FactKind, ...] = ("goal", "constraint", "decision", "number", "path", "identifier", "question")
_TITLE = "## Facts"


def cap_facts(
    facts: Sequence[Fact], *, max_tokens: int, count_text: Callable[[str], int]
) -> tuple[list[Fact], list[Fact]]:
    """Split facts into those that fit within `max_tokens` as `render_facts` writes them, and the overflow.

    In the order of `by_importance`. Both lists keep the order they came in.
    """
    if max_tokens <= 0:
        return [], list(facts)
    if count_text(render_facts(facts)) <= max_tokens:
        return list(facts), []
    room = max_tokens - count_text(_TITLE) - 1
    chosen: list[int] = []
    headed: set[str] = set()
    for index in by_importance(facts):
        fact = facts[index]
        head = head_of(fact)
        tokens = count_text(line_of(fact)) + 1 + (count_text(head) + 1 if head not in headed else 0)
        if tokens <= room:
            chosen.append(index)
            headed.add(head)
            room -= tokens
    while chosen and count_text(render_facts([facts[index] for index in sorted(chosen)])) > max_tokens:
        chosen.pop()
    kept = set(chosen)
    return (
        [fact for index, fact in enumerate(facts) if index in kept],
        [fact for index, fact in enumerate(facts) if index not in kept],
    )


def by_importance(facts: Sequence[Fact]) -> list[int]:
    """Indexes of all facts, the most important first.

    The first goal and the latest stay first. Then kinds take turns, constraints and decisions ahead of the others.
    Within a kind corrections go first, then what else people said, then what an assistant
    said; each is spread over the whole span, the most recent first: a list that is cut must not tell of one end alone.
    """
    waiting: dict[FactKind, list[int]] = {kind: [] for kind in _KINDS}
    for index, fact in enumerate(facts):
        waiting[fact.kind].append(index)
    goals = waiting["goal"]
    order = [*goals[:1], *goals[1:][-1:]]
    lines = {kind: _spread(facts, waiting[kind]) for kind in set(_ROUNDS)}
    while any(lines.values()):
        order.extend(lines[kind].pop() for kind in _ROUNDS if lines[kind])
    return [*order, *goals[1:-1]]


def _spread(facts: Sequence[Fact], indexes: Sequence[int]) -> list[int]:
    """`indexes`, the one to take first at the end: halves, quarters and so on of their span in turn."""
    order: list[int] = []
    for tier in range(3):
        mine = [index for index in reversed(indexes) if _tier(facts[index]) == tier]
        width = max(len(mine) - 1, 0).bit_length()
        places = sorted(range(len(mine)), key=lambda place: int(f"{place:0{width}b}"[::-1], 2) if width else 0)
        order += [mine[place] for place in places]
    return order[::-1]


def _tier(fact: Fact) -> int:
    """Corrections first: prose elsewhere may still say what they take back."""
    if WEIGHT[fact.by] < WEIGHT["user"]:
        return 2
    return 0 if cues.CORRECTION.search(cues.lowered(fact.text)) else 1


def render_facts(facts: Sequence[Fact]) -> str:
    """The list as it stands beneath a summary: grouped by kind and speaker, a line each. Empty for no facts.

    What an assistant or a tool said stands apart, so that it does not pass for the user's own.
    """
    groups: dict[str, list[str]] = {}
    for kind in _KINDS:
        for fact in sorted((fact for fact in facts if fact.kind == kind), key=lambda one: -WEIGHT[one.by]):
            groups.setdefault(head_of(fact), []).append(line_of(fact))
    lines = [line for head, said in groups.items() for line in (head, *said)]
    return "\n".join([_TITLE, *lines]) if lines else ""


def head_of(fact: Fact) -> str:
    """The line above facts of this kind and speaker."""
    said_by = _SAID_BY.get(fact.by, "")
    return f"{LABELS[fact.kind]}{f' ({said_by})' if said_by else ''}:"


def line_of(fact: Fact) -> str:
    """A fact as one line of the list: with its subject where a figure does not name it."""
    return f"{_subject_of(fact)}{' '.join(fact.text.split())}"


def _subject_of(fact: Fact) -> str:
    if fact.kind != "number" or not fact.subject:
        return ""
    said = frozenset(singular(word) for word in words_of(fact.text))
    return "" if said & frozenset(fact.subject.split()) else f"({fact.subject}) "


def told_by(prose: str, facts: Sequence[Fact]) -> list[bool]:
    """Which facts a summary's prose states already, so that they need not stand beneath it.

    One is stated where a line of the prose has all of its names and figures and a word of its subject; one that has
    neither, where it stands word for word.
    """
    folded = " ".join(prose.split()).casefold()
    lines = [(line.casefold(), frozenset(singular(word) for word in words_of(line))) for line in prose.splitlines()]
    return [_told(fact, folded, lines) for fact in facts]


def _told(fact: Fact, folded: str, lines: Sequence[tuple[str, frozenset[str]]]) -> bool:
    if " ".join(fact.text.split()).casefold() in folded:
        return True
    named = identifiers(fact.text)
    subject = frozenset(fact.subject.split())
    if not named or not subject or fact.kind not in ("number", "path", "identifier"):
        return False
    return any(subject <= words and all(one in line for one in named) for line, words in lines)
