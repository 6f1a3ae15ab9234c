"""A memory that was opened before its process forked: no child hangs, nothing is lost, the parent goes on."""

from __future__ import annotations

import asyncio
import http.client
import multiprocessing
import os
import signal
import socket
import socketserver
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.models.embeddings import MiniLMEmbeddings, find_minilm
from langchain_tiered_memory.testing import ScriptedModel
from tests.embedders import HashingEmbeddings
from tests.forking import CHILD_SECONDS, Child, ChildFailed, in_child
from tests.memory_builders import open_memory, quick_settings, summaries_of
from tests.servers import chroma_server, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.slow,
]
PADDING = "the bolts came late and the register says so. " * 12
CHILDREN = 4
"""Two of each style."""


def open_busily(where: str | Path | None, **choices: Any) -> TieredMemory:
    """A memory whose worker runs."""
    return open_memory(where, settings=quick_settings(background=True), **choices)


@contextmanager
def speaking(memory: TieredMemory) -> Iterator[None]:
    """Somebody speaks without a pause, so that the worker is busy."""
    stop = threading.Event()

    def speak() -> None:
        number = 0
        while not stop.is_set():
            memory.session("busy").add_messages([HumanMessage(f"q{number} {PADDING}"), AIMessage("noted")])
            number += 1
            time.sleep(0.01)

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


def turn_of(memory: TieredMemory, name: str) -> int:
    """What a child does: it adds, asks for a context, searches, flushes; gives what it sees of its session."""
    session = memory.session(name)
    for number in range(6):
        session.add_messages([HumanMessage(f"{name} {number} {PADDING}"), AIMessage("yes")])
    assert session.context("the bolts", max_tokens=900).messages
    assert session.search("bolts", k=3)
    session.flush(timeout=20)
    return len(session.messages())


async def aturn_of(memory: TieredMemory, name: str) -> int:
    session = memory.session(name)
    for number in range(6):
        await session.aadd_messages([HumanMessage(f"{name} {number} {PADDING}"), AIMessage("yes")])
    assert (await session.acontext("the bolts", max_tokens=900)).messages
    assert await session.asearch("bolts", k=3)
    await session.aflush(timeout=20)
    return len(await session.amessages())


def seen_by_children(memory: TieredMemory) -> list[int]:
    """Children that live side by side, every other one async; each closes the memory, as a program's end would."""

    def child(number: int) -> Callable[[], int]:
        def live() -> int:
            try:
                if number % 2:
                    return asyncio.run(aturn_of(memory, f"child{number}"))
                return turn_of(memory, f"child{number}")
            finally:
                memory.close()

        return live

    running = []
    for number in range(CHILDREN):
        running.append(Child(child(number)))
        time.sleep(0.02)
    return [one.result() for one in running]


def check_parent(memory: TieredMemory, children: int = CHILDREN) -> None:
    """Everybody's messages are there, and the parent goes on."""
    assert [len(memory.session(f"child{number}").messages()) for number in range(children)] == [12] * children
    session = memory.session("busy")
    session.add_messages([HumanMessage("the parent after its children")])
    assert session.messages()[-1].content == "the parent after its children"
    assert session.context("bolts", max_tokens=900).messages
    assert memory.flush(timeout=200).pending == 0
    assert memory.verify().problems == ()
    memory.close()


def test_children_of_a_busy_parent_on_sqlite_work_and_end(tmp_path: Path) -> None:
    memory = open_busily(tmp_path / "memory.db")
    with speaking(memory):
        assert seen_by_children(memory) == [12] * CHILDREN
    check_parent(memory)


@pytest.mark.postgres
def test_children_of_a_busy_parent_on_postgresql_work_and_end(postgres_url: str) -> None:
    memory = open_busily(postgres_url)
    with speaking(memory):
        assert seen_by_children(memory) == [12] * CHILDREN
    check_parent(memory)


def test_children_of_a_parent_that_uses_embedded_chroma_search_by_words_and_say_why(tmp_path: Path) -> None:
    memory = open_busily(tmp_path / "memory.db", embeddings=HashingEmbeddings())
    told: list[tuple[str, str]] = []
    memory.subscribe(lambda event: told.append((event.name, event.reason)))
    memory.session("busy").add_messages([HumanMessage("the first bolts")])
    assert memory.flush().pending == 0
    assert memory.session("busy").search("bolts", k=1)
    with speaking(memory):
        assert seen_by_children(memory) == [12] * CHILDREN

    def said() -> list[str]:
        memory.session("busy").search("bolts", k=1)
        return [reason for name, reason in told if name == "vectors_unavailable"]

    assert not said()
    reasons = in_child(said)
    assert reasons
    assert all("forked" in reason and "Chroma server" in reason for reason in reasons)
    check_parent(memory)


