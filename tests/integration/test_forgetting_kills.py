"""A removal that is broken off anywhere is carried to its end, and a receipt names where bytes still stand."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from sqlalchemy import event

from langchain_tiered_memory.errors import IndexUnavailableError
from langchain_tiered_memory.forgetting.forget import resume_removals
from langchain_tiered_memory.forgetting.row_removal import Removal
from langchain_tiered_memory.recall.chroma.index import ChromaIndex
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.memory_builders import open_memory, quick_settings, store_of
from tests.spread import EXHAUSTIVE, drawn
from tests.writers import start

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory

pytestmark = pytest.mark.slow
SECRET = "zanzibar"


class Killed(BaseException):
    """Nothing that anybody catches."""


def planted(memory: TieredMemory) -> None:
    """Two sessions of one user that say a word, one of them in a summary, and one that does not."""
    for name in ("a", "b"):
        said = [HumanMessage(f"Remember {SECRET}{number}.", id=f"{name}{number}") for number in range(5)]
        session = memory.session(name, user="ann", title=f"{SECRET} title")
        session.start_task(f"{SECRET} task")
        session.add_messages([*said, AIMessage("Noted.", id=f"{name}-last")])
    memory.session("kept").add_messages([HumanMessage("Good morning.", id="k")])
    memory.flush()


def forgotten_by(memory: TieredMemory, what: str) -> Any:
    if what == "messages":
        return memory.session("a").forget(message_ids=[f"a{number}" for number in range(5)])
    return memory.forget(session_id="a") if what == "session" else memory.forget(user="ann")


def standing(folder: Path) -> list[str]:
    """Files under a folder that have the secret in them."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path.name for path in files if SECRET.encode() in path.read_bytes().lower()]


@contextmanager
def killed_at(memory: TieredMemory, number: int) -> Iterator[list[str]]:
    """Break off at the statement or commit of that number; gives those that were begun."""
    engine = store_of(memory).database.engine
    seen: list[str] = []

    def count(what: str) -> None:
        seen.append(what)
        if len(seen) == number:
            raise Killed

    def statement(_connection: Any, _cursor: Any, sql: str, *_: Any) -> None:
        count(sql)

    def commit(_connection: Any) -> None:
        count("COMMIT")

    event.listen(engine, "before_cursor_execute", statement)
    event.listen(engine, "commit", commit)
    try:
        yield seen
    except Killed:
        seen.append("KILLED")
    finally:
        event.remove(engine, "before_cursor_execute", statement)
        event.remove(engine, "commit", commit)


@pytest.mark.parametrize("what", ["messages", "session", "user"])
def test_a_forget_that_is_broken_off_at_any_statement_is_finished_by_the_next_open(what: str, tmp_path: Path) -> None:
    prepared, stride = tmp_path / "prepared", 1 if EXHAUSTIVE else 10
    prepared.mkdir()
    with open_memory(prepared / "memory.db") as memory:
        planted(memory)
        if what != "user":
            memory.forget(session_id="b")
    number, is_killed = drawn(what) % stride + 1 - stride, True
    while is_killed:
        number += stride
        folder = shutil.copytree(prepared, tmp_path / str(number))
        with open_memory(folder / "memory.db") as memory:
            with killed_at(memory, number) as seen:
                forgotten_by(memory, what)
            is_killed = seen[-1] == "KILLED"
            begun = store_of(memory).removal.begun()
            named = [one.kind for one in memory.verify().problems]
            assert named == ["unfinished_removal"] * len(begun)
        with open_memory(folder / "memory.db") as memory:
            there = memory.session("a").messages()
            if begun or not is_killed or len(there) < 6:
                assert [one.text for one in there] == (["Noted."] if what == "messages" else [])
                assert_gone(folder, memory, what)
            assert memory.verify().problems == ()
            assert [one.id for one in memory.session("kept").messages()] == ["k"]
            forgotten_by(memory, what)
            assert_gone(folder, memory, what)
    assert number > 20, "it was broken off here and there"


