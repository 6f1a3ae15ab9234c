"""Chroma's directory is damaged, its server stops, or comes back without its files: nothing hangs, nothing is lost."""

from __future__ import annotations

import random
import shutil
import sqlite3
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.settings import RecallSettings, Settings, TreeSettings
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.memory_builders import open_memory
from tests.servers import chroma_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.reports import Event

pytestmark = pytest.mark.slow

LIMIT_SECONDS = 1.0


def open_with_vectors(where: Path, *, chroma: object = None, background: bool = False) -> TieredMemory:
    settings = Settings(tree=TreeSettings(background=background), recall=RecallSettings(chroma_seconds=LIMIT_SECONDS))
    return open_memory(where, embeddings=HashingEmbeddings(), chroma=chroma, settings=settings)


def filled(memory: TieredMemory, *, sessions: int = 3) -> None:
    for number in range(sessions):
        memory.session(f"s{number}").add_messages(
            [
                HumanMessage(f"How many bolts came to the harbour {number}?"),
                AIMessage(f"There came {number} crates of bolts."),
            ]
        )
    assert memory.flush().pending == 0
    assert memory.verify().problems == ()


def found_by_vectors(memory: TieredMemory, call_style: CallStyle) -> bool:
    """Whether a question that shares no term with any message, only buckets with all of them, finds some."""
    return bool(told(call_style, memory.session("s0").search, "bolts", k=2))


def told_names(memory: TieredMemory) -> list[str]:
    names: list[str] = []
    memory.subscribe(lambda event: names.append(event.name))
    return names


def every_file(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("tiered-memory")]


def _overwritten(folder: Path) -> None:
    randomly = random.Random(7)
    for path in every_file(folder):
        path.write_bytes(randomly.randbytes(max(path.stat().st_size, 100)))


def _halved(folder: Path) -> None:
    for path in every_file(folder):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _emptied(folder: Path) -> None:
    for path in every_file(folder):
        path.write_bytes(b"")


def _scratched(folder: Path) -> None:
    path = folder / "chroma.sqlite3"
    scratched = bytearray(path.read_bytes())
    for start in range(4096, len(scratched), 4096):
        scratched[start : start + 3000] = b"\xff" * len(scratched[start : start + 3000])
    path.write_bytes(scratched)


def _of_another_version(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "chroma.sqlite3")) as database:
        database.execute("UPDATE migrations SET hash = 'of another version'")
        database.execute("ALTER TABLE collections RENAME TO assemblies")
        database.commit()


def _without_tables(folder: Path) -> None:
    path = folder / "chroma.sqlite3"
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE migrations (something_else TEXT)")


def _replaced_by_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_bytes(b"no directory")


def _deleted(folder: Path) -> None:
    shutil.rmtree(folder)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize(
    "damage",
    [
        _overwritten,
        _halved,
        _emptied,
        _scratched,
        _of_another_version,
        _without_tables,
        _replaced_by_a_file,
        _deleted,
    ],
)
def test_rebuild_index_recovers_from_a_damaged_directory_by_itself(
    tmp_path: Path, damage: Callable[[Path], None], call_style: CallStyle
) -> None:
    memory = open_with_vectors(tmp_path / "memory.db")
    filled(memory)
    memory.close()
    damage(tmp_path / "memory.db.chroma")
    memory = open_with_vectors(tmp_path / "memory.db")
    names = told_names(memory)
    assert found_by_vectors(memory, call_style)
    told(call_style, memory.doctor)
    report = told(call_style, memory.rebuild_index)
    assert report.problems == ()
    assert report.vectors == 6
    assert [path.name for path in tmp_path.iterdir() if "damaged" in path.name] == []
    if damage not in (_emptied, _deleted):
        assert "index_discarded" in names
    memory.close()


def test_a_directory_that_the_user_named_is_moved_aside_and_the_event_says_where(tmp_path: Path) -> None:
    memory = open_with_vectors(tmp_path / "memory.db", chroma=tmp_path / "mine")
    filled(memory)
    memory.close()
    _overwritten(tmp_path / "mine")
    memory = open_with_vectors(tmp_path / "memory.db", chroma=tmp_path / "mine")
    reasons: list[str] = []
    memory.subscribe(lambda event: reasons.append(event.reason) if event.name == "index_discarded" else None)
    assert memory.rebuild_index().problems == ()
    (aside,) = [path for path in tmp_path.iterdir() if path.name.startswith("mine.damaged-")]
    assert str(aside) in reasons[0]
    assert (aside / "chroma.sqlite3").exists()
    memory.close()


def test_a_directory_rebuilt_beneath_another_memory_is_used_by_it(tmp_path: Path) -> None:
    one, other = open_with_vectors(tmp_path / "memory.db"), open_with_vectors(tmp_path / "memory.db")
    filled(one)
    assert found_by_vectors(other, "sync")
    (tmp_path / "memory.db.chroma" / "chroma.sqlite3").write_bytes(b"garbage" * 1000)
    assert one.rebuild_index().problems == ()
    assert other.verify().problems == ()
    assert other.verify().vectors == 6
    one.close()
    other.close()


@pytest.mark.service
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_server_that_came_back_empty_is_filled_again_by_flush(tmp_path: Path, call_style: CallStyle) -> None:
    with chroma_server(tmp_path / "rows") as server:
        memory = open_with_vectors(tmp_path / "memory.db", chroma=server.url)
        filled(memory)
        names = told_names(memory)
        server.end()
        server.start(tmp_path / "emptied")
        report = told(call_style, memory.flush)
        assert (report.vectors, report.pending) == (6, 0)
        assert names.count("vectors_lost") == 1
        assert memory.verify().problems == ()
        assert told(call_style, memory.flush).vectors == 0
        memory.close()


