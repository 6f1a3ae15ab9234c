import pytest

from langchain_tiered_memory.summaries.facts.statements import points_back, stands_alone
from tests.fact_builders import facts_of


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("A friend made it for my 18th birthday", True),
        ("Her name's Coco", True),
        ("I chose them because they help families", True),
        ("I painted this after the trip", True),
        ("I called Anna Keller and she will come", False),
        ("Just type v2 for Marta's visa and it opens", False),
        ("I moved to Oslo in May", False),
    ],
)
def test_a_statement_points_back_that_does_not_name_what_it_speaks_of(text: str, *, points: bool) -> None:
    assert points_back(text) is points


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("They have 40 rooms in Varna.", False),
        ("Since I was 17 or so.", False),
        ("I moved to Oslo with Ingrid Berg in May.", True),
        ("They decided to use Postgres for billing.", True),
    ],
)
def test_what_says_not_whom_or_what_it_is_about_does_not_stand_alone_unless_it_was_settled(
    text: str, *, stands: bool
) -> None:
    assert [stands_alone(one) for one in facts_of(text)] == [stands]
