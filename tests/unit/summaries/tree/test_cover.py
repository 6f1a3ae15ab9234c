from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.view.plan import ViewPlan
from langchain_tiered_memory.summaries.tree.cover import (
    Choice,
    CoverItem,
    Gap,
    Joint,
    Node,
    Resolution,
    allotted,
    best_cover,
    forms_of,
    gaps_of,
    in_order,
    joined_oldest,
    merged_gaps,
    summary_ids_of,
    tokens_of,
)

GAP_TOKENS = 12
LINE_TOKENS = 20


def gap_tokens(_: Gap) -> int:
    return GAP_TOKENS


def node(
    name: str,
    *,
    level: int = 1,
    first: int = 1,
    last: int = 10,
    tokens: int = 100,
    resolution: Resolution = "whole",
) -> Node:
    return Node(
        id=name,
        level=level,
        first_seq=first,
        last_seq=last,
        entry_count=last - first + 1,
        tokens=tokens,
        resolution=resolution,
    )


def row(count: int, *, level: int = 1, tokens: int = 100, width: int = 10) -> list[Node]:
    return [
        node(f"{level}.{number}", level=level, first=number * width + 1, last=(number + 1) * width, tokens=tokens)
        for number in range(count)
    ]


def choice(name: str, *, level: int = 1, first: int = 1, last: int = 10, whole: int = 300, short: int = 100) -> Choice:
    forms = forms_of(
        node(name, level=level, first=first, last=last, tokens=25, resolution="headline"),
        node(name, level=level, first=first, last=last, tokens=short, resolution="short"),
        node(name, level=level, first=first, last=last, tokens=whole),
    )
    return Choice(forms=forms)


def line_of(count: int, *, level: int = 1, whole: int = 300, short: int = 100) -> list[Choice]:
    return [
        choice(str(number), level=level, first=number * 10 + 1, last=number * 10 + 10, whole=whole, short=short)
        for number in range(count)
    ]


def joined(items: Sequence[CoverItem]) -> Joint:
    gaps = tuple(gaps_of(items))
    counted = sum(item.entry_count for item in items if not isinstance(item, Gap))
    return Joint(
        first_seq=min(item.first_seq for item in items),
        last_seq=max(item.last_seq for item in items),
        entry_count=counted,
        ids=summary_ids_of(items),
        tokens=LINE_TOKENS,
        text="joined",
        gaps=gaps,
    )


def cover(parts: Sequence[Choice | Joint | Gap], room: int) -> tuple[CoverItem, ...]:
    return best_cover(parts, room=room, below=lambda _: (), joined=joined, gap_tokens=gap_tokens)


def resolutions(items: Sequence[CoverItem]) -> list[str]:
    return [item.resolution if isinstance(item, Node) else type(item).__name__ for item in items]


def test_what_fits_is_told_whole() -> None:
    assert resolutions(cover(line_of(3), 900)) == ["whole"] * 3


def test_when_room_is_short_the_oldest_are_told_more_briefly_and_nothing_is_dropped() -> None:
    assert resolutions(cover(line_of(4), 700)) == ["short", "short", "short", "whole"]
    assert resolutions(cover(line_of(4), 330)) == ["headline", "short", "short", "short"]
    assert resolutions(cover(line_of(4), 100)) == ["headline"] * 4


def test_the_newest_is_told_whole_before_an_older_one_of_more_messages_is() -> None:
    parts = [choice("old", level=3, first=1, last=400), *line_of(42)[40:]]
    assert resolutions(cover(parts, 600)) == ["short", "short", "whole"]
    assert resolutions(cover(parts, 800)) == ["short", "whole", "whole"]


def test_where_not_even_headlines_fit_the_oldest_are_joined_and_the_newest_keeps_more_than_a_line() -> None:
    told = cover(line_of(40), 300)
    assert isinstance(told[0], Joint)
    assert told[0].ids[0] == "0"
    assert resolutions(told)[-1] == "short"
    assert tokens_of(told, gap_tokens=gap_tokens) <= 300


