"""Facts read again for `verify()` and compared with their rows; and read anew where they differ. No model is asked."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.reports import Problem
from langchain_tiered_memory.summaries.facts.rows import as_stored
from langchain_tiered_memory.summaries.tree.fact_reading import facts_of_summary_again, read_all

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Fact, SessionRef, Summary

_PAGE = 200
_OF_OTHERS = frozenset({"mentions", "status", "superseded_by"})
"""What summaries above and other facts make of a fact; the rest follows from its messages."""


def fact_problems(runtime: Runtime, ref: SessionRef, summaries: Iterable[Summary]) -> list[Problem]:
    """Summaries whose facts are not what their messages and their text state; those that wait to be read are left."""
    read = runtime.store.facts.read_summaries(ref)
    wanted = [summary for summary in summaries if summary.id in read]
    found: list[Problem] = []
    for start in range(0, len(wanted), _PAGE):
        page = wanted[start : start + _PAGE]
        kept = runtime.store.facts.of_summaries(ref, [summary.id for summary in page])
        for summary in page:
            again = {fact.id: as_stored(fact) for fact in facts_of_summary_again(runtime, ref, summary)}
            if not _agree(kept[summary.id], again):
                detail = "its facts are not what its messages state"
                what = f"{ref.session_id}/{summary.id}"
                found.append(Problem(kind="wrong_facts", what=what, detail=detail, about=summary.id))
    return found


def note_of_unread(runtime: Runtime, refs: Iterable[SessionRef]) -> tuple[str, ...]:
    """Summaries that wait to be read: no fault, for the worker reads them."""
    count = sum(runtime.store.facts.unread_count(ref) for ref in refs)
    return (f"the facts of {count} summaries are yet to be read: flush() or doctor() reads them",) if count else ()


def mend_facts(runtime: Runtime, ref: SessionRef, problems: Iterable[Problem], *, every: bool = False) -> None:
    """Read facts again where they differ, and those that wait.

    Args:
        runtime: The memory.
        ref: The session.
        problems: What was found wrong with it.
        every: Whether to read those of all its summaries.
    """
    wrong = [problem.about for problem in problems if problem.kind == "wrong_facts" and problem.about]
    runtime.store.facts.unsettle(ref, None if every else wrong)
    read_all(runtime, ref)


def _agree(kept: list[Fact], again: dict[str, Fact]) -> bool:
    if {fact.id for fact in kept} != again.keys():
        return False
    return all(_own(fact) == _own(again[fact.id]) and fact.mentions >= again[fact.id].mentions for fact in kept)


def _own(fact: Fact) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(fact).items() if name not in _OF_OTHERS}
