"""What a type checker finds in a user's program."""

from __future__ import annotations

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_tiered_memory import TieredMemory
from tests.papers import GUIDES, README, ROOT, blocks_of

USES = Path(__file__).with_name("public_interface.py")


RELAXED = """
[[tool.mypy.overrides]]
module = ["papers.*"]
disallow_untyped_calls = false
warn_unused_ignores = false
disable_error_code = ["import-not-found", "import-untyped"]
"""
"""What documents and examples need not be strict about. Said of them alone, it leaves the cache of `mypy` good."""


@pytest.mark.slow
def test_a_type_checker_accepts_the_public_interface_the_documents_and_the_examples(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    settings = tmp_path / "pyproject.toml"
    written = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    settings.write_text(written + RELAXED, encoding="utf-8")
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "__init__.py").touch()
    for paper in (README, *GUIDES):
        name = f"{paper.parent.stem}_{paper.stem}.py".replace("-", "_").lower()
        (papers / name).write_text("\n".join(blocks_of(paper)), encoding="utf-8")
    for example in (ROOT / "examples").glob("*.py"):
        shutil.copy(example, papers)
    command = [sys.executable, "-m", "mypy", "--config-file", str(settings), str(papers), str(USES)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


@pytest.mark.slow
@pytest.mark.seldom(2)  # mypy looks at the same program each time
def test_pyright_finds_the_same_mistakes_and_no_others() -> None:
    pytest.importorskip("basedpyright")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error", str(USES)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = {one["range"]["start"]["line"] for one in json.loads(run.stdout)["generalDiagnostics"]}
    lines = USES.read_text(encoding="utf-8").splitlines()
    assert found == {place for place, line in enumerate(lines) if "# type: ignore" in line}, run.stdout


def test_opening_takes_the_same_choices_with_and_without_waiting() -> None:
    assert inspect.signature(TieredMemory.aopen).parameters == inspect.signature(TieredMemory.open).parameters
