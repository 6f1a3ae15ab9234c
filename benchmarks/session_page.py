"""A session's page in Chromium: how large its file is, how long it takes to open, and to search.

The session is built once, with contexts in between so that it has decisions; `--database` keeps it for the next time.
Opening is from the start of the navigation to the end of the `load` event, by the browser's own clock; a search from
the key to the end of the layout that shows what was found.

    python -m benchmarks.session_page --messages 20000 --database session.db
"""

from __future__ import annotations

import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.chromium import chromium, find_chromium
from benchmarks.conversations import turns
from benchmarks.reporting import Grid, Report, Target, arguments, finish, median, show
from benchmarks.sessions import SESSION, open_memory
from langchain_tiered_memory.memory import TieredMemory

if TYPE_CHECKING:
    from collections.abc import Sequence

SEARCHES = ("e", "lantern", "lantern hallway", "no such words anywhere")
SECTIONS = ("summaries", "facts", "calls", "decisions", "window", "overview")
_BATCH = 1000
_BUDGET = 8000
_OPEN_SECONDS = 1.0
_SEARCH_SECONDS = 0.1
"""What people take for at once."""
_JUDGED_FROM = 20_000

_SEARCH = """words => {
    const field = document.getElementById('query');
    const began = performance.now();
    field.value = words;
    field.dispatchEvent(new Event('input', { bubbles: true }));
    document.body.getBoundingClientRect();
    return { ms: performance.now() - began, told: document.getElementById('found').textContent };
}"""
_GO = """section => new Promise((done) => {
    const began = performance.now();
    addEventListener('hashchange', () => setTimeout(() => {
        document.body.getBoundingClientRect();
        done(performance.now() - began);
    }), { once: true });
    location.hash = `#/${section}`;
})"""
_OPENED = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def build(where: Path, messages: int) -> None:
    """Write a conversation, condense it, and show it now and then; what is there already stays."""
    with open_memory(str(where)) as memory:
        session = memory.session(SESSION)
        there = session.metrics().messages
        source = islice(turns(), there, None)
        for first in range(there, messages, _BATCH):
            batch = list(islice(source, min(_BATCH, messages - first)))
            session.add_messages([turn.message for turn in batch], at=[turn.at for turn in batch])
            session.flush()
            session.context("", max_tokens=_BUDGET)


def look(program: str, page: Path, rounds: int) -> dict[str, Any]:
    """Open the page, search in it and go through its sections, as often as asked for, each time in a new tab."""
    opening: list[float] = []
    searching: dict[str, list[float]] = {words: [] for words in SEARCHES}
    going: dict[str, list[float]] = {section: [] for section in SECTIONS}
    found: dict[str, str] = {}
    with chromium(program) as browser:
        for _ in range(rounds):
            tab = browser.new_page()
            tab.goto(f"{page.as_uri()}#/messages", wait_until="load")
            tab.wait_for_selector("html[data-ready]")
            opening.append(tab.evaluate(_OPENED) / 1000)
            elements = tab.evaluate("document.getElementsByTagName('*').length")
            for words in SEARCHES:
                told = tab.evaluate(_SEARCH, words)
                searching[words].append(told["ms"] / 1000)
                found[words] = told["told"]
            for section in SECTIONS:
                going[section].append(tab.evaluate(_GO, section) / 1000)
            tab.close()
    return {"opening": opening, "searching": searching, "going": going, "found": found, "elements": elements}


def measure(program: str, where: Path, messages: int, rounds: int) -> Report:
    """Build, write, look."""
    build(where, messages)
    page = where.with_suffix(".html")
    with TieredMemory.open(where, embeddings=None, read_only=True) as memory:
        began = time.perf_counter()
        page.write_text(memory.session(SESSION).page(), encoding="utf-8")
        writing = time.perf_counter() - began
    seen, megabytes = look(program, page, rounds), page.stat().st_size / 1e6
    opening = median(seen["opening"])
    slowest = max(median(one) for one in seen["searching"].values())
    judged = messages >= _JUDGED_FROM
    rows = [("open the page at its messages", opening, max(seen["opening"]), "")]
    rows += [
        (f"search: {words}", median(one), max(one), seen["found"][words]) for words, one in seen["searching"].items()
    ]
    rows += [(f"go to: {section}", median(one), max(one), "") for section, one in seen["going"].items()]
    return Report(
        benchmark="session_page",
        about=(__doc__ or "").partition("\n")[0],
        settings={"messages": messages, "rounds": rounds},
        grids=(
            Grid(title="in Chromium, in seconds", columns=("step", "median", "largest", "told"), rows=tuple(rows)),
            Grid(
                title="the file",
                columns=("", "messages", "MB", "seconds to write", "elements when open"),
                rows=(("page", messages, megabytes, writing, seen["elements"]),),
            ),
        ),
        figures={
            "open_seconds": opening,
            "slowest_search_seconds": slowest,
            "megabytes": megabytes,
            "write_seconds": writing,
            "elements": seen["elements"],
            **{f"go_to_{name}_seconds": median(one) for name, one in seen["going"].items()},
        },
        targets=(
            Target(
                aim=f"opens within {_OPEN_SECONDS:g} s",
                measured=f"{opening:.2f} s",
                met=opening <= _OPEN_SECONDS if judged else None,
            ),
            Target(
                aim=f"finds within {_SEARCH_SECONDS:g} s, whatever is asked",
                measured=f"{slowest:.3f} s",
                met=slowest <= _SEARCH_SECONDS if judged else None,
            ),
        ),
    )


def main(arguments_given: Sequence[str] | None = None) -> list[Report]:
    """The command."""
    parser = arguments(__doc__)
    parser.add_argument("--messages", type=int, default=_JUDGED_FROM)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--database", type=Path, help="where the session is kept, and found again; the page beside it")
    asked = parser.parse_args(arguments_given)
    program = find_chromium()
    if program is None:
        print("session_page: left out, there is no Chromium here")
        return []
    with tempfile.TemporaryDirectory() as folder:
        where = asked.database or Path(folder) / "session.db"
        report = measure(program, where.resolve(), asked.messages, asked.rounds)
    show(report)
    finish([report], asked.json)
    return [report]


if __name__ == "__main__":
    main()
