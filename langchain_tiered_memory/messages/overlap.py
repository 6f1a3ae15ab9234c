"""How much of what a sequence begins with another one ends with already."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


def overlap(first: Sequence[T], last: Sequence[T]) -> int:
    """Length of the longest beginning of `first` that `last` ends with, in linear time (Knuth, Morris and Pratt)."""
    fallback = [0] * len(first)
    count = 0
    for at in range(1, len(first)):
        while count and first[at] != first[count]:
            count = fallback[count - 1]
        count += first[at] == first[count]
        fallback[at] = count
    count = 0
    for one in last if first else ():
        if count == len(first):
            count = fallback[count - 1]
        while count and one != first[count]:
            count = fallback[count - 1]
        count += one == first[count]
    return count
