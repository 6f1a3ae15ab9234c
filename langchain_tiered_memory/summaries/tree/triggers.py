"""When a summary is due, and over what: the triggers of each level.

The borders follow from the messages alone, never from the moment somebody looks: a chunk is the shortest run of whole
groups at which a trigger holds, or that a pause or the end of a task closes. So two processes, or a restart, plan the
same summaries. A pause that still lasts is told from the clock, and closes the chunk where the next message would: it
cannot come with an earlier time, unless an old conversation is brought in piece by piece.
"""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A chunk that is to be condensed, and why."""

    sources: tuple[str, ...] | tuple[int, ...]
    """Level 1: `seq`s of the entries. Above: ids of the summaries."""
    reason: str


def due_entries(
    waiting: Sequence[WaitingEntry],
    level: LevelSettings,
    *,
    more: bool,
    idle_seconds: float | None = None,
    by_task: bool = True,
    now: float | None = None,
) -> Due | None:
    """The first chunk of messages that level 1 is due for.

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
        reason = _waited(taken, group[0].at, level) or _paused(taken, group[0].at, idle_seconds)
        if not reason:
            if position == len(groups) - 1 and more:
                return None  # the rest of this group may not have been read
            if position >= len(groups) - ABANDONED_AFTER and any(entry.waits for entry in group):
                return None  # its results may still come
            taken += group
            reason = _full(taken, level) or _waited(taken, taken[-1].at, level)
        if not reason and by_task and any(entry.ends_task for entry in group):
            reason = "a task was finished" if len(taken) >= MIN_ENTRIES_BY_TIME else ""
        if reason:
            return _due(taken, reason)
    # Nobody spoke since: the next message will find the same pause before it.
    reason = "" if now is None or more else _paused(taken, now, idle_seconds)
    return _due(taken, reason) if reason else None


def _due(taken: Sequence[WaitingEntry], reason: str) -> Due:
    return Due(sources=tuple(entry.seq for entry in taken), reason=reason)


def _full(taken: Sequence[WaitingEntry], level: LevelSettings) -> str:
    tokens = sum(entry.tokens for entry in taken)
    if level.messages is not None and len(taken) >= level.messages:
        return f"{len(taken)} messages"
    return f"{tokens} tokens" if level.tokens is not None and tokens >= level.tokens else ""


def _waited(taken: Sequence[WaitingEntry], now: float, level: LevelSettings) -> str:
    if level.seconds is None or len(taken) < MIN_ENTRIES_BY_TIME or now - taken[0].at < level.seconds:
        return ""
    return f"{now - taken[0].at:.0f} seconds"


def _paused(taken: Sequence[WaitingEntry], now: float, idle_seconds: float | None) -> str:
    if idle_seconds is None or len(taken) < MIN_ENTRIES_BY_TIME:
        return ""
    idle = now - max(entry.at for entry in taken)
    return f"a pause of {idle:.0f} seconds" if idle >= idle_seconds else ""


def _groups(waiting: Sequence[WaitingEntry]) -> list[list[WaitingEntry]]:
    """Whole groups in the order of their first entry; results that came in between others join their group."""
    by_group: dict[int, list[WaitingEntry]] = {}
    for entry in waiting:
        by_group.setdefault(entry.group, []).append(entry)
    return list(by_group.values())


def due_summaries(waiting: Sequence[Summary], level: LevelSettings) -> Due | None:
    """The first chunk of summaries that the next level is due for.

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
        tokens = sum(one.tokens for one in taken)
        messages = sum(one.entry_count for one in taken)
        reason = ""
        if level.sources is not None and len(taken) >= level.sources:
            reason = f"{len(taken)} summaries"
        elif level.tokens is not None and tokens >= level.tokens:
            reason = f"{tokens} tokens"
        elif level.messages is not None and messages >= level.messages:
            reason = f"{messages} messages"
        if reason:
            return Due(sources=tuple(one.id for one in taken), reason=reason)
    return None
