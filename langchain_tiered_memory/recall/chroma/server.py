"""A Chroma server as a place for vectors. Every wait for it is bounded, also for one that never answers.

Chroma's own client waits for ever. Here each request has a limit, and after one that ran out the server counts as
silent: until it answers again, every use asks for a sign of life first, with a far shorter limit. So a server that was
stopped costs one long wait, then hardly any, and is back in use as soon as it is back. Questions do not come here
meanwhile (`recall/outage.py`).
"""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx

from langchain_tiered_memory.errors import IndexUnavailableError, SettingsError
from langchain_tiered_memory.recall.chroma.connection import Connection
from langchain_tiered_memory.recall.chroma.native_core import loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from chromadb.api import ClientAPI

_SIGN_OF_LIFE_SECONDS = 0.5
"""A server that lives answers its heartbeat within milliseconds; half a second allows for another continent."""
_SILENT_SECONDS = 30.0
"""After this the full limit counts again, for a server that is slow and not dead."""


class Server(Connection):
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
        self._silent_since: float | None = None
        self._last_refusal = float("-inf")
        self.place = f"the server {parts.scheme}://{parts.hostname}:{port}"
        self.remedy = "start it again (`chroma run`); what is missing is added by the next flush()"

    @contextmanager
    def reading(self, collection: str | None) -> Iterator[ClientAPI]:
        """The client; nothing native runs here, so a fork may come at any time."""
        del collection
        with self._heeding_silence() as client:
            yield client

    @contextmanager
    def writing(self) -> Iterator[ClientAPI]:
        """The same client as for reading."""
        with self._heeding_silence() as client:
            yield client

    def compact(self) -> tuple[str, ...]:
        """Nothing: a server's files are out of reach."""
        return (f"files of {self.place}",)

    @contextmanager
    def _heeding_silence(self) -> Iterator[ClientAPI]:
        try:
            yield self._asked()
        except (httpx.TimeoutException, _TooLateError) as error:
            self._silent_since = time.monotonic()
            msg = f"{self.place} gave no answer within {self._timeout_seconds:g} s; {self.remedy}"
            raise IndexUnavailableError(msg, is_silent=True) from error

    def _asked(self) -> ClientAPI:
        """The client, after a sign of life where the server was silent lately."""
        came_at = time.monotonic()
        with self._connecting:
            if self._silent_since is not None:
                self._await_sign_of_life(came_at)
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _await_sign_of_life(self, came_at: float) -> None:
        is_lately = time.monotonic() - self._silent_since < _SILENT_SECONDS if self._silent_since else False
        limit = min(_SIGN_OF_LIFE_SECONDS, self._timeout_seconds) if is_lately else self._timeout_seconds
        try:
            # Of those who waited here together one asks, and all take its answer.
            if self._last_refusal < came_at:
                self._heartbeat(limit)
                self._silent_since = None
                return
        except httpx.TransportError:
            self._last_refusal = time.monotonic()
            if not is_lately:
                self._silent_since = self._last_refusal
        msg = f"{self.place} stays silent: {self.remedy}"
        raise IndexUnavailableError(msg, is_silent=True)

    def _heartbeat(self, limit_seconds: float) -> None:
        scheme = "https" if self._ssl else "http"
        httpx.get(
            f"{scheme}://{self._host}:{self._port}/api/v2/heartbeat", headers=self._headers, timeout=limit_seconds
        ).raise_for_status()

    def _connect(self) -> ClientAPI:
        chromadb = loaded()
        self._heartbeat(self._timeout_seconds)
        client: ClientAPI = _within(
            self._timeout_seconds,
            lambda: chromadb.HttpClient(
                host=self._host,
                port=self._port,
                ssl=self._ssl,
                headers=self._headers or None,
                settings=chromadb.config.Settings(_env_file=None, anonymized_telemetry=False),
            ),
        )
        session: Any = getattr(getattr(client, "_server", None), "_session", None)
        if session is not None:
            session.timeout = self._timeout_seconds
        return client


class _TooLateError(Exception):
    """A call did not end within its limit."""


def _within(seconds: float, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the call gives
    """What `call` gives, in a thread that is left behind when it does not end.

    Chroma's client asks its server questions while it is made, before anybody can give it a limit.
    """
    answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    context = contextvars.copy_context()

    def called() -> None:
        try:
            answers.put((context.run(call), None))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            answers.put((None, error))

    threading.Thread(target=called, name="tiered-memory-chroma", daemon=True).start()
    try:
        answer, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise _TooLateError from None
    if error is not None:
        raise error
    return answer
