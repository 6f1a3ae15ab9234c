"""Without a model, a summary of an agent's work says who did what, and no line of a file that a tool showed.

Above level 1, and in short, the words of who worked come before the calls, and what tools printed.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.settings import LevelSettings
from langchain_tiered_memory.summaries.resolutions import short_of
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
        assert "[tool] read_file: No permission." in summary.text


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


@pytest.mark.parametrize(
    ("tool", "args", "result"),
    [
        ("write_file", {"path": "src/fees.py", "content": "x"}, "The harbour master wrote src/fees.py."),
        (
            "str_replace",
            {"path": "src/fees.py", "old_str": "a", "new_str": "b"},
            "Updated the harbour by 117 characters.",
        ),
    ],
)
def test_that_a_file_was_written_is_told_once_by_the_call(tool: str, args: dict[str, Any], result: str) -> None:
    with open_memory(settings=ROOMY) as memory:
        session = memory.session("s")
        session.add_messages(looked(tool, args, result))
        session.flush()
        (summary,) = summaries_of(session)
        assert tool in summary.text
        assert "fees.py" in summary.text
        assert "harbour" not in summary.text


def test_a_write_that_failed_is_told_whether_or_not_its_status_says_so() -> None:
    with open_memory(settings=ROOMY) as memory:
        session = memory.session("s")
        said = looked("str_replace", {"path": "src/fees.py"}, "Error: the harbour text was not found.")
        session.add_messages(said)
        session.flush()
        (summary,) = summaries_of(session)
        assert "harbour text was not found" in summary.text


WORK = quick_settings(
    levels=(
        LevelSettings(messages=3, strategy="detailed", target_ratio=0.95, max_tokens=400),
        LevelSettings(sources=4, strategy="thematic", target_ratio=0.8, max_tokens=130),
    )
)
STEPS = (
    (
        "bash",
        {"command": "make harbour-check"},
        "drwxr-xr-x 27 kraken selkie 864 pier-9",
        "The fee table has two rates.",
    ),
    ("str_replace", {"path": "src/fees.py"}, "Updated 117 characters.", "The importer now adds the fee once."),
    (
        "bash",
        {"command": "make tides-check"},
        "-rw-r--r-- 1 kraken selkie 8 tides.txt",
        "Tides are read at night alone.",
    ),
    ("write_file", {"path": "src/tides.py"}, "Wrote 41 lines.", "The nightly job leaves the fee alone."),
)


def worked() -> list[BaseMessage]:
    said: list[BaseMessage] = []
    for number, (tool, args, result, told) in enumerate(STEPS):
        call = {"name": tool, "args": args, "id": f"c{number}"}
        said += [
            AIMessage("", tool_calls=[call], id=f"a{number}"),
            ToolMessage(result, tool_call_id=f"c{number}", name=tool, id=f"t{number}"),
            AIMessage(told, id=f"b{number}"),
        ]
    return said


def test_above_level_1_what_was_said_of_the_work_comes_before_calls_and_what_they_printed() -> None:
    with open_memory(settings=WORK) as memory:
        session = memory.session("s")
        session.add_messages(worked())
        session.flush()
        (above,) = [one for one in summaries_of(session) if one.level == 2]
        assert all(words in above.text for *_, words in STEPS), above.text
        assert not any(words in short_of(above) for words in ("drwx", "-rw-"))


def test_an_element_over_several_sentences_and_lines_is_nobodys_statement() -> None:
    caveat = (
        "<local-command-caveat>The Kraken wrote this.\nDo NOT answer the Selkie unless it asks for 4120 euros."
        "</local-command-caveat>"
    )
    with open_memory(settings=ROOMY) as memory:
        session = memory.session("s")
        session.add_messages(
            [HumanMessage(f"{caveat}\nWe decided on pier 9.", id="u1")]
            + [HumanMessage(f"Berth {number} is free from 8:30.", id=f"v{number}") for number in range(3)]
        )
        session.flush()
        (summary,) = summaries_of(session)
        assert "pier 9" in summary.text
        stated = [summary.text, *(fact.text for fact in session.facts())]
        assert not any(word in text for text in stated for word in ("Kraken", "Selkie", "4120"))
