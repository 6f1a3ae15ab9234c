"""Processes that write until they are killed, or beside one another, or onto a disk that is full: for `faults`.

Each party is a store of messages with two verbs. The peers are LangChain community's histories, as their documentation
shows them. A text is acknowledged when its `add` returned; what was acknowledged must be there ever after.
"""

from __future__ import annotations

import importlib
import multiprocessing
import resource
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from langchain_core.messages import HumanMessage

from langchain_tiered_memory import Settings, StorageError, TieredMemory

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

_SPAWN = multiprocessing.get_context("spawn")
_SESSION = "faults"


class Store(Protocol):
    """What is tried."""

    def add(self, text: str) -> None:
        """Write a message; acknowledged when it returns."""
        ...

    def texts(self) -> list[str]:
        """Every message, in order."""
        ...


class Ours:
    """This memory, without a model and searching by words: what is tried is the transcript."""

    def __init__(self, folder: str) -> None:
        path = str(Path(folder) / "memory.db")
        self.memory = TieredMemory.open(path, embeddings=None, settings=Settings(busy_seconds=60.0))
        self.session = self.memory.session(_SESSION)

    def add(self, text: str) -> None:
        """Write a message under an id of its own."""
        self.session.add_messages([HumanMessage(text, id=text)])

    def texts(self) -> list[str]:
        """Every message, in order."""
        return [str(message.text) for message in self.session.messages()]


class Community:
    """A history of langchain-community's."""

    def __init__(self, module: str, name: str, **given: Any) -> None:  # noqa: ANN401 - its own arguments
        found = importlib.import_module(f"langchain_community.chat_message_histories.{module}")
        self._history = getattr(found, name)(**given)

    def add(self, text: str) -> None:
        """Write a message."""
        self._history.add_messages([HumanMessage(text, id=text)])

    def texts(self) -> list[str]:
        """Every message, in order."""
        return [str(message.text) for message in self._history.messages]


def _sql_history(folder: str) -> Store:
    return Community(
        "sql", "SQLChatMessageHistory", session_id=_SESSION, connection=f"sqlite:///{Path(folder) / 'history.db'}"
    )


def _file_history(folder: str) -> Store:
    return Community("file", "FileChatMessageHistory", file_path=str(Path(folder) / "history.json"))


OURS = "this memory"
PARTIES: dict[str, Callable[[str], Store]] = {
    OURS: Ours,
    "SQLChatMessageHistory": _sql_history,
    "FileChatMessageHistory": _file_history,
}
"""What opens each party in a folder."""


def start(program: Callable[..., None], *given: object) -> tuple[Any, Connection]:
    """Run `program` in a process of its own; the second value is the pipe on which it acknowledges."""
    ours, theirs = _SPAWN.Pipe(duplex=False)
    child = _SPAWN.Process(target=program, args=(*given, theirs), daemon=True)
    child.start()
    theirs.close()
    return child, ours


def acknowledged(pipe: Connection) -> list[str]:
    """All that came through a pipe whose process is gone, as far as it came whole."""
    found: list[str] = []
    with suppress(EOFError, OSError):
        while pipe.poll(0):
            found.append(pipe.recv())
    pipe.close()
    return found


def write_until_killed(party: str, folder: str, name: str, pipe: Connection) -> None:
    """Write messages and acknowledge each, until somebody kills this process."""
    try:
        store = PARTIES[party](folder)
    except Exception:  # noqa: BLE001 - a peer that cannot open what the last kill left acknowledges nothing
        return
    number = 0
    while True:
        text = f"{name}, point {number}: valve {number % 17} was set to {number * 7 % 101} bar."
        try:
            store.add(text)
        except Exception:  # noqa: BLE001 - as above
            return
        pipe.send(text)
        number += 1


def write_some(party: str, folder: str, name: str, count: int, pipe: Connection) -> None:
    """Write `count` messages and acknowledge each; a write that is refused is not acknowledged, and tried no more."""
    store = PARTIES[party](folder)
    for number in range(count):
        text = f"{name}, point {number}"
        with suppress(Exception):  # a peer's refusal is an answer too: it acknowledged nothing
            store.add(text)
            pipe.send(text)
    memory = getattr(store, "memory", None)
    if memory is not None:
        memory.close()


def fill_the_disk(folder: str, most_bytes: int, pipe: Connection) -> None:
    """Write while no file may pass `most_bytes`, until a write is refused; then read what there is.

    Sends the acknowledged texts, then one line: `read` where reading went on, or what it raised.
    """
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = Ours(folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    number = 0
    try:
        while True:
            text = f"point {number}: " + "the pump in hall three was checked again. " * 20
            store.add(text)
            pipe.send(text)
            number += 1
    except StorageError:
        pass
    try:
        there = store.texts()
        store.session.search("pump", k=3)
        store.session.context("which pump?", max_tokens=1000)
        pipe.send("read" if len(there) >= number else f"only {len(there)} of {number} could be read")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        pipe.send(f"{type(error).__name__}: {error}")
