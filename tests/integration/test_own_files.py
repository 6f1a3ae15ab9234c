"""A run shows the project's files and never the memory's own; and of each file one state that it was in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_tiered_memory.errors import FileChangingError, FileRefusedError
from langchain_tiered_memory.runs.files import disk
from langchain_tiered_memory.runs.files.disk import Disk, OwnFiles
from langchain_tiered_memory.testing import FrozenClock
from tests.embedders import HashingEmbeddings
from tests.memory_builders import open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from langchain_tiered_memory.memory import TieredMemory

WORDS = b"Qplant5577"
OWN = {
    "database": "m.db",
    "log": "m.db-wal",
    "index of the log": "m.db-shm",
    "journal": "m.db-journal",
    "vectors": "m.db.chroma/chroma.sqlite3",
    "damaged vectors": "m.db.chroma.damaged-1234/x",
    "link": "src/link",
    "hard link": "src/hard",
    "hard link to the log": "src/hard-wal",
    "hard link to vectors": "src/hard-chroma",
    "linked folder": "src/folder/chroma.sqlite3",
    "other spelling": "src/../m.db-wal",
    "linked root": "src/again/m.db",
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[TieredMemory]:
    """A memory below the root of its runs, with links of every kind that lead to its files."""
    with open_memory(tmp_path / "m.db", embeddings=HashingEmbeddings()) as opened:
        session = opened.session("s")
        session.add_messages([HumanMessage(f"The passphrase is {WORDS.decode()}.", id="secret")])
        session.flush()
        src = tmp_path / "src"
        src.mkdir()
        for name in ("m.db.txt", "m.dbx", "n.db-wal"):
            (tmp_path / name).write_text("the project's own")
        (src / "link").symlink_to(tmp_path / "m.db-wal")
        (src / "folder").symlink_to(tmp_path / "m.db.chroma")
        (src / "again").symlink_to(tmp_path)
        (src / "hard").hardlink_to(tmp_path / "m.db")
        (src / "hard-wal").hardlink_to(tmp_path / "m.db-wal")
        (src / "hard-chroma").hardlink_to(tmp_path / "m.db.chroma" / "chroma.sqlite3")
        yield opened


def test_the_memorys_own_files_are_never_opened_kept_or_listed(memory: TieredMemory, tmp_path: Path) -> None:
    with memory.run("s", roots=tmp_path, critical="m.db", background=False) as run:
        for path in OWN.values():
            with pytest.raises(FileRefusedError, match="a file of this memory itself"):
                run.open(path)
        with pytest.raises(FileRefusedError, match="a file of this memory itself"):
            run.keep(tmp_path / "m.db-wal", WORDS)
        assert run.report().not_loaded == ("m.db",)
        for path in ("m.db.txt", "m.dbx", "n.db-wal"):
            assert run.open(path).text == "the project's own"
        assert {os.path.basename(one.path) for one in run.files()} == {"m.db.txt", "m.dbx", "n.db-wal"}  # noqa: PTH119
    found, unread = memory.core.runtime.store.disk.checksums(OWN.values(), roots=[str(tmp_path)])
    assert found == {}
    assert set(unread) == set(OWN.values())
    memory.session("s").forget(message_ids=["secret"])
    assert not any(WORDS in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_own_files_that_an_earlier_version_kept_leave_with_the_next_collection(
    memory: TieredMemory, tmp_path: Path
) -> None:
    run = memory.run("s", roots=tmp_path, background=False)
    run.keep("kept", WORDS)
    with memory.core.runtime.store.database.write() as connection:
        from langchain_tiered_memory.sql import schema  # noqa: PLC0415 - a row as it stood before

        path = str(tmp_path / "m.db-wal")
        values = {"path": schema.packed(path), "path_digest": schema.digest_of(path), "modified_ns": 1}
        connection.execute(schema.kept_files.update().values(values))
    assert [one.path for one in run.files()] == [path]
    run.collect()
    assert run.files() == []
    assert memory.verify().problems == ()


def test_files_beside_a_database_are_its_own_by_each_way_that_leads_to_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    own = OwnFiles.of(tmp_path / "link" / "m.db", None)
    for way in ("real", "link"):
        for name in ("m.db", "m.db-wal", "m.db.chroma/later", "m.db.chroma"):
            assert own.has(tmp_path / way / name)
        assert not own.has(tmp_path / way / "n.db-wal")


def test_a_database_in_memory_has_no_files_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "m.db").write_text("the project's own")
    with open_memory(None) as memory, memory.run("s", roots=tmp_path, background=False) as run:
        assert run.open("m.db").text == "the project's own"


OLD = (1e9, 1e9)


@pytest.mark.parametrize("way", ["in place", "another file", "another folder"])
def test_a_change_that_keeps_size_and_time_is_noticed(way: str, tmp_path: Path) -> None:
    """As `cp -p`, `rsync -t` and `tar x` leave it; long after, by the clock of the memory."""
    root, other = tmp_path / "root", tmp_path / "other"
    for folder, words in ((root, "port 8080"), (other, "port 9090")):
        folder.mkdir()
        (folder / "a.txt").write_text(words)
        os.utime(folder / "a.txt", OLD)
    clock = FrozenClock((root / "a.txt").stat().st_ctime + 3600)
    with open_memory(None, clock=clock) as memory, memory.run("s", roots=root, background=False) as run:
        assert run.open("a.txt").text == "port 8080"
        assert (run.open("a.txt").state, run.open("a.txt").file.modified_ns > 0) == ("unchanged", True)
        if way == "in place":
            (root / "a.txt").write_text("port 9090")
            os.utime(root / "a.txt", OLD)
        elif way == "another file":
            (other / "a.txt").rename(root / "a.txt")
        else:
            root.rename(tmp_path / "aside")
            other.rename(root)
        opened = run.open("a.txt")
        assert (opened.state, opened.text) == ("changed", "port 9090")


@pytest.mark.parametrize("times", [1, 3, 99])
def test_a_file_that_is_written_while_it_is_read_is_read_again_and_at_last_refused(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, size = tmp_path / "a.txt", 1000
    path.write_bytes(b"a" * size)
    os.utime(path, OLD)
    done = []

    def torn(file: Any, most: int) -> bytes:
        """Somebody writes when half of the file is read, `times` times."""
        first = file.read(size // 2)
        if len(done) < times:
            done.append(letter := b"bc"[len(done) % 2 :][:1])
            path.write_bytes(letter * size)
        return first + file.read(most)

    monkeypatch.setattr(disk, "_all_of", torn)
    place = Disk().place("a.txt", roots=[str(tmp_path)])
    now = path.stat().st_ctime + 3600
    if times > 8:
        with pytest.raises(FileChangingError, match="it changed during each of 8 readings"):
            Disk().read(place, most_bytes=size, now=now)
        assert len(done) == 8
    else:
        content = Disk().read(place, most_bytes=size, now=now).content
        assert content == done[-1] * size
        assert len(done) == times
