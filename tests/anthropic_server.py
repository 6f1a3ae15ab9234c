"""A server on loopback that speaks the part of Anthropic's Messages API that an agent uses, and keeps what it was sent.

It refuses what the real one refuses of prompt caching: more than four breakpoints, and one on an empty text.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_BREAKPOINTS = 4


def blocks_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """All blocks of a request in the order in which it is cached: tools, system prompt, messages."""
    found = [dict(one) for one in body.get("tools") or ()]
    system = body.get("system") or []
    found += [{"type": "text", "text": system}] if isinstance(system, str) else [dict(one) for one in system]
    for message in body["messages"]:
        content = message["content"]
        said = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [{"role": message["role"], **one} for one in said]
    return found


class AnthropicServer:
    """The server. Starts with `with`, on a free port of loopback.

    Args:
        answer: Content blocks for a request's body.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
        self.bodies: list[dict[str, Any]] = []
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                bodies.append(body)
                marked = [one for one in blocks_of(body) if "cache_control" in one]
                if len(marked) > _MOST_BREAKPOINTS or any(one.get("text") == "" for one in marked):
                    error = {"type": "invalid_request_error", "message": "cache_control: too many, or on an empty text"}
                    self._send(400, {"type": "error", "error": error})
                    return
                content = answer(body)
                calls = any(one["type"] == "tool_use" for one in content)
                said = {
                    "id": f"msg_{len(bodies)}",
                    "type": "message",
                    "role": "assistant",
                    "model": body["model"],
                    "content": content,
                    "stop_reason": "tool_use" if calls else "end_turn",
                    "stop_sequence": None,
                    "usage": {"input_tokens": 10, "output_tokens": 5},
                }
                self._send(200, said)

            def _send(self, status: int, said: dict[str, Any]) -> None:
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

    @property
    def url(self) -> str:
        """What a client is given."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
