"""The files that an agent touched lately: by a verb of the session, and in the list of a view."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.runs.file_list import accessed_files
from langchain_tiered_memory.settings import LevelSettings
from langchain_tiered_memory.testing import FrozenClock
from langchain_tiered_memory.types import Scope
from tests.call_styles import CALL_STYLES, CallStyle, told
from tests.memory_builders import (
    NOW,
    entries_of,
    open_memory,
    quick_settings,
    ref_of,
    small_levels,
    summaries_of,
)


def used(tool: str, number: int, result: str = "ok", **args: Any) -> list[Any]:
    call = {"name": tool, "args": args, "id": f"c{number}"}
    return [AIMessage("", tool_calls=[call]), ToolMessage(result, tool_call_id=f"c{number}", name=tool)]


def test_a_file_that_was_read_stays_one_when_a_search_finds_it_again() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Look at the harbour.")])
        session.add_messages(used("read_file", 1, file_path="/srv/p/src/a.py"))
        session.add_messages(used("read_file", 2, file_path="src/b.py"))
        session.add_messages(used("grep", 3, path="/srv/p/src/a.py"))
        session.add_messages(used("grep", 4, path="/srv/p/src/b.py"))
        session.add_messages(used("grep", 5, path="/srv/p/src/c.py"))
        found = {one.path: (one.tool, one.operation) for one in session.accessed_files()}
    assert found == {
        "/srv/p/src/c.py": ("grep", "search"),
        "/srv/p/src/b.py": ("read_file", "read"),
        "/srv/p/src/a.py": ("read_file", "read"),
    }


@pytest.mark.parametrize("call_style", CALL_STYLES)
def test_a_session_tells_which_files_were_touched_lately(call_style: CallStyle) -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        assert told(call_style, session.accessed_files) == []
        told(call_style, session.add_messages, [HumanMessage("Fix a.py.")])
        told(call_style, session.add_messages, used("edit_file", 1, file_path="/srv/p/src/a.py"))
        told(call_style, session.add_messages, used("read_file", 2, file_path="/srv/p/src/b.py"))
        told(call_style, session.add_messages, [HumanMessage("And c.py.")])
        told(call_style, session.add_messages, used("grep", 3, path="c.py"))
        told(call_style, session.add_messages, used("read_file", 4, file_path="src/a.py"))
        told(call_style, session.add_messages, used("grep", 6, path="/srv/p/src/a.py"))
        told(call_style, memory.session("s", track="other").add_messages, used("read_file", 5, file_path="d.py"))
        found = told(call_style, session.accessed_files)
        assert [(one.path, one.tool, one.operation, one.turn) for one in found] == [
            ("/srv/p/src/a.py", "edit_file", "write", 1),  # read again since, in turn 2
            ("c.py", "grep", "search", 2),
            ("/srv/p/src/b.py", "read_file", "read", 1),
        ]
        assert found[0].time == dt.datetime.fromtimestamp(NOW, tz=dt.UTC)
        assert told(call_style, session.accessed_files, limit=1) == found[:1]
        alone = memory.session("s", track="other", scope=Scope())
        assert [one.path for one in told(call_style, alone.accessed_files)] == ["d.py"]
        for wrong in (0, -1, True, "5", None):
            with pytest.raises(InvalidInputError, match="limit"):
                told(call_style, session.accessed_files, limit=wrong)


def test_a_changed_file_is_listed_though_the_recent_messages_name_it() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Fix the crane.", id="goal")])
        for number in range(40):
            path = f"src/part_{number % 6}.py"
            tool = "edit_file" if number % 6 == 3 else "read_file"
            session.add_messages(used(tool, number, "a line of it\n" * 30, file_path=path))
        session.flush()
        context = session.context("", max_tokens=2500)
        section = context.section("files")
        assert section is not None
        lines = section.text.splitlines()
        at_work = lines.index("changed:")
        assert lines[at_work + 1] == "src/part_3.py (via edit_file, turn 1)"
        shown = "\n".join(str(getattr(one, "tool_calls", "")) for one in context.messages)
        assert "src/part_3.py" in shown, "it stands in the recent messages, too"


REFUSED = "def hoist(load):\n    raise PermissionError(load)"


def _edited(number: int, path: str, new: str, result: str) -> list[Any]:
    return used("Edit", number, result, file_path=path, old_string=f"step {number} = 0", new_string=new)


def test_a_change_that_was_refused_is_neither_listed_as_one_nor_shown_as_part_of_the_file() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Fix the crane.", id="goal")])
        for number in range(30):
            path = f"src/part_{number % 6}.py"
            session.add_messages(_edited(number, path, f"def step_{number}(load): ...\n" * 4, f"Updated {path}"))
        session.add_messages(used("Read", 30, "     1\tstep 31 = 0\n     2\tport = 4", file_path="src/hoist.py"))
        session.add_messages(_edited(31, "src/hoist.py", REFUSED, "The person at the desk says no."))
        session.add_messages(_edited(32, "src/winch.py", REFUSED, "The person at the desk says no."))
        for number in range(33, 50):
            path = f"src/part_{number % 6}.py"
            session.add_messages(_edited(number, path, f"def step_{number}(load): ...\n" * 4, f"Updated {path}"))
        session.flush()
        touched = {one.path: one.operation for one in session.accessed_files()}
        assert touched["src/hoist.py"] == "read"
        assert "src/winch.py" not in touched
        assert touched["src/part_1.py"] == "write"
        context = session.context("", max_tokens=4000)
        parts = context.section("parts")
        assert parts is not None
        assert "def step_31" not in parts.text
        assert "PermissionError" not in parts.text
        assert "step_28" in parts.text
        files = context.section("files")
        assert files is not None
        assert "src/winch.py" not in files.text


def test_a_file_that_was_not_there_is_none_that_was_read() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Look at the crane.")])
        for number, path in enumerate(("src/crane.py", "src/crane.py", "src/hook.py")):
            session.add_messages(used("Read", number, "     1\timport port\n     2\tport.open()", file_path=path))
        session.add_messages(used("Read", 3, "File does not exist.", file_path="src/winch.py"))
        session.add_messages(used("Read", 4, "Not now.", file_path="src/hook.py"))
        session.add_messages(used("read_file", 5, "Error: File 'src/anchor.py' not found", file_path="src/anchor.py"))
        failed = used("Grep", 6, "", path="src/rope.py") + used("read_file", 7, "is a folder", file_path="src/rope.py")
        failed[-1].status = "error"
        session.add_messages(failed)
        touched = {one.path: (one.operation, one.seq) for one in session.accessed_files()}
        made = session.checkpoint("before the storm")
    assert touched == {"src/rope.py": ("search", 14), "src/crane.py": ("read", 4), "src/hook.py": ("read", 6)}
    assert {one["path"]: (one["operation"], one["seq"]) for one in made.project_state["files"]} == touched


def test_the_list_hears_of_a_late_answer_an_edit_and_another_track() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Look at the crane.")])
        for number in range(3):
            session.add_messages(_edited(number, "src/crane.py", f"step = {number}", "Updated src/crane.py"))
        asked, answer = _edited(3, "src/winch.py", "step = 3", "Not now.")
        answer.id = "late"
        session.add_messages([asked])
        assert [one.path for one in session.accessed_files()] == ["src/winch.py", "src/crane.py"]
        session.add_messages([answer])
        assert [one.path for one in session.accessed_files()] == ["src/crane.py"]
        session.add_messages([answer.model_copy(update={"content": "Updated src/winch.py"})])
        assert [one.path for one in session.accessed_files()] == ["src/winch.py", "src/crane.py"]
        other = memory.session("s", track="other")
        other.add_messages(used("Read", 4, "src/rope.py does not exist.", file_path="src/rope.py"))
        other.add_messages(used("Read", 5, "     1\timport port", file_path="src/hook.py"))
        assert [one.path for one in other.accessed_files()] == ["src/hook.py"]
        named = {one["path"] for one in session.checkpoint("all tracks").project_state["files"]}
        assert named == {"src/winch.py", "src/crane.py", "src/hook.py"}


def test_what_another_branch_did_to_a_file_does_not_count() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Look at the crane.")])
        for number, path in enumerate(("src/crane.py", "src/hook.py", "src/winch.py")):
            session.add_messages(used("Read", number, "     1\timport port", file_path=path))
        session.add_messages(used("Write", 3, "Updated src/crane.py", file_path="src/crane.py", content="import quay"))
        session.add_messages(used("bash", 4, "", command="rm src/hook.py"))
        off = {entry.seq for entry in entries_of(session) if entry.seq > 7}
        found = accessed_files(session.core.runtime, ref_of(session), track="main", limit=9, off=off)
        assert [(one.path, one.operation) for one in found] == [
            ("src/winch.py", "read"),
            ("src/hook.py", "read"),
            ("src/crane.py", "read"),
        ]
        assert {one.path for one in session.accessed_files()} == {"src/winch.py", "src/crane.py"}


def test_a_folder_is_none_of_the_files() -> None:
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Look at the crane.", id="goal")])
        for number in range(30):
            path = f"/srv/port/src/part_{number % 6}/crane.py"
            session.add_messages(used("edit_file", number, "a line of it\n" * 30, file_path=path))
        session.add_messages(used("ls", 31, "crane.py", path="/srv/port/src/part_1/"))
        session.add_messages(used("Grep", 32, "", path="src"))
        session.add_messages(used("Glob", 33, "docs/guide.md", path="docs"))
        session.add_messages(used("Grep", 34, "", path="Makefile"))
        session.flush()
        named = {one.path for one in session.accessed_files()}
        assert named == {f"/srv/port/src/part_{part}/crane.py" for part in range(6)} | {"docs/guide.md", "Makefile"}
        section = session.context("", max_tokens=2500).section("files")
        assert section is not None
        assert not {"docs", "src", "/srv/port/src/part_1"} & {line.split(" (")[0] for line in section.text.splitlines()}


def test_a_summary_by_rules_tells_the_refusal_and_not_that_a_file_was_written() -> None:
    level = LevelSettings(messages=20, tokens=4000, strategy="detailed", target_ratio=0.5, max_tokens=400)
    with open_memory(settings=quick_settings(levels=(level, *small_levels()[1:]))) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Fix the crane.", id="goal")])
        for number in range(12):
            path = f"src/part_{number % 6}.py"
            answer = "The person at the desk says no." if number == 2 else f"Updated {path} in place."
            session.add_messages(_edited(number, path, f"lift(load, {number})\n" * 4, answer))
        session.flush()
        written = "\n".join(one.text for one in summaries_of(session))
        assert "The person at the desk says no." in written
        assert "in place" not in written


def test_a_file_that_was_moved_away_or_removed_is_none_of_the_run() -> None:
    with open_memory(clock=FrozenClock(NOW)) as memory:
        session = memory.session("s")
        session.add_messages([HumanMessage("Move the notes.")])
        session.add_messages(used("write_file", 1, file_path="/srv/p/docs/testing/notes.md", content="the notes"))
        session.add_messages(used("write_file", 2, file_path="/srv/p/a.py", content="the first of all"))
        session.add_messages(used("bash", 3, command="mv docs/testing docs/old && rm a.py b.py"))
        session.add_messages(used("write_file", 4, file_path="b.py", content="made anew"))
        assert [one.path for one in session.accessed_files()] == ["b.py", "docs/old"]