def test_one_line_stands_for_everything_however_small_the_room() -> None:
    told = cover(line_of(7), 3)
    assert len(told) == 1
    assert summary_ids_of(told) == tuple(str(number) for number in range(7))


def test_a_form_that_saves_nothing_is_none() -> None:
    assert resolutions(choice("a", whole=20, short=24).forms) == ["whole"]
    assert resolutions(choice("a", whole=90, short=90).forms) == ["headline", "whole"]


def test_a_summary_is_opened_where_what_stands_below_tells_more_and_fits_at_least_in_short() -> None:
    top = choice("top", level=2, first=1, last=40, whole=300)
    below = line_of(4)
    assert [one.id for one in allotted([top], room=700, below=lambda _: below)] == ["0", "1", "2", "3"]
    assert [one.id for one in allotted([top], room=399, below=lambda _: below)] == ["top"]
    assert [one.id for one in allotted([top], room=10_000, below=lambda _: ())] == ["top"]


parts_of_a_history = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 400), st.integers(1, 400), st.sampled_from(["told", "told", "gap"])),
    max_size=30,
)


@given(parts_of_a_history, st.integers(0, 3000))
def test_a_cover_tells_of_every_summary_once_and_keeps_to_its_room_wherever_one_line_fits(
    drawn: list[tuple[int, int, int, str]], room: int
) -> None:
    parts: list[Choice | Joint | Gap] = []
    for number, (level, whole, short, kind) in enumerate(drawn):
        first, last = number * 10 + 1, number * 10 + 10
        if kind == "gap":
            parts.append(Gap(first_seq=first, last_seq=last, entry_count=10))
        else:
            parts.append(choice(str(number), level=level, first=first, last=last, whole=whole, short=short))
    told = cover(parts, room)
    assert sorted(summary_ids_of(told)) == sorted(part.whole.id for part in parts if isinstance(part, Choice))
    assert sum(gap.entry_count for gap in gaps_of(told)) == 10 * sum(isinstance(part, Gap) for part in parts)
    assert sum(item.entry_count for item in told if not isinstance(item, Gap)) == 10 * len(summary_ids_of(told))
    assert in_order(told) == told
    if summary_ids_of(told) and room >= LINE_TOKENS:
        assert tokens_of(told, gap_tokens=gap_tokens) <= room


@given(parts_of_a_history, st.integers(0, 3000))
def test_more_room_never_tells_less(drawn: list[tuple[int, int, int, str]], room: int) -> None:
    parts = [
        choice(str(number), level=level, first=number * 10 + 1, last=number * 10 + 10, whole=whole, short=short)
        for number, (level, whole, short, _) in enumerate(drawn)
    ]
    lines = len(cover(parts, room))
    assert len(cover(parts, room * 2 + 50)) >= lines


def test_the_oldest_are_joined_until_the_rest_fits() -> None:
    told = joined_oldest(row(5, tokens=25), room=80, most=80, joined=joined, gap_tokens=gap_tokens)
    assert [type(item).__name__ for item in told] == ["Joint", "Node", "Node"]


def test_neighbouring_gaps_of_one_kind_are_one_line() -> None:
    raw = [Gap(first_seq=first, last_seq=first + 4, entry_count=5) for first in (1, 6)]
    other = Gap(first_seq=11, last_seq=20, entry_count=10, why="of_branch")
    assert merged_gaps([*raw, other]) == (Gap(first_seq=1, last_seq=10, entry_count=10), other)


def test_a_plan_survives_its_way_through_json() -> None:
    gap = Gap(first_seq=11, last_seq=20, entry_count=9, why="of_branch")
    line = Joint(first_seq=1, last_seq=9, entry_count=9, ids=("b", "c"), tokens=30, text="[1-9]", gaps=(gap,))
    plan = ViewPlan(
        border=20,
        tail_from=19,
        items=(line, node("a", resolution="short"), gap),
        skip=("d",),
        queries=(3, 5),
        ratio=1.25,
        provisional=True,
    )
    assert ViewPlan.from_json(plan.to_json()) == plan
