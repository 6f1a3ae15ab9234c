"""How several things share a room that is too small for all of them whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def water_level(sizes: Sequence[int], room: int) -> int:
    """The highest cap on each of `sizes` with which together they fit `room`; 0 when nothing does."""
    left, level = room, 0
    for position, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - position)
        if size > share:
            return max(share, 0)
        left -= size
        level = size
    return level


def whole_again(cut: Sequence[int], whole: Sequence[int], room: int) -> frozenset[int]:
    """Places of the things that can be whole after all, the last first: what cannot be cut finely leaves room over.

    Args:
        cut: Their sizes as they were cut.
        whole: Their sizes as they are.
        room: For all of them together.
    """
    free = room - sum(cut)
    places: set[int] = set()
    for at in reversed(range(len(cut))):
        if 0 < whole[at] - cut[at] <= free:
            free -= whole[at] - cut[at]
            places.add(at)
    return frozenset(places)
