"""Several processes at one Chroma directory: nobody misses a row, and nobody's write loses another's."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from langchain_tiered_memory.recall.chroma.index import ChromaIndex
from langchain_tiered_memory.recall.vector_queue import VectorRow
from tests.embedders import ScatteringEmbeddings

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = [pytest.mark.slow, pytest.mark.seldom(2)]

ROOT = Path(__file__).parents[2]
EMBEDDER = ScatteringEmbeddings(16)

SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.integration.test_chroma_processes import rows
from langchain_tiered_memory.recall.chroma.index import ChromaIndex
from tests.embedders import ScatteringEmbeddings
index = ChromaIndex(ScatteringEmbeddings(16), sys.argv[2], namespace="shared")
print("ready", flush=True)
for line in sys.stdin:
    verb, first, stop = line.split()
    numbers = range(int(first), int(stop))
    if verb == "add":
        step = 25
        for start in range(numbers.start, numbers.stop, step):
            index.add(rows(range(start, min(start + step, numbers.stop))))
    elif verb == "remove":
        index.remove(numbers)
    elif verb == "clear":
        index.clear()
    seen = index.search("passage", session_keys=[1], limit=100_000)
    print(len(index.ids()), len(seen), flush=True)
"""


def rows(numbers: Iterable[int]) -> list[VectorRow]:
    return [
        VectorRow(
            id=number,
            text=f"passage number{number}",
            metadata={"session": 1, "level": 0, "seq": number, "track": "main", "at": float(number), "kind": ""},
        )
        for number in numbers
    ]


class Neighbour:
    """Another process with the same directory."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(ROOT), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == "ready"

    def tell(self, verb: str, first: int = 0, stop: int = 0) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{verb} {first} {stop}\n")
        self.process.stdin.flush()

    def answer(self) -> tuple[int, int]:
        """How many rows it lists and how many it finds."""
        assert self.process.stdout is not None
        listed, found = self.process.stdout.readline().split()
        return int(listed), int(found)

    def asked(self, verb: str, first: int = 0, stop: int = 0) -> tuple[int, int]:
        self.tell(verb, first, stop)
        return self.answer()

    def end(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def found_here(index: ChromaIndex) -> set[int]:
    return {number for number, _ in index.search("passage", session_keys=[1], limit=100_000)}


def test_a_reader_sees_what_another_process_adds_removes_and_clears(tmp_path: Path) -> None:
    reader = ChromaIndex(EMBEDDER, tmp_path, namespace="shared")
    reader.add(rows(range(10)))
    assert len(found_here(reader)) == 10
    writer = Neighbour(tmp_path)
    assert writer.asked("add", 10, 60) == (60, 60)
    assert found_here(reader) == set(range(60))
    assert writer.asked("remove", 0, 20) == (40, 40)
    assert found_here(reader) == reader.ids() == set(range(20, 60))
    assert writer.asked("clear") == (0, 0)
    assert found_here(reader) == reader.ids() == set()
    assert writer.asked("add", 5, 8) == (3, 3)
    assert found_here(reader) == {5, 6, 7}
    writer.end()
    reader.close()


def test_processes_that_take_turns_past_the_sync_threshold_lose_nothing(tmp_path: Path) -> None:
    here = ChromaIndex(EMBEDDER, tmp_path, namespace="shared")
    here.add(rows(range(300)))
    assert len(found_here(here)) == 300
    there = Neighbour(tmp_path)
    assert there.asked("add", 300, 3000) == (3000, 3000)
    here.add(rows(range(3000, 3100)))
    assert found_here(here) == set(range(3100))
    here.add(rows(range(3100, 4500)))
    assert there.asked("look") == (4500, 4500)
    there.end()
    here.close()
    reopened = ChromaIndex(EMBEDDER, tmp_path, namespace="shared")
    assert found_here(reopened) == reopened.ids() == set(range(4500))
    reopened.close()


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    here = ChromaIndex(EMBEDDER, tmp_path, namespace="shared")
    others = [Neighbour(tmp_path) for _ in range(2)]
    for number, other in enumerate(others, start=1):
        other.tell("add", number * 10_000, number * 10_000 + 1500)
    seen = 0
    for start in range(0, 1500, 50):
        here.add(rows(range(start, start + 50)))
        found = len(found_here(here))
        assert found >= max(seen, start + 50)
        seen = found
    for other in others:
        other.answer()
    expected = set(range(1500)) | set(range(10_000, 11_500)) | set(range(20_000, 21_500))
    assert found_here(here) == here.ids() == expected
    assert [other.asked("look") for other in others] == [(4500, 4500)] * 2
    for other in others:
        other.end()
    here.close()
    reopened = ChromaIndex(EMBEDDER, tmp_path, namespace="shared")
    assert found_here(reopened) == expected
    reopened.close()


def test_a_writer_killed_in_the_middle_leaves_a_usable_index(tmp_path: Path) -> None:
    here = ChromaIndex(EMBEDDER, tmp_path, namespace="shared")
    here.add(rows(range(100)))
    for round_number in range(3):
        other = Neighbour(tmp_path)
        other.tell("add", 10_000, 13_000)
        while len(here.ids()) < 200 + 700 * round_number:
            pass
        other.process.kill()
        other.process.wait()
        there = here.ids()
        here.add(rows(range(100, 110)))
        assert found_here(here) == here.ids() == there | set(range(110))
    here.close()


def test_threads_and_several_indexes_of_one_process_share_one_directory(tmp_path: Path) -> None:
    indexes = [ChromaIndex(EMBEDDER, tmp_path, namespace="shared") for _ in range(3)]

    def work(number: int) -> int:
        index = indexes[number % 3]
        index.add(rows(range(number * 10, number * 10 + 10)))
        return len(index.search("passage", session_keys=[1], limit=1000))

    with ThreadPoolExecutor(8) as pool:
        assert all(found >= 10 for found in pool.map(work, range(24)))
    assert all(found_here(index) == set(range(240)) for index in indexes)
    indexes[0].close()
    assert found_here(indexes[1]) == set(range(240))
    for index in indexes[1:]:
        index.close()
