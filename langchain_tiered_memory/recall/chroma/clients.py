"""Where an index's Chroma client comes from: a directory, a server, this process's memory, or the caller."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import IndexUnavailableError, SettingsError
from langchain_tiered_memory.recall.chroma.connection import ClientSource, Connection
from langchain_tiered_memory.recall.chroma.directory import embedded_directory
from langchain_tiered_memory.recall.chroma.native_core import loaded, require_core
from langchain_tiered_memory.recall.chroma.server import Server
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chromadb.api import ClientAPI


class InMemory(Connection):
    """Chroma in this process's memory. All such clients share one store: the collection's name keeps them apart."""

    def _connect(self) -> ClientAPI:
        require_core()
        # Settings other than the defaults would make every later `EphemeralClient()` in this process fail.
        client: ClientAPI = loaded().EphemeralClient()
        return client

    def forget_client(self) -> None:
        """Nothing: closing the last client of this process would drop the rows."""

    def close(self) -> None:
        """Let go of the client, in a child too, where it is not there any more."""
        Connection.forget_client(self)


class Given(Connection):
    """The caller's own client; never closed here."""

    def __init__(self, client: ClientAPI) -> None:
        super().__init__()
        self._given = client
        self._is_the_parents = False
        self.place = f"the Chroma client that was passed ({type(client).__name__})"
        self.remedy = "check that client, then call rebuild_index()"

    def after_fork_in_child(self) -> None:
        """Leave it to the parent: a native client would hang here, and two processes would share a socket."""
        super().after_fork_in_child()
        forks.abandon(self._given)
        self._is_the_parents = True

    def _connect(self) -> ClientAPI:
        if self._is_the_parents:
            msg = (
                f"{self.place} was made before this process was forked, and cannot be used in both: search goes on by "
                "words here. Pass its URL or its path instead, or open the memory in each process"
            )
            raise IndexUnavailableError(msg)
        return self._given

    def compact(self) -> tuple[str, ...]:
        """Nothing: whatever keeps the rows is the caller's."""
        return (f"files behind {self.place}",)

    def forget_client(self) -> None:
        """Nothing: it is the caller's."""

    def close(self) -> None:
        """Nothing: it is the caller's."""


def client_source(
    where: str | os.PathLike[str] | ClientAPI | None,
    *,
    headers: Mapping[str, str] | None,
    timeout_seconds: float,
    file_mode: int | None,
) -> ClientSource:
    """The source that `where` means: `None` is memory, a URL a server, a path a directory, else a client.

    A client of a directory is opened as that directory: only so can writes of other processes be noticed.

    Raises:
        SettingsError: when it is none of these.
    """
    if where is None:
        return InMemory()
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        return Server(where, headers=headers, timeout_seconds=timeout_seconds)
    if isinstance(where, str | os.PathLike):
        return embedded_directory(
            Path(where), tenant="default_tenant", database="default_database", file_mode=file_mode
        )
    if not hasattr(where, "get_or_create_collection"):
        msg = f"chroma must be None, a path, a URL or a chromadb client, not {type(where).__name__}"
        raise SettingsError(msg)
    settings = where.get_settings()
    if settings.is_persistent and settings.chroma_api_impl != "chromadb.api.fastapi.FastAPI":
        return embedded_directory(
            Path(settings.persist_directory), tenant=where.tenant, database=where.database, file_mode=file_mode
        )
    return Given(where)
