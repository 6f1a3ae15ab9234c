"""Builders of what a run keeps: checkpoints, outcomes, touched files; and a house whose flows can be driven."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from sqlalchemy import select

from langchain_tiered_memory.driver import off_loop
from langchain_tiered_memory.errors import CheckpointError
from langchain_tiered_memory.sql.schema import checkpoints
from langchain_tiered_memory.types.drafts import FileTouch, Incoming
from langchain_tiered_memory.types.outcomes import FailureReason, Outcome, OutcomeKind
from langchain_tiered_memory.types.records import LeftOut, Spent
from langchain_tiered_memory.types.runs import MemoryCheckpoint, RunState, Task
from tests.store_builders import NOW, incoming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.runtime import Runtime, SqlStore
    from langchain_tiered_memory.types.records import SessionRef
    from tests.call_styles import CallStyle

P = ParamSpec("P")
T = TypeVar("T")
ODD = "n\0e \ud800 \\ \N{GRINNING FACE}"
"""A name with everything that a database or JSON stumbles over."""


def examined(store: SqlStore, ref: SessionRef) -> Iterator[tuple[str, str | None]]:
    """Each checkpoint of a session with what is wrong with it, or `None`; one is read at a time, oldest first."""
    mine = select(checkpoints.c.id).where(checkpoints.c.session_key == ref.key).order_by(checkpoints.c.key)
    with store.database.read() as connection:
        ids = connection.scalars(mine).all()
    for one in ids:
        try:
            store.checkpoints.read(ref, one)
        except CheckpointError as error:
            yield one, str(error)
        else:
            yield one, None


def task(task_id: str = "t", **changes: Any) -> Task:
    """An active task."""
    values: dict[str, Any] = {
        "id": task_id,
        "track": "main",
        "state": "active",
        "depends_on": (),
        "started_at": NOW,
        "first_seq": 1,
    }
    return Task(**(values | changes))


def state(**changes: Any) -> RunState:
    """A run that has not begun."""
    values: dict[str, Any] = {
        "phase": None,
        "tasks": (),
        "finished_tasks": 0,
        "pinned_ids": (),
        "last_seq": 0,
        "last_message_id": None,
    }
    return RunState(**(values | changes))


def checkpoint(**changes: Any) -> MemoryCheckpoint:
    """A checkpoint with something in every part."""
    values: dict[str, Any] = {
        "id": uuid.uuid4().hex,
        "session_id": "s",
        "track": "main",
        "at": NOW,
        "reasons": ("task_milestone",),
        "context_state": {"epoch": 0, "plans": [], "zone": "safe"},
        "project_state": {"phase": None, "given": {"branch": "main"}, "files": []},
        "tasks": (task(),),
        "metrics": {"messages": 1},
        "conversation": ({"type": "human", "data": {"content": "hello"}},),
        "file_checksums": {"a.py": "0" * 64},
        "state": state(tasks=(task(),)),
    }
    return MemoryCheckpoint(**(values | changes))


def outcome(kind: OutcomeKind = OutcomeKind.CONDENSED, **changes: Any) -> Outcome:
    """An outcome with something in every field that its kind has."""
    values: dict[str, Any] = {
        "id": uuid.uuid4().hex,
        "kind": kind,
        "reason": FailureReason.MODEL_ERROR if kind is OutcomeKind.FAILED else None,
        "why": "7,000 of 8,000 tokens",
        "at": NOW,
        "last_seq": 3,
        "messages_before": 10,
        "messages_after": 4,
        "tokens_before": 7000,
        "tokens_after": 2000,
        "summary_ids": ("a" * 32,),
        "left_out": (LeftOut(what="m1", reason="slid", tokens=9), LeftOut(what="2-3", reason="masked")),
        "steps": ("masked", "condensed"),
        "spent": Spent(calls=1, input_tokens=10, output_tokens=5, seconds=0.5),
        "cost": 0.25,
        "breaks_prefix": True,
    }
    return Outcome(**(values | changes))


def touching(*touches: tuple[str, str], message_id: str | None = None, **changes: Any) -> Incoming:
    """A message that touches files, given as (path, operation)."""
    item = incoming("uses a tool", message_id, **changes)
    found = tuple(FileTouch(path=path, operation=operation, tool=f"{operation}_file") for path, operation in touches)
    return Incoming(draft=item.draft, passages=item.passages, touches=found)


def runtime_of(memory: TieredMemory) -> Runtime:
    """What the flows get."""
    return memory.core.runtime


def driven(call_style: CallStyle, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a journey as the sync verbs do, or as the async ones."""
    return call(*args, **kwargs) if call_style == "sync" else asyncio.run(off_loop(call, *args, **kwargs))


def ticking(start: float = NOW) -> Callable[[], float]:
    """A clock that moves one second each time it is read."""
    ticks = itertools.count(int(start))
    return lambda: float(next(ticks))
