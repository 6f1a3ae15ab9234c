"""Gives every turn a time: known times kept, the missing ones filled in, never backwards."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SITTING_PAUSE = dt.timedelta(minutes=30)
"""A pause of this length starts a new sitting, as in the memory's settings (`RecallSettings.sitting_gap_seconds`)."""

_STEP = dt.timedelta(seconds=1)


def place_in_time(
    starts: Sequence[dt.datetime | None], times: Sequence[Sequence[dt.datetime | None]]
) -> list[list[dt.datetime | None]]:
    """A time for each turn of each sitting; all `None` where nothing is dated at all.

    A dated turn keeps its time, and an undated one is a second after the turn before it. Time never runs backwards: a
    turn or sitting dated before the one it follows is moved up to it. A sitting without times of its own that would
    touch the one before it starts after a pause, so that both remain sittings of their own.

    Args:
        starts: When each sitting began, where known.
        times: For each sitting, when each of its turns was said, where known.
    """
    known = [moment for start, turns in zip(starts, times, strict=True) for moment in (start, *turns) if moment]
    if not known:
        return [[None for _ in turns] for turns in times]
    placed: list[list[dt.datetime | None]] = []
    last: dt.datetime | None = None
    for start, turns in zip(starts, times, strict=True):
        row: list[dt.datetime | None] = []
        for index, own in enumerate(turns):
            earliest = _earliest(last, first=index == 0, dated=own is not None)
            wish = own or (start if index == 0 else None) or earliest or known[0]
            last = max(wish, earliest) if earliest else wish
            row.append(last)
        placed.append(row)
    return placed


def _earliest(last: dt.datetime | None, *, first: bool, dated: bool) -> dt.datetime | None:
    """The first moment that a turn may have, after a turn at `last`."""
    if last is None or dated:
        return last
    return last + (SITTING_PAUSE if first else _STEP)


def split_by_pauses(times: Sequence[dt.datetime | None]) -> list[int]:
    """For each turn the number of its sitting: a pause of `SITTING_PAUSE` or more starts the next one."""
    sitting, numbers, last = 0, list[int](), None
    for moment in times:
        if moment and last and moment - last >= SITTING_PAUSE:
            sitting += 1
        numbers.append(sitting)
        last = moment or last
    return numbers
