"""Without a model, a summary of an agent's work says who did what, and no line of a file that a tool showed."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.settings import LevelSettings
from tests.memory_builders import open_memory, quick_settings, summaries_of

FILE = "HARBOUR_FEES = {'Kraken': 4120, 'Selkie': 977}\ndef mooring_of(boat):\n    return TIDES[boat]"
NUMBERED = "\n".join(f"{number:6}\u2192{line}" for number, line in enumerate(FILE.splitlines(), 1))
FOUND = "\n".join(f"src/fees.py:{number}:{line}" for number, line in enumerate(FILE.splitlines(), 1))

ROOMY = quick_settings(levels=(LevelSettings(messages=4, strategy="detailed", target_ratio=0.9, max_tokens=400),))


def looked(tool: str, args: dict[str, Any], result: str) -> list[BaseMessage]:
    return [
        HumanMessage("Why is the Kraken billed twice?", id="u"),
        AIMessage("", tool_calls=[{"name": tool, "args": args, "id": "c1"}], id="a"),
        ToolMessage(result, tool_call_id="c1", name=tool, id="t"),
        AIMessage("The fee is added by the importer and by the nightly job.", id="b"),
    ]


@pytest.mark.parametrize(
    ("tool", "args", "result"),
    [
        ("read_file", {"path": "src/fees.py"}, FILE),
        ("mcp__fs__read", {"file_path": "src/fees.py"}, NUMBERED),
        ("bash", {"command": "cd src && cat fees.py"}, FILE),
        ("grep", {"pattern": "fees", "path": "src"}, FOUND),
        ("bash", {"command": "rg -n fees | head"}, FOUND),
    ],
)
def test_what_a_tool_shows_of_a_file_is_no_statement_of_a_summary(tool: str, args: dict[str, Any], result: str) -> None:
    with open_memory(settings=ROOMY) as memory:
        session = memory.session("s")
        session.add_messages(looked(tool, args, result))
        session.flush()
        (summary,) = summaries_of(session)
        assert "Kraken" in summary.text
        assert "nightly job" in summary.text
        assert tool in summary.text, "that somebody looked is told"
        assert "HARBOUR_FEES" not in summary.text
        assert "TIDES" not in summary.text
        assert "4120" in "".join(entry.text for entry in session.entries()), "the transcript has all of it"


@pytest.mark.parametrize(
    ("tool", "args", "result"),
    [
        ("read_file", {"path": "src/fees.py"}, "The harbour has no file src/fees.py."),
        (
            "bash",
            {"command": "go build ./..."},
            "./fees.go:12:5: undefined: harbour\n./fees.go:40:2: unused",
        ),
        ("run_query", {"sql": "select *"}, "4120\tKraken of the harbour\n977\tSelkie"),
    ],
)
def test_what_came_of_looking_or_building_is_told(tool: str, args: dict[str, Any], result: str) -> None:
    with open_memory(settings=ROOMY) as memory:
        session = memory.session("s")
        session.add_messages(looked(tool, args, result))
        session.flush()
        (summary,) = summaries_of(session)
        assert "harbour" in summary.text


def test_a_reading_that_failed_is_told_however_long_it_is() -> None:
    said = looked("read_file", {"path": "src/fees.py"}, "No permission.\nAsk the harbour office for a key.")
    said[2] = said[2].model_copy(update={"status": "error"})
    with open_memory(settings=ROOMY) as memory:
        session = memory.session("s")
        session.add_messages(said)
        session.flush()
        (summary,) = summaries_of(session)
        assert "harbour" in summary.text


def test_what_another_tool_answers_is_told() -> None:
    answer = "The harbour office bills the Kraken 4120 a month, from pier 9."
    with open_memory(settings=ROOMY) as memory:
        session = memory.session("s")
        session.add_messages(looked("ask_office", {"path": "src/fees.py"}, answer))
        session.flush()
        (summary,) = summaries_of(session)
        assert "4120" in summary.text


def test_a_stretch_that_is_nothing_but_a_file_is_told_by_its_lines() -> None:
    with open_memory(settings=quick_settings(messages=1)) as memory:
        session = memory.session("s")
        call = AIMessage("", tool_calls=[{"name": "read_file", "args": {"path": "a.py"}, "id": "c1"}], id="a")
        session.add_messages([call, ToolMessage(FILE, tool_call_id="c1", name="read_file", id="t")])
        session.flush()
        (summary,) = summaries_of(session)
        assert "read_file" in summary.text
