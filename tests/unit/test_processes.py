"""The suite's own way of running in several processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.processes import _shares

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
TESTS = """
import os, sys
import pytest

@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    print("made by", os.getpid())
    yield tmp_path_factory.mktemp("shared", numbered=False)
    open(os.environ["ENDED"], "a").write("ended ")

@pytest.mark.parametrize("number", range(40))
def test_in_a_process_of_its_own(number, shared, capfd):
    assert os.getpid() != int(os.environ["FIRST"]) and shared.is_dir()
    os.write(1, b"said")
    assert capfd.readouterr().out == "said"

def test_that_fails():
    print("a word before it")
    assert 6 * 7 == 41

@pytest.mark.timeout(1)
def test_that_takes_too_long():
    import time
    time.sleep(60)

def test_that_is_skipped():
    pytest.skip("not today")

def test_that_ends_its_process():
    os._exit(3)
"""
FIRST = "import os, pytest; os.environ['FIRST'] = str(os.getpid()); raise SystemExit(pytest.main())"


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Run `TESTS` in processes; what it printed."""
    (tmp_path / "test_made_up.py").write_text(TESTS, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")

    def ran(*options: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", FIRST, "-p", "tests.processes", "-p", "no:asyncio", "--processes", "2", *options],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "ENDED": str(tmp_path / "ended"), "PYTEST_ADDOPTS": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1, done.stdout + done.stderr
        return done.stdout

    return ran


def test_every_test_is_run_once_and_a_process_that_dies_is_a_failure(run: Callable[..., str]) -> None:
    said = run()
    assert re.search(r"\b3 failed, 40 passed, 1 skipped\b", said), said
    assert "a word before it" in said
    assert "assert (6 * 7) == 41" in said
    assert "Timeout (>1.0s) from pytest-timeout" in said
    assert re.search(r"process \d ended here", said)


def test_it_stops_at_the_first_failure_when_told_to_and_each_session_ends_in_order(
    run: Callable[..., str], tmp_path: Path
) -> None:
    said = run("-x", "-k", "own or fails")
    assert "1 failed" in said
    assert "ended" in (tmp_path / "ended").read_text("utf-8")
    assert "stopping after 1 failures" in said


@pytest.mark.parametrize(("items", "count"), [(0, 2), (1, 3), (7, 2), (5000, 3)])
def test_shares_are_every_test_once_and_get_smaller(items: int, count: int) -> None:
    shares = list(_shares(items, count))
    assert [at for start, stop in shares for at in range(start, stop)] == list(range(items))
    sizes = [stop - start for start, stop in shares]
    assert sizes == sorted(sizes, reverse=True)
    assert not sizes or sizes[-1] == 1
