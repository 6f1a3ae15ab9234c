"""What an index expects of the place where its Chroma client comes from, and what most such places share.

Chroma's core runs on a thread pool of the process (`native_section` and what stands beside it).
"""

from __future__ import annotations

import importlib
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import IndexUnavailableError
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from chromadb.api import ClientAPI

WORKING = forks.Section("a call of embedded Chroma")
_BINDINGS = "chromadb_rust_bindings"
"""The core's module; importing `chromadb` alone does not load it, making an embedded client does."""


class _Core(forks.AtFork):
    def __init__(self) -> None:
        self.is_lost = False
        forks.tell(self)

    def after_fork_in_child(self) -> None:
        """Never destroy what belongs to threads that are not here."""
        if _BINDINGS not in sys.modules:
            return
        self.is_lost = True
        clients = sys.modules.get("chromadb.api.shared_system_client")
        systems = getattr(getattr(clients, "SharedSystemClient", None), "_identifier_to_system", {})
        for system in list(systems.values()):
            forks.abandon(system)


_core = _Core()


def loaded() -> Any:  # noqa: ANN401 - Chroma is loaded lazily
    """The module `chromadb`."""
    with WORKING:
        return importlib.import_module("chromadb")


def require_core() -> None:
    """Refuse embedded Chroma where it would hang.

    Raises:
        IndexUnavailableError: in a child of a process that had loaded the core.
    """
    if _core.is_lost:
        msg = (
            "this process was forked after its parent had used embedded Chroma, which cannot start again in a child: "
            "here search continues by words alone, and vectors wait for the parent or the next process. Use the memory "
            "for the first time after the fork, start processes by spawn, or run a Chroma server"
        )
        raise IndexUnavailableError(msg)


class Connection(forks.AtFork):
    """A client that is made at first use and then kept; it knows how to tidy up where Chroma keeps its rows."""

    place = "this process's memory"
    """Where the rows are, for messages."""
    remedy = "call rebuild_index()"
    """What to do when that place fails."""

    def __init__(self) -> None:
        self._client: ClientAPI | None = None
        self._connecting = forks.Lock()
        forks.tell(self)

    def after_fork_in_child(self) -> None:
        """Connect anew: sockets and threads are the parent's."""
        if self._client is not None:
            forks.abandon(self._client)
            self._client = None

    def _connect(self) -> ClientAPI:
        raise NotImplementedError

    @contextmanager
    def reading(self, collection: str | None) -> Iterator[ClientAPI]:
        """A client whose view is current: the one that is kept. `collection`: the one whose vectors are searched."""
        del collection
        with self.writing() as client:
            yield client

    @contextmanager
    def writing(self) -> Iterator[ClientAPI]:
        """A client to write with: the same."""
        with WORKING:
            yield self._connected()

    def compact(self) -> tuple[str, ...]:
        """Take traces of removed rows out of files; the places where that cannot be promised. Here are no files."""
        return ()

    def discard(self, *, disposable: bool) -> str | None:
        """Start over where files cannot be read; what became of them, `None` where they are out of reach."""
        del disposable
        return None

    def folders_of(self, collection_ids: Iterable[str]) -> list[Path]:
        """Folders that deleting these collections would leave behind: none without files."""
        del collection_ids
        return []

    def forget_client(self) -> None:
        """Connect anew next time."""
        with self._connecting:
            client, self._client = self._client, None
        close = getattr(client, "close", None)
        if close is not None:
            close()

    def close(self) -> None:
        """Let go of the client."""
        Connection.forget_client(self)

    def _connected(self) -> ClientAPI:
        with self._connecting:
            if self._client is None:
                self._client = self._connect()
            return self._client
