import pytest

from langchain_tiered_memory.context.compaction.pruning import Bond, ContentKind, PruneItem, recency_points, score


def item(
    *, kind: ContentKind = "task_history", age: float = 1000.0, bond: Bond = "none", references: int = 0
) -> PruneItem:
    return PruneItem(
        key=1,
        tokens=10,
        category="old_history",
        kind=kind,
        age_minutes=age,
        references=references,
        bond=bond,
    )


@pytest.mark.parametrize(
    ("age", "points"), [(0, 30), (4.99, 30), (5, 20), (29.9, 20), (30, 10), (119.9, 10), (120, 0), (1e6, 0), (-3, 30)]
)
def test_younger_items_score_more(age: float, points: int) -> None:
    assert recency_points(age) == points
    assert score(item(age=age)) == points + 8


@pytest.mark.parametrize(("bond", "points"), [("task", 40), ("dependency", 25), ("none", 0)])
def test_what_belongs_to_the_task_scores_more(bond: Bond, points: int) -> None:
    assert score(item(bond=bond)) == points + 8


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        ("system_prompt", 20),
        ("current_task", 20),
        ("acceptance_criteria", 18),
        ("active_code", 15),
        ("recent_feedback", 12),
        ("task_history", 8),
        ("examples", 5),
    ],
)
def test_each_kind_has_its_points(kind: ContentKind, points: int) -> None:
    assert score(item(kind=kind)) == points


@pytest.mark.parametrize(("references", "points"), [(0, 0), (1, 2), (4, 8), (5, 10), (6, 10), (1000, 10)])
def test_references_count_double_up_to_ten_points(references: int, points: int) -> None:
    assert score(item(references=references)) == points + 8


def test_the_best_item_scores_a_hundred() -> None:
    assert score(item(kind="system_prompt", age=0, bond="task", references=9)) == 100
