import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.compaction.pruning import (
    SCORE_THRESHOLD,
    Bond,
    Category,
    ContentKind,
    Priority,
    PruneItem,
    Verdict,
    prune,
    score,
    verdict,
)


def item(
    key: int = 1,
    *,
    tokens: int = 100,
    category: Category = "recent_history",
    kind: ContentKind = "task_history",
    age: float = 1000.0,
    references: int = 0,
    bond: Bond = "none",
    relevant: bool = False,
    referenced: bool = False,
    priority: Priority = 3,
    must_stay: bool = False,
) -> PruneItem:
    return PruneItem(
        key=key,
        tokens=tokens,
        category=category,
        kind=kind,
        age_minutes=age,
        references=references,
        bond=bond,
        relevant=relevant,
        referenced_recently=referenced,
        priority=priority,
        reason="resolved_error" if priority == 4 else "old_task_history",
        must_stay=must_stay,
    )


@dataclass(frozen=True)
class Pruned:
    """What stays, what goes, and whether the target was reached."""

    kept: tuple[int, ...]
    dropped: dict[int, str]
    fits: bool

    @property
    def threshold(self) -> int:
        """Up to which score it went, as the last reason says."""
        named = [found[1] for reason in self.dropped.values() if (found := re.search(r"not above (\d+)", reason))]
        return int(named[-1]) if named else SCORE_THRESHOLD


def pruned(items: list[PruneItem], target: int) -> Pruned:
    dropped = prune(items, target_tokens=target)
    kept = [one for one in items if one.key not in dropped]
    fits = sum(one.tokens for one in kept) <= target
    return Pruned(kept=tuple(one.key for one in kept), dropped=dropped, fits=fits)


items_of_a_context = st.lists(
    st.builds(
        item,
        tokens=st.integers(0, 500),
        category=st.sampled_from(["current_task", "recent_history", "old_history", "system", "examples"]),
        kind=st.sampled_from(["system_prompt", "current_task", "active_code", "task_history", "examples"]),
        age=st.sampled_from([0.0, 6.0, 40.0, 500.0]),
        references=st.integers(0, 7),
        bond=st.sampled_from(["task", "dependency", "none"]),
        relevant=st.booleans(),
        referenced=st.booleans(),
        priority=st.sampled_from([1, 2, 3, 4]),
        must_stay=st.booleans(),
    ),
    max_size=25,
).map(lambda found: [_numbered(one, key) for key, one in enumerate(found, 1)])


def _numbered(one: PruneItem, key: int) -> PruneItem:
    return item(
        key,
        tokens=one.tokens,
        category=one.category,
        kind=one.kind,
        age=one.age_minutes,
        references=one.references,
        bond=one.bond,
        relevant=one.relevant,
        referenced=one.referenced_recently,
        priority=one.priority,
        must_stay=one.must_stay,
    )


@pytest.mark.parametrize(
    ("one", "way"),
    [
        (item(category="current_task", priority=1), "always_keep"),
        (item(category="current_task", must_stay=True), "always_keep"),
        (item(category="current_task", priority=2), "undecided"),
        (item(category="current_task", priority=2, relevant=True), "essential"),
        (item(category="current_task", priority=3, relevant=True), "undecided"),
        (item(category="old_history", priority=2, relevant=True), "essential"),
        (item(category="recent_history", priority=2), "undecided"),
        (item(category="recent_history", relevant=True), "essential"),
        (item(category="recent_history"), "undecided"),
        (item(category="old_history", referenced=True), "undecided"),
        (item(category="old_history"), "prune"),
        (item(category="old_history", relevant=True), "prune"),
        (item(category="system"), "always_keep"),
        (item(category="system", priority=4), "always_keep"),
        (item(category="examples", relevant=True), "essential"),
        (item(category="examples"), "prune"),
        (item(category="current_task", priority=4), "always_prune"),
        (item(category="current_task", priority=4, must_stay=True), "always_keep"),
    ],
)
def test_the_tree_leads_each_item_where_the_design_says(one: PruneItem, way: Verdict) -> None:
    assert verdict(one) == way


def test_nothing_is_taken_from_a_context_that_fits() -> None:
    given_items = [item(1, priority=4), item(2, category="old_history")]
    assert pruned(given_items, 200) == Pruned(kept=(1, 2), dropped={}, fits=True)


def test_what_is_always_pruned_goes_first_and_goes_altogether() -> None:
    found = pruned([item(1, priority=4), item(2, category="old_history"), item(3, priority=4, age=0)], 250)
    assert found.kept == (2,)
    assert list(found.dropped.values()) == ["resolved_error", "resolved_error"]


def test_old_history_that_nobody_refers_to_goes_before_anything_scored() -> None:
    old = item(1, category="old_history", kind="active_code", references=4)
    assert score(old) > score(item(2))
    found = pruned([old, item(2)], 150)
    assert found.kept == (2,)
    assert found.dropped[1] == "old, and not mentioned lately"


