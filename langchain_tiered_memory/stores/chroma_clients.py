"""Where an index's Chroma client comes from: a directory, a server, this process's memory, or the caller."""

from __future__ import annotations

import importlib
import os
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.stores.chroma_directory import embedded_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

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

    def folders_of(self, collection_ids: Iterable[str]) -> list[Path]:
        """Folders that deleting these collections would leave behind."""
        ...

    def forget_client(self) -> None:
        """Connect anew next time."""
        ...

    def close(self) -> None:
        """Let go of what was opened here."""
        ...


class _Connection:
    """A client that is made at first use and then kept."""

    place = "this process's memory"
    remedy = "call rebuild_index()"

    def __init__(self) -> None:
        self._client: ClientAPI | None = None
        self._connecting = threading.Lock()

    def _connect(self) -> ClientAPI:
        raise NotImplementedError

    @contextmanager
    def reading(self, collection: str | None) -> Iterator[ClientAPI]:
        del collection
        yield self._connected()

    @contextmanager
    def writing(self) -> Iterator[ClientAPI]:
        yield self._connected()

    def compact(self) -> tuple[str, ...]:
        return ()

    def folders_of(self, collection_ids: Iterable[str]) -> list[Path]:
        del collection_ids
        return []

    def forget_client(self) -> None:
        with self._connecting:
            client, self._client = self._client, None
        close = getattr(client, "close", None)
        if close is not None:
            close()

    def close(self) -> None:
        _Connection.forget_client(self)

    def _connected(self) -> ClientAPI:
        with self._connecting:
            if self._client is None:
                self._client = self._connect()
            return self._client


class InMemory(_Connection):
    """Chroma in this process's memory. All such clients share one store: the collection's name keeps them apart."""

    def _connect(self) -> ClientAPI:
        chromadb = importlib.import_module("chromadb")
        # Settings other than the defaults would make every later `EphemeralClient()` in this process fail.
        client: ClientAPI = chromadb.EphemeralClient()
        return client

    def forget_client(self) -> None:
        """Nothing: closing the last client of this process would drop the rows."""


class Given(_Connection):
    """The caller's own client; never closed here."""

    def __init__(self, client: ClientAPI) -> None:
        super().__init__()
        self._given = client
        self.place = f"the Chroma client that was passed ({type(client).__name__})"
        self.remedy = "check that client, then call rebuild_index()"

    def _connect(self) -> ClientAPI:
        return self._given

    def compact(self) -> tuple[str, ...]:
        """Nothing: whatever keeps the rows is the caller's."""
        return (f"files behind {self.place}",)

    def forget_client(self) -> None:
        """Nothing: it is the caller's."""

    def close(self) -> None:
        """Nothing: it is the caller's."""


class Server(_Connection):
    """A Chroma server.

    Args:
        url: `http://host:port` or `https://host:port`.
        headers: Sent with each request, for authentication.
        timeout_seconds: The longest wait for one answer.

    Raises:
        SettingsError: when the address is none.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str] | None, timeout_seconds: float) -> None:
        super().__init__()
        parts = urlsplit(url)
        try:
            port = parts.port or (443 if parts.scheme == "https" else 8000)
        except ValueError as error:
            msg = f"the Chroma server's address has no usable port: {error}"
            raise SettingsError(msg) from error
        if not parts.hostname or parts.path.strip("/") or parts.query or parts.username or parts.password:
            msg = "a Chroma server's address is http://host:port or https://host:port; credentials go into headers"
            raise SettingsError(msg)
        self._host, self._port, self._ssl = parts.hostname, port, parts.scheme == "https"
        self._headers = dict(headers or {})
        self._timeout_seconds = timeout_seconds
        self.place = f"the server {parts.scheme}://{parts.hostname}:{port}"
        self.remedy = "start it again (`chroma run`); what is missing is added by the next flush()"

    def _connect(self) -> ClientAPI:
        chromadb = importlib.import_module("chromadb")
        httpx = importlib.import_module("httpx")
        # Chroma's client waits for ever; this one says within the limit whether anybody answers.
        scheme = "https" if self._ssl else "http"
        httpx.get(
            f"{scheme}://{self._host}:{self._port}/api/v2/heartbeat",
            headers=self._headers,
            timeout=self._timeout_seconds,
        ).raise_for_status()
        client: ClientAPI = chromadb.HttpClient(
            host=self._host,
            port=self._port,
            ssl=self._ssl,
            headers=self._headers or None,
            settings=chromadb.config.Settings(_env_file=None, anonymized_telemetry=False),
        )
        session: Any = getattr(getattr(client, "_server", None), "_session", None)
        if session is not None:
            session.timeout = self._timeout_seconds
        return client

    def compact(self) -> tuple[str, ...]:
        """Nothing: a server's files are out of reach."""
        return (f"files of {self.place}",)


def client_source(
    where: str | os.PathLike[str] | ClientAPI | None, *, headers: Mapping[str, str] | None, timeout_seconds: float
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
        return embedded_directory(Path(where), tenant="default_tenant", database="default_database")
    if not hasattr(where, "get_or_create_collection"):
        msg = f"chroma must be None, a path, a URL or a chromadb client, not {type(where).__name__}"
        raise SettingsError(msg)
    settings = where.get_settings()
    if settings.is_persistent and settings.chroma_api_impl != "chromadb.api.fastapi.FastAPI":
        return embedded_directory(Path(settings.persist_directory), tenant=where.tenant, database=where.database)
    return Given(where)
