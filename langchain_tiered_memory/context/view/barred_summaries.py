"""Summaries that a view must not show: they cover messages of other branches or tracks, or that were left out."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_tiered_memory.types.records import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Barred:
    """What a view does not show, as its summaries see it."""

    off: tuple[int, ...]
    """Numbers of the messages that are not shown, ascending."""
    counts: Mapping[str, int]
    """How many of them each level-1 summary stands for, by id."""
    only_track: str | None = None
    """The one track that is shown; `None` where all are."""

    def of(self, summary: Summary) -> int:
        """How many such messages a summary stands for.

        Above level 1 it is 1 for any number: such a summary merges tracks, and what its span holds may not be its own.
        """
        if summary.level == 1:
            is_other = self.only_track is not None and summary.track != self.only_track
            return summary.entry_count if is_other else self.counts.get(summary.id, 0)
        if self.only_track is not None:
            return 1
        at = bisect_left(self.off, summary.first_seq)
        return int(at < len(self.off) and self.off[at] <= summary.last_seq)
