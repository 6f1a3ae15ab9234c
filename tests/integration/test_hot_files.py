"""Hot files opened again: read from the database, written down behind; the same in the end as written down at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.runs.files.accesses import LONGEST_WAIT_SECONDS, Waiting, WaitingAccesses
from langchain_tiered_memory.types.records import SessionRef
from tests.faults import Fault, faults_in
from tests.file_builders import small_rules
from tests.memory_builders import open_memory, quick_settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_tiered_memory.memory import Run, TieredMemory

START = 2_000_000_000.0
SETTINGS = quick_settings().model_copy(update={"tiers": small_rules(hot=3, warm=3)})


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def opened(where: Path | None, clock: Callable[[], float]) -> TieredMemory:
    return open_memory(where, settings=SETTINGS, clock=clock)


def table(run: Run) -> list[Any]:
    return [(one.path, one.tier, one.accesses, one.accessed_at, one.pinned, one.checksum) for one in run.files()]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), st.sampled_from("abcde"), st.sampled_from(["x", "y"])),
        st.tuples(st.just("pin"), st.sampled_from("ab")),
        st.tuples(st.just("wait"), st.sampled_from([-5.0, 1.0, 601.0, 3601.0])),
        st.tuples(st.just("collect")),
        st.tuples(st.just("tend")),
    ),
    max_size=25,
)


def stepped(run: Run, clock: Clock, step: tuple[Any, ...]) -> object:
    match step:
        case ("keep", path, content):
            answer = run.keep(path, content)
            return answer.text, answer.state, answer.from_tier, answer.file.accesses, answer.file.pinned
        case ("pin", path):
            answer = run.keep(path, "pinned", pinned=True)
            return answer.text, answer.file.pinned
        case ("wait", seconds):
            clock.now += seconds
            return None
        case ("collect",):
            return [(one.path, one.after) for one in run.collect().moves]
    run.tend()
    return None


@settings(max_examples=40, deadline=None)
@given(steps=STEPS)
@pytest.mark.slow
def test_what_is_written_behind_ends_as_what_is_written_at_once(steps: list[tuple[Any, ...]]) -> None:
    clocks = Clock(), Clock()
    with opened(None, clocks[0]) as behind, opened(None, clocks[1]) as at_once:
        runs = behind.run("s", background=False), at_once.run("s", background=False)
        for step in steps:
            told = [stepped(run, clock, step) for run, clock in zip(runs, clocks, strict=True)]
            runs[1].files()  # writes down what waits
            assert told[0] == told[1]
        assert table(runs[0]) == table(runs[1])
        assert runs[0].report().counts == runs[1].report().counts


def test_a_hot_file_is_opened_without_a_write(tmp_path: Path) -> None:
    with opened(tmp_path / "memory.db", lambda: START) as memory, memory.run("s", background=False) as run:
        run.keep("a", "text")
        with faults_in(memory.core.runtime.store, Fault(at=None)) as fault:
            for _ in range(5):
                assert run.keep("a", "text").from_tier == "hot"
            assert fault.steps == 0
        assert run.files()[0].accesses == 6


def test_another_process_that_changed_or_dropped_a_file_is_heard(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    with opened(where, lambda: START) as mine, opened(where, lambda: START) as theirs:
        run, other = mine.run("s", background=False), theirs.run("s", background=False)
        run.keep("a", "old")
        assert run.keep("a", "old").from_tier == "hot"
        other.keep("a", "new")
        assert run.content("a") == b"new"
        again = run.keep("a", "old")
        assert (again.state, again.text) == ("changed", "old")
        for name in "bcd":
            other.keep(name, name)
        assert run.keep("a", "old").from_tier == "warm"


def test_what_a_killed_process_had_not_written_is_its_last_accesses_alone(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    memory = opened(where, lambda: START)
    run = memory.run("s", background=False)
    run.keep("a", "text")
    run.keep("a", "text")
    with opened(where, lambda: START) as after:  # as if the first had been killed
        (file,) = after.run("s", background=False).files()
        assert (file.path, file.tier, file.accesses) == ("a", "hot", 1)
        assert after.run("s", background=False).content("a") == b"text"
    memory.close()
    with opened(where, lambda: START) as after:
        assert after.run("s", background=False).files()[0].accesses == 2  # closing writes


def test_accesses_that_could_not_be_written_are_written_later(tmp_path: Path) -> None:
    with opened(tmp_path / "memory.db", lambda: START) as memory, memory.run("s", background=False) as run:
        run.keep("a", "text")
        run.keep("a", "text")
        with faults_in(memory.core.runtime.store, Fault(at=4)), pytest.raises(StorageError):
            run.keep("b", "other")
        assert {one.path: one.accesses for one in run.files()} == {"a": 2}


def test_waiting_accesses_keep_their_order_and_their_number() -> None:
    waiting, ref = WaitingAccesses(), SessionRef(key=1, session_id="s", user=None, epoch=0)
    for at, path in enumerate("abab"):
        waiting.note(ref, path, at=float(at), moment=0.0)
    taken = waiting.take(1)
    assert list(taken.items()) == [("a", Waiting(2, 2.0)), ("b", Waiting(2, 3.0))]
    waiting.note(ref, "a", at=9.0, moment=0.0)
    waiting.put_back(ref, taken)
    assert waiting.is_due(1, moment=0.0)
    assert list(waiting.take(1).items()) == [("b", Waiting(2, 3.0)), ("a", Waiting(3, 9.0))]
    assert not waiting.sessions()
    assert waiting.note(ref, "a", at=9.0, moment=0.0) == 1
    assert not waiting.is_due(1, moment=0.0)
    assert waiting.is_due(1, moment=LONGEST_WAIT_SECONDS)
