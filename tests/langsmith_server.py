"""A server on loopback that takes runs as LangSmith's does: what its own client sends, put together by run."""

from __future__ import annotations

import gzip
import json
import threading
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import zstandard

_INFO = {
    "version": "0.10.0",
    "batch_ingest_config": {
        "use_multipart_endpoint": True,
        "size_limit": 100,
        "size_limit_bytes": 20_971_520,
        "scale_up_nthreads_limit": 1,
        "scale_up_qsize_trigger": 1000,
        "scale_down_nempty_trigger": 4,
    },
    "instance_flags": {"zstd_compression_enabled": True},
}
"""What a client asks first: that runs come as parts, compressed."""


class LangSmithServer:
    """The server. Starts with `with`, on a free port of loopback; `runs` has what came, by the run's id."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[str, Any]] = {}
        self.refused: list[str] = []
        """Requests that no LangSmith would get from tracing."""
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(_INFO if self.path == "/info" else None)

            def do_POST(self) -> None:
                body = server._read(self.rfile, self.headers)
                taken = self.path == "/runs/multipart"
                if taken:
                    server._take(body, self.headers["content-type"])
                self._answer({} if taken else None)

            def _answer(self, said: dict[str, Any] | None) -> None:
                if said is None:
                    server.refused.append(self.path)
                data = json.dumps(said).encode()
                self.send_response(404 if said is None else 200)
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
        """For `LANGSMITH_ENDPOINT`."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def named(self, name: str) -> list[dict[str, Any]]:
        """The runs of that name, in the order in which they began."""
        return sorted((one for one in self.runs.values() if one["name"] == name), key=lambda one: one["dotted_order"])

    def above(self, run: dict[str, Any]) -> list[str]:
        """The names of the runs that it stands under, nearest first."""
        found = []
        while (parent := run.get("parent_run_id")) is not None:
            run = self.runs[parent]
            found.append(str(run["name"]))
        return found

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @staticmethod
    def _read(stream: Any, headers: Any) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(stream.readline(), 16):
                body += stream.read(size)
                stream.readline()
            stream.readline()
        else:
            body = stream.read(int(headers["content-length"]))
        match headers.get("content-encoding"):
            case "zstd":
                return zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True).read()
            case "gzip":
                return gzip.decompress(body)
        return bytes(body)

    def _take(self, body: bytes, content_type: str) -> None:
        """Parts are named `post.ID` and `patch.ID` for a run, and `post.ID.inputs` for what is sent beside it."""
        message = message_from_bytes(f"content-type: {content_type}\r\n\r\n".encode() + body)
        with self._lock:
            for part in message.get_payload():
                assert not isinstance(part, str)
                verb, _, where = str(part.get_param("name", header="content-disposition")).partition(".")
                if verb not in {"post", "patch"}:
                    continue
                run_id, _, field = where.partition(".")
                said = json.loads(part.get_payload(decode=True))  # type: ignore[arg-type] # a part is bytes
                run = self.runs.setdefault(run_id, {})
                run.update({field: said} if field else {name: one for name, one in said.items() if one is not None})
