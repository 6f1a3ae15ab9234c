import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.settings import LevelSettings, TreeSettings
from langchain_tiered_memory.summaries.tree.condense import ABANDONED_AFTER, due_entries, due_summaries
from langchain_tiered_memory.types.drafts import WaitingEntry
from langchain_tiered_memory.types.records import Summary, SummaryState

LEVELS = TreeSettings()


def waiting(count: int, *, tokens: int = 10, seconds: float = 1.0, start: int = 1) -> list[WaitingEntry]:
    return [
        WaitingEntry(seq=seq, group=seq, tokens=tokens, at=seq * seconds, waits=False)
        for seq in range(start, start + count)
    ]


def summary(number: int, *, state: SummaryState = SummaryState.ACTIVE, **changes: object) -> Summary:
    values: dict[str, object] = {
        "id": f"s{number}",
        "level": 1,
        "track": "main",
        "state": state,
        "sources": (),
        "source_digest": "",
        "first_seq": number * 10,
        "last_seq": number * 10 + 9,
        "entry_count": 10,
        "first_at": 0.0,
        "last_at": 1.0,
        "source_tokens": 200,
        "parent_id": None,
        "strategy": "detailed",
        "tokens": 100,
    }
    return Summary(**(values | changes))  # type: ignore[arg-type]


def test_nothing_is_due_below_every_trigger() -> None:
    assert due_entries(waiting(9), LEVELS.level(1), more=False) is None


def test_ten_messages_are_due() -> None:
    due = due_entries(waiting(14), LEVELS.level(1), more=False)
    assert due is not None
    assert due == tuple(range(1, 11))


def test_two_thousand_tokens_are_due_even_in_one_message() -> None:
    due = due_entries(waiting(1, tokens=2000), LEVELS.level(1), more=False)
    assert due is not None
    assert due == (1,)


def test_an_hour_between_two_messages_is_due_with_both_of_them() -> None:
    due = due_entries(waiting(2, seconds=3600.0), LEVELS.level(1), more=False)
    assert due is not None
    assert due == (1, 2)


def test_a_pause_after_several_messages_closes_the_chunk_before_the_new_sitting() -> None:
    entries = [*waiting(3), WaitingEntry(seq=4, group=4, tokens=10, at=9000.0, waits=False)]
    due = due_entries(entries, LEVELS.level(1), more=False)
    assert due is not None
    assert due == (1, 2, 3)


def test_a_chunk_ends_with_a_whole_group_even_past_its_trigger() -> None:
    entries = waiting(9) + [WaitingEntry(seq=seq, group=10, tokens=10, at=float(seq), waits=False) for seq in (10, 11)]
    due = due_entries(entries, LEVELS.level(1), more=False)
    assert due is not None
    assert due == tuple(range(1, 12))


def test_a_call_without_its_result_holds_its_chunk_back() -> None:
    entries = [*waiting(9), WaitingEntry(seq=10, group=10, tokens=10, at=10.0, waits=True)]
    assert due_entries(entries, LEVELS.level(1), more=False) is None


def test_a_call_is_given_up_when_enough_came_after_it() -> None:
    entries = [WaitingEntry(seq=1, group=1, tokens=10, at=1.0, waits=True), *waiting(ABANDONED_AFTER + 1, start=2)]
    due = due_entries(entries, LEVELS.level(1), more=False)
    assert due is not None
    assert due[0] == 1


@pytest.mark.parametrize("behind", [ABANDONED_AFTER - 1, ABANDONED_AFTER])
def test_a_call_is_waited_for_until_so_many_groups_came_after_it(behind: int) -> None:
    entries = [WaitingEntry(seq=1, group=1, tokens=5000, at=1.0, waits=True), *waiting(behind, start=2)]
    due = due_entries(entries, LEVELS.level(1), more=False)
    assert due == ((1,) if behind == ABANDONED_AFTER else None)


def test_the_last_group_that_was_read_waits_when_more_messages_were_not_read() -> None:
    assert due_entries(waiting(10), LEVELS.level(1), more=True) is None


@given(st.lists(st.tuples(st.integers(1, 900), st.floats(0, 5000)), max_size=60))
def test_chunks_do_not_depend_on_when_somebody_looks(messages: list[tuple[int, float]]) -> None:
    at = 0.0
    entries: list[WaitingEntry] = []
    for seq, (tokens, pause) in enumerate(messages, start=1):
        at += pause
        entries.append(WaitingEntry(seq=seq, group=seq, tokens=tokens, at=at, waits=False))

    def chunks(looks: list[int]) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        taken = 0
        for seen in looks:
            while True:
                due = due_entries(entries[taken:seen], LEVELS.level(1), more=False)
                if due is None:
                    break
                found.append(due)
                taken += len(due)
        return found

    assert chunks([len(entries)]) == chunks(list(range(len(entries) + 1)))


def test_five_level_1_summaries_make_a_level_2() -> None:
    due = due_summaries([summary(number) for number in range(6)], LEVELS.level(2))
    assert due is not None
    assert due == ("s0", "s1", "s2", "s3", "s4")


def test_four_thousand_tokens_of_summaries_make_a_level_2() -> None:
    due = due_summaries([summary(number, tokens=2100) for number in range(3)], LEVELS.level(2))
    assert due is not None
    assert due == ("s0", "s1")


