"""Which facts a view shows."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.listing import facts_list, line_of
from langchain_tiered_memory.summaries.facts.told import stated_in
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.types.records import Fact


TOP = 4
RARE = 3.0
COST = 1.2
KEYS = 3
SIMILARITY = 0.8


def chosen_facts(
    facts: Sequence[Fact], *, room: int, count_text: Callable[[str], int], told: str = "", now: float
) -> list[Fact]:
    """The facts worth showing in `room` tokens, as `facts_list` writes them, in their order."""
    del now
    stated = stated_in(told, facts) if told else [False] * len(facts)
    waiting = [fact for fact, is_told in zip(facts, stated, strict=True) if not is_told and fact.status == "active"]
    terms = [frozenset(analyse(fact.text)) for fact in waiting]
    seen = Counter(term for mine in terms for term in mine)
    total = max(len(waiting), 1)

    widest = math.log(1 + total)

    def worth(place: int) -> float:
        fact = waiting[place]
        odds = math.log(max(fact.weight, 1e-3) / max(1 - fact.weight, 1e-3))
        rare = sorted((math.log(1 + total / seen[term]) / widest for term in terms[place]), reverse=True)[:TOP]
        return odds + RARE * sum(rare) / TOP - COST * math.log(max(4, count_text(line_of(fact))))

    chosen: list[int] = []
    sharing: dict[str, list[int]] = {}
    left = room
    for place in sorted(range(len(waiting)), key=lambda one: (-worth(one), -waiting[one].seq)):
        tokens = count_text(line_of(waiting[place])) + 1
        if tokens > left or not terms[place]:
            continue
        rarest = sorted(terms[place], key=lambda term: (seen[term], term))[:KEYS]
        near = {other for term in rarest for other in sharing.get(term, ())}
        if any(_alike(terms[place], terms[other]) for other in near):
            continue
        chosen.append(place)
        left -= tokens
        for term in rarest:
            sharing.setdefault(term, []).append(place)
    while chosen and count_text(facts_list([waiting[place] for place in chosen])) > room:
        chosen.pop()
    return [waiting[place] for place in sorted(chosen, key=lambda one: waiting[one].seq)]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= SIMILARITY * len(one | other)
