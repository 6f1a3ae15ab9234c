"""When a summary is due, and over what: the triggers of each level.

The borders follow from the messages alone, never from the moment somebody looks: a chunk is the shortest run of whole
groups at which a trigger holds, or that a pause or the end of a task closes. So two processes, or a restart, plan the
same summaries. A pause that still lasts is told from the clock, and closes the chunk where the next message would: it
cannot come with an earlier time, unless an old conversation is brought in piece by piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.settings import LevelSettings
    from langchain_tiered_memory.types.drafts import WaitingEntry
    from langchain_tiered_memory.types.records import Summary

MIN_ENTRIES_BY_TIME = 2
"""Neither a pause nor the end of a task makes a summary of a single message."""
ABANDONED_AFTER = 8
"""A call is given up for dead when this many groups came after it; until then its group is not condensed."""
MIN_SOURCES = 2
"""A level above the first never stands for a single summary."""


def due_entries(
    waiting: Sequence[WaitingEntry],
    level: LevelSettings,
    *,
    more: bool,
    idle_seconds: float | None = None,
    by_task: bool = True,
    now: float | None = None,
) -> tuple[int, ...] | None:
    """The first chunk of messages that level 1 is due for, by their numbers.

    Args:
        waiting: The oldest messages of one track without a summary, in order.
        level: Settings of level 1.
        more: Whether further messages wait behind these.
        idle_seconds: A pause of this length, between the messages' own times, ends a chunk of two messages or more.
            `None`: pauses count only by `level.seconds`.
        by_task: Whether the end of a task does so, too.
        now: The present, for a pause that still lasts; `None` leaves it open until somebody speaks again.

    Returns:
        The chunk, or `None` when no trigger holds yet (or, with `more`, not within these). It never has a message
        whose calls wait for their results, such as one that a person has yet to approve.
    """
    groups = _groups(waiting)
    taken: list[WaitingEntry] = []
    for position, group in enumerate(groups):
        # A pause closes the chunk before the message that ends it: a new sitting is another subject. What waits for a
        # result does not hold back what was closed before it.
        is_due = _waited(taken, group[0].at, level) or _paused(taken, group[0].at, idle_seconds)
        if not is_due:
            if position == len(groups) - 1 and more:
                return None  # the rest of this group may not have been read
            if position >= len(groups) - ABANDONED_AFTER and any(entry.waits for entry in group):
                return None  # its results may still come
            taken += group
            is_due = _reaches(len(taken), level.messages) or _reaches(
                sum(entry.tokens for entry in taken), level.tokens
            )
            is_due = is_due or _waited(taken, taken[-1].at, level)
        if by_task and len(taken) >= MIN_ENTRIES_BY_TIME:
            is_due = is_due or any(entry.ends_task for entry in group)
        if is_due:
            return tuple(entry.seq for entry in taken)
    # Nobody spoke since: the next message will find the same pause before it.
    is_due = now is not None and not more and _paused(taken, now, idle_seconds)
    return tuple(entry.seq for entry in taken) if is_due else None


def _reaches(count: int, least: int | None) -> bool:
    return least is not None and count >= least


def _waited(taken: Sequence[WaitingEntry], now: float, level: LevelSettings) -> bool:
    return level.seconds is not None and len(taken) >= MIN_ENTRIES_BY_TIME and now - taken[0].at >= level.seconds


def _paused(taken: Sequence[WaitingEntry], now: float, idle_seconds: float | None) -> bool:
    if idle_seconds is None or len(taken) < MIN_ENTRIES_BY_TIME:
        return False
    return now - max(entry.at for entry in taken) >= idle_seconds


def _groups(waiting: Sequence[WaitingEntry]) -> list[list[WaitingEntry]]:
    """Whole groups in the order of their first entry; results that came in between others join their group."""
    by_group: dict[int, list[WaitingEntry]] = {}
    for entry in waiting:
        by_group.setdefault(entry.group, []).append(entry)
    return list(by_group.values())


def due_summaries(waiting: Sequence[Summary], level: LevelSettings) -> tuple[str, ...] | None:
    """The first chunk of summaries that the next level is due for, by their ids.

    `waiting` are the oldest of the level below that no higher one has taken, in order; `level` has the settings of the
    level to make.

    Returns:
        The chunk, or `None`. It never reaches past a summary that is unfinished or degraded: what a fallback wrote is
        made again before anything is built on it.
    """
    taken: list[Summary] = []
    for summary in waiting:
        if not summary.state.finished or summary.degraded:
            return None
        taken.append(summary)
        if len(taken) < MIN_SOURCES:
            continue
        if (
            _reaches(len(taken), level.sources)
            or _reaches(sum(one.tokens for one in taken), level.tokens)
            or _reaches(sum(one.entry_count for one in taken), level.messages)
        ):
            return tuple(one.id for one in taken)
    return None
