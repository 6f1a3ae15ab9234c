"""Killing the process while it saves, swaps or restores leaves the old state or the new one, never half of either."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from langchain_tiered_memory.runs.checkpoint_store import kinds_of
from langchain_tiered_memory.runs.checkpoints import last_sound
from tests.memory_builders import open_memory, ref_of, store_of
from tests.run_builders import runtime_of
from tests.run_writers import KEEP, looks_like, prepare, run_settings, save_swap_and_restore
from tests.spread import EXHAUSTIVE, drawn
from tests.writers import killed

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def killed_rounds(where: str, named: dict[str, str], *, kills: int) -> list[str]:
    """Start a writer and kill it, again and again, looking at what it leaves. Gives what any of them found wrong."""
    chance = random.Random(drawn(f"{kills} kills of runs"))
    wrong: list[str] = []
    looked = 0
    for number in range(kills):
        # One of four at its first work; the others once they have done two things.
        after, seconds = 3 if number % 4 else 1, chance.uniform(0.0, 0.3)
        said = killed(save_swap_and_restore, where, named, f"w{number}", after=after, seconds=seconds)
        wrong += [problem for what, told in said if what == "found" for problem in told]
        done = [one for one in said if one[0] != "found"]
        looked += len(done)
        whole(where, done)
    assert looked > kills
    return wrong


def whole(where: str, done: list[tuple[str, Any]]) -> None:
    """Assert that what was acknowledged is there, and that nothing is half done."""
    with open_memory(where, settings=run_settings()) as memory:
        assert memory.verify().problems == ()
        store = store_of(memory)
        ref, other = ref_of(memory.session("s")), ref_of(memory.session("r"))
        infos = store.checkpoints.infos(ref)
        kept = Counter(kind for info in infos for kind in kinds_of(info.reasons))
        assert max(kept.values(), default=0) <= KEEP
        for info in infos:
            found = store.checkpoints.read(ref, info.id)
            assert found.state.last_seq == 40
        told = dict(done)
        if "checkpoint" in told:
            assert told["checkpoint"] in {info.id for info in infos}
            assert store.runs.read(ref).checkpoint_at == infos[0].at
        plan, outcomes = store.transcript.kept_view(ref, "view").plan, store.outcomes.read(ref, limit=9)
        assert (plan is None) == (outcomes == [])
        if plan is not None:
            assert json.loads(plan)["why"] == outcomes[0].why
            assert store.outcomes.get(ref, outcomes[0].id).plan_after == plan
        tasks = store.runs.tasks(ref, newest_finished=10_000)
        finished = [task for task in tasks if task.state == "finished"]
        assert [task.number for task in finished] == list(range(len(finished), 0, -1))
        assert store.runs.read(ref).finished_tasks == len(finished)
        assert told.get("finished", (None, 0))[1] <= len(finished)
        parts = looks_like(store.runs.state(other, newest_finished=99)[0])
        assert parts in (["a"] * 3, ["b"] * 3)
        found = last_sound(runtime_of(memory), ref)
        assert (found.id if found is not None else None) == (infos[0].id if infos else None)


def test_kills_while_saving_swapping_and_restoring_leave_nothing_half_done(tmp_path: Path) -> None:
    where = str(tmp_path / "memory.db")
    assert killed_rounds(where, prepare(where), kills=40 if EXHAUSTIVE else 10) == []


@pytest.mark.postgres
def test_kills_on_postgresql_leave_nothing_half_done(postgres_url: str) -> None:
    assert killed_rounds(postgres_url, prepare(postgres_url), kills=6 if EXHAUSTIVE else 4) == []
