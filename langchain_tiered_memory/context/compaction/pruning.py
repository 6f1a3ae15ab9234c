"""Prunes a context by priority: the pruning tree first, then scores against a rising threshold.

The tree says what a context can do without; the priority matrix says how far to go. Nothing is taken from a context
that fits. Of one that does not, what is always pruned goes first and goes altogether. The rest leaves one by one until
the context fits: what the tree prunes, what it leaves undecided, and last what is essential; within each, what is kept
only if there is space before what is kept if it is relevant, cheapest first. So the items form one order, a smaller
target takes a longer piece of it, and pruning again changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from langchain_tiered_memory.context.compaction.scoring import PruneItem, score

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.settings import GuardSettings

Verdict: TypeAlias = Literal["always_keep", "essential", "undecided", "prune", "always_prune"]
"""Where tree and matrix lead: `prune` goes before anything that is scored, `undecided` while its score is not above the
threshold, `essential` when nothing undecided is left and the context still does not fit."""


_IF_RELEVANT = 2
"""The matrix's second row: keep if relevant. Its third is: keep if there is space."""
_RANK: dict[Verdict, int] = {"always_prune": 0, "prune": 1, "undecided": 2, "essential": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """An item that leaves the context."""

    key: int
    reason: str
    score: int
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What stays, what goes, and why."""

    kept: tuple[int, ...]
    """Keys, in the order in which the items were given."""
    dropped: tuple[Dropped, ...]
    """In the order in which they went."""
    threshold: int
    """The score at which it ended: every item that scores more is kept. Of those that score as much or less stay,
    where there is space, the essential ones, then those of the matrix's second row, then the latest of the best."""
    fits: bool
    """Whether the target was reached; where not, only what is always kept is left."""


def verdict(item: PruneItem) -> Verdict:  # noqa: PLR0911 - a line per branch
    """Where the pruning tree leads for one item. The matrix stands above it, but for what is kept if there is space."""
    if item.always_kept or item.category == "system":
        return "always_keep"
    if item.priority == 4:  # noqa: PLR2004 - the matrix's last row
        return "always_prune"
    if item.priority == _IF_RELEVANT and item.relevant:
        return "essential"
    match item.category:
        case "current_task":
            return "undecided"
        case "recent_history":
            return "essential" if item.relevant else "undecided"
        case "old_history":
            return "undecided" if item.referenced_recently else "prune"
        case "examples":
            return "essential" if item.relevant else "prune"
        case _:
            assert_never(item.category)


def prune(items: Sequence[PruneItem], *, target_tokens: int, settings: GuardSettings) -> Pruned:
    """Choose what leaves a context so that the rest takes at most `target_tokens`.

    Deterministic: of equal scores, the older item goes first. Monotone: what a target keeps, a larger one keeps too.

    Args:
        items: What the context shows, oldest first.
        target_tokens: What all of it may take; `GuardSettings.prune_to` of the limit, less what is no item.
        settings: The threshold that a score has to exceed, and by how much it rises at a time.
    """
    left = sum(item.tokens for item in items)
    if left <= target_tokens:
        kept = tuple(item.key for item in items)
        return Pruned(kept=kept, dropped=(), threshold=settings.score_threshold, fits=True)
    scores = {item.key: score(item) for item in items}
    verdicts = {item.key: verdict(item) for item in items}
    leaving = sorted(
        (item for item in items if verdicts[item.key] != "always_keep"),
        key=lambda item: (_RANK[verdicts[item.key]], -item.priority, scores[item.key], -item.age_minutes, item.key),
    )
    threshold = settings.score_threshold
    dropped: list[Dropped] = []
    for item in leaving:
        if left <= target_tokens and verdicts[item.key] != "always_prune":
            break
        points = scores[item.key]
        if _RANK[verdicts[item.key]] > 1:
            threshold = _raised(threshold, points, settings.score_step)
        left -= item.tokens
        reason = _reason(item, verdicts[item.key], points, threshold)
        dropped.append(Dropped(key=item.key, reason=reason, score=points, tokens=item.tokens))
    gone = {one.key for one in dropped}
    return Pruned(
        kept=tuple(item.key for item in items if item.key not in gone),
        dropped=tuple(dropped),
        threshold=threshold,
        fits=left <= target_tokens,
    )


def _raised(threshold: int, points: int, step: int) -> int:
    """The threshold after as many whole steps as it takes to reach `points`."""
    return threshold if points <= threshold else threshold - (threshold - points) // step * step


def _reason(item: PruneItem, way: Verdict, points: int, threshold: int) -> str:
    if way == "always_prune":
        return item.reason
    if way == "prune":
        return (
            "examples that are no longer relevant" if item.category == "examples" else "old, and not referred to lately"
        )
    said = f"scores {points}, not above {threshold}"
    if way == "essential":
        return f"essential, and there is no room for all that is: {said}"
    return said if item.priority == _IF_RELEVANT else f"kept only if there is space: {said}"
