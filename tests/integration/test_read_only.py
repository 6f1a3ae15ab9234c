"""A memory that only reads writes nothing; and one that may not write just now goes on reading."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sqlite3
import stat
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage
from sqlalchemy import create_engine, text

from langchain_tiered_memory.errors import (
    OlderSchemaError,
    ReadOnlyError,
    SettingsError,
    StorageBusyError,
    StorageError,
    StorageFullError,
)
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.sql import database
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.memory_builders import conversation, open_memory, quick_settings, store_of
from tests.servers import unprivileged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_tiered_memory.memory import Session
    from langchain_tiered_memory.reports import Event

pytestmark = pytest.mark.slow

ASSETS = Path(__file__).parents[1] / "assets"
QUESTION = "Which team checked the crane?"
_PATIENCE_SECONDS = 0.3


def fill(where: str | Path, **choices: Any) -> None:
    with open_memory(where, **choices) as memory:
        memory.session("s").add_messages(conversation(20))
        memory.flush()


def bytes_of(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file of a folder by its content and the time of its last change."""
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def read_all(call_style: CallStyle, memory: TieredMemory) -> None:
    """Every verb that reads, each with something to read."""
    session = memory.session("s")
    assert len(told(call_style, session.messages)) == 40
    assert told(call_style, session.context, QUESTION, max_tokens=600).tokens <= 600
    assert told(call_style, session.context, "", max_tokens=500).messages
    hits = told(call_style, session.search, QUESTION)
    assert hits
    assert told(call_style, session.expand, hits[0].id)
    assert told(call_style, session.metrics).messages == 40
    assert told(call_style, session.revisions, "q1") == []
    told(call_style, session.checkpoints)
    told(call_style, session.outcomes)
    assert told(call_style, memory.sessions) == ["s"]
    assert told(call_style, memory.verify).problems == ()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="ltm-read-"))
    folder.chmod(0o777)
    yield folder
    folder.chmod(0o777)
    shutil.rmtree(folder)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("vectors", [False, True])
def test_a_memory_that_only_reads_changes_no_byte_and_leaves_no_file(
    tmp_path: Path,
    call_style: CallStyle,
    vectors: bool,  # noqa: FBT001
) -> None:
    chosen: dict[str, Any] = {"embeddings": HashingEmbeddings() if vectors else None}
    fill(tmp_path / "memory.db", **chosen)
    before = bytes_of(tmp_path)
    chosen |= {"settings": quick_settings(background=True), "token_counter": EstimatingCounter(), "read_only": True}
    if call_style == "sync":
        memory = TieredMemory.open(tmp_path / "memory.db", **chosen)
    else:
        memory = asyncio.run(TieredMemory.aopen(tmp_path / "memory.db", **chosen))
    read_all(call_style, memory)
    assert bytes_of(tmp_path) == before
    told(call_style, memory.close)
    assert bytes_of(tmp_path) == before


WRITING: dict[str, Callable[[TieredMemory, Session], tuple[Any, tuple[Any, ...], dict[str, Any]]]] = {
    "add_messages": lambda _, session: (session.add_messages, ([HumanMessage("new")],), {}),
    "add no message": lambda _, session: (session.add_messages, ([],), {}),
    "pin": lambda _, session: (session.pin, ("q1",), {}),
    "unpin": lambda _, session: (session.unpin, ("q1",), {}),
    "forget messages": lambda _, session: (session.forget, (), {"message_ids": ["q1"]}),
    "forget a session": lambda _, session: (session.forget, (), {}),
    "forget a user": lambda memory, _: (memory.forget, (), {"user": "nobody"}),
    "flush a session": lambda _, session: (session.flush, (), {}),
    "flush": lambda memory, _: (memory.flush, (), {}),
    "end": lambda _, session: (session.end, (), {}),
    "checkpoint": lambda _, session: (session.checkpoint, (), {}),
    "start_task": lambda _, session: (session.start_task, ("t",), {}),
    "phase": lambda _, session: (session.phase, ("p",), {}),
    "doctor": lambda memory, _: (memory.doctor, (), {}),
    "rebuild_index": lambda memory, _: (memory.rebuild_index, (), {}),
    "learn_window": lambda memory, _: (memory.learn_window, ("model", 4096), {}),
}


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("verb", WRITING)
def test_each_verb_that_writes_says_that_the_memory_only_reads(
    tmp_path: Path, call_style: CallStyle, verb: str
) -> None:
    fill(tmp_path / "memory.db")
    before = bytes_of(tmp_path)
    with open_memory(tmp_path / "memory.db", read_only=True) as memory:
        method, given, named = WRITING[verb](memory, memory.session("s"))
        with pytest.raises(ReadOnlyError, match="read_only=True"):
            told(call_style, method, *given, **named)
    assert bytes_of(tmp_path) == before


