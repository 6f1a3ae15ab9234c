"""How many of a journey's steps are made to fail: a few that are spread over it, or every one of them."""

from __future__ import annotations

import os

EXHAUSTIVE = os.environ.get("TIERED_MEMORY_EXHAUSTIVE") == "1"
"""Whether faults, kills and damage are tried at every step: minutes more, for a change of what writes."""


def spread(count: int, most: int) -> list[int]:
    """At most `most` of the numbers below `count`, from the first to the last at even distances; else every one."""
    if EXHAUSTIVE or count <= most:
        return list(range(count))
    return [place * (count - 1) // (most - 1) for place in range(most)]
