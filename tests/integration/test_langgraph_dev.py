"""The ready graphs under `langgraph dev`: a real server on loopback, real HTTP, a restart in between, no internet."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.integrations.state import STATE_KEY
from tests.memory_builders import conversation
from tests.papers import ROOT, blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterator

GRAPHS = ROOT / "graphs"
NAMES: list[str] = list(json.loads((GRAPHS / "langgraph.json").read_text(encoding="utf-8"))["graphs"])
START_SECONDS = 240

pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(
        find_spec("langgraph_cli") is None or find_spec("langgraph_api") is None,
        reason="langgraph-cli[inmem] is not installed here",
    ),
    pytest.mark.slow,
]


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running `langgraph dev`."""

    http: httpx.Client
    log: Path

    def new_thread(self) -> str:
        return str(self._post("/threads", {})["thread_id"])

    def run(self, graph: str, thread_id: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """One run to its end: the state's values."""
        body = {"assistant_id": graph, "input": {"messages": messages}}
        values = self._post(f"/threads/{thread_id}/runs/wait", body)
        assert "__error__" not in values, (values, self.log.read_text(errors="replace")[-5000:])
        return values

    def streamed(self, graph: str, thread_id: str, messages: list[dict[str, Any]], modes: list[str]) -> set[str]:
        """The names of the events that a run streams, once for each name and for each node that it names."""
        body = {"assistant_id": graph, "input": {"messages": messages}, "stream_mode": modes}
        seen: set[str] = set()
        event = ""
        with self.http.stream("POST", f"/threads/{thread_id}/runs/stream", json=body) as parts:
            for line in parts.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    event = value
                elif field == "data" and event:
                    said = json.loads(value)
                    assert event != "error", (said, self.log.read_text(errors="replace")[-5000:])
                    seen |= {event, *([str(said["name"])] if event == "events" else [])}
        return seen

    def state(self, thread_id: str) -> dict[str, Any]:
        got = self.http.get(f"/threads/{thread_id}/state")
        got.raise_for_status()
        return dict(got.json()["values"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        got = self.http.post(path, json=body)
        assert got.status_code == httpx.codes.OK, got.text
        return dict(got.json())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the graphs: the server keeps its own state beside them."""
    not_ours = shutil.ignore_patterns(".*", "__pycache__", "*.db*")
    return Path(shutil.copytree(GRAPHS, tmp_path / "graphs", ignore=not_ours))


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """`langgraph dev` in that folder, stopped afterwards as Ctrl-C stops it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet = {
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "NO_COLOR": "1",
        "PYTHONUNBUFFERED": "1",
    }
    ours = ("TIERED_MEMORY_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)} | quiet
    log = folder / "server.log"
    options = ["--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("a") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "langgraph_cli", "dev", *options],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as http:
            _wait_until_up(process, http, log)
            yield Server(http=http, log=log)
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait()
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_up(process: subprocess.Popen[bytes], http: httpx.Client, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(errors="replace")[-5000:]
        with contextlib.suppress(httpx.TransportError):
            if http.get("/ok", timeout=2).status_code == httpx.codes.OK:
                return
        time.sleep(0.2)
    pytest.fail("the server did not come up: " + log.read_text(errors="replace")[-5000:])


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def last(values: dict[str, Any]) -> str:
    return str(values["messages"][-1]["content"])


@pytest.mark.seldom(2)
def test_every_graph_answers_remembers_and_goes_on_after_a_restart_of_the_server(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    threads: dict[str, str] = {}
    with serving(folder) as server:
        found = server.http.post("/assistants/search", json={}).json()
        assert sorted(one["graph_id"] for one in found) == sorted(NAMES)
        for name in NAMES:
            threads[name] = server.new_thread()
            first = server.run(name, threads[name], [user("My boat is called Petrel.")])
            second = server.run(name, threads[name], [user("How many anchors are in stock?")])
            # The system's word, the first question, its answer, the second question.
            assert last(first) == "Noted: My boat is called Petrel. (I was shown 2 messages.)"
            asked = "Noted: How many anchors are in stock? (I was shown 4 messages.)"
            assert last(second) == (asked if name == "chat" else "The books say: anchor: 3 in stock.")
        modes = ["values", "updates", "messages-tuple", "custom", "events"]
        for name in NAMES:
            seen = server.streamed(name, server.new_thread(), [user("A lamp is broken.")], modes)
            assert {"values", "updates", "messages", "events"} <= seen
            assert not seen & {"assemble", "recall", "search", "condense", "tiered_memory_condense"}
        (code,) = blocks_of(ROOT / "docs" / "howto" / "langgraph_server.md", "py")
        exec(code.replace("http://127.0.0.1:2024", str(server.http.base_url)), {})  # noqa: S102 - our own paper
        assert "Noted: My boat is called Petrel." in capsys.readouterr().out
        with ThreadPoolExecutor(4) as several:
            names = [name for name in NAMES for _ in range(2)]
            asked = [(name, server.new_thread(), [user(f"Lamp {number}.")]) for number, name in enumerate(names)]
            answers = list(several.map(lambda one: server.run(*one), asked))
        assert [last(one).split(" (")[0] for one in answers] == [
            f"Noted: Lamp {number}." for number in range(len(names))
        ]
        said = [one.model_dump() for one in conversation(25)]
        moved = server.run("chat", threads["chat"], [{"role": one["type"], **one} for one in said])
        assert len(moved["messages"]) < len(said)
        assert moved[STATE_KEY]["branches"]["messages"]["archived"]["count"] > 0
    with serving(folder) as server:
        for name in NAMES:
            before = server.state(threads[name])["messages"]
            third = server.run(name, threads[name], [user("And what did I call my boat?")])
            assert [one["id"] for one in third["messages"][: len(before)]] == [one["id"] for one in before]
            assert "And what did I call my boat?" in last(third)
            if name != "chat":
                # Four messages of the turn with the tool, two before it, the system's word and this question.
                assert "I was shown 8 messages" in last(third)
    log = (folder / "server.log").read_text(errors="replace")
    assert "BlockingError" not in log
    assert "Traceback" not in log
    with TieredMemory.open(folder / "memory.db", embeddings=None) as memory:
        kept = memory.session(threads["chat"]).messages()
        assert len(kept) == 2 + 2 + len(said) + 1 + 2
        assert "Petrel" in kept[0].text
        assert memory.verify().problems == ()
