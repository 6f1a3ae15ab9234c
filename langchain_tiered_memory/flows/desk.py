"""What one assembly works with: the session, how its budget is split, what must be shown, what was read already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_tiered_memory.decisions.rooms import Rooms
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.flows.musts import Musts
    from langchain_tiered_memory.records import SessionRef, Summary
    from langchain_tiered_memory.settings import ViewSettings


@dataclass(slots=True, kw_only=True)
class Library:
    """Summaries read during one assembly, so that none is read twice."""

    summaries: dict[str, Summary] = field(default_factory=dict)

    def add(self, found: Iterable[Summary]) -> list[Summary]:
        """Keep what was read."""
        kept = list(found)
        self.summaries |= {one.id: one for one in kept}
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The fixed part of one assembly."""

    house: House
    ref: SessionRef
    rooms: Rooms
    musts: Musts
    track: str
    room: int
    """Raw tokens for goal, pins, cover and recent messages together."""
    ratio: float
    library: Library
    off: frozenset[int]
    """`seq`s that are not on this branch."""
    works_on_files: bool = False
    """Whether this track is an agent's run that touched files."""
    look: ViewSettings | None = None
    """A view of the user's own; `None` for the default one."""