@pytest.mark.service
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_server_that_came_back_with_half_of_it_is_filled_up(tmp_path: Path, call_style: CallStyle) -> None:
    with chroma_server(tmp_path / "rows") as server:
        memory = open_with_vectors(tmp_path / "memory.db", chroma=server.url)
        filled(memory, sessions=2)
        server.end()
        shutil.copytree(tmp_path / "rows", tmp_path / "older")
        server.start()
        filled(memory, sessions=5)
        server.end()
        server.start(tmp_path / "older")
        assert told(call_style, memory.flush).pending == 0
        assert memory.verify().problems == ()
        memory.close()


@pytest.mark.service
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_search_notices_a_server_that_came_back_empty(tmp_path: Path, call_style: CallStyle) -> None:
    with chroma_server(tmp_path / "rows") as server:
        memory = open_with_vectors(tmp_path / "memory.db", chroma=server.url)
        filled(memory)
        names = told_names(memory)
        server.end()
        server.start(tmp_path / "emptied")
        assert found_by_vectors(memory, call_style)
        assert names.count("vectors_lost") == 1
        assert memory.verify().vectors == 2  # those of the session that was searched; the others wait in the queue
        assert memory.flush().vectors == 4
        assert memory.verify().problems == ()
        memory.close()


@pytest.mark.service
@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("background", [False, True])
def test_nothing_hangs_on_a_stopped_server_and_search_goes_on_by_words(
    tmp_path: Path, call_style: CallStyle, *, background: bool
) -> None:
    # What hangs meets the time limit of the suite.
    with chroma_server(tmp_path / "rows") as server:
        memory = open_with_vectors(tmp_path / "memory.db", chroma=server.url, background=background)
        filled(memory)
        names = told_names(memory)
        server.freeze()
        session = memory.session("s0")
        told(call_style, session.add_messages, [HumanMessage("The anchor is rusty.")])
        shown = told(call_style, session.context, "How many bolts?", max_tokens=2000)
        assert "crates of bolts" in str(shown.messages)
        assert told(call_style, session.search, "anchor", k=1)[0].text == "The anchor is rusty."
        assert told(call_style, memory.flush).pending
        assert told(call_style, memory.flush, 5.0).pending
        assert told(call_style, memory.verify).problems
        receipt = told(call_style, memory.session("s1").forget)
        assert receipt.may_remain
        assert "vectors_unavailable" in names
        server.thaw()
        assert told(call_style, memory.flush).pending == 0
        assert {one.kind for one in told(call_style, memory.verify).problems} == {"unfinished_removal"}
        assert told(call_style, memory.doctor).left == ()
        server.freeze()
        told(call_style, memory.session("s2").add_messages, [HumanMessage("And one for the worker.")])
        told(call_style, memory.close)
        server.thaw()


@pytest.mark.service
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_server_that_stays_silent_is_asked_once_then_behind_the_questions_until_it_answers(
    tmp_path: Path, call_style: CallStyle
) -> None:
    with chroma_server(tmp_path / "rows") as server:
        memory = open_with_vectors(tmp_path / "memory.db", chroma=server.url)
        filled(memory)
        events: list[Event] = []
        memory.subscribe(events.append)
        index = memory.core.runtime.open_index()
        assert index is not None
        asked: list[str] = []
        plain = index.search
        index.search = lambda *given, **named: (asked.append("it"), plain(*given, **named))[1]  # type: ignore[method-assign]
        server.freeze()
        for _ in range(20):
            assert told(call_style, memory.session("s0").search, "bolts", k=1)  # by words
            told(call_style, memory.session("s0").context, "bolts?", max_tokens=2000)
        assert asked == ["it"]
        assert [(one.name, "in 1 s" in one.reason) for one in events] == [("vectors_unavailable", True)]
        server.thaw()
        for _ in range(600):
            told(call_style, memory.session("s0").search, "bolts", k=1)
            if events[-1].name == "vectors_back":
                break
            time.sleep(0.05)
        assert [one.name for one in events] == ["vectors_unavailable", "vectors_back"]
        assert found_by_vectors(memory, call_style)
        memory.close()


@pytest.mark.service
def test_many_threads_at_a_stopped_server_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with chroma_server(tmp_path / "rows") as server:
        memory = open_with_vectors(tmp_path / "memory.db", chroma=server.url)
        filled(memory)
        server.freeze()
        threads = [threading.Thread(target=memory.session("s0").search, args=("bolts",)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        server.thaw()
        memory.close()


def test_a_server_that_is_frozen_while_the_client_is_made_is_given_up(tmp_path: Path) -> None:
    """It gives a sign of life, and then no answer: a proxy whose server behind hangs."""
    import socketserver  # noqa: PLC0415 - for this server alone

    class Answering(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked = self.rfile.readline()
            if b"heartbeat" not in asked:
                time.sleep(5)
                return
            said = b'{"nanosecond heartbeat": 1}'
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                + f"Content-Length: {len(said)}\r\n\r\n".encode()
                + said
            )

    class Serving(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Serving(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        memory = open_with_vectors(tmp_path / "memory.db", chroma=f"http://127.0.0.1:{server.server_address[1]}")
        names = told_names(memory)
        memory.session("s").add_messages([HumanMessage("bolts")])
        assert memory.session("s").search("bolts")
        assert memory.flush().pending
        assert "vectors_unavailable" in names
        memory.close()
        server.shutdown()
