"""What a process of its own does to a run while a test kills it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.runs.checkpoints import checkpoint, restore
from langchain_tiered_memory.settings import CheckpointSettings, Settings
from tests.memory_builders import conversation, open_memory, quick_settings, ref_of, store_of
from tests.run_builders import outcome, runtime_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.types.runs import RunState

KEEP = 3


def run_settings() -> Settings:
    """Few checkpoints are kept, so that each one removes another."""
    return quick_settings().model_copy(update={"checkpoints": CheckpointSettings(keep=KEEP, tasks=2)})


def prepare(where: str) -> dict[str, str]:
    """A session `s` to save and swap in, and a session `r` with two checkpoints that have nothing in common."""
    with open_memory(where, settings=run_settings()) as memory:
        memory.session("s").add_messages(conversation(20))
        session, runtime = memory.session("r"), runtime_of(memory)
        session.add_messages(conversation(20))
        named = {}
        for name in ("a", "b"):
            for number in range(20):
                memory.session("r", track=name).start_task(f"{name}{number}")
            store_of(memory).runs.set_phase(ref_of(session), name, 1.0)
            for number in range(20):
                session.pin(f"{'q' if name == 'a' else 'a'}{number}")
            named[name] = checkpoint(runtime, "r", track="main", reasons=(name,)).id
            for number in range(20):
                session.unpin(f"{'q' if name == 'a' else 'a'}{number}")
            with store_of(memory).database.write() as connection:
                connection.exec_driver_sql("DELETE FROM ltm_tasks")
        restore(runtime, "r", named["a"])
        return named


def looks_like(state: RunState) -> list[str]:
    """Which of the two states of `r` each of its parts is of."""
    pins = {"a": [f"q{number}" for number in range(20)], "b": [f"a{number}" for number in range(20)]}
    tasks = {name: [f"{name}{number}" for number in range(20)] for name in "ab"}
    return [
        str(state.phase),
        next((name for name in "ab" if list(state.pinned_ids) == pins[name]), "neither"),
        next((name for name in "ab" if [task.id for task in state.tasks] == tasks[name]), "neither"),
    ]


def save_swap_and_restore(where: str, named: dict[str, str], name: str, pipe: Connection) -> None:
    """Save, swap, finish tasks and restore until killed; say what is done."""
    with open_memory(where, settings=run_settings()) as memory:
        pipe.send(("found", [str(problem) for problem in memory.verify().problems]))
        for number in itertools.count():
            for what, identity in _round(memory, named, f"{name}.{number}"):
                pipe.send((what, identity))


def _round(memory: TieredMemory, named: dict[str, str], name: str) -> Iterator[tuple[str, Any]]:
    runtime, store = runtime_of(memory), store_of(memory)
    made = checkpoint(runtime, "s", track="main", reasons=("kill",), project={"noise": list(range(3000))})
    yield "checkpoint", made.id
    ref = ref_of(memory.session("s"))
    kept = outcome(why=name)
    before = store.transcript.kept_view(ref, "view").plan
    plan = f'{{"border": 1, "v": 0, "why": "{name}"}}'
    assert store.outcomes.swap(ref, "view", plan, border=1, now=1.0, outcome=kept, plan_before=before, keep=5)
    yield "swap", name
    memory.session("s").start_task(name)
    finished = memory.session("s").finish_task(name)
    yield "finished", (finished.id, finished.number)
    for one in ("b", "a"):
        restore(runtime, "r", named[one])
        yield "restored", one
