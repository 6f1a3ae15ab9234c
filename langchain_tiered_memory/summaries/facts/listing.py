"""How chosen facts read: terse, what is about one subject together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.text.fencing import neutralised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Fact, Role

_SAID_BY: dict[Role, str] = {"assistant": "assistant", "tool": "tool"}


def facts_list(facts: Sequence[Fact]) -> str:
    """The facts, a line a subject, in the order in which subjects were first spoken of. Empty for none."""
    groups: dict[tuple[str, str], list[str]] = {}
    for fact in sorted(facts, key=lambda one: (one.seq, one.id)):
        groups.setdefault((fact.subject or fact.id, _SAID_BY.get(fact.by, "")), []).append(line_of(fact))
    lines = [f"{'; '.join(said)}{f' ({by})' if by else ''}" for (_, by), said in groups.items()]
    return neutralised("\n".join(lines))


def line_of(fact: Fact) -> str:
    """A fact as it stands in the list."""
    return " ".join(fact.text.split()).rstrip(".!")
