"""What can be measured of a summary without a model, by the names that a setting uses.

Measured is the text that is shown, not the facts that are kept beside it: a view shows few of those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.summaries.checks.meaning import similar_meaning
from langchain_tiered_memory.summaries.checks.soundness import soundness
from langchain_tiered_memory.text.identifiers import kept_share
from langchain_tiered_memory.text.information_loss import information_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from langchain_tiered_memory.summaries.writers.jobs import CondenseJob


def measures_of(
    job: CondenseJob, text: str, wanted: Collection[str], *, embed: Callable[[list[str]], list[list[float]] | None]
) -> dict[str, float]:
    """The measures of `wanted` that can be taken of `text`.

    Args:
        job: What it was written for.
        text: The summary.
        wanted: Of `identifiers` (share of the sources' that it keeps), `grounded` and `covered` (see
            `ValidationSettings`), `loss` (see `Summary.information_loss`) and `meaning` (cosine with its sources).
        embed: As of `similar_meaning`.
    """
    texts = [source.text for source in job.sources]
    found: dict[str, float | None] = {}
    if "identifiers" in wanted:
        found["identifiers"] = kept_share(texts, text)
    if "loss" in wanted:
        found["loss"] = information_loss(texts, text)
    if {"grounded", "covered"} & set(wanted):
        shares = soundness(text, texts, job.known, target_tokens=job.target_tokens, are_messages=job.level == 1)
        found |= {name: getattr(shares, name) for name in ("grounded", "covered") if name in wanted}
    if "meaning" in wanted:
        found["meaning"] = similar_meaning(text, texts, embed)
    return {name: float(value) for name, value in found.items() if value is not None}
