"""Messages and facts for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.facts.reading import read_facts
from langchain_tiered_memory.types.records import Entry, Fact, Role

if TYPE_CHECKING:
    from collections.abc import Sequence


def entry(seq: int, text: str, *, role: Role = "user", name: str | None = None) -> Entry:
    """A message of a session."""
    return Entry(
        seq=seq, id=f"m{seq}", role=role, text=text, payload="", digest="", tokens=len(text) // 4, at=60.0 * seq,
        name=name, track="main", kind=None, task=None, calls=(), answers=None, group=seq, pinned=False, revision=0,
        summary_id=None,
    )  # fmt: skip


def facts_of(*texts: str, role: Role = "user", first: int = 2, name: str | None = None) -> list[Fact]:
    """The facts of messages that say `texts`, numbered from `first`."""
    return read_facts([entry(seq, text, role=role, name=name) for seq, text in enumerate(texts, first)])


def said(facts: Sequence[Fact]) -> list[str]:
    """Their texts."""
    return [one.text for one in facts]


def words(text: str) -> int:
    """Counts a text by its words."""
    return len(text.split())