def test_a_child_has_vectors_where_the_parent_only_opened_the_memory(tmp_path: Path) -> None:
    # In a process of its own: this one has used Chroma by now.
    memory = open_busily(tmp_path / "memory.db", embeddings=HashingEmbeddings())
    spawned = multiprocessing.get_context("spawn").Process(target=_fork_with_chroma_unused, args=(str(tmp_path),))
    spawned.start()
    spawned.join()
    assert spawned.exitcode == 0
    assert len(memory.session("child").messages()) == 12
    assert memory.flush().vectors == 0
    assert memory.verify().vectors
    assert memory.verify().problems == ()
    memory.close()


def _fork_with_chroma_unused(folder: str) -> None:
    memory = open_busily(f"{folder}/memory.db", embeddings=HashingEmbeddings())

    def live() -> int:
        turn_of(memory, "child")
        vectors = memory.verify().vectors
        memory.close()
        return vectors

    assert in_child(live) > 0
    memory.close()


@pytest.mark.service
@pytest.mark.seldom(2)
def test_children_of_a_parent_that_uses_a_chroma_server_have_vectors(tmp_path: Path) -> None:
    with chroma_server(tmp_path / "server") as server:
        memory = open_busily(tmp_path / "memory.db", embeddings=HashingEmbeddings(), chroma=server.url)
        memory.session("busy").add_messages([HumanMessage("the first bolts")])
        memory.flush()
        with speaking(memory):
            assert seen_by_children(memory) == [12] * CHILDREN

        def vectors() -> tuple[int, int]:
            memory.session("child0").add_messages([HumanMessage("one more, with a vector of its own")])
            memory.flush(timeout=30)
            report = memory.verify()
            return report.vectors, len(report.problems)

        memory.flush()
        before = memory.verify().vectors
        assert in_child(vectors) == (before + 1, 0)
        memory.session("child0").forget()
        memory.session("child0").add_messages([HumanMessage("again")] * 12)
        check_parent(memory)


def test_a_memory_in_memory_goes_on_in_a_child_as_a_copy() -> None:
    memory = open_busily(None, embeddings=HashingEmbeddings())
    memory.session("s").add_messages([HumanMessage("the first bolts")])
    memory.flush()
    with speaking(memory):
        assert seen_by_children(memory) == [12] * CHILDREN
    assert memory.session("child0").messages() == []
    assert len(memory.session("s").messages()) == 1
    memory.close()


@pytest.mark.skipif(find_minilm() is None, reason="the MiniLM files are not at hand")
def test_a_child_embeds_with_a_session_of_its_own_and_ends_as_programs_do() -> None:
    embedder = MiniLMEmbeddings()
    vector = embedder.embed_query("the bolts came late")

    def embedded() -> list[float]:
        return embedder.embed_query("the bolts came late")

    assert in_child(embedded) == pytest.approx(vector, abs=1e-5)
    assert embedder.embed_query("the bolts came late") == vector


PROGRAM = """
import os, sys
from langchain_core.messages import HumanMessage
from tests.embedders import HashingEmbeddings
from tests.integration.test_forks import open_busily
from langchain_tiered_memory.models.embeddings import MiniLMEmbeddings, find_minilm
memory = open_busily(sys.argv[1], embeddings=MiniLMEmbeddings() if find_minilm() else HashingEmbeddings())
memory.session("s").add_messages([HumanMessage("the first bolts")])
memory.flush()
memory.session("s").search("bolts")
child = os.fork()
memory.session("s").add_messages([HumanMessage("both")])
memory.session("s").search("bolts")
if len(sys.argv) > 2:
    memory.close()
if child:
    print(os.waitpid(child, 0)[1], len(memory.session("s").messages()) if len(sys.argv) == 2 else 3)
"""


@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.sweep(1)
def test_a_child_that_runs_to_the_end_of_its_program_ends(tmp_path: Path, *, closes: bool) -> None:
    import subprocess  # noqa: PLC0415 - the only test that starts a program

    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "memory.db"), *(["close"] if closes else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["0", "3"]), done.stderr


def test_a_child_does_not_give_back_the_leases_of_its_parent(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "memory.db")
    mine = memory.core.runtime.worker
    assert in_child(lambda: memory.core.runtime.worker) != mine
    assert memory.core.runtime.worker == mine
    memory.close()


def test_what_a_child_had_in_hand_when_it_went_is_taken_up_at_once(tmp_path: Path) -> None:
    parent = os.getpid()

    def answer(_: object) -> AIMessage:
        if os.getpid() != parent:
            os._exit(0)  # as children of multiprocessing end
        return AIMessage("The bolts came late.")

    settings = quick_settings(eager=True)
    assert settings.tree.lease_seconds > CHILD_SECONDS
    memory = open_memory(tmp_path / "memory.db", settings=settings, model=ScriptedModel(answers=answer))
    session = memory.session("s")
    session.add_messages([HumanMessage(f"{number} {PADDING}") for number in range(8)])
    with pytest.raises(ChildFailed, match="status 0"):
        in_child(session.flush)
    report = session.flush(timeout=CHILD_SECONDS)
    assert (report.pending, report.summaries) == (0, len(summaries_of(session)))
    memory.close()


