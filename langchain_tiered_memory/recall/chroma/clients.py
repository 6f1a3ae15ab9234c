"""Where an index's Chroma client comes from: a directory, a server, this process's memory, or the caller."""

from __future__ import annotations

import math
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from langchain_tiered_memory.driver import in_time
from langchain_tiered_memory.errors import IndexUnavailableError, SettingsError
from langchain_tiered_memory.recall.chroma.connection import Connection, loaded, require_core
from langchain_tiered_memory.recall.chroma.directory import EmbeddedDirectory, embedded_directory
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chromadb.api import ClientAPI

_SIGN_OF_LIFE_SECONDS = 0.5
"""A server that lives answers its heartbeat within milliseconds; half a second allows for another continent."""
_SILENT_SECONDS = 30.0
"""After this the full limit counts again, for a server that is slow and not dead."""


class Server(Connection):
    """A Chroma server.

    Args:
        url: `http://host:port` or `https://host:port`.
        timeout_seconds: The longest wait for one answer.

    Raises:
        SettingsError: when the address is none.
    """

    def __init__(self, url: str, *, timeout_seconds: float) -> None:
        super().__init__()
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 8000)
        except ValueError as error:
            msg = f"the Chroma server's address has no usable port: {error}"
            raise SettingsError(msg) from error
        if not parts.hostname or parts.path.strip("/") or parts.query or parts.username or parts.password:
            msg = (
                "a Chroma server's address is http://host:port or https://host:port; for one that wants credentials, "
                "give a chromadb.HttpClient"
            )
            raise SettingsError(msg)
        self._host, self._port = parts.hostname, port
        self._url = f"{parts.scheme}://{parts.hostname}:{port}"
        self._timeout_seconds = timeout_seconds
        self._silent_since: float | None = None
        self.place = f"the server {self._url}"
        self.remedy = "start it again (`chroma run`); the next flush() adds what is missing"

    @contextmanager
    def writing(self) -> Iterator[ClientAPI]:
        """The client, after a sign of life where the server was silent; nothing native runs, so a fork may come."""
        since, now = self._silent_since, time.monotonic()
        is_lately = since is not None and now - since < _SILENT_SECONDS
        unanswered = httpx.TimeoutException if since is None else httpx.TransportError
        try:
            if since is not None:
                self._heartbeat(min(_SIGN_OF_LIFE_SECONDS if is_lately else math.inf, self._timeout_seconds))
                self._silent_since = None
            yield self._connected()
        except (unanswered, TimeoutError) as error:
            self._silent_since = since if is_lately else time.monotonic()
            said = f"gave no answer within {self._timeout_seconds:g} s" if since is None else "stays silent"
            msg = f"{self.place} {said}; {self.remedy}"
            raise IndexUnavailableError(msg, is_silent=True) from error

    def compact(self) -> tuple[str, ...]:
        """Nothing: a server's files are out of reach."""
        return (f"files of {self.place}",)

    def _heartbeat(self, limit_seconds: float) -> None:
        url = f"{self._url}/api/v2/heartbeat"
        httpx.get(url, timeout=limit_seconds).raise_for_status()

    def _connect(self) -> ClientAPI:
        chromadb = loaded()
        self._heartbeat(self._timeout_seconds)
        # Chroma's client asks its server questions while it is made, before anybody can give it a limit.
        client: ClientAPI = in_time(
            lambda: chromadb.HttpClient(
                host=self._host,
                port=self._port,
                ssl=self._url.startswith("https"),
                settings=chromadb.config.Settings(_env_file=None, anonymized_telemetry=False),
            ),
            seconds=self._timeout_seconds,
            name="tiered-memory-chroma",
        )
        session: Any = getattr(getattr(client, "_server", None), "_session", None)
        if session is not None:
            session.timeout = self._timeout_seconds
        return client


class InMemory(Connection):
    """Chroma in this process's memory. All such clients share one store: the collection's name keeps them apart."""

    def _connect(self) -> ClientAPI:
        require_core()
        # Settings other than the defaults would make every later `EphemeralClient()` in this process fail.
        client: ClientAPI = loaded().EphemeralClient()
        return client

    def forget_client(self) -> None:
        """Nothing: closing the last client of this process would drop the rows."""


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
                f"{self.place} was made before this process was forked, and cannot be used in both: search continues "
                "by words here. Pass its URL or its path instead, or open the memory in each process"
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
    timeout_seconds: float,
    file_mode: int | None,
) -> Connection | EmbeddedDirectory:
    """The source that `where` means: `None` is memory, a URL a server, a path a directory, else a client.

    A client of a directory is opened as that directory: only so can writes of other processes be noticed.

    Raises:
        SettingsError: when it is none of these.
    """
    if where is None:
        return InMemory()
    if isinstance(where, str) and where.startswith(("http://", "https://")):
        return Server(where, timeout_seconds=timeout_seconds)
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