def test_what_others_write_is_seen_while_the_memory_only_reads(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    fill(where)
    with open_memory(where, read_only=True) as reader:
        assert len(reader.session("s").messages()) == 40
        with open_memory(where) as writer:
            writer.session("s").add_messages(conversation(2, start=50))
            assert len(reader.session("s").messages()) == 44
            writer.session("s").add_messages(conversation(1, start=60))
            assert len(reader.session("s").messages()) == 46
        assert len(reader.session("s").messages()) == 46
        assert reader.verify().problems == ()


def test_a_read_during_which_somebody_wrote_is_made_again(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    fill(where)
    with open_memory(where, read_only=True) as reader:
        database, rounds = store_of(reader).database, []

        def look() -> int:
            with database.read() as connection:
                found = int(connection.execute(text("SELECT count(*) FROM ltm_entries")).scalar_one())
                if not rounds:
                    with open_memory(where) as writer:
                        writer.session("s").add_messages(conversation(1, start=70))
                rounds.append(found)
            return found

        with pytest.raises(StorageBusyError, match="another process while it was read"):
            look()
        assert look() == 42


def test_a_memory_that_somebody_writes_to_can_be_opened_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = tmp_path / "memory.db"
    fill(where)
    missing_steps, rounds = database.missing_steps, list[int]()

    def meanwhile(connection: Any) -> int:
        rounds.append(1)
        if len(rounds) == 1:
            with open_memory(where) as writer:
                writer.session("s").add_messages(conversation(1, start=70))
        return missing_steps(connection)

    monkeypatch.setattr(database, "missing_steps", meanwhile)
    with open_memory(where, read_only=True) as reader:
        assert len(reader.session("s").messages()) == 42
    assert len(rounds) == 3, "the reader looked, the writer did, and the reader looked again"


def test_messages_in_a_log_that_nobody_has_open_are_read(tmp_path: Path) -> None:
    where, copy = tmp_path / "memory.db", tmp_path / "copy"
    copy.mkdir()
    with open_memory(where) as memory:
        memory.session("s").add_messages(conversation(3))
        for path in tmp_path.glob("memory.db*"):
            if not path.name.endswith("-shm"):
                shutil.copy(path, copy / path.name)
    before = {name: found[0] for name, found in bytes_of(copy).items()}
    with open_memory(copy / "memory.db", read_only=True) as memory:
        assert len(memory.session("s").messages()) == 6
    after = {name: found[0] for name, found in bytes_of(copy).items() if not name.endswith("-shm")}
    assert after == before


@pytest.mark.parametrize("kept", ["schema_1.sqlite"])
def test_an_older_schema_is_refused_with_the_remedy_and_left_as_it_is(tmp_path: Path, kept: str) -> None:
    shutil.copy(ASSETS / kept, tmp_path / "memory.db")
    before = bytes_of(tmp_path)
    with pytest.raises(OlderSchemaError, match="open it once without read_only"):
        open_memory(tmp_path / "memory.db", read_only=True)
    assert bytes_of(tmp_path) == before


def test_there_must_be_something_to_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no database at"):
        open_memory(tmp_path / "memory.db", read_only=True)
    (tmp_path / "empty.db").touch()
    with pytest.raises(StorageError, match="holds no memory yet"):
        open_memory(tmp_path / "empty.db", read_only=True)
    with pytest.raises(SettingsError, match="read_only needs a path or a URL"):
        open_memory(None, read_only=True)
    assert bytes_of(tmp_path).keys() == {"empty.db"}


@pytest.mark.postgres
@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_memory_on_postgresql_only_reads(postgres_url: str, call_style: CallStyle) -> None:
    with pytest.raises(StorageError, match="holds no memory yet"):
        open_memory(postgres_url, read_only=True)
    fill(postgres_url)
    with open_memory(postgres_url, read_only=True) as memory:
        read_all(call_style, memory)
        with pytest.raises(ReadOnlyError, match="read_only=True"):
            told(call_style, memory.session("s").add_messages, conversation(1))
        with store_of(memory).database.engine.connect() as connection:
            assert connection.execute(text("SHOW default_transaction_read_only")).scalar_one() == "on"


@pytest.mark.postgres
def test_a_server_that_takes_no_writes_is_read_and_reported(postgres_url: str) -> None:
    fill(postgres_url)
    engine = create_engine(postgres_url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        name = connection.execute(text("SELECT current_database()")).scalar_one()
        connection.execute(text(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'))
    engine.dispose()
    with open_memory(postgres_url) as memory:
        goes_on_reading("sync", memory, ReadOnlyError)


def goes_on_reading(call_style: CallStyle, memory: TieredMemory, refused: type[StorageError]) -> list[Event]:
    """Assert that nothing can be written and everything be read, and that it is told."""
    events: list[Event] = []
    memory.subscribe(events.append)
    session = memory.session("s")
    with pytest.raises(refused):
        told(call_style, session.add_messages, conversation(1, start=90))
    said = told(call_style, session.messages)
    assert len(said) >= 40
    small = told(call_style, session.context, "", max_tokens=450)
    assert 0 < small.tokens <= 450
    assert told(call_style, session.context, QUESTION, max_tokens=600).section("recall") is not None
    assert told(call_style, session.search, QUESTION)
    unwritten = [event for event in events if event.name == "view_not_written"]
    assert unwritten
    assert unwritten[0].details["error"] == refused.__name__
    return unwritten


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("vectors", [False, True])
def test_reading_goes_on_while_somebody_else_holds_the_lock(
    tmp_path: Path,
    call_style: CallStyle,
    vectors: bool,  # noqa: FBT001
) -> None:
    where = tmp_path / "memory.db"
    chosen: dict[str, Any] = {"embeddings": HashingEmbeddings() if vectors else None}
    fill(where, **chosen)
    settings = quick_settings().model_copy(update={"busy_seconds": _PATIENCE_SECONDS})
    with (
        open_memory(where, settings=settings, **chosen) as memory,
        closing(sqlite3.connect(where, isolation_level=None)) as stranger,
    ):
        stranger.execute("BEGIN IMMEDIATE")
        # One wait for all that could not be written: whoever only reads does not wait for each again.
        assert len(goes_on_reading(call_style, memory, StorageBusyError)) == 1
        stranger.execute("ROLLBACK")
        told(call_style, memory.session("s").add_messages, conversation(1, start=90))
        assert told(call_style, memory.verify).problems == ()


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("is_open", [True, False], ids=["while it is open", "before it is opened"])
def test_reading_goes_on_in_a_folder_where_nobody_may_write(
    open_folder: Path,
    call_style: CallStyle,
    is_open: bool,  # noqa: FBT001
) -> None:
    where = open_folder / "memory.db"
    with unprivileged():
        fill(where)
        memory = open_memory(where) if is_open else None
    where.chmod(0o444)
    open_folder.chmod(0o555)
    before = bytes_of(open_folder)
    with unprivileged():
        if memory is None:
            memory = open_memory(where)
            goes_on_reading(call_style, memory, ReadOnlyError)
            memory.close()
            assert bytes_of(open_folder) == before
        else:
            read_all(call_style, memory)
            memory.close()


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_reading_goes_on_when_the_disk_is_full(tmp_path: Path, call_style: CallStyle) -> None:
    where = tmp_path / "memory.db"
    fill(where)
    with open_memory(where) as memory:
        with store_of(memory).database.read() as connection:
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()
            connection.execute(text(f"PRAGMA max_page_count = {pages}"))
        session = memory.session("s")
        with pytest.raises(StorageFullError):  # noqa: PT012 - it takes some writes to fill the last pages
            for number in range(2000):
                told(call_style, session.add_messages, [HumanMessage(f"{number} " * 60, id=f"long{number}")])
        there = {message.id for message in told(call_style, session.messages)}
        goes_on_reading(call_style, memory, StorageFullError)
        with store_of(memory).database.read() as connection:
            connection.execute(text("PRAGMA max_page_count = 1000000"))
        told(call_style, session.add_messages, conversation(1, start=90))
        assert {message.id for message in told(call_style, session.messages)} == there | {"q90", "a90"}
        assert told(call_style, memory.verify).problems == ()


def test_whoever_may_not_write_hears_it_when_the_memory_is_opened(
    open_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    where = open_folder / "memory.db"
    with unprivileged():
        fill(where)
    where.chmod(0o444)
    open_folder.chmod(0o555)
    with unprivileged(), open_memory(where):
        assert any("opened_read_only" in record.message for record in caplog.records)
    assert stat.S_IMODE(where.stat().st_mode) == 0o444
