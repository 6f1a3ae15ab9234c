"""Opening, and everything that can be wrong with a database: each gets a clear error of ours."""

from __future__ import annotations

import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from langchain_tiered_memory.errors import (
    ClosedError,
    NotOurDatabaseError,
    SettingsError,
    StorageError,
)
from langchain_tiered_memory.sql.sqlite_files import SqliteFile
from tests.servers import postgres_server, unprivileged
from tests.store_builders import append, ids, incoming, open_store, session_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_tiered_memory.runtime import SqlStore
    from tests.servers import PostgresServer


pytestmark = pytest.mark.migrates


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, as pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="ltm-open-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_store_may_be_named_in_many_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session_with(open_store("memory.db"), 1)
    for same in (tmp_path / "memory.db", f"sqlite:///{tmp_path}/memory.db", "sqlite:///memory.db", "./memory.db"):
        store = open_store(same)
        assert [ref.session_id for ref in store.transcript.sessions()] == ["s"]
        store.database.close()
    for memory in (None, ":memory:", "sqlite://", "sqlite:///:memory:"):
        assert open_store(memory).database.in_memory
    assert min(path.name for path in tmp_path.iterdir()) == "memory.db"


@pytest.mark.parametrize("name", ["a b.db", "what?mode=ro#x.db", "100%25.db", "\u00fcber.db", "a:b@c.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    store = open_store(str(tmp_path / name))
    session_with(store, 1)
    store.database.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/d", "nonsense://", "postgresql://u:secret@h:port/d", "sqlite+aiosqlite:///x.db", "://"]
)
def test_a_url_that_cannot_be_used_is_refused_without_telling_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match="sqlite or postgresql URL") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


def test_two_stores_in_memory_share_nothing() -> None:
    first, second = open_store(), open_store()
    session_with(first, 1)
    assert second.transcript.sessions() == []
    assert first.database.identity != second.database.identity


def test_a_store_that_was_closed_says_so(where: str | Path | None) -> None:
    store = open_store(where)
    ref = session_with(store, 1)
    store.database.close()
    store.database.close()
    for use in (
        lambda: store.transcript.entries(ref),
        lambda: append(store, "s", incoming()),
        store.removal.erase_traces,
        store.inspection.damaged_text_index,
    ):
        with pytest.raises(ClosedError, match="open it again"):
            use()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist"):
        open_store(tmp_path / "nowhere" / "memory.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be opened"):
        open_store(tmp_path)


def test_a_file_of_another_program_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE theirs (x)")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(NotOurDatabaseError, match=r"another program.*'theirs'"):
        open_store(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"\x89PNG" + b"x" * 5000, b"just a text\n", b"SQLite format 3\0" + b"\0" * 200])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(NotOurDatabaseError, match="not a database of this package, or is damaged"):
        open_store(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "memory.db"
    store = open_store(path)
    session_with(store, 300)
    store.database.close()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(NotOurDatabaseError, match="damaged"):
        open_store(path)


def test_pages_that_were_overwritten_give_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = open_store(path)
    ref = session_with(store, 300)
    store.database.close()
    whole = bytearray(path.read_bytes())
    whole[20 * 4096 :] = b"\xa5" * (len(whole) - 20 * 4096)
    path.write_bytes(whole)
    with pytest.raises(NotOurDatabaseError, match="damaged"):
        open_store(path).transcript.entries(ref)


def test_a_folder_that_nobody_may_write_to_is_named(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    with unprivileged(), pytest.raises(StorageError, match="who may write"):
        open_store(open_folder / "memory.db")


def test_a_file_that_nobody_may_write_to_gives_an_error_of_ours(open_folder: Path) -> None:
    path = open_folder / "memory.db"
    store = open_store(path)
    session_with(store, 2)
    store.database.close()
    path.chmod(0o444)
    open_folder.chmod(0o555)
    with unprivileged(), pytest.raises(StorageError, match="who may write"):
        append(open_store(path), "s", incoming())


def test_a_full_disk_gives_an_error_of_ours_and_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db")
    ref = session_with(store, 5)
    with store.database.read() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()
    with store.database.read() as connection:
        connection.execute(text(f"PRAGMA max_page_count = {pages + 10}"))
    written = 5
    with pytest.raises(StorageError, match="no room left"):  # noqa: PT012 - it takes some writes to fill it
        while written < 10_000:
            append(store, "s", incoming("many words " * 500, f"m{written + 1}"))
            written += 1
    assert len(store.transcript.entries(ref)) == written
    assert store.inspection.damaged_text_index() == []
    with store.database.read() as connection:
        connection.execute(text("PRAGMA max_page_count = 1000000"))
    append(store, "s", incoming("room again", "last"))
    assert ids(store.transcript.entries(ref, newest_first=True, limit=1)) == ["last"]
    store.database.close()


def write_until_it_fails(path: str) -> None:
    """Run in a process of its own: a limit on file sizes is for a whole process."""
    store = open_store(path)
    size = Path(path).stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 2_000_000, resource.RLIM_INFINITY))
    for number in range(10_000):
        try:
            append(store, "s", incoming("many words " * 300, f"n{number}"))
        except StorageError:
            sys.stdout.write(str(number))
            return