def assert_gone(folder: Path, memory: TieredMemory, what: str) -> None:
    """The word stands nowhere; a title of a session that stays is not what was forgotten."""
    assert memory.session("a").search(SECRET) == []
    titles = [ref.title for ref in store_of(memory).transcript.sessions() if ref.title]
    if what == "messages":
        assert titles == [f"{SECRET} title"]
    else:
        assert titles == []
        assert standing(folder) == []


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_doctor_and_the_next_forget_finish_what_was_broken_off(call_style: CallStyle, tmp_path: Path) -> None:
    for number in (14, 20, 28):
        folder = tmp_path / str(number)
        folder.mkdir()
        with open_memory(folder / "memory.db") as memory:
            planted(memory)
            with killed_at(memory, number) as seen:
                forgotten_by(memory, "user")
            assert seen[-1] == "KILLED"
            assert [one.kind for one in memory.verify().problems] == ["unfinished_removal"]
            if number == 20:
                told(call_style, memory.forget, session_id="nobody")
            else:
                report = told(call_style, memory.doctor)
                assert [one.kind for one in report.mended] == ["unfinished_removal"]
            assert memory.sessions() == ["kept"]
            assert standing(folder) == []
            assert memory.verify().problems == ()


@pytest.mark.parametrize("what", ["session", "user"])
def test_what_is_said_after_a_forget_was_broken_off_stays(what: str, tmp_path: Path) -> None:
    kept = 0
    for number in (2, 5, 9, 14, 30):
        folder = tmp_path / str(number)
        folder.mkdir()
        with open_memory(folder / "memory.db") as memory:
            planted(memory)
            with killed_at(memory, number) as seen:
                forgotten_by(memory, what)
            assert seen[-1] == "KILLED"
            begun = store_of(memory).removal.begun()
            kept += bool(begun and begun[0].targets)
            later = memory.session("a")
            later.start_task("new task")
            assert later.add_messages([HumanMessage("What is new?", id="new")]) == ["new"]
        with open_memory(folder / "memory.db") as memory:
            there = memory.session("a").messages()
            assert [one.text for one in there][-1:] == ["What is new?"]
            if begun:
                assert len(there) == 1
                assert standing(folder) == (["memory.db"] if what == "session" else [])
                ref = store_of(memory).transcript.find("a")
                assert ref is not None
                assert ref.title is None
                assert [one.id for one in store_of(memory).runs.tasks(ref, newest_finished=9)] == ["new task"]
            assert memory.verify().problems == ()
    assert kept >= 2, "it was broken off while the sessions still stood"


@pytest.mark.service
def test_the_database_is_not_rewritten_at_each_open_while_vectors_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any) -> Any:
        msg = "Chroma is out"
        raise IndexUnavailableError(msg)

    erased: list[Any] = []
    erase = Removal.erase_traces
    monkeypatch.setattr(Removal, "erase_traces", lambda self: erased.append(self) or erase(self))
    with monkeypatch.context() as patch:
        patch.setattr(ChromaIndex, "remove", down)
        with open_memory(tmp_path / "memory.db", embeddings=HashingEmbeddings()) as memory:
            planted(memory)
            memory.session("a").forget()
        assert len(erased) == 1
        for _ in range(3):
            with open_memory(tmp_path / "memory.db", embeddings=HashingEmbeddings()) as memory:
                assert [one.is_erased for one in store_of(memory).removal.begun()] == [True]
        assert len(erased) == 1
    with open_memory(tmp_path / "memory.db", embeddings=HashingEmbeddings()) as memory:
        assert store_of(memory).removal.begun() == []
        assert len(erased) == 1
        memory.session("b").forget()
        assert len(erased) == 2


