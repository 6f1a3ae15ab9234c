"""Which facts each summary of a cover shows: as many as there is room for, from all of its span, none taken back.

A summary's list may be longer than a view has room for, and what stands in it may have been corrected in a later one.
So the lists of a cover are looked at together when the cover is planned. What a summary's prose states already is not
said again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.fact_lists import by_importance, head_of, line_of, render_facts, told_by
from langchain_tiered_memory.summaries.fact_merge import merge_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_tiered_memory.types.records import Fact, Summary

_TITLE_TOKENS = 4
"""The heading of a list and the line break before it."""


def shown_facts(
    summaries: Sequence[Summary],
    *,
    room: int,
    count_text: Callable[[str], int],
    standing: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, tuple[int, ...]]:
    """For each summary, by its id, the indexes of the facts to show.

    Args:
        summaries: Those of the cover.
        room: Tokens for the facts of those that are not `standing`.
        count_text: Counts a text.
        standing: What is shown of some already: of these, only what was taken back since goes.
    """
    shown_before = standing or {}
    places = [
        (one, index) for one in sorted(summaries, key=lambda one: one.first_seq) for index in range(len(one.facts))
    ]
    holding = {_key(fact) for fact in merge_facts([one.facts[index] for one, index in places], [])}
    told = {one.id: told_by(one.text, one.facts) for one in summaries if one.id not in shown_before}
    chosen = {
        one.id: [index for index in shown_before.get(one.id, ()) if _holds(one, index, holding)] for one in summaries
    }
    open_places = [
        (one, index)
        for one, index in places
        if one.id not in shown_before and _holds(one, index, holding) and not told[one.id][index]
    ]
    headed: set[tuple[str, str]] = set()
    for number in by_importance([one.facts[index] for one, index in open_places]):
        one, index = open_places[number]
        fact = one.facts[index]
        head = head_of(fact)
        tokens = count_text(line_of(fact)) + 1
        tokens += 0 if (one.id, head) in headed else count_text(head) + 1
        tokens += 0 if chosen[one.id] else _TITLE_TOKENS
        if tokens <= room:
            room -= tokens
            headed.add((one.id, head))
            chosen[one.id].append(index)
    return {key: tuple(sorted(indexes)) for key, indexes in chosen.items()}


def _holds(summary: Summary, index: int, holding: set[tuple[str, int, str]]) -> bool:
    return index < len(summary.facts) and _key(summary.facts[index]) in holding


def _key(fact: Fact) -> tuple[str, int, str]:
    return (fact.kind, fact.seq, fact.text)


def facts_text(summary: Summary, indexes: Sequence[int] | None) -> str:
    """The list beneath a summary: all of it, or the facts at `indexes`."""
    if indexes is None:
        return render_facts(summary.facts)
    return render_facts([summary.facts[index] for index in indexes if index < len(summary.facts)])
