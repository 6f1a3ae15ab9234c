"""The shell commands of README and documents: what can be run is run, and what only has a place elsewhere is read."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory import TieredMemory
from langchain_tiered_memory.settings import settings_from_environment
from tests.memory_builders import quick_settings
from tests.papers import PAPERS, ROOT, blocks_of
from tests.servers import chroma_server

pytestmark = pytest.mark.slow

MARKED = [path for path in PAPERS if blocks_of(path, "bash")]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

_STAND_IN = """import json, os, sys
name, given = os.path.basename(sys.argv[0]), sys.argv[1:]
runs = {"tiered-memory": ["-m", "langchain_tiered_memory"], "python": []}.get(name)
elsewhere = runs is None or "serve" in given or "venv" in given or any("://" in one for one in given)
with open(os.environ["COMMANDS"], "a") as log:
    log.write(json.dumps([name, elsewhere, *given]) + chr(10))
if not elsewhere:
    os.execv(sys.executable, [sys.executable, *runs, *given])
"""
"""Stands for each program: Python and this package's own command run where they need neither server nor browser."""
_PROGRAMS = ("tiered-memory", "pip", "python", "createdb", "chroma", "langgraph", "make", "pytest", "mkdocs")
_OPTION = re.compile(r"--?[a-z][\w-]*")


def a_project(folder: Path) -> None:
    """The files that the pages speak of: databases with a session, and the ready graphs."""
    for name in ("memory.db", "tutorial.db", "agents.db"):
        with TieredMemory.open(folder / name, embeddings=None, settings=quick_settings()) as memory:
            for session in ("alice", "THREAD_ID"):
                said = [HumanMessage("Keep the shed under 900 euros, please."), AIMessage("Noted.")] * 8
                memory.session(session).add_messages([one.model_copy() for one in said])
    (folder / "key.txt").write_text("a key of sixteen bytes or more", encoding="utf-8")
    (folder / "new-key.txt").write_text("another key of the vault's", encoding="utf-8")
    copytree(ROOT / "graphs", folder / "graphs")


def ran(paper: Path, folder: Path) -> tuple[list[list[Any]], dict[str, str]]:
    """The commands of a page's blocks, and its environment at the end."""
    programs = folder / "bin"
    programs.mkdir()
    for name in _PROGRAMS:
        (programs / name).write_text(f"#!{sys.executable}\n{_STAND_IN}", encoding="utf-8")
        (programs / name).chmod(0o755)
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "activate").touch()
    work = folder / "work"
    work.mkdir()
    a_project(work)
    blocks = [f"cd {shlex.quote(str(work))}\n{block}" for block in blocks_of(paper, "bash")]
    kept = f"import json, os; json.dump(dict(os.environ), open({str(folder / 'environment')!r}, 'w'))"
    script = "\n".join(["set -eu", *blocks, shlex.join([sys.executable, "-c", kept])])
    environment = {name: one for name, one in os.environ.items() if not name.startswith(("TIERED_MEMORY_S", "LANG"))}
    environment |= {"PATH": f"{programs}:{os.environ['PATH']}", "COMMANDS": str(folder / "commands")}
    environment["PYTHONPATH"] = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    (work / ".venv").symlink_to(folder / ".venv")
    done = subprocess.run(
        ["bash", "-c", script], cwd=work, env=environment, input="y\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    named = (folder / "commands").read_text(encoding="utf-8").splitlines() if (folder / "commands").exists() else []
    after = json.loads((folder / "environment").read_text(encoding="utf-8"))
    return [json.loads(line) for line in named], after


@cache
def help_of(*command: str) -> str:
    """What a program says of its options; empty where it is not here."""
    try:
        done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout


def fault_in(name: str, given: list[str]) -> str:
    """What is wrong with a command that is not run here."""
    options = {one.partition("=")[0] for one in given if _OPTION.match(one)}
    match name:
        case "pip":
            return "; ".join(filter(None, map(_not_installable, [one for one in given[1:] if one[0] != "-"])))
        case "make":
            makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
            return "" if all(f"\n{target}:" in makefile for target in given) else f"no such task: {given}"
        case "tiered-memory":
            command = next(one for one in given if not one.startswith("-") and not one.endswith(".txt"))
            known = help_of(sys.executable, "-m", "langchain_tiered_memory", command)
        case "chroma" | "langgraph":
            known = help_of(str(Path(sys.executable).with_name(name)), given[0]) or " ".join(options)
        case _:
            return ""
    return ", ".join(sorted(one for one in options if one not in known))


def _not_installable(requirement: str) -> str:
    name, _, extras = requirement.rstrip("]").partition("[")
    if name == ".":
        return ", ".join(set(extras.split(",")) - {""} - set(PROJECT["optional-dependencies"]))
    listed = json.dumps(PROJECT)
    try:
        distribution(name)
    except PackageNotFoundError:
        return "" if re.search(rf'"{re.escape(name)}\b', listed) else f"nobody knows {name}"
    return ""


@pytest.mark.parametrize("paper", MARKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_of_a_page_run_in_order(paper: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if paper.stem == "encryption":
        pytest.importorskip("sqlcipher3")
    commands, after = ran(paper, tmp_path)
    read = [(name, fault_in(name, given)) for name, elsewhere, *given in commands if elsewhere]
    assert [f"{name}: {fault}" for name, fault in read if fault] == []
    for name in after:
        if name.startswith("TIERED_MEMORY_") and name not in os.environ:
            monkeypatch.setenv(name, after[name])
    settings_from_environment()


def own_process(code: str, folder: Path, **environment: str) -> None:
    """Run a block by itself, where it leaves nothing behind for others."""
    paths = f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"
    environment = {**os.environ, "PYTHONPATH": paths, **environment}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.postgres
@pytest.mark.service
def test_the_stores_of_a_service_open_as_the_page_says(postgres_url: str, tmp_path: Path) -> None:
    (code,) = blocks_of(ROOT / "docs" / "operations.md", "py")
    with chroma_server(tmp_path / "chroma") as chroma:
        own = code.replace("http://chroma.internal:8000", chroma.url) + "\nmemory.status()\nmemory.close()\n"
        assert own != code
        own_process(own, tmp_path, DATABASE_URL=postgres_url)


def test_deepagents_runs_without_its_own_middleware_as_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("deepagents")
    page = ROOT / "docs" / "howto" / "deepagents.md"
    (code,) = blocks_of(page, "py")
    own_process("\n".join([code, *blocks_of(page)]), tmp_path, OPENAI_API_KEY="made-up")
