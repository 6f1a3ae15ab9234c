"""Prunes a view by the worth of its groups to the work at hand, by the tables of the context-strategy design.

`PruneItem` is a group as pruning sees it, `score` its points, `prune` what leaves. What a caller calls a message
(`Entry.kind`, free text) may place it in a row of the priority matrix: `named_kind`, `priority_of`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_tiered_memory.types.records import Entry

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
SCORE_THRESHOLD = 30
"""Points up to which an undecided item leaves first: what is older than an hour and not of this task."""
_SCORE_STEP = 5
"""Points by which the threshold is raised while the context is too large: fewer would name the same items anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneItem:
    """One group of a context, as pruning sees it."""

    key: int
    """`first_seq` of the group."""
    tokens: int
    category: Category
    kind: ContentKind
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


_NAMED: dict[str, tuple[Priority | None, str]] = {
    "system": (1, "system system_prompt system_role_prompt role_prompt system_message"),
    "task": (1, "task task_description current_task current_task_description goal objective mission user_story"),
    "criteria": (
        1,
        "acceptance_criteria acceptance_criterion current_task_acceptance_criteria criteria definition_of_done",
    ),
    "active_file": (1, "active_file active_file_being_edited file_being_edited current_file"),
    "error": (
        1,
        "error critical_error critical_error_context error_context error_message exception failure stack_trace",
    ),
    "recent_history": (2, "recent_task_history"),
    "pull_request": (2, "pr pull_request active_pr active_pr_context merge_request pr_context"),
    "dependency": (2, "dependency dependency_information dependency_info"),
    "structure": (2, "structure file_structure current_file_structure project_structure file_tree directory_tree"),
    "feedback": (2, "feedback recent_feedback user_feedback review review_comment code_review"),
    "old_history": (3, "old_task_history"),
    "metric": (3, "metric success_metric measurement"),
    "guideline": (3, "guideline project_guideline convention style_guide coding_standard"),
    "examples": (3, "example template example_code code_example example_code_snippet snippet code_snippet few_shot"),
    "link": (3, "link documentation_link reference_link doc_link url"),
    "finished": (4, "completed_task completed_task_detail finished_task"),
    "resolved": (4, "resolved_error old_error_message"),
    "deprecated": (4, "deprecated deprecated_context obsolete outdated superseded"),
    "debug": (
        4,
        "debug debug_info debug_output temporary_debug_info temporary_debug_output temporary scratch debug_log",
    ),
    "redundant": (4, "redundant redundant_information duplicate"),
    "code": (None, "code active_code file_content source_code"),
}
"""What a caller may call a message: its row of the matrix, if it is in one, and the words."""
_SEPARATORS = re.compile(r"[\s/.-]+")
_KINDS = {
    spelt: kind
    for kind, (_, words) in _NAMED.items()
    for word in words.split()
    for spelt in (word, f"{word[:-1]}ies" if word.endswith("y") else f"{word}s")
}


def named_kind(kind: str | None) -> str | None:
    """What a kind given by a caller means here, in singular or plural and however its words are joined."""
    return _KINDS.get(_SEPARATORS.sub("_", kind.strip().lower())) if kind else None


def priority_of(entries: Iterable[Entry]) -> Priority | None:
    """The row of the matrix of messages by the kinds that they were given: the highest; `None` where they have none."""
    rows = (priority_of_kind(entry.kind) for entry in entries)
    return min((row for row in rows if row is not None), default=None)


def priority_of_kind(kind: str | None) -> Priority | None:
    """The row of the matrix that a kind names, if it names one."""
    named = named_kind(kind)
    return _NAMED[named][0] if named is not None else None


Verdict: TypeAlias = Literal["always_keep", "essential", "undecided", "prune", "always_prune"]
"""Where tree and matrix lead: `prune` goes before anything that is scored, `undecided` while its score is not above the
threshold, `essential` when nothing undecided is left and the context still does not fit."""


_IF_RELEVANT = 2
"""The matrix's second row: keep if relevant. Its third is: keep if there is space."""
_RANK: dict[Verdict, int] = {"always_prune": 0, "prune": 1, "undecided": 2, "essential": 3}


def verdict(item: PruneItem) -> Verdict:  # noqa: PLR0911 - a line per branch
    """Where the pruning tree leads for one item. The matrix stands above it, but for what is kept if there is space."""
    if item.must_stay or item.priority == 1 or item.category == "system":
        return "always_keep"
    if item.priority == 4:  # noqa: PLR2004 - the matrix's last row
        return "always_prune"
    if item.priority == _IF_RELEVANT and item.relevant:
        return "essential"
    if item.category == "current_task":
        return "undecided"
    if item.category == "old_history":
        return "undecided" if item.referenced_recently else "prune"
    if item.relevant:
        return "essential"
    return "undecided" if item.category == "recent_history" else "prune"


def prune(items: Sequence[PruneItem], *, target_tokens: int) -> dict[int, str]:
    """Choose what leaves a context so that the rest takes at most `target_tokens`.

    Deterministic: of equal scores, the older item goes first. Monotone: what a target keeps, a larger one keeps too.
    Keys of what leaves come in the order in which it does, and why. Where the rest is still too large, only what is
    always kept is left of it.
    """
    left = sum(item.tokens for item in items)
    if left <= target_tokens:
        return {}
    scores = {item.key: score(item) for item in items}
    verdicts = {item.key: verdict(item) for item in items}
    leaving = sorted(
        (item for item in items if verdicts[item.key] != "always_keep"),
        key=lambda item: (_RANK[verdicts[item.key]], -item.priority, scores[item.key], -item.age_minutes, item.key),
    )
    threshold = SCORE_THRESHOLD
    dropped: dict[int, str] = {}
    for item in leaving:
        if left <= target_tokens and verdicts[item.key] != "always_prune":
            break
        points = scores[item.key]
        if _RANK[verdicts[item.key]] > 1 and points > threshold:  # it rises by whole steps
            threshold -= (threshold - points) // _SCORE_STEP * _SCORE_STEP
        left -= item.tokens
        dropped[item.key] = _reason(item, verdicts[item.key], points, threshold)
    return dropped


def _reason(item: PruneItem, way: Verdict, points: int, threshold: int) -> str:
    if way == "always_prune":
        return item.reason
    if way == "prune":
        return (
            "examples that are no longer relevant" if item.category == "examples" else "old, and not mentioned lately"
        )
    said = f"scores {points}, not above {threshold}"
    if way == "essential":
        return f"essential, but there is no room for everything essential: {said}"
    return said if item.priority == _IF_RELEVANT else f"kept only if there is space: {said}"
