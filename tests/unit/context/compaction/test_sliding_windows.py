from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from langchain_tiered_memory.context.compaction.leaving import chosen_by, out_of_window
from langchain_tiered_memory.types.records import Entry, Group

NOTHING = frozenset[int]()


def entry(seq: int, *, group: int, tokens: int = 10) -> Entry:
    return Entry(
        seq=seq,
        id=f"m{seq}",
        role="user",
        text="",
        payload="",
        digest="",
        tokens=tokens,
        at=0.0,
        name=None,
        track="main",
        kind=None,
        task=None,
        calls=(),
        answers=None,
        group=group,
        pinned=False,
        revision=0,
        summary_id=None,
    )


def groups_of(*sizes: int, tokens: int = 10) -> list[Group]:
    """Groups of so many messages each, numbered from 1."""
    made: list[Group] = []
    seq = 1
    for size in sizes:
        made.append(Group(entries=tuple(entry(seq + place, group=seq, tokens=tokens) for place in range(size))))
        seq += size
    return made


def tokens_left(groups: Sequence[Group], going: Sequence[int]) -> int:
    return sum(group.tokens for group in groups if group.first_seq not in going)


def half(groups: Sequence[Group], room: int, *, stay: frozenset[int] = NOTHING, **more: Any) -> tuple[int, ...]:
    return out_of_window(groups, must_stay=stay, room_tokens=room, **more)


def last(groups: Sequence[Group], *, keep: int, room: int = 10**6, stay: frozenset[int] = NOTHING) -> tuple[int, ...]:
    return out_of_window(groups, must_stay=stay, room_tokens=room, keep=keep)


def test_nothing_leaves_where_everything_fits() -> None:
    assert half(groups_of(*[1] * 10), 100) == ()
    assert last(groups_of(*[1] * 10), keep=9) == ()
    assert half([], 0) == ()
    assert last([], keep=3, room=0) == ()


def test_the_older_half_leaves_between_the_first_and_the_newest_an_even_number_of_messages() -> None:
    assert half(groups_of(*[1] * 12), 110) == (2, 3, 4, 5)


def test_half_of_what_is_left_leaves_until_the_rest_fits() -> None:
    assert half(groups_of(*[1] * 12), 50) == (2, 3, 4, 5, 6, 7, 8, 9)


def test_a_group_leaves_whole_even_where_that_makes_an_odd_number() -> None:
    assert half(groups_of(1, 3, 1, 3, 1), 50) == (2, 5)
    assert half(groups_of(1, 3, 3, 1), 70) == (2,)


def test_an_even_run_is_preferred_to_a_longer_odd_one() -> None:
    assert half(groups_of(1, 2, 1, 2, 2, 1), 80) == (2,)


def test_what_must_stay_stays_and_what_stands_between_leaves() -> None:
    groups = groups_of(*[1] * 6)
    assert half(groups, 0, stay=frozenset({3, 5})) == (2, 4)


def test_the_oldest_group_leaves_too_where_it_does_not_begin_the_conversation() -> None:
    assert half(groups_of(*[1] * 6), 0, keeps_first=False) == (1, 2, 3, 4, 5)


def test_the_first_and_the_last_nine_remain_of_more_than_ten_messages() -> None:
    assert last(groups_of(*[1] * 10), keep=9) == ()
    assert last(groups_of(*[1] * 11), keep=9) == (2,)
    assert last(groups_of(*[1] * 30), keep=9) == tuple(range(2, 22))


def test_a_group_that_reaches_past_the_last_messages_leaves_whole() -> None:
    assert last(groups_of(1, 1, 4, 1, 1), keep=4) == (2, 3)


def test_the_newest_group_stays_however_large_it_is() -> None:
    assert last(groups_of(1, 1, 20), keep=4) == (2,)
    assert last(groups_of(1, 1, 20), keep=4, room=0) == (2,)


def test_fewer_of_the_last_messages_remain_while_they_do_not_fit() -> None:
    assert last(groups_of(*[1] * 11), keep=9, room=60) == (2, 3, 4, 5, 6)
    assert last(groups_of(*[1] * 5), keep=9, room=40) == (2,)


