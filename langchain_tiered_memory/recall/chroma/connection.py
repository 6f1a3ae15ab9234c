"""What an index expects of the place where its Chroma client comes from, and what most such places share."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from langchain_tiered_memory.recall.chroma.native_core import WORKING
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from chromadb.api import ClientAPI


class ClientSource(Protocol):
    """Gives a client for one operation, and knows how to tidy up where Chroma keeps its rows."""

    place: str
    """Where the rows are, for messages."""
    remedy: str
    """What to do when that place fails."""

    def reading(self, collection: str | None) -> AbstractContextManager[ClientAPI]:
        """A client whose view is current. `collection`: the one whose vectors will be searched."""
        ...

    def writing(self) -> AbstractContextManager[ClientAPI]:
        """A client to write with."""
        ...

    def compact(self) -> tuple[str, ...]:
        """Take traces of removed rows out of files; the places where that cannot be promised."""
        ...

    def discard(self, *, disposable: bool) -> str | None:
        """Start over with nothing where the files cannot be read.

        Args:
            disposable: Whether nothing but one memory's index can be there: it is deleted, and else moved aside.

        Returns:
            What became of them; `None` where they are out of reach.
        """
        ...

    def folders_of(self, collection_ids: Iterable[str]) -> list[Path]:
        """Folders that deleting these collections would leave behind."""
        ...

    def forget_client(self) -> None:
        """Connect anew next time."""
        ...

    def close(self) -> None:
        """Let go of what was opened here."""
        ...


class Connection(forks.AtFork):
    """A client that is made at first use and then kept."""

    place = "this process's memory"
    remedy = "call rebuild_index()"

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
        """The one kept client."""
        del collection
        with WORKING:
            yield self._connected()

    @contextmanager
    def writing(self) -> Iterator[ClientAPI]:
        """The one kept client."""
        with WORKING:
            yield self._connected()

    def compact(self) -> tuple[str, ...]:
        """Nothing: no files."""
        return ()

    def discard(self, *, disposable: bool) -> str | None:
        """Nothing: no files."""
        del disposable
        return None

    def folders_of(self, collection_ids: Iterable[str]) -> list[Path]:
        """None: no files."""
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