def forget_and_die(where: str, number: int, pipe: Connection) -> None:
    """Forget a user, and die at a statement."""
    with open_memory(where) as memory:
        engine = store_of(memory).database.engine
        seen: list[str] = []

        @event.listens_for(engine, "before_cursor_execute")
        def _count(_connection: Any, _cursor: Any, sql: str, *_: Any) -> None:
            seen.append(sql)
            if len(seen) == number:
                os._exit(9)

        memory.forget(user="ann")
        pipe.send(len(seen))


@pytest.mark.parametrize("number", [14, 25, 40])
def test_a_process_that_is_killed_while_it_forgets_leaves_nothing_behind(number: int, tmp_path: Path) -> None:
    folder = tmp_path / "alone"
    folder.mkdir()
    with open_memory(folder / "memory.db") as memory:
        planted(memory)
    child, pipe = start(forget_and_die, str(folder / "memory.db"), number)
    child.join()
    pipe.close()
    assert child.exitcode == 9
    with open_memory(folder / "memory.db") as memory:
        assert memory.sessions() == ["kept"]
        assert standing(folder) == []
        assert memory.verify().problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_receipt_under_a_reader_names_every_file_in_which_bytes_stand(call_style: CallStyle, tmp_path: Path) -> None:
    folder = tmp_path / "alone"
    folder.mkdir()
    with open_memory(folder / "memory.db") as memory:
        planted(memory)
    impatient = quick_settings().model_copy(update={"busy_seconds": 0.5})
    with open_memory(folder / "memory.db", settings=impatient) as memory:
        with closing(sqlite3.connect(folder / "memory.db", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM ltm_entries").fetchone()
            receipt = told(call_style, memory.forget, user="ann")
            names = standing(folder)
            assert "memory.db" in names
            for name in names:
                assert any(name in place for place in receipt.may_remain), name
        assert [one.kind for one in memory.verify().problems] == ["unfinished_removal"]
        told(call_style, memory.doctor)
        assert standing(folder) == []
        assert memory.verify().problems == ()


@pytest.mark.service
def test_vectors_that_cannot_be_taken_out_now_are_taken_out_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any) -> Any:
        msg = "Chroma is out"
        raise IndexUnavailableError(msg)

    with open_memory(tmp_path / "memory.db", embeddings=HashingEmbeddings()) as memory:
        planted(memory)
        with monkeypatch.context() as patch:
            patch.setattr(ChromaIndex, "remove", down)
            receipt = memory.forget(user="ann")
        assert "Chroma is out" in receipt.may_remain[0]
        events: list[Any] = []
        memory.subscribe(events.append)
        with monkeypatch.context() as patch:
            patch.setattr(ChromaIndex, "remove", down)
            resume_removals(memory.core.runtime)
        assert [one.name for one in events] == ["removal_unfinished"]
    with open_memory(tmp_path / "memory.db", embeddings=None) as memory:
        assert "opened without" in memory.forget(session_id="kept").may_remain[0]
    with open_memory(tmp_path / "memory.db", embeddings=HashingEmbeddings()) as memory:
        memory.flush()
        assert memory.verify().vectors == 0
        assert memory.verify().problems == ()


@pytest.mark.parametrize("value", ["no hexadecimal", "", None])
def test_a_lost_key_of_what_was_forgotten_is_named_and_stops_nothing(value: str | None, tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        planted(memory)
        memory.forget(user="ann")
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection, connection:
        if value is None:
            connection.execute("DELETE FROM ltm_meta WHERE name = 'forgetting_key'")
        else:
            connection.execute("UPDATE ltm_meta SET value = ? WHERE name = 'forgetting_key'", [value])
    with open_memory(tmp_path / "memory.db") as memory:
        assert [one.kind for one in memory.verify().problems] == ["lost_forgetting_key"]
        assert memory.session("kept").forget().entries == 1
        assert memory.session("kept").add_messages([HumanMessage("New.", id="n")]) == ["n"]
