"""The summaries of a session as the tree that they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.display.shown import Shown

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Summary


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SummaryTree(Shown, sheet="records.tree"):
    """All summaries of a session, or of one track of it, as they are now."""

    session_id: str
    summaries: tuple[Summary, ...]
    """Sorted by level, then by place. Unfinished ones are included."""
    messages: int
    """How many messages the transcript has."""
    tokens: int
    """Tokens of these messages."""

    @property
    def height(self) -> int:
        """The highest level, or 0 if there is no summary."""
        return max((one.level for one in self.summaries), default=0)

    @property
    def roots(self) -> tuple[Summary, ...]:
        """The summaries without a summary above them, by place."""
        known = {one.id for one in self.summaries}
        tops = (one for one in self.summaries if one.parent_id not in known)
        return tuple(sorted(tops, key=lambda one: (one.first_seq, one.last_seq)))

    @property
    def raw_messages(self) -> int:
        """How many messages no level-1 summary covers, not even an unfinished one."""
        return self.messages - sum(one.entry_count for one in self.level(1))

    def level(self, number: int) -> tuple[Summary, ...]:
        """The summaries of one level, by place."""
        return tuple(one for one in self.summaries if one.level == number)

    def children(self, summary_id: str) -> tuple[Summary, ...]:
        """The summaries directly below one, by place. None for level 1, whose `sources` are messages."""
        return tuple(one for one in self.summaries if one.parent_id == summary_id)
