"""Which tests a lane runs, and which share of those that ask the same thing in many places.

`-m "not slow"` takes half of the time. The whole suite draws: of each scenario that is told in two call styles, or on
SQLite's two kinds of database, it runs one, of a sweep (`@pytest.mark.sweep(12)`) so many rows, what is `seldom(4)` at
one of four draws, and faults strike at so many steps of a journey (`spread`). The draw is made by the day, so that a
run can be repeated and every row has its turn; it chooses hypothesis' examples too. `TIERED_MEMORY_EXHAUSTIVE=1` runs
all, and ten times the examples.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, core, settings

from tests.spread import DRAW_VARIABLE, EXHAUSTIVE, EXHAUSTIVE_VARIABLE, drawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

FAST = "not slow"
"""The marker expression of the fast lane."""
_MORE_EXAMPLES = 10
"""Times the examples of a property, where everything is run."""
_FEWEST_EXAMPLES = 4
"""A draw takes half of the examples of a property, and no fewer than this: the first is always the simplest."""
_SLOW_FILE = re.compile(r"^pytestmark = (?:\[[^\]]*\b|)pytest\.mark\.slow\b", re.MULTILINE)


_ALIKE = {"call_style": ("sync", "async"), "where": ("memory", "sqlite")}
"""Of rows that differ in nothing but such a parameter, a draw takes one."""

_fitted: list[settings] = []
"""Settings that were made here: rows of one function share them."""


def is_slow_file(path: Path) -> bool:
    """Whether every test of a file is slow: then the fast lane need not import it."""
    return path.name.startswith("test_") and bool(_SLOW_FILE.search(path.read_text(encoding="utf-8")))


def is_whole(arguments: Iterable[str]) -> bool:
    """Whether a run is one of the suite or of folders: of a file that is named, or a test, everything is run."""
    return all(Path(one).is_dir() for one in arguments)


def left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The tests that this draw leaves out."""
    by_function: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        by_function[item.nodeid.partition("[")[0]].append(item)
    return set().union(*(_left_of(rows) for rows in by_function.values()))


def _left_of(rows: list[pytest.Item]) -> set[pytest.Item]:
    """Of one function's rows: the seldom ones, then those that a like one stands for, those above a sweep's number."""
    turn = drawn(rows[0].nodeid.partition("[")[0])
    kept = [row for row in rows if not (seldom := row.get_closest_marker("seldom")) or not turn % seldom.args[0]]
    by_scenario: dict[str, list[pytest.Item]] = defaultdict(list)
    for row in kept:
        by_scenario[_scenario(row)].append(row)
    kept = [min(alike, key=lambda one: drawn(one.nodeid)) for alike in by_scenario.values()]
    sweep = rows[0].get_closest_marker("sweep")
    if sweep is not None:
        kept = sorted(kept, key=lambda one: drawn(one.nodeid))[: sweep.args[0]]
    return set(rows) - set(kept)


def _scenario(item: pytest.Item) -> str:
    """The name of a row without what it has of its own among rows that are alike."""
    parts = item.nodeid.partition("[")[2].removesuffix("]").split("-")
    given = item.callspec.params if hasattr(item, "callspec") else {}
    for name, values in _ALIKE.items():
        if given.get(name) in values:
            parts.remove(given[name])
    return "-".join(parts)


def choose_draw() -> None:
    """Fix the draw for this process and those that it starts: the day (UTC), where nothing else is said.

    Examples of properties are drawn too, and no test asserts a time on the clock: neither may hypothesis.
    """
    os.environ.setdefault(DRAW_VARIABLE, _today())
    settings.register_profile(
        "suite",
        deadline=None,
        derandomize=False,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile("suite")
    if not EXHAUSTIVE:
        core.global_force_seed = drawn("examples")


def fit_property(item: pytest.Item) -> None:
    """Examples as the lane has them: a file that is named tries what its properties say; load never fails it."""
    tested = getattr(item, "obj", None)
    if not getattr(tested, "is_hypothesis_test", False):
        return
    # A state machine's settings stand in its class, those of a function in an attribute that has no public name.
    holder, name = (
        (item.cls, "settings")  # type: ignore[attr-defined]
        if getattr(item, "cls", None) is not None
        else (tested, "_hypothesis_internal_use_settings")
    )
    own: Any = getattr(holder, name, None)
    if own is None or any(own is one for one in _fitted):
        return
    quiet = {*own.suppress_health_check, HealthCheck.too_slow}
    most = own.max_examples
    half = max(most // 2, min(most, _FEWEST_EXAMPLES)) if is_whole(item.config.args) else most
    examples = most * _MORE_EXAMPLES if EXHAUSTIVE else half
    fitted = settings(own, deadline=None, suppress_health_check=quiet, max_examples=examples)
    _fitted.append(fitted)
    setattr(holder, name, fitted)


def report() -> str:
    """What the head of a run says of its draw."""
    if EXHAUSTIVE:
        return f"draw: none, everything is run ({EXHAUSTIVE_VARIABLE}=1)"
    draw = os.environ[DRAW_VARIABLE]
    return f"draw: {draw} ({DRAW_VARIABLE}={draw} draws the same again, {EXHAUSTIVE_VARIABLE}=1 runs everything)"


def _today() -> str:
    return f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}"
