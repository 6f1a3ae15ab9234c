"""How many of a journey's steps are made to fail: a few that are spread over it, or every one of them."""

from __future__ import annotations

import hashlib
import itertools
import os

EXHAUSTIVE_VARIABLE = "TIERED_MEMORY_EXHAUSTIVE"
EXHAUSTIVE = os.environ.get(EXHAUSTIVE_VARIABLE) == "1"
"""Whether faults, kills and damage are tried at every step: minutes more, for a change of what writes."""
DRAW_VARIABLE = "TIERED_MEMORY_DRAW"
"""Names the draw: what is tried where not everything is."""


def drawn(name: str) -> int:
    """The lot that this draw gives a name: the same each time it is asked, another in another draw."""
    draw = os.environ.get(DRAW_VARIABLE, "")
    return int.from_bytes(hashlib.blake2b(f"{draw}:{name}".encode(), digest_size=8).digest())


def spread(count: int, most: int) -> list[int]:
    """At most `most` of the numbers below `count`: the first, the last, one of each stretch between; else every one."""
    if EXHAUSTIVE or count <= most:
        return list(range(count))
    borders = [1 + place * (count - 2) // (most - 2) for place in range(most - 1)]
    between = [start + drawn(f"{start} of {count}") % (stop - start) for start, stop in itertools.pairwise(borders)]
    return [0, *between, count - 1]
