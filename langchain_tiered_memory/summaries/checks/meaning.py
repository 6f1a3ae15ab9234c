"""Compares what a summary means with what its sources mean, where there is an embedder."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.passages import split_passages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MOST_PASSAGES = 64
"""Of the sources, evenly spread: the mean of so many hardly moves with more, and each costs some milliseconds."""


def similar_meaning(
    text: str, sources: Sequence[str], embed: Callable[[list[str]], list[list[float]] | None]
) -> float | None:
    """Cosine of a summary's mean vector and that of its sources, -1 to 1; `None` where nothing can be embedded.

    Args:
        text: The summary.
        sources: What it stands for.
        embed: Vectors of passages; `None` where there is no embedder, or it fails.
    """
    said, told = _passages([text]), _passages(sources)
    told = told[:: max(1, math.ceil(len(told) / _MOST_PASSAGES))]
    if not (said and told):
        return None
    vectors = embed([*said, *told])
    if vectors is None or len(vectors) != len(said) + len(told):
        return None
    mine, theirs = _mean(vectors[: len(said)]), _mean(vectors[len(said) :])
    length = math.hypot(*mine) * math.hypot(*theirs)
    if not length or not math.isfinite(length):
        return None
    return sum(one * other for one, other in zip(mine, theirs, strict=True)) / length


def _passages(texts: Sequence[str]) -> list[str]:
    return [piece for text in texts for span in split_passages(text) if (piece := text[span.start : span.stop].strip())]


def _mean(vectors: Sequence[Sequence[float]]) -> list[float]:
    """The mean direction: each vector counts the same, however long it is."""
    lengths = [math.hypot(*vector) or 1.0 for vector in vectors]
    size = len(vectors[0])
    return [
        sum(vector[place] / length for vector, length in zip(vectors, lengths, strict=True)) for place in range(size)
    ]