def test_what_is_essential_goes_when_nothing_undecided_is_left() -> None:
    essential = item(1, relevant=True)
    undecided = item(2, age=0, bond="task", kind="active_code", references=5)
    assert score(undecided) > score(essential)
    assert pruned([essential, undecided], 100).kept == (1,)
    assert pruned([essential, undecided], 50).dropped[1].startswith("essential, but there is no room")


def test_what_is_kept_if_there_is_space_goes_before_what_is_kept_if_it_is_relevant() -> None:
    spare, recent = item(1, age=0, references=5, priority=3), item(2, priority=2)
    assert score(spare) > score(recent)
    assert pruned([spare, recent], 100).kept == (2,)
    assert pruned([spare, recent], 100).dropped[1].startswith("kept only if there is space")
    relevant = [item(1, age=0, category="examples", relevant=True, priority=3), item(2, relevant=True, priority=2)]
    assert pruned(relevant, 100).kept == (2,)


@given(items_of_a_context, st.integers(0, 5000))
def test_rows_and_branches_decide_before_scores(items: list[PruneItem], target: int) -> None:
    ranks = {"always_prune": 0, "prune": 1, "undecided": 2, "essential": 3}
    gone = list(pruned(items, target).dropped)
    by_key = {one.key: one for one in items}
    order = [(ranks[verdict(by_key[key])], -by_key[key].priority) for key in gone]
    assert order == sorted(order)


def test_it_goes_only_as_far_as_the_target_asks() -> None:
    found = pruned([item(key, category="old_history", age=1000 - key) for key in range(1, 11)], 650)
    assert found.kept == (5, 6, 7, 8, 9, 10)


def test_the_threshold_rises_in_steps_past_the_last_score_that_went() -> None:
    # 8 for its kind, 20 and 30 for its age, 40 for its task.
    items = [item(1, age=10), item(2, age=1), item(3, age=10, bond="task")]
    assert pruned(items, 200).threshold == 30
    assert pruned(items, 100).threshold == 40
    assert pruned(items, 99).threshold == 70


def test_of_equal_scores_the_older_goes() -> None:
    items = [item(1, age=50), item(2, age=40), item(3, age=60)]
    assert list(pruned(items, 100).dropped) == [3, 1]


def test_of_equal_age_too_the_earlier_goes() -> None:
    assert list(pruned([item(key) for key in (1, 2, 3)], 100).dropped) == [1, 2]


def test_when_only_what_is_always_kept_is_left_it_says_that_it_does_not_fit() -> None:
    found = pruned([item(1, priority=1), item(2, age=0, bond="task"), item(3, must_stay=True)], 150)
    assert not found.fits
    assert found.kept == (1, 3)


def test_an_empty_context_fits() -> None:
    assert pruned([], 0) == Pruned(kept=(), dropped={}, fits=True)


@given(items_of_a_context, st.integers(-10, 5000))
def test_it_is_over_its_target_only_when_nothing_more_may_go(items: list[PruneItem], target: int) -> None:
    found = pruned(items, target)
    if not found.fits:
        assert {verdict(one) for one in items if one.key in found.kept} <= {"always_keep"}


@given(items_of_a_context, st.integers(0, 5000))
def test_it_loses_no_item_and_keeps_the_order(items: list[PruneItem], target: int) -> None:
    found = pruned(items, target)
    assert sorted([*found.kept, *found.dropped]) == [one.key for one in items]
    assert list(found.kept) == sorted(found.kept)


@given(items_of_a_context, st.integers(0, 5000))
def test_what_is_always_kept_is_kept(items: list[PruneItem], target: int) -> None:
    assert {one.key for one in items if verdict(one) == "always_keep"} <= set(pruned(items, target).kept)


@pytest.mark.slow
@given(items_of_a_context, st.integers(0, 5000))
def test_every_scored_item_above_the_threshold_is_kept(items: list[PruneItem], target: int) -> None:
    found = pruned(items, target)
    scored = [one for one in items if verdict(one) in ("undecided", "essential")]
    assert {one.key for one in scored if score(one) > found.threshold} <= set(found.kept)


@given(items_of_a_context, st.integers(0, 5000), st.integers(0, 5000))
def test_a_larger_target_keeps_what_a_smaller_one_keeps(items: list[PruneItem], one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert set(pruned(items, small).kept) <= set(pruned(items, large).kept)


@given(items_of_a_context, st.integers(0, 5000))
def test_pruning_again_changes_nothing(items: list[PruneItem], target: int) -> None:
    once = pruned(items, target)
    again = pruned([one for one in items if one.key in once.kept], target)
    assert again.kept == once.kept
    assert again.dropped == {}
