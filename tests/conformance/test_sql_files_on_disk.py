"""The files of an SQLite database: whose they are, whether they are still the same, and what a cut log leaves."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from typing import TYPE_CHECKING

import pytest

from langchain_tiered_memory.cli.app import run as run_command
from langchain_tiered_memory.errors import DatabaseReplacedError, NotOurDatabaseError, SettingsError
from langchain_tiered_memory.settings import Settings
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.embedders import HashingEmbeddings
from tests.memory_builders import conversation, open_memory, quick_settings, store_of
from tests.spread import spread
from tests.store_builders import append, ids, incoming, open_store, session_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

HAS_MODES = sys.platform != "win32"
needs_modes = pytest.mark.skipif(not HAS_MODES, reason="Windows has no such modes")


def take_away(path: Path) -> None:
    path.unlink()


def move_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def replace_with_a_copy(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def replace_with_another(path: Path) -> None:
    other = path.with_name("other.db")
    store = open_store(other)
    session_with(store, 1)
    store.database.close()
    other.replace(path)


@pytest.mark.parametrize("call_style", CALL_STYLES)
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
@pytest.mark.parametrize("change", [take_away, move_away, replace_with_a_copy])
def test_a_write_to_a_file_that_was_taken_away_is_refused_and_reading_goes_on(
    tmp_path: Path, call_style: CallStyle, suffix: str, change: Callable[[Path], None]
) -> None:
    where = tmp_path / "memory.db"
    with open_memory(where) as memory:
        session = memory.session("s")
        told(call_style, session.add_messages, conversation(12))
        told(call_style, session.flush)
        change(where.with_name(where.name + suffix))
        for _ in range(2):
            with pytest.raises(DatabaseReplacedError, match="close this memory and open it again"):
                told(call_style, session.add_messages, conversation(1, start=40))
        assert len(told(call_style, session.messages)) == 24
        assert told(call_style, session.context, "", max_tokens=400).tokens <= 400


def test_a_connection_that_is_opened_later_never_mixes_two_files_nor_makes_one_anew(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    store = open_store(where)
    ref = session_with(store, 3)
    replace_with_another(where)
    with store.database.read() as held:
        del held
        with pytest.raises(DatabaseReplacedError):
            store.transcript.entries(ref)
    where.unlink()
    with store.database.read() as held:
        del held
        with pytest.raises(DatabaseReplacedError):
            store.transcript.entries(ref)
    assert not where.exists()
    assert len(store.transcript.entries(ref)) == 3
    store.database.close()


def test_a_file_that_was_put_back_takes_writes_again(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    store = open_store(where)
    ref = session_with(store, 2)
    move_away(where)
    with pytest.raises(DatabaseReplacedError):
        append(store, "s", incoming())
    where.with_name("elsewhere").rename(where)
    append(store, "s", incoming("back", "back"))
    store.database.close()
    again = open_store(where)
    assert ids(again.transcript.entries(ref)) == ["m1", "m2", "back"]
    again.database.close()


def test_what_another_process_does_to_the_log_in_the_ordinary_way_is_no_replacement(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    one, two = open_store(where), open_store(where)
    session_with(one, 300)
    assert two.removal.erase_traces() == ()
    append(one, "s", incoming("after the log was emptied"))
    two.database.close()
    append(one, "s", incoming("after the other left"))
    one.database.engine.dispose()
    append(one, "s", incoming("after every connection was closed"))
    one.database.close()


def test_an_sqlite_url_with_options_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="takes no options here"):
        open_store(f"sqlite:///{tmp_path}/memory.db?mode=ro&uri=true")


@pytest.fixture(params=[0o022, 0o000, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """Each way that a process may be set up."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """The mode of everything below a folder."""
    return {str(one.relative_to(folder)): stat.S_IMODE(one.stat().st_mode) for one in folder.rglob("*")}


@needs_modes
@pytest.mark.parametrize(("mode", "folders"), [(0o600, 0o700), (0o640, 0o750), (0o660, 0o770)])
def test_files_and_folders_have_the_mode_of_the_settings_whatever_the_umask(
    tmp_path: Path, umask: int, mode: int, folders: int
) -> None:
    del umask
    settings = quick_settings().model_copy(update={"file_mode": mode})
    chroma = tmp_path / "below" / "chroma"
    with open_memory(
        tmp_path / "memory.db", embeddings=HashingEmbeddings(), chroma=chroma, settings=settings
    ) as memory:
        memory.session("s").add_messages(conversation(8))
        memory.flush()
        found = modes(tmp_path)
        assert {"memory.db", "memory.db-wal", "memory.db-shm", "below/chroma/chroma.sqlite3"} <= set(found)
        for name, has in found.items():
            assert has == (folders if (tmp_path / name).is_dir() else mode), name


@needs_modes
def test_files_of_the_user_keep_their_modes_and_doctor_names_those_that_are_open(tmp_path: Path) -> None:
    where = tmp_path / "memory.db"
    chroma = tmp_path / "memory.db.chroma"
    where.touch()
    where.chmod(0o644)
    chroma.mkdir()
    chroma.chmod(0o755)
    with open_memory(where, embeddings=HashingEmbeddings()) as memory:
        memory.session("s").add_messages(conversation(8))
        memory.flush()
        report = memory.doctor()
        assert report.healthy
        assert [note.split()[0] for note in report.notes] == [
            str(where.with_name(where.name + suffix)) for suffix in ("", "-wal", "-shm", ".chroma")
        ]
        assert "chmod 600" in report.notes[0]
        assert "chmod 700" in report.notes[-1]
    assert stat.S_IMODE(where.stat().st_mode) == 0o644
    assert stat.S_IMODE(chroma.stat().st_mode) == 0o755


@needs_modes
def test_without_a_mode_files_are_as_the_umask_has_it(tmp_path: Path, umask: int) -> None:
    settings = quick_settings().model_copy(update={"file_mode": None})
    with open_memory(tmp_path / "memory.db", settings=settings) as memory:
        assert modes(tmp_path)["memory.db"] == 0o666 & ~umask
        assert memory.doctor().notes == ()


def test_a_mode_that_keeps_the_owner_out_is_refused() -> None:
    with pytest.raises(SettingsError, match="0o600 or more"):
        Settings(file_mode=0o400)


@needs_modes
def test_an_export_is_for_its_owner_alone(tmp_path: Path) -> None:
    with open_memory(tmp_path / "memory.db") as memory:
        memory.session("s").add_messages(conversation(2))
    assert run_command(["export", str(tmp_path / "memory.db"), "--out", str(tmp_path / "out.jsonl")]) == 0
    assert modes(tmp_path) == {"memory.db": 0o600, "out.jsonl": 0o600}


def logged(folder: Path) -> tuple[bytes, bytes, int, int]:
    """A database and its log with real content, how many messages are in the first, and how many in both."""
    where = folder / "source.db"
    with open_memory(where) as memory:
        session = memory.session("s")
        session.add_messages(conversation(10))
        memory.flush()
        assert not store_of(memory).database.vacuum()
        kept = len(session.messages())
        for number in range(10, 22):
            session.add_messages(conversation(1, start=number))
            memory.flush()
        session.pin("q3")
        session.forget(message_ids=["q20"])
        for number in range(30, 36):
            session.add_messages(conversation(1, start=number))
        files = where.read_bytes(), where.with_name("source.db-wal").read_bytes()
        return *files, kept, len(session.messages())


@pytest.mark.parametrize("wound", ["cut", "zeros", "noise"])
def test_a_log_that_is_damaged_anywhere_leaves_what_was_committed_before_it(tmp_path: Path, wound: str) -> None:
    main, log, kept, whole = logged(tmp_path)
    seen: list[int] = []
    for number in spread(25, 4):
        at = len(log) * number // 24
        tail = {"cut": b"", "zeros": bytes(len(log) - at), "noise": b"\xa5" * (len(log) - at)}[wound]
        folder = tmp_path / f"{number}"
        folder.mkdir()
        (folder / "memory.db").write_bytes(main)
        (folder / "memory.db-wal").write_bytes(log[:at] + tail)
        try:
            memory = open_memory(folder / "memory.db")
        except NotOurDatabaseError:
            pytest.fail(f"the log cut at {at} of {len(log)} keeps the database from being opened")
        with memory:
            session = memory.session("s")
            there = len(session.messages())
            seen.append(there)
            assert kept <= there <= whole
            assert memory.verify().problems == ()
            assert [message.id for message in session.messages()][:kept] == [
                message.id for message in conversation(kept // 2)
            ]
            session.add_messages(conversation(1, start=80))
            memory.flush()
            assert memory.doctor().healthy
    assert seen == sorted(seen), "the more of the log is whole, the more is there"
    assert kept <= seen[0] < seen[-1] == whole, seen
