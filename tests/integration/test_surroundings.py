"""What a machine lacks is said where a person sees it, and `setup` fetches it from a server, here one on loopback."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import subprocess
import sys
import tarfile
import threading
import warnings
from typing import TYPE_CHECKING

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from typer.testing import CliRunner

from langchain_tiered_memory import SettingsError, TieredMemory
from langchain_tiered_memory.cli.app import app, run
from langchain_tiered_memory.errors import ReducedFunctionWarning
from langchain_tiered_memory.models import embeddings, token_counters
from langchain_tiered_memory.models.downloads import Download, fetch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODEL_FILES = embeddings._ARCHIVED_FILES


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without the model's files and without encodings; its home."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(home / "tiktoken"))
    monkeypatch.delenv("TIERED_MEMORY_MINILM_DIR", raising=False)
    monkeypatch.delenv("TIERED_MEMORY_DOWNLOAD", raising=False)
    monkeypatch.setattr("langchain_tiered_memory.models.surroundings._said", set())
    return home


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server on loopback: its address, and the folder whose files it gives out."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given: object) -> None:
            super().__init__(*given, directory=str(folder))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()


def archive_of(names: tuple[str, ...]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as opened:
        for name in names:
            said = f"this is {name}".encode()
            member = tarfile.TarInfo(f"onnx/{name}")
            member.size = len(said)
            opened.addfile(member, io.BytesIO(said))
    return buffer.getvalue()


def offer(monkeypatch: pytest.MonkeyPatch, address: str, folder: Path) -> None:
    """Have the downloads come from our server, with files and digests of our own."""
    archive = archive_of((*MODEL_FILES, "../../evil"))
    (folder / "onnx.tar.gz").write_bytes(archive)
    monkeypatch.setattr(embeddings, "_ARCHIVE_URL", f"{address}/onnx.tar.gz")
    monkeypatch.setattr(embeddings, "_ARCHIVE_SHA256", hashlib.sha256(archive).hexdigest())
    monkeypatch.setattr(token_counters, "_BLOB_URL", address + "/{name}.tiktoken")
    sums = {}
    for name in token_counters._SHA256:
        (folder / f"{name}.tiktoken").write_bytes(name.encode())
        sums[name] = hashlib.sha256(name.encode()).hexdigest()
    monkeypatch.setattr(token_counters, "_SHA256", sums)


@pytest.mark.slow
def test_what_is_missing_is_a_python_warning_once_in_a_program(bare: Path) -> None:
    assert bare.is_dir()
    code = (
        "from langchain_tiered_memory import TieredMemory\n"
        "for _ in range(3):\n"
        "    TieredMemory.open().close()\n"
        "TieredMemory.open().close()\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    assert said.count("search is by words alone") == 1
    assert said.count("token counts are estimates") == 1
    assert "<string>:3: ReducedFunctionWarning" in said, "it points at the line that opened the memory"
    assert "tiered-memory setup" in said


@pytest.mark.usefixtures("bare")
async def test_opening_without_blocking_says_it_too() -> None:
    with pytest.warns(ReducedFunctionWarning, match="by words alone"):
        memory = await TieredMemory.aopen()
    await memory.aclose()


@pytest.mark.usefixtures("bare")
def test_what_was_chosen_is_no_gap() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory = TieredMemory.open(embeddings=None, token_counter=len)
    with memory:
        status = memory.status()
    assert status.gaps == ()
    assert status.embedder is None
    assert not status.counts_are_estimates


@pytest.mark.usefixtures("bare")
def test_an_embedder_of_the_users_own_is_named() -> None:
    with TieredMemory.open(embeddings=DeterministicFakeEmbedding(size=8)) as memory:
        memory.session("s").add_messages([("user", "The pump is in hall 3.")])
        memory.flush()
        status = memory.status()
    assert status.embedder == "DeterministicFakeEmbedding"
    assert status.chroma == "this process's memory"
    assert (status.vectors, status.passages) == (1, 1)
    assert status.versions["langchain-tiered-memory"]


async def test_the_status_is_the_same_without_blocking() -> None:
    async with await TieredMemory.aopen(embeddings=None) as memory:
        assert await memory.astatus() == memory.status()


@pytest.mark.postgres
def test_a_memory_on_postgresql_without_a_place_for_vectors_says_so(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langchain_tiered_memory.models.surroundings._said", set())
    with (
        pytest.warns(ReducedFunctionWarning, match="PostgreSQL"),
        TieredMemory.open(postgres_url, embeddings=DeterministicFakeEmbedding(size=8)) as memory,
    ):
        status = memory.status()
    assert status.embedder is None
    assert status.chroma is None
    assert "***" in status.database or ":" not in status.database.partition("://")[2].partition("@")[0]


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize("command", ["replay", "ask", "inspect", "doctor"])
def test_a_command_that_searches_or_counts_says_what_it_does_without(command: str, tmp_path: Path) -> None:
    db, chat = str(tmp_path / "m.db"), tmp_path / "chat.jsonl"
    chat.write_text('{"role": "user", "content": "The pump is in hall 3."}\n', encoding="utf-8")
    assert CliRunner().invoke(app, ["import", db, str(chat), "--session", "s"]).exit_code == 0
    arguments = {"replay": [str(chat)], "ask": [db, "s", "pump?"], "inspect": [db], "doctor": [db]}[command]
    shown = CliRunner().invoke(app, [command, *arguments], catch_exceptions=False)
    says = command in ("replay", "ask")
    assert ("search is by words alone" in shown.stderr) is says
    assert ("token counts are estimates" in shown.stderr) is says
    assert "token counts are" not in shown.stdout, "results stay clean for programs"


@pytest.mark.usefixtures("bare")
def test_the_status_of_a_database_names_its_parts(tmp_path: Path) -> None:
    db = str(tmp_path / "m.db")
    with TieredMemory.open(db, embeddings=None, token_counter=len) as memory:
        memory.session("s").add_messages([("user", "The pump is in hall 3.")])
    shown = CliRunner().invoke(app, ["status", db], catch_exceptions=False)
    assert "searches 1 passage by words alone" in shown.output
    found = json.loads(CliRunner().invoke(app, ["status", db, "--json"]).stdout)
    assert (found["sessions"], found["passages"], found["vectors"]) == (1, 1, 0)


def test_the_status_of_no_database_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["status", str(tmp_path / "none.db")]) == 2
    assert "there is no database" in capsys.readouterr().err


def test_setup_asks_fetches_checks_and_then_has_nothing_to_do(
    bare: Path, site: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, *site)
    declined = CliRunner().invoke(app, ["setup"], input="n\n")
    assert declined.exit_code == 1
    assert "nothing was downloaded" in declined.output
    assert list(bare.rglob("*.onnx")) == []
    agreed = CliRunner().invoke(app, ["setup", "--yes"], catch_exceptions=False)
    assert agreed.exit_code == 0
    assert agreed.stdout.count("downloaded and checked") == 3
    folder = embeddings.find_minilm()
    assert folder is not None
    assert {path.name for path in folder.iterdir()} == set(MODEL_FILES), "nothing else comes out of the archive"
    assert token_counters.encoding_file("o200k_base") is not None
    assert not list(bare.rglob("evil"))
    assert "nothing to download" in CliRunner().invoke(app, ["setup"]).stdout


def test_a_download_that_is_not_the_file_leaves_nothing_behind(
    bare: Path, site: tuple[str, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(monkeypatch, *site)
    (site[1] / "onnx.tar.gz").write_bytes(archive_of(MODEL_FILES[:2]))
    assert run(["setup", "--yes"]) == 2
    assert "not the expected file" in capsys.readouterr().err
    assert embeddings.find_minilm() is None
    assert [path for path in bare.rglob("*") if path.is_file()] == []


EXPECTED = archive_of(("a", "b"))


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "could not be downloaded"), (b"other", "is not the expected file"), (EXPECTED, "could not be put")],
)
def test_what_goes_wrong_with_a_download_is_one_sentence(
    content: bytes | None, said: str, site: tuple[str, Path], tmp_path: Path
) -> None:
    address, folder = site
    if content is not None:
        (folder / "it").write_bytes(content)
    download = Download(
        name="it",
        url=f"{address}/it",
        sha256=hashlib.sha256(EXPECTED).hexdigest(),
        target=tmp_path / "into",
        members=("a", "b"),
        about_bytes=1,
    )
    (tmp_path / "into").touch()
    with pytest.raises(SettingsError, match=said):
        fetch(download)
    assert (tmp_path / "into").read_bytes() == b""


def test_an_encoding_that_only_setup_keeps_is_handed_to_tiktoken(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    found = token_counters.encoding_file("cl100k_base")
    if found is None:
        pytest.skip("no encoding at hand")
    content = found.read_bytes()
    monkeypatch.setenv("HOME", str(bare))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(bare / "tiktoken"))
    (download,) = [one for one in token_counters.encoding_downloads() if "cl100k_base" in one.name]
    download.target.parent.mkdir(parents=True)
    download.target.write_bytes(content)
    assert token_counters.TiktokenCounter("cl100k_base").count_text("a few words") == 3
    assert (bare / "tiktoken" / found.name).read_bytes() == content
