"""The summaries of a session as the tree that they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.display.shown import Shown

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Summary


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SummaryTree(Shown, sheet="records.tree"):
    """Every summary of a session, or of one track of it, as it stands now."""

    session_id: str
    summaries: tuple[Summary, ...]
    """By level, then by place; those that are not finished, too."""
    messages: int
    """In the transcript."""
    tokens: int
    """Of these messages."""

    @property
    def height(self) -> int:
        """The highest level; 0 where there is no summary."""
        return max((one.level for one in self.summaries), default=0)

    @property
    def roots(self) -> tuple[Summary, ...]:
        """Those that no other one here stands above, by place."""
        known = {one.id for one in self.summaries}
        tops = (one for one in self.summaries if one.parent_id not in known)
        return tuple(sorted(tops, key=lambda one: (one.first_seq, one.last_seq)))

    @property
    def raw_messages(self) -> int:
        """Messages that no summary of level 1 covers, or is about to."""
        return self.messages - sum(one.entry_count for one in self.level(1))

    def level(self, number: int) -> tuple[Summary, ...]:
        """The summaries of one level, by place."""
        return tuple(one for one in self.summaries if one.level == number)

    def children(self, summary_id: str) -> tuple[Summary, ...]:
        """The summaries right below one, by place; none for level 1, whose `sources` are messages."""
        return tuple(one for one in self.summaries if one.parent_id == summary_id)
