"""Long sessions on disk: built once in a process of their own, so that what building takes is known and gone."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import time
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from benchmarks.conversations import turns
from langchain_tiered_memory.memory import Session, TieredMemory
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

P = ParamSpec("P")
T = TypeVar("T")

SESSION = "long"
_BATCH = 1000
_MEGABYTE = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What building one session took."""

    messages: int
    adding_seconds: float
    condensing_seconds: float
    summaries: int
    file_megabytes: float
    peak_megabytes: float
    """Resident memory at its highest, the interpreter and all imports included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """Memory of a process that opened a session and held a conversation."""

    before_megabytes: float
    peak_megabytes: float


def open_memory(path: Path) -> TieredMemory:
    """Words only, no background thread: what is measured is the turn, and nothing beside it."""
    return TieredMemory.open(path, embeddings=None, settings=Settings(tree=TreeSettings(background=False)))


def alone(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`call` in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, args, kwargs)


def build(path: Path, messages: int) -> Built:
    """Write a conversation of `messages` messages in batches and condense it; a file that is there stays."""
    began = time.perf_counter()
    source = turns()
    with open_memory(path) as memory:
        session = memory.session(SESSION)
        left = messages - session.metrics().messages
        while left > 0:
            batch = list(islice(source, min(left, _BATCH)))
            session.add_messages([turn.message for turn in batch], at=[turn.at for turn in batch])
            left -= len(batch)
        added = time.perf_counter()
        session.flush()
        condensed = time.perf_counter()
        summaries = sum(level.summaries for level in session.metrics().levels)
    return Built(
        messages=messages,
        adding_seconds=added - began,
        condensing_seconds=condensed - added,
        summaries=summaries,
        file_megabytes=path.stat().st_size / _MEGABYTE,
        peak_megabytes=_peak_megabytes(),
    )


def hold(path: Path, count: int) -> Resident:
    """Open a session, hold `count` turns, and say what memory that took. Run it with `alone`."""
    with open_memory(path) as memory:
        session = memory.session(SESSION)
        gc.collect()
        before = _peak_megabytes()
        for number, turn in enumerate(islice(turns(seed=1), 2 * count)):
            session.add_messages([turn.message.model_copy(update={"id": None})])
            if number % 2:
                session.context("")
        session.flush()
        return Resident(before_megabytes=before, peak_megabytes=_peak_megabytes())


def one_turn(session: Session, number: int) -> None:
    """Not measured: lets the session settle after it was opened."""
    pair = list(islice(turns(seed=number + 2), 2))
    session.add_messages([turn.message.model_copy(update={"id": None}) for turn in pair])
    session.context("")


def _peak_megabytes() -> float:
    """Of this process so far; Linux counts in kilobytes, macOS in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (_MEGABYTE if os.uname().sysname == "Darwin" else _MEGABYTE / 1024)
