"""A server on loopback that takes runs as LangSmith's does: what its own client sends, put together by run."""

from __future__ import annotations

import gzip
import json
import threading
from email import message_from_bytes
from typing import TYPE_CHECKING, Any

import zstandard

from tests.json_server import LoopbackServer

if TYPE_CHECKING:
    from email.message import Message

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


class LangSmithServer(LoopbackServer):
    """The server; `runs` has what came, by the run's id. Its `url` is for `LANGSMITH_ENDPOINT`."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[str, dict[str, Any]] = {}
        self.refused: list[str] = []
        """Requests that no LangSmith would get from tracing."""
        self._lock = threading.Lock()

    def got(self, path: str) -> tuple[int, Any]:
        """What it can do."""
        return (200, _INFO) if path == "/info" else self._refuse(path)

    def posted(self, path: str, headers: Message, body: bytes) -> tuple[int, Any]:
        """Runs, and nothing else."""
        if path != "/runs/multipart":
            return self._refuse(path)
        self._take(_plain(body, headers.get("content-encoding")), headers["content-type"])
        return 200, {}

    def _refuse(self, path: str) -> tuple[int, Any]:
        self.refused.append(path)
        return 404, None

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


def _plain(body: bytes, encoding: str | None) -> bytes:
    match encoding:
        case "zstd":
            return zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True).read()
        case "gzip":
            return gzip.decompress(body)
    return body
