"""Every file of examples/ runs as it stands, against servers that speak the providers' protocols."""

from __future__ import annotations

import importlib.util
import json
import os
import runpy
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.answering import answered, text_of, with_encodings
from tests.anthropic_server import AnthropicServer
from tests.ollama_server import OllamaServer
from tests.openai_server import OpenAIServer, Scripted, calls
from tests.servers import chroma_server, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "examples"


def scripted(body: dict[str, Any]) -> Scripted:
    """OpenAI's: calls the tool that the example is about, and then answers."""
    last = body["messages"][-1]
    offered = {one["function"]["name"] for one in body.get("tools") or ()}
    if last["role"] == "user" and "When is order 4711 due?" in text_of(last):
        return calls("look_up", {"order": "4711"})
    if last["role"] == "user" and "permits" in offered:
        return calls("permits", {"task": "Which permits does the quay in Bergen need?"})
    if last["role"] == "user" and "Ask the researcher" in text_of(last) and "task" in offered:
        return calls("task", {"description": "How deep is the harbour?", "subagent_type": "researcher"})
    return answered(body)


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer(script=scripted) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "made-up")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that runs an example in an empty folder, and gives the lines that it printed."""
    monkeypatch.chdir(tmp_path)

    def of(name: str) -> list[str]:
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out.splitlines()

    return of


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("openai_agent", "It is 4711."),
        ("migrate_summary_buffer", "It is Petrel."),
        ("migrate_summarization_middleware", "It is jams."),
        ("migrate_trim_messages", "It is Hollin."),
        ("migrate_langmem", "It is oak."),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of LangChain, for what is moved away from
def test_an_example_answers_from_what_was_said_before(
    openai: OpenAIServer, run: Any, monkeypatch: pytest.MonkeyPatch, name: str, line: str
) -> None:
    if name == "migrate_langmem":
        pytest.importorskip("langmem")
    if "summary_buffer" in name:
        with_encodings(monkeypatch)
    printed = run(name)
    assert line in printed
    kept = int(printed[-1].removesuffix(" messages are kept"))
    assert kept == (6 if name == "openai_agent" else 4)
    assert all(one.error is None for one in openai.requests)


def test_the_supervisor_and_its_sub_agent_have_a_track_each(openai: OpenAIServer, run: Any) -> None:
    printed = run("supervisor")
    assert {"main 4 messages", "permits 2 messages"} <= set(printed)
    asked = next(one for one in openai.answered if "Which permits" in text_of(one.messages[-1]))
    assert "40,000 EUR" in asked.text, "the sub-agent is shown the supervisor's goal"


def test_deepagents_and_its_sub_agent_have_a_track_each(openai: OpenAIServer, run: Any) -> None:
    pytest.importorskip("deepagents")
    printed = run("deepagents_research")
    assert "main" in printed[-1]
    assert any("How deep is the harbour?" in one.text for one in openai.answered)


def test_anthropic_is_told_what_to_cache(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with AnthropicServer(lambda body: [{"type": "text", "text": answered(body)}]) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "made-up")
        monkeypatch.setenv("ANTHROPIC_API_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        assert run("anthropic_agent")[-1] == "It is oak."
        assert "cache_control" in json.dumps(server.bodies[-1])


def test_ollama_is_all_that_the_local_chat_talks_to(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("langchain_ollama")
    with OllamaServer(answered) as server:
        monkeypatch.setenv("OLLAMA_HOST", server.url)
        assert run("ollama_local")[-1] == "It is beans."
        assert any("input" in body for body in server.bodies), "what is searched is embedded there"


@pytest.mark.postgres
@pytest.mark.service
def test_the_service_streams_and_keeps_all_on_postgresql_and_a_chroma_server(
    openai: OpenAIServer, postgres_url: str, tmp_path: Path
) -> None:
    pytest.importorskip("fastapi")
    port = free_port()
    with chroma_server(tmp_path / "chroma") as chroma:
        place = {"DATABASE_URL": postgres_url, "CHROMA_URL": chroma.url, "PORT": str(port)}
        path = os.pathsep.join([str(FOLDER.parent), os.environ.get("PYTHONPATH", "")])
        service = subprocess.Popen(
            [sys.executable, str(FOLDER / "fastapi_app.py")],
            cwd=tmp_path,
            env={**os.environ, **place, "PYTHONPATH": path},
        )
        try:
            said = [spoken(port, text) for text in ("I sail to Hollin.", "Where do I sail?")]
            kept = json.loads(called(port, "/chat/alice"))
            health = json.loads(called(port, "/health"))
        finally:
            service.terminate()
            service.wait(timeout=30)
    assert said == ["Noted: I sail to Hollin.", "It is Hollin."]
    assert [one["type"] for one in kept] == ["human", "ai", "human", "ai"]
    assert health["sessions"] == 1
    assert any(one.body.get("stream") for one in openai.answered)


def spoken(port: int, text: str) -> str:
    return called(port, "/chat/alice", json.dumps({"text": text}).encode())


def called(port: int, path: str, body: bytes | None = None) -> str:
    """What the service says, which may not have started yet."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data=body, headers={"content-type": "application/json"}
    )
    for _ in range(2400):
        try:
            with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
                return str(response.read().decode())
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError):
                raise
            time.sleep(0.1)
    msg = "the service did not start"
    raise AssertionError(msg)


def test_compose_names_the_chroma_that_the_client_here_can_talk_to() -> None:
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"postgres", "chroma"}
    assert services["chroma"]["image"].startswith("chromadb/chroma:1.5.")
    assert all(port.startswith("127.0.0.1:") for one in services.values() for port in one["ports"])


def test_every_example_is_listed_and_can_be_imported() -> None:
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    for path in [*FOLDER.glob("*.py"), FOLDER / "compose.yaml"]:
        assert f"]({path.name})" in listed
        if path.suffix == ".py":
            assert importlib.util.spec_from_file_location(path.stem, path) is not None
