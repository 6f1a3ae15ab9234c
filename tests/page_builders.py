"""Builders for tests of pages: a session with something in every section, hostile words in every place, a browser."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from benchmarks.chromium import chromium, find_chromium
from langchain_tiered_memory.testing import FrozenClock
from tests.memory_builders import NOW, open_memory, tool_turn, turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from langchain_tiered_memory.types.contexts import Context

BUDGET = 1200
TURNS = 40
HOSTILE = (
    "<script>window.hacked=1</script><img src=x onerror='window.hacked=2'><svg onload=window.hacked=3>"
    "</script><script>window.hacked=4</script>&lt;b&gt; [link](javascript:window.hacked=5) {{ 7*7 }} <!--"
)
RIGHT_TO_LEFT = "\N{RIGHT-TO-LEFT OVERRIDE}gnp.exe\N{POP DIRECTIONAL FORMATTING}"
SESSION = f"harbour {HOSTILE}"


def full_session(where: Path, name: str = SESSION, *, unpinned: bool = False) -> dict[int, Context]:
    """Fill a session; gives what each call got, by the number of the message that the assistant wrote.

    With `unpinned` it ends with its last call: nothing stands between the last condensation and its undoing.
    """
    clock = FrozenClock(NOW)
    got: dict[int, Context] = {}
    with open_memory(where, clock=clock) as memory:
        session = memory.session(name)
        for number in range(TURNS):
            clock.advance(60)
            *asked, answer = tool_turn(number) if number % 5 == 0 else turn(number)
            session.add_messages(asked, at=clock())
            context = session.context("", max_tokens=BUDGET)
            session.add_messages([answer], at=clock())
            session.flush()
            got[session.entries()[-1].seq] = context
        if unpinned:
            return got
        session.add_messages([HumanMessage("The budget of the quay is 4,200 euros.", id="edited")], at=clock())
        session.add_messages([HumanMessage("The budget of the quay is 5,900 euros.", id="edited")], at=clock())
        call = {"name": "read_file", "args": {"path": f"/srv/{HOSTILE}"}, "id": "call"}
        session.add_messages(
            [
                HumanMessage(f"{HOSTILE} {RIGHT_TO_LEFT}", id="hostile", name="<b>Mallory</b>"),
                AIMessage("", tool_calls=[call], id=HOSTILE),
                ToolMessage(HOSTILE, tool_call_id="call"),
            ],
            at=clock(),
            kind=HOSTILE,
            task=HOSTILE,
        )
        session.pin("q3")
        memory.session(name, track="researcher").add_messages(
            [HumanMessage("Find the tide tables."), AIMessage("Found.")]
        )
        session.checkpoint(HOSTILE, project={"owner": HOSTILE})
        run = memory.run(name, background=False)
        run.keep(f"/srv/{HOSTILE}.py", HOSTILE)
        session.flush()
    return got


def multiplied(content: dict[str, Any], messages: int) -> dict[str, Any]:
    """The content of a page with as many messages as asked for: those that there are, again and again."""
    columns, rows = content["entries"]["columns"], content["entries"]["rows"]
    at, name = columns.index("seq"), columns.index("id")
    grown = [list(rows[number % len(rows)]) for number in range(messages)]
    for number, row in enumerate(grown, start=1):
        row[at], row[name] = number, f"m{number}"
    return content | {"entries": {"columns": columns, "rows": grown}}


@contextmanager
def browser_here() -> Iterator[Browser]:
    """A browser of a test's own. Without Chromium the test is skipped; in CI it fails."""
    pytest.importorskip("playwright.sync_api")
    program = find_chromium()
    if program is None and os.environ.get("CI"):
        pytest.fail("CI must look at pages in Chromium: apt-get install chromium", pytrace=False)
    if program is None:
        pytest.skip("there is no Chromium here")
    with chromium(program) as browser:
        yield browser