@pytest.mark.parametrize(
    "answer", [None, 7, "2", b"\x02", object(), [], {"2": 1}, [[2]], [True, 2.0, "2", None], (one for one in [2])]
)
def test_an_answer_that_names_no_group_says_nothing(answer: object) -> None:
    assert chosen_by(answer, groups_of(1, 1, 1, 1), must_stay=NOTHING) == ()


def test_of_an_answer_that_counts_what_may_go_is_taken_in_order_and_once() -> None:
    groups = groups_of(1, 1, 2, 1, 1)
    assert chosen_by([5, 1, 3, 3, 4, 6, 99, -1, 2], groups, must_stay=frozenset({2})) == (1, 3, 5)


_sizes = st.lists(st.integers(1, 5), max_size=25)


@given(_sizes, st.sets(st.integers(1, 80)), st.integers(-10, 900), st.none() | st.integers(1, 10))
@example([1, 1, 2, 1], set(), 20, None)
def test_a_window_leaves_out_whole_groups_in_order_and_none_that_has_to_stay(
    sizes: list[int], stay: set[int], room: int, keep: int | None
) -> None:
    groups = groups_of(*sizes)
    must = frozenset(stay)
    first = 0 not in {one % 2 for one in stay}  # both ways of beginning
    going = out_of_window(groups, must_stay=must, room_tokens=room, keep=keep, keeps_first=first)
    known = [group.first_seq for group in groups]
    assert list(going) == [one for one in known if one in going]
    assert len(set(going)) == len(going)
    assert not must & set(going)
    assert known[-1:] == [] or known[-1] not in going
    assert not first or known[:1] == [] or known[0] not in going
    movable = set(known[1 if first else 0 : -1]) - must
    assert tokens_left(groups, going) <= room or set(going) == movable


@given(_sizes, st.integers(0, 900))
def test_no_round_is_taken_that_was_not_needed(sizes: list[int], room: int) -> None:
    groups = groups_of(*sizes)
    going = half(groups, room)
    messages = sum(len(group.entries) for group in groups if group.first_seq in going)
    movable = sum(sizes[1:-1])
    one_round = max(movable / 2, 2, max(sizes[1:-1], default=0))
    # What a round before the last left did not fit: without its last round the window is over its room.
    fits_after = [going[:count] for count in range(len(going)) if tokens_left(groups, going[:count]) <= room]
    dropped_for_nothing = messages - min(
        (sum(len(group.entries) for group in groups if group.first_seq in part) for part in fits_after),
        default=messages,
    )
    assert dropped_for_nothing <= one_round


@given(_sizes, st.integers(1, 12), st.integers(0, 900), st.integers(0, 400))
def test_with_more_room_the_window_keeps_no_less(sizes: list[int], keep: int, room: int, more: int) -> None:
    groups = groups_of(*sizes)
    assert set(last(groups, keep=keep, room=room + more)) <= set(last(groups, keep=keep, room=room))
    assert set(half(groups, room + more)) <= set(half(groups, room))


@pytest.mark.slow
@given(st.lists(st.integers(1, 1), min_size=4, max_size=60), st.integers(0, 600))
def test_single_messages_leave_in_even_numbers_while_more_than_one_may_go(sizes: list[int], room: int) -> None:
    groups = groups_of(*sizes)
    going = half(groups, room)
    assert len(going) % 2 == 0 or len(going) == len(groups) - 2


_answers = st.one_of(
    st.none(), st.text(max_size=3), st.lists(st.one_of(st.integers(-3, 40), st.floats(), st.text(max_size=2)))
)


@pytest.mark.slow
@given(_answers, _sizes, st.sets(st.integers(1, 40)))
def test_whatever_a_selector_says_only_what_may_go_is_taken(answer: object, sizes: list[int], stay: set[int]) -> None:
    groups = groups_of(*sizes)
    chosen = chosen_by(answer, groups, must_stay=frozenset(stay))
    assert list(chosen) == sorted(set(chosen))
    assert set(chosen) <= {group.first_seq for group in groups[:-1]} - stay
