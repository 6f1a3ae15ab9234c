"""What it costs to write while others write: 1, 4, 16 and 50 workers, on one session and on a session each.

A worker adds a turn of two messages, again and again, and notes how long each call took. Workers are threads of a few
processes, as web servers run them; each process opens the memory once. No model, no vectors, no context: the line in
front of a session's row, or of a file's lock, is what is measured.

    python -m benchmarks.workers --workers 1,4,16,50 --seconds 3 --postgres postgresql://localhost/scratch
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import threading
import time
import uuid
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, HumanMessage

from benchmarks.reporting import Grid, Report, Target, arguments, finish, median, numbers, p95, show
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.settings import Settings, TreeSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from multiprocessing.connection import Connection

WORKERS = (1, 4, 16, 50)
PROCESSES = 4
_LONGEST_WAIT_SECONDS = 5.0
_BUSY_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What some workers did on one database."""

    database: str
    workers: int
    shared: bool
    """Whether all write to one session."""
    writes: int
    seconds: float
    median_ms: float
    p95_ms: float
    longest_ms: float
    least_each: int
    """Writes of the worker that came to the fewest."""

    @property
    def per_second(self) -> float:
        """Calls a second, of all workers together."""
        return self.writes / self.seconds


def _open(where: str) -> TieredMemory:
    settings = Settings(tree=TreeSettings(background=False), busy_seconds=_BUSY_SECONDS)
    return TieredMemory.open(where, embeddings=None, settings=settings)


def _serve(where: str, pipe: Connection) -> None:
    """One process: runs a share of the workers as often as it is told to, until it is told nothing."""
    with _open(where) as memory:
        _work(memory, [f"bench-{os.getpid()}"], 0.0)  # the first call pays for imports
        pipe.send("ready")
        while (task := pipe.recv()) is not None:
            names, seconds = task
            pipe.send(_work(memory, names, seconds))


def _work(memory: TieredMemory, names: list[str], seconds: float) -> list[list[float]]:
    """Seconds that each call of each worker took."""
    took: list[list[float]] = [[] for _ in names]
    until = time.monotonic() + seconds

    def write(place: int, name: str) -> None:
        session = memory.session(name)
        while not took[place] or time.monotonic() < until:
            pair = [HumanMessage("Is the crane free at noon?"), AIMessage("It is, until the ferry comes at two.")]
            began = time.monotonic()
            session.add_messages(pair)
            took[place].append(time.monotonic() - began)

    threads = [threading.Thread(target=write, args=one) for one in enumerate(names)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return took


@contextmanager
def _processes(where: str, count: int) -> Iterator[list[Connection]]:
    context = multiprocessing.get_context("spawn")
    pipes, children = [], []
    for _ in range(count):
        here, there = context.Pipe()
        child = context.Process(target=_serve, args=(where, there), daemon=True)
        child.start()
        there.close()
        pipes.append(here)
        children.append(child)
    try:
        for pipe in pipes:
            pipe.recv()
        yield pipes
    finally:
        for pipe, child in zip(pipes, children, strict=True):
            pipe.send(None)
            child.join()


def _measured(database: str, pipes: list[Connection], *, workers: int, shared: bool, seconds: float) -> Cell:
    run = uuid.uuid4().hex[:8]
    names = [f"bench-{run}-{0 if shared else number}" for number in range(workers)]
    busy = pipes[: min(len(pipes), workers)]
    began = time.monotonic()
    for place, pipe in enumerate(busy):
        pipe.send((names[place :: len(busy)], seconds))
    each = [one for pipe in busy for one in pipe.recv()]
    took = [one for worker in each for one in worker]
    return Cell(
        database=database,
        workers=workers,
        shared=shared,
        writes=len(took),
        seconds=time.monotonic() - began,
        median_ms=1000 * median(took),
        p95_ms=1000 * p95(took),
        longest_ms=1000 * max(took),
        least_each=min(map(len, each)),
    )


def measure(
    workers: Sequence[int] = WORKERS, *, seconds: float = 1.0, processes: int = PROCESSES, postgres: str | None = None
) -> Report:
    """Each number of workers on one session, then on a session each, on SQLite and on PostgreSQL."""
    cells: list[Cell] = []
    with tempfile.TemporaryDirectory() as folder:
        places = {"SQLite": str(Path(folder) / "memory.db")} | ({"PostgreSQL": postgres} if postgres else {})
        for database, where in places.items():
            _open(where).close()
            with _processes(where, processes) as pipes:
                cells += [
                    _measured(database, pipes, workers=count, shared=shared, seconds=seconds)
                    for shared in (True, False)
                    for count in workers
                ]
    return _report(cells, seconds=seconds, processes=processes, left_out=postgres is None)


def _report(cells: Sequence[Cell], *, seconds: float, processes: int, left_out: bool) -> Report:
    columns = ("workers", "writes/s", "median ms", "95 % ms", "longest ms", "fewest by one")
    grids = [
        Grid(
            title=f"{database}, {'one session' if shared else 'a session each'}",
            columns=columns,
            rows=tuple(
                (
                    f"{one.workers}",
                    one.per_second,
                    one.median_ms,
                    one.p95_ms,
                    one.longest_ms,
                    one.least_each,
                )
                for one in cells
                if one.database == database and one.shared is shared
            ),
        )
        for database in dict.fromkeys(one.database for one in cells)
        for shared in (True, False)
    ]
    worst = max(cells, key=lambda one: one.longest_ms)
    remarks = [f"load average at the start of the table: {os.getloadavg()[0]:.1f}"]
    if left_out:
        remarks.append("PostgreSQL: left out, name a database with --postgres")
    return Report(
        benchmark="workers",
        about="add a turn of two messages while others do the same; each call's wait, from asking to durable",
        settings={"seconds": seconds, "processes": processes},
        grids=tuple(grids),
        figures={"cells": [asdict(one) | {"writes_per_second": one.per_second} for one in cells]},
        targets=(
            Target(
                aim=f"nobody waits longer than {_LONGEST_WAIT_SECONDS:g} s, however many write",
                measured=f"{worst.longest_ms / 1000:.2f} s: {worst.workers} workers on {worst.database}",
                met=worst.longest_ms <= 1000 * _LONGEST_WAIT_SECONDS,
            ),
        ),
        remarks=tuple(remarks),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--workers", type=numbers, default=list(WORKERS), help="how many write at once")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each number of workers, on each database")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="among which the workers are shared out")
    parser.add_argument("--postgres", metavar="URL", help="a database to write to as well; what is written stays there")
    asked = parser.parse_args(arguments_given)
    report = measure(asked.workers, seconds=asked.seconds, processes=asked.processes, postgres=asked.postgres)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