def test_a_hundred_messages_below_make_a_level_2() -> None:
    due = due_summaries([summary(number, entry_count=60) for number in range(3)], LEVELS.level(2))
    assert due == ("s0", "s1")


def test_three_level_2_summaries_make_a_level_3_and_so_on_without_a_top() -> None:
    for level in (3, 4, 9):
        due = due_summaries([summary(number) for number in range(3)], LEVELS.level(level))
        assert due is not None
        assert len(due) == 3


def test_nothing_is_built_on_an_unfinished_or_degraded_summary() -> None:
    unfinished = [summary(0), summary(1, state=SummaryState.FAILED), *(summary(number) for number in range(2, 9))]
    degraded = [summary(0), summary(1, degraded=True), *(summary(number) for number in range(2, 9))]
    assert due_summaries(unfinished, LEVELS.level(2)) is None
    assert due_summaries(degraded, LEVELS.level(2)) is None


IDLE = LevelSettings(messages=10, strategy="detailed", target_ratio=0.5, max_tokens=100)


def spoken(*at: float, ends: tuple[int, ...] = (), waits: tuple[int, ...] = ()) -> list[WaitingEntry]:
    return [
        WaitingEntry(seq=seq, group=seq, tokens=10, at=when, waits=seq in waits, ends_task=seq in ends)
        for seq, when in enumerate(at, 1)
    ]


def test_a_pause_between_two_messages_ends_the_chunk_before_it() -> None:
    due = due_entries(spoken(0, 5, 700, 705), IDLE, more=False, idle_seconds=600)
    assert due == (1, 2)


def test_a_pause_makes_no_chunk_of_a_single_message() -> None:
    assert due_entries(spoken(0, 700), IDLE, more=False, idle_seconds=600) is None
    assert due_entries(spoken(0, 700, 2000), IDLE, more=False, idle_seconds=600) == (1, 2)


def test_without_a_length_no_pause_counts() -> None:
    assert due_entries(spoken(0, 5, 70_000), IDLE, more=False, now=1e9) is None


def test_when_nobody_speaks_any_more_the_chunk_is_due_after_the_pause() -> None:
    silent = spoken(0, 5)
    assert due_entries(silent, IDLE, more=False, idle_seconds=600, now=604.9) is None
    assert due_entries(silent, IDLE, more=False, idle_seconds=600, now=605) == (1, 2)
    assert due_entries(silent, IDLE, more=True, idle_seconds=600, now=1e9) is None


def test_a_clock_that_goes_backwards_is_no_pause() -> None:
    assert due_entries(spoken(1000, 1005), IDLE, more=False, idle_seconds=600, now=0) is None
    assert due_entries(spoken(1000, 1005, 1), IDLE, more=False, idle_seconds=600) is None


def test_the_end_of_a_task_ends_the_chunk() -> None:
    due = due_entries(spoken(0, 1, 2, 3, ends=(3,)), IDLE, more=False)
    assert due == (1, 2, 3)
    assert due is not None


def test_a_task_of_one_message_joins_what_follows() -> None:
    assert due_entries(spoken(0, 1, ends=(1,)), IDLE, more=False) is None
    assert due_entries(spoken(0, 1, 2, ends=(1, 2)), IDLE, more=False) == (1, 2)


def test_what_waits_for_a_result_is_not_due_by_any_pause_or_task() -> None:
    asked = spoken(0, 1, 2, waits=(3,), ends=(3,))
    assert due_entries(asked, IDLE, more=False, idle_seconds=600, now=1e9) is None


def test_what_a_pause_closed_is_not_held_back_by_a_call_behind_it() -> None:
    asked = spoken(0, 1, 900, waits=(3,))
    assert due_entries(asked, IDLE, more=False, idle_seconds=600) == (1, 2)


@given(st.lists(st.tuples(st.floats(0, 1500), st.booleans(), st.floats(0, 3000)), max_size=40))
def test_chunks_by_pause_and_task_do_not_depend_on_when_somebody_looks(
    messages: list[tuple[float, bool, float]],
) -> None:
    at = 0.0
    entries: list[WaitingEntry] = []
    for seq, (pause, ends, _) in enumerate(messages, start=1):
        at += pause
        entries.append(WaitingEntry(seq=seq, group=seq, tokens=10, at=at, waits=False, ends_task=ends))

    def chunks(looks: list[tuple[int, float]]) -> list[tuple[object, ...]]:
        found: list[tuple[object, ...]] = []
        taken = 0
        for seen, now in looks:
            while True:
                due = due_entries(entries[taken:seen], IDLE, more=False, idle_seconds=600, now=now)
                if due is None:
                    break
                found.append(due)
                taken += len(due)
        return found

    # Somebody looks behind each message, however long after it, but before the next one is said.
    until = [one.at for one in entries[1:]] + [at + 10_000]
    looks = [
        (seen, min(entries[seen - 1].at + messages[seen - 1][2], until[seen - 1] - 1e-6))
        for seen in range(1, len(entries) + 1)
    ]
    late = [(len(entries), at + 10_000)]
    assert chunks(late) == chunks(looks + late)
