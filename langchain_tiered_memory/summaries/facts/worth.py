"""Which facts a view shows."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.fact_lists import told_by
from langchain_tiered_memory.summaries.facts.listing import facts_list, line_of
from langchain_tiered_memory.text.terms import analyse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.types.records import Fact


def chosen_facts(
    facts: Sequence[Fact], *, room: int, count_text: Callable[[str], int], told: str = "", now: float
) -> list[Fact]:
    """The facts worth showing in `room` tokens, as `facts_list` writes them, in their order."""
    del now
    stated = told_by(told, facts) if told else [False] * len(facts)
    waiting = [fact for fact, is_told in zip(facts, stated, strict=True) if not is_told and fact.status == "active"]
    terms = [frozenset(analyse(fact.text)) for fact in waiting]
    seen = Counter(term for mine in terms for term in mine)
    total = max(len(waiting), 1)

    def worth(place: int) -> float:
        rarity = sum(math.log(1 + total / seen[term]) for term in terms[place])
        return waiting[place].weight * rarity / max(len(terms[place]), 3)

    chosen: list[int] = []
    left = room
    for place in sorted(range(len(waiting)), key=worth, reverse=True):
        tokens = count_text(line_of(waiting[place])) + 1
        if tokens <= left:
            chosen.append(place)
            left -= tokens
    while chosen and count_text(facts_list([waiting[place] for place in chosen])) > room:
        chosen.pop()
    return [waiting[place] for place in sorted(chosen, key=lambda one: waiting[one].seq)]
