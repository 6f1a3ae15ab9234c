"""What one assembly works with and makes: how its budget is split, what must be shown, what was read, what stays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_tiered_memory.context.budget.allocation import BudgetAllocation
    from langchain_tiered_memory.context.layout import Piece
    from langchain_tiered_memory.context.required_messages import RequiredMessages
    from langchain_tiered_memory.context.view.plan import ViewPlan
    from langchain_tiered_memory.context.view.repeated_reads import Asked
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.settings import ViewSettings
    from langchain_tiered_memory.summaries.tree.cover import CoverItem
    from langchain_tiered_memory.types.outcomes import GuardReport
    from langchain_tiered_memory.types.records import Entry, LeftOut, SessionRef, Summary


@dataclass(slots=True, kw_only=True)
class Library:
    """What was read or rendered during one assembly, so that nothing is twice."""

    summaries: dict[str, Summary] = field(default_factory=dict)
    users: dict[int, Entry | None] = field(default_factory=dict)
    """User messages by `seq`; `None`: there is none any more."""
    masks: dict[tuple[int, int], Piece] = field(default_factory=dict)
    """Masked tool outputs by `seq` and the tokens that they keep: each attempt at a view shows most of them again."""

    asked: dict[int, Asked] = field(default_factory=dict)
    """What messages ask for that has to do with files, by `seq`."""
    pointers: dict[tuple[int, int], Piece | None] = field(default_factory=dict)
    """Repeated readings of files by `seq` and that of the message that says their text; `None`: it stays as it is."""

    def add(self, found: Iterable[Summary]) -> list[Summary]:
        """Keep what was read."""
        kept = list(found)
        self.summaries |= {one.id: one for one in kept}
        return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyInputs:
    """The fixed part of one assembly."""

    runtime: Runtime
    ref: SessionRef
    allocation: BudgetAllocation
    required: RequiredMessages
    track: str
    room: int
    """Raw tokens for goal, pins, cover and recent messages together."""
    ratio: float
    library: Library
    off: frozenset[int]
    """`seq`s that are not on this branch."""
    alone: bool = False
    """Whether other tracks are not shown."""
    fill: int | None = None
    """Raw tokens that a condensation may fill the view to with file work; `None`: as the settings' share says."""
    provider: str | None = None
    """Of the request's model, where that is known: whose compactions it reads."""
    works_on_files: bool = False
    """Whether this track is an agent's run that touched files."""
    touches_files: bool = False
    """Whether a file was read or written among the newest messages, be it only once."""
    reworded: frozenset[str] = frozenset()
    """Ids of messages whose words the caller changes before they are sent."""
    look: ViewSettings | None = None
    """A view of the user's own; `None` for the default one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The part of a context that stays byte for byte until the next condensation."""

    allocation: BudgetAllocation
    ratio: float
    """Billed per raw token, as the split took it."""
    report: GuardReport
    pieces: tuple[Piece, ...] = ()
    items: tuple[CoverItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    plan: ViewPlan | None = None
    """Of the view; `None` where there is none."""
    in_loop: bool = False
    """Whether an agent is at work: then recall stays as it is until the user speaks again."""