def test_a_write_that_the_system_cuts_short_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    program = f"import tests.conformance.test_sql_opening as t; t.write_until_it_fails({str(path)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    store = open_store(path)
    ref = store.transcript.find("s")
    assert ref is not None
    assert len(store.transcript.entries(ref)) == int(done.stdout) > 0
    assert store.inspection.damaged_database() is None
    assert store.inspection.damaged_text_index() == []
    store.database.close()


@pytest.mark.postgres
def test_a_server_that_is_not_there_gives_an_error_of_ours_without_the_password() -> None:
    with pytest.raises(StorageError, match="cannot be reached") as caught:
        open_store("postgresql://u:secret@127.0.0.1:1/d", busy_seconds=2)
    assert "secret" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.postgres
def test_a_server_that_goes_and_comes_back_is_used_again(postgres: PostgresServer) -> None:
    if not postgres.is_ours:
        pytest.skip("somebody else's server is not stopped")
    own = postgres_server()
    try:
        store = open_store(own.new_database(), busy_seconds=1)
        ref = session_with(store, 2)
        own.stop()
        for use in (lambda: store.transcript.entries(ref), lambda: append(store, "s", incoming())):
            with pytest.raises(StorageError, match="cannot be reached"):
                use()
        own.start()
        append(store, "s", incoming("after", "after"))
        assert ids(store.transcript.entries(ref)) == ["m1", "m2", "after"]
        store.database.close()
    finally:
        own.remove()


@pytest.mark.postgres
def test_a_connection_that_breaks_in_a_transaction_gives_an_error_of_ours(postgres_url: str) -> None:
    store = open_store(postgres_url)
    ref = session_with(store, 1)
    with pytest.raises(StorageError, match="cannot be reached"), store.database.write() as connection:  # noqa: PT012 - one transaction
        connection.execute(text("UPDATE ltm_entries SET tokens = 99"))
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert store.transcript.entries(ref)[0].tokens == 2
    store.database.close()


@pytest.mark.postgres
def test_options_in_the_url_are_kept(postgres_url: str) -> None:
    setup = open_store(postgres_url)
    with setup.database.write() as connection:
        connection.execute(text("CREATE SCHEMA tenant"))
    setup.database.close()
    store = open_store(f"{postgres_url}?options=-csearch_path%3Dtenant")
    session_with(store, 1)
    with store.database.read() as connection:
        assert connection.execute(text("SELECT count(*) FROM tenant.ltm_entries")).scalar_one() == 1
    assert "options" not in store.database.label
    store.database.close()


def test_an_identity_stays_with_its_database(where: str | Path | None) -> None:
    store: SqlStore = open_store(where)
    assert len(store.database.identity) == 32
    store.database.close()


def test_a_new_file_that_another_process_is_turning_to_its_log_is_opened_when_that_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []
    connect = SqliteFile.connect

    def refused_at_first(file: SqliteFile) -> sqlite3.Connection:
        tried.append(file)
        if len(tried) <= 2:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return connect(file)

    monkeypatch.setattr(SqliteFile, "connect", refused_at_first)
    store = open_store(tmp_path / "memory.db")
    append(store, "s", incoming("kept", "1"))
    assert len(tried) > 2
    store.database.close()
