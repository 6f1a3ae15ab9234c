from collections.abc import Iterable
from operator import attrgetter

from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.messages.groups import as_groups, assign_groups
from langchain_tiered_memory.types.records import Draft, Entry, Group


def draft(*, calls: tuple[str, ...] = (), answers: str | None = None, track: str = "main") -> Draft:
    role = "tool" if answers else "assistant"
    return Draft(
        id="x", role=role, text="", payload="", digest="", tokens=1, at=0.0, calls=calls, answers=answers, track=track
    )


def entry(seq: int, made_from: Draft, group: int) -> Entry:
    return Entry(
        seq=seq,
        id=str(seq),
        role=made_from.role,
        text="",
        payload="",
        digest="",
        tokens=1,
        at=0.0,
        name=None,
        track=made_from.track,
        kind=None,
        task=None,
        calls=made_from.calls,
        answers=made_from.answers,
        group=group,
        pinned=False,
        revision=0,
        summary_id=None,
    )


def entries(drafts: list[Draft]) -> list[Entry]:
    numbered = zip(drafts, assign_groups(drafts, 1), strict=True)
    return [entry(seq, made_from, group) for seq, (made_from, group) in enumerate(numbered, 1)]


_ids = st.sampled_from("abc")
drafts = st.builds(
    lambda calls, answers, track: draft(calls=() if answers else calls, answers=answers, track=track),
    st.lists(_ids, max_size=3, unique=True).map(tuple),
    st.one_of(st.none(), _ids),
    st.sampled_from(["main", "sub"]),
)


def open_calls_of(groups: Iterable[Group]) -> dict[tuple[str, str], int]:
    """The calls of `groups` that wait for a result, as `assign_groups` takes them.

    A call whose id a later message of the track uses again waits no longer, whether or not that one was answered.
    """
    waiting: dict[tuple[str, str], int] = {}
    for group in sorted(groups, key=attrgetter("first_seq")):
        unanswered = group.unanswered
        for entry in group.entries:
            for call in entry.calls:
                waiting.pop((entry.track, call), None)
                if call in unanswered:
                    waiting[entry.track, call] = group.first_seq
    return waiting


def test_parallel_results_join_the_message_that_called() -> None:
    assert assign_groups([draft(), draft(calls=("a", "b")), draft(answers="b"), draft(answers="a"), draft()], 5) == [
        5,
        6,
        6,
        6,
        9,
    ]


def test_results_join_across_other_messages_and_other_agents() -> None:
    chat = [draft(calls=("a",)), draft(calls=("b",)), draft(), draft(answers="a"), draft(answers="b")]
    assert assign_groups(chat, 1) == [1, 2, 3, 1, 2]


def test_a_result_of_an_earlier_batch_joins_the_stored_group() -> None:
    waiting = {("main", "a"): 3, ("sub", "a"): 4}
    assert assign_groups([draft(answers="a", track="sub"), draft(answers="a")], 7, open_calls=waiting) == [4, 3]
    assert waiting == {("main", "a"): 3, ("sub", "a"): 4}


def test_a_result_that_nobody_waits_for_stands_alone() -> None:
    chat = [
        draft(answers="x"),
        draft(calls=("a",)),
        draft(answers="a"),
        draft(answers="a"),
        draft(answers="a", track="sub"),
    ]
    assert assign_groups(chat, 1) == [1, 2, 2, 4, 5]


def test_a_call_id_used_again_belongs_to_its_latest_message() -> None:
    assert assign_groups([draft(calls=("a",)), draft(answers="a"), draft(calls=("a",)), draft(answers="a")], 1) == [
        1,
        1,
        3,
        3,
    ]


@given(st.lists(drafts, max_size=20), st.integers(0, 20))
def test_how_a_conversation_is_cut_into_batches_makes_no_difference(chat: list[Draft], cut: int) -> None:
    first = entries(chat[:cut])
    later = assign_groups(chat[cut:], len(first) + 1, open_calls=open_calls_of(as_groups(first)))
    assert [made.group for made in first] + later == assign_groups(chat, 1)


@given(st.lists(drafts, max_size=20), st.randoms(use_true_random=False))
def test_no_entry_is_lost_and_no_group_split(chat: list[Draft], random: object) -> None:
    stored = entries(chat)
    mixed = list(stored)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    groups = as_groups(mixed)
    assert sorted(e.seq for group in groups for e in group.entries) == [e.seq for e in stored]
    assert [group.first_seq for group in groups] == sorted({e.group for e in stored})
    assert all(e.group == group.first_seq for group in groups for e in group.entries)
