"""What a type checker finds in a user's program."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

from langchain_tiered_memory import TieredMemory

USES = Path(__file__).with_name("public_interface.py")
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_type_checker_finds_the_types_of_the_public_interface() -> None:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", str(USES)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout


@pytest.mark.slow
def test_pyright_finds_the_same_mistakes_and_no_others() -> None:
    pytest.importorskip("basedpyright")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error", str(USES)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = {one["range"]["start"]["line"] for one in json.loads(run.stdout)["generalDiagnostics"]}
    lines = USES.read_text(encoding="utf-8").splitlines()
    assert found == {place for place, line in enumerate(lines) if "# type: ignore" in line}, run.stdout


def test_opening_takes_the_same_choices_with_and_without_waiting() -> None:
    assert inspect.signature(TieredMemory.aopen).parameters == inspect.signature(TieredMemory.open).parameters
