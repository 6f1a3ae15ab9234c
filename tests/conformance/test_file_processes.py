"""Two processes that open the files of one session at once never pass a limit, and lose neither a pin nor a byte."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from langchain_tiered_memory.errors import PinLimitError
from tests.file_builders import places, seen_file, small_rules
from tests.store_builders import NOW, open_store, session_with
from tests.writers import start

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from pathlib import Path

pytestmark = pytest.mark.slow

RULES = small_rules()
NAMES = [f"f{number}.py" for number in range(12)]


def open_many(where: str, first: int, rounds: int, pipe: Connection) -> None:
    """Open files again and again, and pin some, then say what was pinned."""
    store = open_store(where)
    ref = store.transcript.find("s")
    assert ref is not None
    pipe.send("ready")
    pipe.recv()
    pinned = []
    for number in range(rounds):
        path = NAMES[(first + number * 5) % len(NAMES)]
        try:
            store.kept_files.open(ref, seen_file(path), now=NOW, rules=RULES, pinned=number % 9 == 4)
            pinned += [path] if number % 9 == 4 else []
        except PinLimitError:
            continue
    pipe.send(pinned)
    os._exit(0)


@pytest.mark.parametrize("killed", [False, True])
def test_two_processes_keep_the_limits_the_pins_and_every_byte(shared_where: str | Path, killed: bool) -> None:  # noqa: FBT001 - a parameter
    store = open_store(shared_where)
    ref = session_with(store, 1)
    rounds = 100_000 if killed else 60
    children = [start(open_many, str(shared_where), first, rounds) for first in (0, 7)]
    for _, pipe in children:
        assert pipe.recv() == "ready"
    for _, pipe in children:
        pipe.send("go")
    looks = 0
    while looks < 60 or (not killed and not all(pipe.poll() for _, pipe in children)):
        sizes = store.kept_files.sizes(ref, RULES)
        assert sizes.files["hot"] <= 3
        assert sizes.files["warm"] <= 4
        looks += 1
    pinned = set()
    for child, pipe in children:
        if killed:
            child.kill()
        else:
            pinned |= set(pipe.recv())
        child.join()
    found = places(store, ref)
    there = {file.path for file in store.kept_files.files(ref) if file.pinned}
    assert pinned <= there
    assert len(there) <= 3
    assert all(found[path] == "hot" for path in there)
    assert found
    assert all(store.kept_files.content(ref, path) == seen_file(path).content for path in found)
    store.database.close()
