"""How the time of something grows with the length of what it is given."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMES, _MOST = 8, 40
"""Eight times the length may take forty times as long: what is quadratic takes sixty-four times."""
_LEAST_SECONDS = 0.0005


def is_linear(work: Callable[[int], object], *, length: int) -> bool:
    """Whether `work`, given a length and eight times that, takes about eight times the processor's time."""

    def seconds(of_length: int) -> float:
        best = float("inf")
        for _ in range(3):
            began = time.process_time()
            work(of_length)
            best = min(best, time.process_time() - began)
        return best

    return seconds(_TIMES * length) < _MOST * max(seconds(length), _LEAST_SECONDS)
