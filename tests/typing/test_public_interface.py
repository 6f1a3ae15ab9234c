"""What a type checker finds in a user's program."""

from __future__ import annotations

import inspect
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


def test_opening_takes_the_same_choices_with_and_without_waiting() -> None:
    assert inspect.signature(TieredMemory.aopen).parameters == inspect.signature(TieredMemory.open).parameters
