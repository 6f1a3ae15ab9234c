"""What a process of its own does to a memory while a test watches, kills or joins it."""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import WrongKeyError
from langchain_tiered_memory.memory import TieredMemory
from tests.embedders import HashingEmbeddings
from tests.memory_builders import entries_of, open_memory, quick_settings, summaries_of, turn

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

    from langchain_tiered_memory.memory import Session

LEASE_SECONDS = 0.3
PROCESSES = multiprocessing.get_context("forkserver")
"""Starts processes that have imported the package already: anew that takes each of them seconds."""
PROCESSES.set_forkserver_preload(["tests.writers", "langchain_tiered_memory.recall.chroma.index", "pytest"])


def start(work: Any, *arguments: Any) -> tuple[ForkServerProcess, Connection]:
    """Run `work(*arguments, pipe)` in a process of its own; what it sends comes out of the pipe."""
    here, there = PROCESSES.Pipe()
    child = PROCESSES.Process(target=work, args=(*arguments, there), daemon=True)
    child.start()
    there.close()
    return child, here


def killed(work: Any, *arguments: Any, after: int, seconds: float) -> list[tuple[str, Any]]:
    """Run `work(*arguments, pipe)` and kill it so many seconds after it has told of `after` things; all that it told.

    What a loaded machine lets it do in those seconds is a matter of chance; what it did before them is not.
    """
    child, pipe = start(work, *arguments)
    said: list[tuple[str, Any]] = []
    while len(said) < after:
        said.append(pipe.recv())
    time.sleep(seconds)
    child.kill()
    child.join()
    with suppress(EOFError, OSError):
        while pipe.poll(0):
            said.append(pipe.recv())
    pipe.close()
    return said


def choices(*, vectors: bool, background: bool) -> dict[str, Any]:
    """How every process of these tests opens the memory."""
    return {
        "embeddings": HashingEmbeddings() if vectors else None,
        "settings": quick_settings(background=background, lease_seconds=LEASE_SECONDS),
    }


def mend_then_write(where: str, vectors: bool, name: str, pipe: Connection) -> None:  # noqa: FBT001 - it is pickled
    """Look after what the last process left, report, then add, condense and embed until killed."""
    with open_memory(where, **choices(vectors=vectors, background=True)) as memory:
        session = memory.session("s")
        memory.flush()
        pipe.send(("found", [str(problem) for problem in memory.verify().problems]))
        number = 0
        while True:
            ids = [f"{name}.{number}.{place}" for place in range(2)]
            said = [one.model_copy(update={"id": mine}) for one, mine in zip(turn(number), ids, strict=True)]
            session.add_messages(said)
            pipe.send(("written", ids))
            if number % 3 == 2:
                session.flush(timeout=5)
            number += 1


def write_and_condense(  # noqa: PLR0917 - it is pickled
    where: str,
    vectors: bool,  # noqa: FBT001
    chroma: str | None,
    name: str,
    turns: int,
    pipe: Connection,
) -> None:
    """Add some turns to the session `s`, condensing all the while, then say what was written."""
    with open_memory(where, chroma=chroma, **choices(vectors=vectors, background=False)) as memory:
        session = memory.session("s")
        pipe.send("ready")
        pipe.recv()
        written: list[str] = []
        for number in range(turns):
            ids = [f"{name}.{number}.{place}" for place in range(2)]
            said = [one.model_copy(update={"id": mine}) for one, mine in zip(turn(number), ids, strict=True)]
            written += session.add_messages(said)
            if number % 4 == 3:
                session.flush(timeout=10)
        pipe.send(written)
    os._exit(0)


def doubled(session: Session) -> list[str]:
    """Messages that more than one summary names, and summaries that more than one stands above."""
    named: dict[str, int] = {}
    for summary in summaries_of(session):
        for source in summary.sources:
            named[source] = named.get(source, 0) + 1
    assert len(entries_of(session)) == len({entry.id for entry in entries_of(session)})
    return [source for source, times in named.items() if times > 1]


def rotate_keys(where: str, keys: list[str], pipe: Connection) -> None:
    """Give an encrypted database one key after the other, beginning with the one that does not open it now."""

    def opened(at: int) -> TieredMemory:
        return TieredMemory.open(where, embeddings=None, encryption_key=lambda: keys[at])

    at = 0
    try:
        memory = opened(at)
    except WrongKeyError:
        at = 1
        memory = opened(at)
    pipe.send("ready")
    while True:
        at = 1 - at
        memory.rotate_key(lambda key=keys[at]: key)
        pipe.send("rotated")
