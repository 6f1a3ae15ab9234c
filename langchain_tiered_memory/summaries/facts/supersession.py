"""Which fact takes the place of which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.fact_merge import merge_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Fact


def superseded(facts: Sequence[Fact]) -> dict[str, str]:
    """Id of each fact that does not hold any more, with the id of what took its place."""
    ordered = sorted(facts, key=lambda one: (one.seq, one.id))
    gone: dict[str, str] = {}
    for place, fact in enumerate(ordered):
        before = [one for one in ordered[:place] if one.id not in gone and one.subject and one.subject == fact.subject]
        holding = {one.id for one in merge_facts(before, [fact])}
        if fact.id in holding:
            gone.update({one.id: fact.id for one in before if one.id not in holding})
    return gone


def standing_keys(fact: Fact) -> frozenset[str]:
    """What connects a fact with those that may change its standing."""
    return frozenset({f"n:{fact.subject}"} if fact.subject else ())
