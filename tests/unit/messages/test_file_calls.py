"""Which calls on files came to nothing: told by how a tool answers when it did what it was asked, in any words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langchain_tiered_memory.messages.file_accesses import touches_of_call
from langchain_tiered_memory.messages.file_calls import file_calls, refused_touches
from langchain_tiered_memory.messages.groups import as_groups
from langchain_tiered_memory.settings import FileSettings
from tests.memory_builders import entries_of, open_memory

if TYPE_CHECKING:
    from langchain_tiered_memory.messages.content_blocks import RequestedCall
    from langchain_tiered_memory.types.drafts import FileTouch

SETTINGS = FileSettings()
OLD, NEW = "def lift(load):\n    return load", "def lift(load, height):\n    return load * height"
NUMBERED = "     1\tdef lift(load):\n     2\t    return load"


class Run:
    """A run of an agent, call by call."""

    def __init__(self) -> None:
        self.messages: list[BaseMessage] = []

    def call(self, tool: str, result: str, status: Literal["success", "error"] = "success", **args: Any) -> str:
        made = f"c{len(self.messages)}"
        call = {"name": tool, "args": args, "id": made}
        self.messages += [AIMessage("", tool_calls=[call]), ToolMessage(result, tool_call_id=made, status=status)]
        return made

    def edit(self, result: str, path: str = "/srv/port/crane.py", **more: Any) -> str:
        return self.call("Edit", result, file_path=path, old_string=OLD, new_string=NEW, **more)

    def refused(self) -> list[str | None]:
        with open_memory() as memory:
            session = memory.session("s")
            session.add_messages(self.messages)
            return [one.call_id for one in file_calls(as_groups(entries_of(session)), SETTINGS) if one.refused]


@pytest.mark.parametrize(
    "answer",
    ["The user does not want this change.", "Der Benutzer lehnt das ab.", "\u7528\u6237\u62d2\u7edd\u4e86", ""],
)
def test_an_answer_that_does_not_name_the_file_as_the_others_do_is_a_refusal(answer: str) -> None:
    run = Run()
    run.edit("The file /srv/port/crane.py has been updated.")
    run.edit("The file /srv/port/hook.py has been updated.", path="/srv/port/hook.py")
    refused = run.edit(answer)
    assert run.refused() == [refused]


def test_one_before_the_first_that_was_done_is_told_by_those_behind_it() -> None:
    run = Run()
    refused = run.edit("Not now.")
    run.edit("Replaced 1 place in crane.py")
    run.call("Write", "Created port/hook.py", file_path="port/hook.py", content=NEW)
    assert run.refused() == [refused]


def test_an_error_is_one_by_its_mark_whatever_it_says() -> None:
    run = Run()
    failed = run.call("Edit", "crane.py is locked", "error", file_path="crane.py", old_string=OLD, new_string="")
    assert run.refused() == [failed]


def test_a_tool_whose_answers_never_name_the_file_is_believed() -> None:
    run = Run()
    for _ in range(4):
        run.edit("OK")
        run.call("Write", "Created port/hook.py", file_path="port/hook.py", content=NEW)
    assert run.refused() == []


def test_a_tool_that_names_what_it_creates_need_not_name_what_it_edits() -> None:
    run = Run()
    for number in range(4):
        run.call("editor", "Created", file_path=f"port/{number}.py", content=NEW)
    with_path = FileSettings(tools={"editor": "write"})
    run.call("editor", "done", file_path="port/a.py", old_string=OLD, new_string=NEW)
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(run.messages)
        assert not any(one.refused for one in file_calls(as_groups(entries_of(session)), with_path))


def test_where_most_answers_name_no_file_none_is_told_by_that() -> None:
    run = Run()
    run.edit("crane.py: 1 change")
    for _ in range(3):
        run.edit("1 change")
    assert run.refused() == []


def test_a_shell_answers_as_its_programs_print() -> None:
    run = Run()
    run.edit("Updated crane.py")
    run.call("bash", "", command="cat > port/hook.py <<'END'\nclass Hook: ...\nEND")
    run.call("bash", "port/hook.py", command="touch port/hook.py; ls port/hook.py")
    assert run.refused() == []


def test_an_answer_without_numbers_is_no_text_of_a_file_where_the_tool_numbers_its_lines() -> None:
    run = Run()
    run.call("Read", NUMBERED, file_path="crane.py")
    run.call("Read", NUMBERED, file_path="hook.py")
    refused = run.call("Read", "The user does not want you to read that.", file_path="secret.py")
    assert run.refused() == [refused]


def test_a_tool_that_numbers_no_lines_shows_its_files() -> None:
    run = Run()
    for _ in range(3):
        run.call("Read", "def lift(load): ...", file_path="crane.py")
    run.call("Read", "8080: crane\n8081: hook", file_path="ports.yaml")
    assert run.refused() == []


@pytest.mark.parametrize(
    "answer",
    ["Error: File 'crane.py' not found", "cat: crane.py: Datei oder Verzeichnis nicht gefunden", "crane.py\uff1f\n"],
)
@pytest.mark.parametrize("tool", ["read_file", "bash"])
def test_a_line_that_names_the_file_is_none_of_its_lines(tool: str, answer: str) -> None:
    run = Run()
    asked = {"command": "cat crane.py"} if tool == "bash" else {"file_path": "crane.py"}
    run.call(tool, "def lift(load):\n    return load", **asked)
    refused = run.call(tool, answer, **asked)
    run.call(tool, "import hook", **asked)
    run.call(tool, "     1\tcrane.py", **asked)
    run.call(tool, "crane.py", **asked)
    run.call(tool, "./crane.py\n", **asked)
    run.call(tool, "", **asked)
    assert run.refused() == [refused]


def test_what_a_tool_shows_otherwise_than_by_numbered_lines_was_read() -> None:
    run = Run()
    for number in range(4):
        run.call("Read", NUMBERED, file_path=f"crane_{number}.py")
    run.call("Read", "<cell>\nlift(3)\n</cell>", file_path="crane.ipynb")
    run.call("Read", "", file_path="crane.png")
    assert run.refused() == []


def test_what_a_shell_printed_was_read_though_its_last_command_failed() -> None:
    run = Run()
    run.call("bash", "def lift(load): ...\n1 failed", "error", command="cat crane.py && pytest")
    refused = run.call("bash", "exited with 1", "error", command="cat hook.py && pytest")
    assert run.refused() == [refused]


@pytest.mark.parametrize(
    ("command", "is_done"),
    [
        ("sed -i s/load/lift/ crane.py && pytest", True),
        ("cd port && sed -i s/load/lift/ crane.py; python crane.py", True),
        ("cat > crane.py <<'END'\ndef lift(load): ...\nEND\npython crane.py", True),
        ("mv crane.py hoist.py && pytest hoist.py", True),
        ("sed -i s/load/lift/ crane.py", False),
        ("cd port && sed -i s/load/lift/ crane.py 2>/dev/null", False),
    ],
)
def test_what_a_shell_wrote_before_its_last_command_failed_is_written(command: str, *, is_done: bool) -> None:
    run = Run()
    made = run.call("bash", "1 failed\n\nExit code: 1", "error", command=command)
    rejected = run.call("bash", "User rejected the tool call for `bash`", "error", command=command)
    assert run.refused() == ([rejected] if is_done else [made, rejected])


def test_a_file_that_another_call_of_the_message_changed_is_changed() -> None:
    run = Run()
    run.edit("Updated hook.py", path="hook.py")
    calls = [
        {"name": "Edit", "args": {"file_path": path, "old_string": OLD, "new_string": NEW}, "id": f"two{number}"}
        for number, path in enumerate(("crane.py", "crane.py", "port.py"))
    ]
    answers = ("Updated crane.py", "No.", "No.")
    run.messages.append(AIMessage("", tool_calls=calls))
    run.messages += [ToolMessage(answer, tool_call_id=f"two{number}") for number, answer in enumerate(answers)]
    run.edit("Updated hook.py", path="hook.py")
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(run.messages)
        groups = as_groups(entries_of(session))
    assert refused_touches(file_calls(groups, SETTINGS)) == {(3, "port.py")}


def test_what_a_group_did_is_read_once_and_anew_by_other_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run()
    run.edit("The file /srv/port/crane.py has been updated.")
    run.call("Read", NUMBERED, file_path="/srv/port/crane.py")
    read: list[str] = []

    def noting(call: RequestedCall, settings: FileSettings) -> tuple[FileTouch, ...]:
        read.append(call.name)
        return touches_of_call(call, settings)

    monkeypatch.setattr("langchain_tiered_memory.messages.file_calls.touches_of_call", noting)
    with open_memory() as memory:
        session = memory.session("s")
        session.add_messages(run.messages)
        groups = as_groups(entries_of(session))
    first = file_calls(groups, SETTINGS)
    assert read == ["Edit", "Read"]
    assert file_calls(groups[1:], SETTINGS) == first[1:]
    assert read == ["Edit", "Read"]
    assert file_calls(groups, FileSettings(tools={"edit": "read"}))[0].touches[0].operation == "read"
    assert read[2:] == ["Edit", "Read"]
