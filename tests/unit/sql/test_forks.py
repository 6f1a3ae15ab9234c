"""Sections, locks and what is told of a fork."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from langchain_tiered_memory.errors import ForkedError
from langchain_tiered_memory.sql import forks
from tests.forking import in_child

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def test_a_fork_waits_until_other_threads_leave_their_sections() -> None:
    entered, left = threading.Event(), threading.Event()

    def work() -> None:
        with forks.Section("a test"), forks.Section("a nested test"):
            entered.set()
            time.sleep(0.3)
            left.set()

    thread = in_thread(work)
    assert entered.wait(10)
    assert in_child(left.is_set) is True
    thread.join(10)


def test_no_section_begins_while_a_fork_is_on_and_all_go_on_afterwards() -> None:
    seen: list[bool] = []

    class Slow(forks.AtFork):
        is_on = False

        def before_fork(self) -> None:
            self.is_on = True
            time.sleep(0.3)
            self.is_on = False

    slow = Slow()
    forks.tell(slow)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            with forks.Section("a test"):
                seen.append(slow.is_on)

    thread = in_thread(work)
    assert in_child(lambda: True) is True
    before = len(seen)
    while len(seen) < before + 10:
        time.sleep(0.01)
    stop.set()
    thread.join(10)
    assert not any(seen)


def test_a_lock_that_another_thread_holds_is_whole_and_free_in_the_child() -> None:
    lock = forks.Lock()
    pair = [0, 0]
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            with lock:
                pair[0] += 1
                time.sleep(0.002)
                pair[1] += 1

    thread = in_thread(work)

    def look() -> bool:
        with lock:
            return pair[0] == pair[1]

    assert [in_child(look) for _ in range(10)] == [True] * 10
    stop.set()
    thread.join(10)


def test_who_forks_inside_a_section_of_its_own_does_not_wait_for_itself() -> None:
    with forks.Section("a test"):
        assert in_child(lambda: True) is True


def test_a_section_that_does_not_end_is_refused_in_the_child_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "PATIENCE_SECONDS", 0.2)
    hung, healing = forks.Section("a hanging test"), forks.Section("a healing test", heals=True)
    entered, go_on = threading.Event(), threading.Event()

    def work() -> None:
        with hung, healing:
            entered.set()
            go_on.wait(30)

    thread = in_thread(work)
    assert entered.wait(10)

    def child() -> str:
        with healing, forks.Section("another test"):
            pass
        try:
            with hung:
                return "went in"
        except ForkedError as error:
            return str(error)

    said = in_child(child)
    go_on.set()
    thread.join(10)
    assert "a hanging test" in said
    assert "Fork before" in said
    with hung:
        pass


def test_what_is_told_of_forks_may_be_forgotten() -> None:
    class Heard(forks.AtFork):
        def before_fork(self) -> None:
            told.append(1)

    told: list[int] = []
    heard = Heard()
    forks.tell(heard)
    in_child(lambda: None)
    assert told == [1]
    del heard
    in_child(lambda: None)
    assert told == [1]
