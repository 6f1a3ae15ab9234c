"""Modules that moved are found under their former paths, and are the same."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import langchain_tiered_memory
from langchain_tiered_memory._moved import FORMER_NAMES, MOVED, PACKAGE, RENAMED


@pytest.mark.parametrize("old", sorted(MOVED))
def test_a_former_path_gives_the_same_objects_and_says_where_they_are_now(old: str) -> None:
    sys.modules.pop(f"{PACKAGE}.{old}", None)
    with pytest.warns(DeprecationWarning, match=MOVED[old].replace(".", r"\.")):
        former = importlib.import_module(f"{PACKAGE}.{old}")
    present = importlib.import_module(f"{PACKAGE}.{MOVED[old]}")
    names = [name for name, value in vars(present).items() if getattr(value, "__module__", None) == present.__name__]
    assert names
    assert all(getattr(former, name) is getattr(present, name) for name in names)


def test_the_warning_points_at_the_import_and_a_path_that_never_was_is_not_found() -> None:
    script = (
        "import langchain_tiered_memory\nfrom langchain_tiered_memory.decisions.counting import EstimatingCounter\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert "<string>:2: DeprecationWarning" in done.stderr
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"{PACKAGE}.decisions.never_was")


@pytest.mark.parametrize("home", sorted(FORMER_NAMES))
def test_a_name_that_left_the_root_is_still_found_there_and_says_its_address(home: str) -> None:
    for name in FORMER_NAMES[home].split():
        with pytest.warns(DeprecationWarning, match=f"{home}.{name} now"):
            found = getattr(langchain_tiered_memory, name)
        assert found is getattr(importlib.import_module(f"{PACKAGE}.{home}"), name)


def test_renamed_functions_are_found_under_their_former_names() -> None:
    histories = importlib.import_module(f"{PACKAGE}.integrations.histories")
    for old, now in RENAMED.items():
        with pytest.warns(DeprecationWarning, match=now):
            assert getattr(langchain_tiered_memory, old) is getattr(histories, now)
