"""Scores an item of a context by its worth to the work at hand: the table of the context-strategy design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Category: TypeAlias = Literal["current_task", "recent_history", "old_history", "system", "examples"]
"""The branches of the pruning tree."""

ContentKind: TypeAlias = Literal[
    "system_prompt",
    "current_task",
    "acceptance_criteria",
    "active_code",
    "recent_feedback",
    "task_history",
    "examples",
]
"""What an item is, for its score."""

Bond: TypeAlias = Literal["task", "dependency", "none"]
"""How an item belongs to the current task: it is part of it, the task rests on it, or neither."""

Priority: TypeAlias = Literal[1, 2, 3, 4]
"""Always keep, keep if relevant, keep if there is space, always prune."""

RECENCY_POINTS: tuple[tuple[float, int], ...] = ((5.0, 30), (30.0, 20), (120.0, 10))
"""Younger than so many minutes: so many points."""
BOND_POINTS: dict[Bond, int] = {"task": 40, "dependency": 25, "none": 0}
KIND_POINTS: dict[ContentKind, int] = {
    "system_prompt": 20,
    "current_task": 20,
    "acceptance_criteria": 18,
    "active_code": 15,
    "recent_feedback": 12,
    "task_history": 8,
    "examples": 5,
}
POINTS_PER_REFERENCE = 2
MOST_REFERENCE_POINTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneItem:
    """One group of a context, as pruning sees it."""

    key: int
    """`first_seq` of the group."""
    tokens: int
    category: Category
    kind: ContentKind
    task: str | None
    age_minutes: float
    references: int
    """Later groups that mention its paths or identifiers; counted up to the number that still matters."""
    bond: Bond = "none"
    relevant: bool = False
    """Whether the current task needs it: part of it, of a dependency, or about the same files or names."""
    referenced_recently: bool = False
    """Whether one of the newest groups mentions its paths or identifiers."""
    priority: Priority = 3
    reason: str = "old_task_history"
    """The row of the priority matrix that it falls into."""
    must_stay: bool = False
    """Whether the caller needs it, whatever it is."""

    @property
    def always_kept(self) -> bool:
        """Whether no pruning may take it."""
        return self.must_stay or self.priority == 1


def score(item: PruneItem) -> int:
    """Points of an item, 0 to 100: recency (30), relevance to the current task (40), kind (20), references (10)."""
    return (
        recency_points(item.age_minutes)
        + BOND_POINTS[item.bond]
        + KIND_POINTS[item.kind]
        + min(MOST_REFERENCE_POINTS, POINTS_PER_REFERENCE * item.references)
    )


def recency_points(age_minutes: float) -> int:
    """30 below 5 minutes, 20 below 30, 10 below 120, else none. A clock that went backwards makes things young."""
    return next((points for minutes, points in RECENCY_POINTS if age_minutes < minutes), 0)
