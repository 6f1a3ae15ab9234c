"""Every regular expression of the package takes linear time on whatever a stranger may have written.

`re` holds the interpreter while it matches, so one quadratic pattern stops every thread of a program. A pattern that is
new is found here by itself. What was tried once holds for the same pattern and the same texts: its digest is kept in
`tests/assets/linear_patterns.txt`, to which this file, run with `TIERED_MEMORY_UPDATE_SNAPSHOTS=1`, adds what is new.
"""

from __future__ import annotations

import os
import re
import time
from functools import cache
from pathlib import Path

import pytest

from tests.pattern_builders import calls_of_re, compiled, digest_of, hard_texts
from tests.spread import EXHAUSTIVE

_CHARS = 1500
_TIMES = 4
_MOST_GROWTH = 8.0
"""Four times the text takes 4 times as long where time is linear, 16 times where it is quadratic."""
_QUICK_SECONDS = _CHARS * 8e-7
"""Quadratic work on so many characters takes longer, at least a nanosecond a step and start."""
_TRIES = 5

MADE_IN_FUNCTIONS = {
    "_pattern": "a table of time expressions is built at import",
    "_lookalike": "patterns for our tags are built at import",
    "_ignored": "made of a user's settings; shell patterns become atomic groups",
}
PATTERNS = compiled()
KEPT = Path(__file__).parents[1] / "assets" / "linear_patterns.txt"
PROVEN = frozenset(KEPT.read_text(encoding="utf-8").split())
UPDATES = os.environ.get("TIERED_MEMORY_UPDATE_SNAPSHOTS") == "1"
UNPROVEN = [place for place, pattern in PATTERNS.items() if EXHAUSTIVE or digest_of(pattern) not in PROVEN]


def seconds(pattern: re.Pattern[str], text: str) -> float:
    started = time.thread_time()
    for _ in pattern.finditer(text):
        pass
    return time.thread_time() - started


def growth(pattern: re.Pattern[str], short: str, long: str) -> float:
    """How many times as long `long` takes: of each text the quickest of some tries, since what disturbs only adds."""
    tries = [(seconds(pattern, short), seconds(pattern, long)) for _ in range(_TRIES)]
    return min(of_long for _, of_long in tries) / max(min(of_short for of_short, _ in tries), 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("place", UNPROVEN)
def test_a_pattern_takes_linear_time_on_the_texts_that_are_hardest_for_it(place: str) -> None:
    pattern = PATTERNS[place]
    for hard in hard_texts(pattern):
        short = hard.of(_CHARS)
        if seconds(pattern, short) < _QUICK_SECONDS:
            continue
        grown = growth(pattern, short, hard.of(_TIMES * _CHARS))
        assert grown < _MOST_GROWTH, f"{_TIMES} times the text of {hard} takes {grown:.1f} times as long"
    if UPDATES:
        present = {digest_of(one) for one in PATTERNS.values()}
        kept = set(KEPT.read_text(encoding="utf-8").split()) & present
        KEPT.write_text("\n".join(sorted({*kept, digest_of(pattern)})) + "\n", encoding="utf-8")


@cache
def uses_of_re() -> list[tuple[str, str, str]]:
    return list(calls_of_re())


def test_the_patterns_of_the_package_are_found() -> None:
    made = sum(name == "compile" and where == "module" for _, name, where in uses_of_re())
    assert len(PATTERNS) > made * 0.95  # equal ones are one object


def test_a_pattern_is_compiled_where_a_module_begins_and_nowhere_else() -> None:
    inline = [
        f"{place}: re.{name} in {where}"
        for place, name, where in uses_of_re()
        if name != "escape" and not (name == "compile" and (where == "module" or where in MADE_IN_FUNCTIONS))
    ]
    assert inline == []


@pytest.mark.sweep(2)
@pytest.mark.parametrize("spelt", [r"(\w+)@", r"(?m)^\s*x", r"(?m)(.+?)[ \t]*$", r"x[\w.]*\d"])
def test_a_quadratic_pattern_is_noticed(spelt: str) -> None:
    pattern = re.compile(spelt)
    hardest = max((seconds(pattern, one.of(300)), one) for one in hard_texts(pattern))[1]
    assert growth(pattern, hardest.of(_CHARS), hardest.of(_TIMES * _CHARS)) > _MOST_GROWTH