def test_a_child_takes_up_what_its_parent_left_when_it_went(tmp_path: Path) -> None:
    # A daemon: the process that opened the memory is gone when the work begins.
    memory = open_busily(tmp_path / "memory.db")
    memory.session("s").add_messages([HumanMessage("hello")])
    memory.flush()

    def live() -> bool:
        memory.session("s").context(max_tokens=500)
        return memory.core._worker is not None and memory.core._worker._thread is not None

    assert in_child(live) is True
    memory.close()


def _added_by_a_pool(number: int) -> int:
    return turn_of(_POOLED[0], f"child{number}")


_POOLED: list[TieredMemory] = []


def test_a_pool_of_multiprocessing_that_forks_works(tmp_path: Path) -> None:
    memory = open_busily(tmp_path / "memory.db", embeddings=HashingEmbeddings())
    memory.session("busy").add_messages([HumanMessage("the first bolts")])
    memory.flush()
    _POOLED[:] = [memory]
    with speaking(memory), multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map_async(_added_by_a_pool, range(6), chunksize=1).get(CHILD_SECONDS) == [12] * 6
    _POOLED.clear()
    check_parent(memory, 6)


class _Answering(BaseHTTPRequestHandler):
    memory: TieredMemory

    def do_POST(self) -> None:
        session = self.memory.session(self.path.strip("/"))
        session.add_messages([HumanMessage(self.rfile.read(int(self.headers["Content-Length"])).decode())])
        assert session.context("bolts", max_tokens=900).messages
        said = str(len(session.messages())).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        """Be quiet."""


class _ForkingServer(socketserver.ForkingMixIn, HTTPServer):
    """A process for each request."""


def _posted(port: int, name: str, text: str) -> int:
    asked = http.client.HTTPConnection("127.0.0.1", port, timeout=CHILD_SECONDS)
    asked.request("POST", f"/{name}", body=text.encode())
    answer = asked.getresponse()
    said = int(answer.read())
    asked.close()
    return said


def test_a_web_server_that_forks_for_each_request_answers_all(tmp_path: Path) -> None:
    memory = open_busily(tmp_path / "memory.db", embeddings=HashingEmbeddings())
    memory.session("busy").add_messages([HumanMessage("the first bolts")])
    memory.flush()
    handler = type("Handler", (_Answering,), {"memory": memory})
    with _ForkingServer(("127.0.0.1", 0), handler) as server, speaking(memory):
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        seen = [_posted(server.server_address[1], "web", f"request {number} {PADDING}") for number in range(12)]
        server.shutdown()
        thread.join(30)
    assert seen == list(range(1, 13))
    assert len(memory.session("web").messages()) == 12
    memory.flush()
    assert memory.verify().problems == ()
    memory.close()


def test_a_web_server_that_forks_before_it_serves_answers_all(tmp_path: Path) -> None:
    memory = open_busily(tmp_path / "memory.db")
    listening = socket.create_server(("127.0.0.1", 0))
    handler = type("Handler", (_Answering,), {"memory": memory})
    workers = []
    with speaking(memory):
        for _ in range(3):
            pid = os.fork()
            if pid == 0:
                signal.alarm(int(CHILD_SECONDS))
                _serve_for_ever(listening, handler)
            workers.append(pid)
        port = listening.getsockname()[1]
        seen = [_posted(port, f"web{number % 4}", f"request {number} {PADDING}") for number in range(24)]
    for pid in workers:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
    listening.close()
    assert seen == [1 + number // 4 for number in range(24)]
    assert [len(memory.session(f"web{number}").messages()) for number in range(4)] == [6] * 4
    memory.flush()
    assert memory.verify().problems == ()
    memory.close()


def _serve_for_ever(listening: socket.socket, handler: type[BaseHTTPRequestHandler]) -> None:
    try:
        server = HTTPServer(("127.0.0.1", free_port()), handler, bind_and_activate=False)
        server.socket.close()
        server.socket = listening
        server.serve_forever()
    finally:
        os._exit(1)


def test_a_client_that_was_passed_is_refused_in_a_child_with_the_remedy(tmp_path: Path) -> None:
    import chromadb  # noqa: PLC0415 - slow to import

    memory = open_memory(tmp_path / "memory.db", embeddings=HashingEmbeddings(), chroma=chromadb.EphemeralClient())
    memory.session("s").add_messages([HumanMessage("the first bolts")])
    memory.flush()
    told: list[str] = []
    memory.subscribe(lambda event: told.append(event.reason))

    def said() -> tuple[int, list[str]]:
        return len(memory.session("s").search("bolts", k=1)), told

    found, reasons = in_child(said)
    assert found == 1
    assert any("Pass its URL" in reason for reason in reasons)
    memory.close()


def test_a_child_of_a_child_works(tmp_path: Path) -> None:
    memory = open_busily(tmp_path / "memory.db")

    def child() -> int:
        turn_of(memory, "child0")
        return int(in_child(lambda: turn_of(memory, "child1")))

    assert in_child(child) == 12
    check_parent(memory, 2)
