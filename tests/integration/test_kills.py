"""Invariant 6: killing the process at any instruction loses no acknowledged message and leaves nothing half done."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from tests.memory_builders import open_memory
from tests.spread import EXHAUSTIVE, drawn
from tests.writers import LEASE_SECONDS, choices, doubled, killed, mend_then_write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def killed_rounds(where: str, *, vectors: bool, kills: int) -> tuple[list[str], list[str]]:
    """Start a writer and kill it, again and again. Gives what was acknowledged, and what any of them found wrong."""
    chance = random.Random(drawn(f"{kills} kills"))
    acknowledged: list[str] = []
    wrong: list[str] = []
    for number in range(kills):
        # One of four while it still opens, or looks after what the last one left; the others once they have written.
        after, seconds = 2 if number % 4 else 0, chance.uniform(0.0, 0.4)
        for kind, what in killed(mend_then_write, where, vectors, f"w{number}", after=after, seconds=seconds):
            (acknowledged if kind == "written" else wrong).extend(what)
    return acknowledged, wrong


def whole(where: str, acknowledged: list[str], *, vectors: bool) -> None:
    """Assert that everything is there and nothing is half done."""
    time.sleep(LEASE_SECONDS)
    with open_memory(where, **choices(vectors=vectors, background=False)) as memory:
        session = memory.session("s")
        memory.flush()
        assert memory.verify().problems == ()
        there = [message.id for message in session.messages()]
        assert set(acknowledged) <= set(there)
        assert len(there) == len(set(there))
        assert doubled(session) == []
        assert session.context("order 1001", max_tokens=2000).tokens <= 2000


def test_kills_lose_no_acknowledged_message_and_leave_nothing_half_done(tmp_path: Path) -> None:
    where, kills = str(tmp_path / "memory.db"), 50 if EXHAUSTIVE else 12
    acknowledged, wrong = killed_rounds(where, vectors=True, kills=kills)
    assert wrong == []
    assert len(acknowledged) > kills
    whole(where, acknowledged, vectors=True)


@pytest.mark.postgres
def test_kills_on_postgresql_lose_no_acknowledged_message(postgres_url: str) -> None:
    acknowledged, wrong = killed_rounds(postgres_url, vectors=False, kills=8 if EXHAUSTIVE else 5)
    assert wrong == []
    assert acknowledged
    whole(postgres_url, acknowledged, vectors=False)
