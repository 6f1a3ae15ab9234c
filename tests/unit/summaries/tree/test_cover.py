from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.summaries.tree.cover import (
    Gap,
    Node,
    fitted,
    merged_gaps,
    next_to_refine,
    refined,
    selected,
    tokens_of,
)

GAP_TOKENS = 12


def gap_tokens(_: Gap) -> int:
    return GAP_TOKENS


def node(name: str, *, level: int = 1, first: int = 1, last: int = 10, tokens: int = 100) -> Node:
    return Node(id=name, level=level, first_seq=first, last_seq=last, entry_count=last - first + 1, tokens=tokens)


def row(count: int, *, level: int = 1, tokens: int = 100, width: int = 10) -> list[Node]:
    return [
        node(f"{level}.{number}", level=level, first=number * width + 1, last=(number + 1) * width, tokens=tokens)
        for number in range(count)
    ]


def test_what_fits_is_left_as_it_is() -> None:
    nodes = row(3)
    assert fitted(nodes, cap=300, gap_tokens=gap_tokens) == tuple(nodes)


def test_neighbours_that_do_not_fit_become_one_line_that_names_them() -> None:
    chosen = fitted(row(4), cap=250, gap_tokens=gap_tokens)
    gap = chosen[0]
    assert isinstance(gap, Gap)
    assert (gap.first_seq, gap.last_seq, gap.entry_count, gap.ids) == (1, 20, 20, ("1.0", "1.1"))
    assert [item.id for item in chosen[1:] if isinstance(item, Node)] == ["1.2", "1.3"]


def test_higher_levels_stay_before_lower_ones() -> None:
    items = [node("top", level=3, first=1, last=100), *row(3, width=10)]
    shifted = [items[0], *(node(one.id, first=one.first_seq + 100, last=one.last_seq + 100) for one in items[1:])]
    chosen = fitted(shifted, cap=150, gap_tokens=gap_tokens)
    assert [item.id for item in chosen if isinstance(item, Node)] == ["top"]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 400)), max_size=30), st.integers(0, 3000))
def test_a_fitted_cover_still_stands_for_everything_once(parts: list[tuple[int, int]], cap: int) -> None:
    nodes = [
        node(str(number), level=level, first=number * 10 + 1, last=number * 10 + 10, tokens=tokens)
        for number, (level, tokens) in enumerate(parts)
    ]
    chosen = fitted(nodes, cap=cap, gap_tokens=gap_tokens)
    ids = [one for item in chosen for one in ((item.id,) if isinstance(item, Node) else item.ids)]
    assert sorted(ids) == sorted(one.id for one in nodes)
    assert sum(item.entry_count for item in chosen) == sum(one.entry_count for one in nodes)
    only_gaps = all(isinstance(item, Gap) for item in chosen)
    assert only_gaps or tokens_of(chosen, gap_tokens=gap_tokens) <= cap


def test_refinement_looks_at_the_most_recent_node_first_and_never_at_level_1() -> None:
    items = [
        node("a", level=2, first=1, last=50),
        node("b", level=2, first=51, last=99),
        node("c", first=100, last=110),
    ]
    found = next_to_refine(items, tried=frozenset())
    assert found is not None
    assert found.id == "b"
    assert next_to_refine(items, tried=frozenset({"a", "b"})) is None


def test_a_refined_node_is_replaced_by_the_level_below_it_in_place() -> None:
    parent = node("p", level=2, first=11, last=30)
    items = [node("a", first=1, last=10), parent, node("z", first=31, last=40)]
    finer = refined(items, parent, [node("y", first=21, last=30), node("x", first=11, last=20)])
    assert [item.id for item in finer if isinstance(item, Node)] == ["a", "x", "y", "z"]


def test_gaps_of_messages_that_are_not_condensed_stay_apart_from_gaps_that_can_be_expanded() -> None:
    raw = Gap(first_seq=11, last_seq=20, entry_count=10, ids=())
    items = [Gap(first_seq=1, last_seq=10, entry_count=10, ids=("a",)), raw]
    assert merged_gaps(items) == tuple(items)


def test_a_plan_survives_its_way_through_json() -> None:
    plan = ViewPlan(
        border=20,
        tail_from=19,
        items=(node("a"), Gap(first_seq=11, last_seq=20, entry_count=9, ids=("b", "c"))),
        skip=("d",),
        queries=(3, 5),
        ratio=1.25,
        provisional=True,
    )
    assert ViewPlan.from_json(plan.to_json()) == plan


def test_the_selection_shows_the_top_alone_when_room_is_short() -> None:
    top = node("top", level=3, first=1, last=500, tokens=300)
    chosen = selected(top, row(3, level=2), row(9), room=1000, threshold=2000, share=0.6)
    assert [one.id for one in chosen] == ["top"]


def test_the_selection_gives_three_fifths_to_recent_level_2_then_the_top_then_level_1_not_covered() -> None:
    top = node("top", level=3, first=1, last=150, tokens=300)
    level_2 = list(reversed(row(4, level=2, tokens=700, width=50)))
    level_1 = list(reversed(row(22, tokens=100)))
    chosen = selected(top, level_2, level_1, room=3000, threshold=2000, share=0.6)
    assert [one.id for one in chosen if one.level == 2] == ["2.2", "2.3"]
    assert "top" in [one.id for one in chosen]
    assert {one.id for one in chosen if one.level == 1} == {f"1.{number}" for number in (*range(10), 20, 21)}
    assert sum(one.tokens for one in chosen) <= 3000
