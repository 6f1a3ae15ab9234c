"""An HTTP server on loopback that takes and gives JSON: what the servers that speak a provider's protocol share."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable
    from email.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Streamed:
    """An answer in pieces, each of which is sent at once."""

    kind: str
    """Its content type."""
    pieces: Iterable[str]


class LoopbackServer(ABC):
    """The server. Starts with `with`, on a free port of loopback."""

    path = ""
    """Behind the address, where a client is to begin."""

    def __init__(self) -> None:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._give(*server.got(self.path))

            def do_POST(self) -> None:
                self._give(*server.posted(self.path, self.headers, self._body()))

            def _body(self) -> bytes:
                if self.headers.get("transfer-encoding") != "chunked":
                    return self.rfile.read(int(self.headers["content-length"]))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def _give(self, status: int, said: Any) -> None:
                is_streamed = isinstance(said, Streamed)
                data = b"" if is_streamed else json.dumps(said).encode()
                self.send_response(status)
                self.send_header("content-type", said.kind if is_streamed else "application/json")
                if not is_streamed:  # a stream ends with its connection
                    self.send_header("content-length", str(len(data)))
                self.end_headers()
                for piece in said.pieces if is_streamed else ():
                    self.wfile.write(piece.encode())
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True

    def got(self, path: str) -> tuple[int, Any]:
        """The status and the answer to a GET."""
        return 404, {"error": f"no such page: {path}"}

    @abstractmethod
    def posted(self, path: str, headers: Message, body: bytes) -> tuple[int, Any]:
        """The status and the answer to a POST: what JSON can hold, or `Streamed`."""

    @property
    def url(self) -> str:
        """What a client is given."""
        return f"http://127.0.0.1:{self._http.server_address[1]}{self.path}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


class JsonServer(LoopbackServer):
    """A server that answers by what the body says, whatever the path."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[dict[str, Any]] = []
        """What it was sent."""

    def posted(self, path: str, headers: Message, body: bytes) -> tuple[int, Any]:  # noqa: ARG002 - the body says all
        """The reply to the body."""
        said = json.loads(body)
        self.bodies.append(said)
        return self.reply(said)

    @abstractmethod
    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any] | Streamed]:
        """The status and the body of the answer to a request, which `bodies` has by then."""
