"""A program in a new home: what is written there is what the memory was asked to write, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_tiered_memory.models.embeddings import find_minilm

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
CI_VARIABLES = ("CI", "GITHUB_ACTIONS", "BUILD_ID", "BUILD_NUMBER", "TF_BUILD", "JENKINS_URL", "PYTEST_CURRENT_TEST")
"""Where one of these is set, libraries keep their telemetry quiet by themselves: a user's machine has none."""

USE = """
import sys
from langchain_core.messages import AIMessage, HumanMessage
from langchain_tiered_memory import Settings, TieredMemory
for where in sys.argv[1:]:
    by_words = where.endswith("words.db")
    memory = TieredMemory.open(where, **({"embeddings": None} if by_words else {}))
    session = memory.session("s")
    for number in range(30):
        session.add_messages([HumanMessage(f"Where are the bolts of order {number}?"), AIMessage("In the harbour.")])
    report = memory.flush()
    assert session.search("bolts")
    assert session.context("bolts", max_tokens=2000).messages
    assert memory.verify().problems == ()
    assert memory.rebuild_index().vectors == (0 if by_words else memory.verify().vectors)
    assert by_words or memory.verify().vectors
    memory.close()
"""


def run_at_home(home: Path, *command: str) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in CI_VARIABLES}
    folder = find_minilm()
    if folder is not None:
        kept["TIERED_MEMORY_MINILM_DIR"] = str(folder)
    # Bytecode is Python's own; the rest that programs write by themselves goes to these places.
    places = {
        "HOME": str(home),
        "TMPDIR": str(home / "temporary"),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    (home / "temporary").mkdir(exist_ok=True)
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "ORT_DISABLE_TELEMETRY"):
        kept.pop(name, None)
    program = [sys.executable, *command]
    done = subprocess.run(program, env=kept | places, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_a_memory_writes_its_database_and_its_index_and_nothing_else(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    asked.mkdir()
    names = ["words.db", *(["memory.db"] if find_minilm() else [])]
    run_at_home(tmp_path, "-c", USE, *(str(asked / name) for name in names))
    written = files(tmp_path)
    assert {name for name in written if not name.startswith("asked/memory.db.chroma/")} == {
        f"asked/{name}" for name in names
    }
    assert len(written) > len(names) or len(names) == 1


@pytest.mark.seldom(2)
@pytest.mark.skipif(find_minilm() is None, reason="the MiniLM files are not at hand")
def test_a_replay_on_the_command_line_leaves_nothing_in_the_home(tmp_path: Path) -> None:
    said = [{"role": "user" if number % 2 == 0 else "assistant", "content": f"bolt {number}"} for number in range(20)]
    (tmp_path / "chat.json").write_text(json.dumps(said), encoding="utf-8")
    run_at_home(tmp_path, "-m", "langchain_tiered_memory", "replay", "chat.json")
    assert files(tmp_path) == {"chat.json"}
