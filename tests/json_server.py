"""An HTTP server on loopback that takes and gives JSON: what the servers that speak a provider's protocol share."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class JsonServer(ABC):
    """The server. Starts with `with`, on a free port of loopback."""

    path = ""
    """Behind the address, where a client is to begin."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        """What it was sent."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.bodies.append(body)
                status, said = server.reply(body)
                data = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True

    @abstractmethod
    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the body of the answer to a request, which `bodies` has by then."""

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
