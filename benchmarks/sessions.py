"""Long sessions on disk: built once in a process of their own, so that what building takes is known and gone."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from benchmarks.conversations import turns
from langchain_tiered_memory.memory import Session, TieredMemory
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.embeddings import Embeddings

P = ParamSpec("P")
T = TypeVar("T")

SESSION = "long"
_BATCH = 1000
"""Messages to an `add_messages`: fewer are slower, more are hardly faster."""
_JUDGED_FROM = 3 * _BATCH
"""Messages after which the pace tells how long all will take."""
_MEGABYTE = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What building one session took."""

    messages: int
    adding_seconds: float
    condensing_seconds: float
    summaries: int
    file_megabytes: float | None
    """`None` for a server's database."""
    peak_megabytes: float
    """Resident memory at its highest, the interpreter and all imports included."""

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.adding_seconds + self.condensing_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class TooSlow:
    """A session that was not finished, for it would have taken too long."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """Memory of a process that opened a session and held a conversation."""

    before_megabytes: float
    peak_megabytes: float


def open_memory(where: str, embeddings: Embeddings | None = None) -> TieredMemory:
    """By words alone without an embedder, and no background thread: what is measured is the turn, nothing beside it."""
    return TieredMemory.open(where, embeddings=embeddings, settings=Settings(tree=TreeSettings(background=False)))


def alone(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`call` in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(call, args, kwargs)


def build(where: str, messages: int, most_seconds: float | None) -> Built | TooSlow:
    """Write a conversation of `messages` messages in batches and condense it; what is there already stays.

    Gives up as soon as adding will take more than `most_seconds` at the pace so far, or condensing does. What was done
    until then remains.
    """
    began = time.perf_counter()
    with open_memory(where) as memory:
        session = memory.session(SESSION)
        there = session.metrics().messages
        source = islice(turns(), there, None)
        for first in range(there, messages, _BATCH):
            batch = list(islice(source, min(_BATCH, messages - first)))
            session.add_messages([turn.message for turn in batch], at=[turn.at for turn in batch])
            done = first + len(batch) - there
            needed = (time.perf_counter() - began) / done * (messages - there)
            if most_seconds is not None and needed > most_seconds and done >= _JUDGED_FROM:
                return TooSlow(reason=f"adding would take about {needed:,.0f} s, more than {most_seconds:,.0f} s")
        added = time.perf_counter()
        left = session.flush(None if most_seconds is None else max(0.0, most_seconds - (added - began))).pending
        condensed = time.perf_counter()
        if left and most_seconds is not None and condensed - began >= most_seconds:
            reason = f"its summaries were not finished within {most_seconds:,.0f} s"
            return TooSlow(reason=reason)
        summaries = sum(level.summaries for level in session.metrics().levels)
    return Built(
        messages=messages,
        adding_seconds=added - began,
        condensing_seconds=condensed - added,
        summaries=summaries,
        file_megabytes=Path(where).stat().st_size / _MEGABYTE if Path(where).exists() else None,
        peak_megabytes=_peak_megabytes(),
    )


def hold(where: str, count: int) -> Resident:
    """Open a session, hold `count` turns, and say what memory that took. Run it with `alone`."""
    with open_memory(where) as memory:
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
