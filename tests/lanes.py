"""Which tests a lane runs, and which share of those that ask the same thing in many places.

The fast lane is `-m "not slow"`. The whole suite draws: of each scenario that is told in two call styles it runs one,
of a sweep (`@pytest.mark.sweep(12)`) so many rows, what is `seldom(4)` at one of four draws, and faults strike at so
many steps of a journey (`spread`). The draw is made by the day, so that a run can be repeated and every row has its
turn; it chooses hypothesis' examples too. `TIERED_MEMORY_EXHAUSTIVE=1` runs all, and ten times the examples.
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
_SLOW_FILE = re.compile(r"^pytestmark = (?:\[[^\]]*\b|)pytest\.mark\.slow\b", re.MULTILINE)


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
    """Of one function's rows: the seldom ones, then those in the other call style, those above a sweep's number."""
    turn = drawn(rows[0].nodeid.partition("[")[0])
    kept = [row for row in rows if not (seldom := row.get_closest_marker("seldom")) or not turn % seldom.args[0]]
    if not rows[0].get_closest_marker("both_styles"):
        by_scenario: dict[str, list[pytest.Item]] = defaultdict(list)
        for row in kept:
            by_scenario[_without_style(row)].append(row)
        kept = [min(styles, key=lambda one: drawn(one.nodeid)) for styles in by_scenario.values()]
    sweep = rows[0].get_closest_marker("sweep")
    if sweep is not None:
        kept = sorted(kept, key=lambda one: drawn(one.nodeid))[: sweep.args[0]]
    return set(rows) - set(kept)


def _without_style(item: pytest.Item) -> str:
    """The name of a row without its call style."""
    given = getattr(item, "callspec", None)
    style = given.params.get("call_style") if given else None
    if style is None:
        return item.nodeid
    parts = item.nodeid.partition("[")[2].removesuffix("]").split("-")
    parts.remove(style)
    return "-".join(parts)


def choose_draw() -> None:
    """Fix the draw for this process and those that it starts: the day (UTC), where nothing else is said.

    Examples of properties are drawn too, and no test asserts a time on the clock: neither may hypothesis.
    """
    os.environ.setdefault(DRAW_VARIABLE, _today())
    settings.register_profile(
        "suite", deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow], print_blob=True
    )
    settings.load_profile("suite")
    if not EXHAUSTIVE:
        core.global_force_seed = drawn("examples")


def fit_property(item: pytest.Item) -> None:
    """What a property's own settings say of its examples holds for the lanes of every day; load never fails it."""
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
    if own is None or own in _fitted:
        return
    quiet = {*own.suppress_health_check, HealthCheck.too_slow}
    examples = own.max_examples * (_MORE_EXAMPLES if EXHAUSTIVE else 1)
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
