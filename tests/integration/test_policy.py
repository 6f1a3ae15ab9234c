"""A context says by which policy it was filled, and what its account calls a cap is what bound it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.settings import Settings
from langchain_tiered_memory.testing import FrozenClock
from tests.memory_builders import NOW, open_memory, quick_settings

if TYPE_CHECKING:
    from langchain_tiered_memory import Context, Session

pytestmark = pytest.mark.slow
TOOL = {"name": "read_file", "description": "", "parameters": {"type": "object", "properties": {}}}


def talked(session: Session, turns: int = 150) -> None:
    """A talk that states something in every turn."""
    for at in range(turns):
        session.add_messages(
            [
                HumanMessage(f"My sister Maria lives in Town{at % 17}, and pays {500 + at} for flat {at}. " + "So. "),
                AIMessage(f"Noted: P{at % 9} costs {at} euros a month. " + "Indeed it does. " * 12),
            ]
        )  # fmt: skip
    session.flush()


def worked(session: Session, files: int = 60) -> None:
    """An agent that reads and writes files, and says what it found."""
    session.add_messages([HumanMessage("Fix the crane.")])
    for at in range(files):
        read = {"name": "read_file", "args": {"path": f"src/part_{at}.py"}, "id": f"r{at}"}
        content = f"x = {at}\n" * 30
        write = {"name": "write_file", "args": {"path": f"src/part_{at}.py", "content": content}, "id": f"w{at}"}
        session.add_messages(
            [
                AIMessage(f"I decided that port {at} stays closed.", tool_calls=[read]),
                ToolMessage("\n".join(f"line_{at}_{n} = {n}" for n in range(40)), tool_call_id=f"r{at}"),
                AIMessage("", tool_calls=[write]),
                ToolMessage("ok", tool_call_id=f"w{at}"),
            ]
        )
    session.flush()


def check(context: Context) -> None:
    """What any account must be."""
    for section in context.sections:
        row = context.policy.row(section.name)
        assert section.cap == row.tokens
        assert section.tokens <= section.cap, f"{section.name}: {section.tokens} of {section.cap}"
    assert all(row.tokens <= context.policy.total for row in context.policy)


@pytest.mark.parametrize("budget", [1000, 6000])
@pytest.mark.parametrize("kind", ["talk", "work"])
@pytest.mark.sweep(2)
def test_no_section_takes_more_than_its_row_of_the_policy(kind: str, budget: int) -> None:
    with open_memory(settings=quick_settings(), clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        (talked if kind == "talk" else worked)(session)
        for said in ("remind me which town Maria lives in", "Which port stays closed in src/part_3.py?", "Thanks!"):
            session.add_messages([HumanMessage(said)])
            for asked in ({}, {"tools": [TOOL]}, {"query": "port 7 town"}, {"query": ""}, {"view": "minimal"}):
                check(session.context(max_tokens=budget, **asked))
        check(session.context(max_tokens=budget, query="port 7 town", view="recall"))
        check(session.context(max_tokens=budget, view="recall"))


def test_beside_work_on_files_the_account_tells_the_smaller_rooms() -> None:
    with open_memory(settings=quick_settings(), clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        worked(session)
        context = session.context(max_tokens=4000, tools=[TOOL])
        caps = {section.name: section.cap for section in context.sections}
        shares = Settings().context.shares
        assert caps["history"] == round(NUMBERS.cover_beside_share * 4000) + round(shares.user_queries * 4000)
        assert caps["facts"] == round(NUMBERS.facts_at_work_share * 4000)
        assert caps["parts"] < caps["recent"] - caps["files"] < 4000
        assert context.policy.mode.names == ("files", "loop")


def test_the_mode_says_what_a_request_is_and_why() -> None:
    with open_memory(settings=quick_settings(), clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        talked(session)
        found = {}
        for said in ("Which town does Maria live in?", "Thanks!"):
            session.add_messages([HumanMessage(said)])
            found[said] = session.context(max_tokens=4000).policy.mode.name
        assert list(found.values()) == ["question", "talk"]
        asked = session.context(max_tokens=4000, query="town").policy
        assert (asked.mode.name, asked.mode.reason) == ("asked", "the caller passes a `query`")
        assert session.context(max_tokens=4000, tools=[TOOL]).policy.mode.names == ("loop", "talk")
        assert session.context(max_tokens=4000, view="minimal").policy.mode.name == "minimal"
        assert session.context(max_tokens=4000, view="recall", query="town").policy.mode.name == "recall"
        printed = str(asked)
        assert "asked and talk" not in printed
        assert all(row.section in printed and f"{row.tokens:,}" in printed for row in asked)


def test_a_small_talk_is_told_the_small_room_that_binds_recall() -> None:
    with open_memory(settings=quick_settings(), clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        talked(session)
        session.add_messages([HumanMessage("Tell me the story of Maria and project P3 again, with flat 33.")])
        context = session.context(max_tokens=8000)
        recall = context.section("recall")
        assert recall is not None
        assert recall.cap == context.policy.row("recall").tokens < 0.5 * 8000


def _page() -> dict[str, dict[str, str]]:
    """The table of the page, by section and mode."""
    text = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.split("## The table")[1].split("\n## ")[0].splitlines()
        if line.startswith("|") and not line.startswith("|-")
    ]
    head, *body = rows
    return {cells[0]: dict(zip(head, cells, strict=True)) for cells in body}


def _by_hand(cell: str, whole: int) -> int:
    """Tokens of a cell: a share, `but N tokens up to M %` where that is more, `at most N tokens` where it is less."""
    shares = [float(one) / 100 for one in re.findall(r"([\d.]+) %", cell)]
    tokens = [int(one.replace(",", "")) for one in re.findall(r"([\d,]+) tokens", cell)]
    found = round(shares[0] * whole)
    if "but" in cell:
        return max(found, min(tokens[0], round(shares[1] * whole)))
    return min(found, *tokens) if tokens else found


@pytest.mark.parametrize("mode", ["talk", "files", "asked"])
def test_the_page_alone_gives_the_caps_of_an_account(mode: str) -> None:
    budget, page = 5000, _page()

    def cell(section: str) -> str:
        return page[section][mode] or page[section]["talk"]

    with open_memory(settings=quick_settings(), clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        (worked if mode == "files" else talked)(session)
        session.pin(str(session.messages()[1].id))
        context = session.context("flat 3" if mode == "asked" else "", max_tokens=budget)
        assert mode in context.policy.mode
        caps = {section.name: section.cap for section in context.sections}
        rest = budget - context.policy.fixed
        told = {name: _by_hand(cell(name), budget) for name in ("goal", "pinned", "facts", "files")}
        told["history"] = _by_hand(cell("history: summaries"), budget)
        told["history"] += _by_hand(cell("history: earlier questions"), budget)
        if mode == "files":  # nothing is looked up: the view is the rest
            (parts,) = [name for name in page if name.startswith("parts")]
            told["parts"] = _by_hand(cell(parts), rest) - told["files"]
        assert {name: caps[name] for name in told if name in caps} == {
            name: told[name] for name in told if name in caps
        }
        assert {"history", "facts", "pinned"} <= caps.keys()
        assert mode != "files" or {"files", "parts"} <= caps.keys()
