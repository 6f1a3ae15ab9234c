"""What calls say of the text of files, in the dialects of common agents."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from langchain_tiered_memory.messages.content_blocks import RequestedCall
from langchain_tiered_memory.messages.file_texts import Change, Reading, Unsaid, changes_of, reading_of, unsaid_of
from langchain_tiered_memory.settings import FileSettings

SETTINGS = FileSettings()
OLD, NEW = "def lift(load):\n    return load", "def lift(load, height):\n    return load * height"
PATCH = (
    "*** Begin Patch\n*** Update File: src/crane.py\n@@ class Crane:\n     def lift(self):\n-        return 1\n"
    "+        return 2\n*** End Patch"
)


def call(name: str, **args: Any) -> RequestedCall:
    return RequestedCall(id="c", name=name, args=args)


@pytest.mark.parametrize(
    "asked",
    [
        call("Edit", file_path="src/crane.py", old_string=OLD, new_string=NEW),
        call("edit", path="src/crane.py", oldText=OLD, newText=NEW),
        call("MultiEdit", file_path="src/crane.py", edits=[{"old_string": OLD, "new_string": NEW}]),
        call("str_replace_based_edit_tool", command="str_replace", path="src/crane.py", old_str=OLD, new_str=NEW),
        call("mcp__fs__edit_file", path="src/crane.py", edits=[{"oldText": OLD, "newText": NEW}]),
    ],
    ids=lambda asked: asked.name,
)
def test_an_edit_says_what_it_replaced_and_what_it_wrote(asked: RequestedCall) -> None:
    assert changes_of(asked, SETTINGS) == (Change(path="src/crane.py", old=OLD, new=NEW),)


def test_a_text_that_is_deleted_is_replaced_by_nothing() -> None:
    for asked in (
        call("Edit", file_path="a.py", old_string=OLD, new_string=""),
        call("str_replace_based_edit_tool", command="str_replace", path="a.py", old_str=OLD),
    ):
        assert changes_of(asked, SETTINGS) == (Change(path="a.py", old=OLD, new=""),)


@pytest.mark.parametrize("key", ["content", "file_text", "contents"])
def test_a_written_file_is_the_whole_of_it(key: str) -> None:
    for text in (NEW, "x = 1", ""):
        asked = call("write_file", path="a.py", **{key: text}, description="Says what the crane lifts, and to where.")
        assert changes_of(asked, SETTINGS) == (Change(path="a.py", old="", new=text, whole=True),)


@pytest.mark.parametrize("of_lines", [{"line_count": 3}, {"line_ending": "\n"}, {"newline": "\n"}])
def test_how_many_lines_there_are_and_how_they_end_is_no_place_among_them(of_lines: dict[str, Any]) -> None:
    asked = call("write_to_file", path="a.py", content=NEW, **of_lines)
    assert changes_of(asked, SETTINGS) == (Change(path="a.py", old="", new=NEW, whole=True),)


@pytest.mark.parametrize(
    "asked",
    [
        call("write_file", path="a.py", content=NEW, mode="append"),
        call("insert", path="a.py", line="end", content=NEW),
        call("write_file", path="a.py", content=NEW, append=True),
        call("insert", path="a.py", line=3, content=NEW),
        call("edit_file", target_file="a.py", instructions="I make it lift higher.", code_edit=NEW),
    ],
)
def test_what_joins_a_file_is_not_the_whole_of_it(asked: RequestedCall) -> None:
    assert changes_of(asked, SETTINGS) == (Change(path="a.py", old="", new=NEW),)


def test_a_tool_may_replace_every_place() -> None:
    asked = call("edit_file", file_path="a.py", old_string=OLD, new_string=NEW, replace_all=True)
    assert changes_of(asked, SETTINGS) == (Change(path="a.py", old=OLD, new=NEW, every=True),)


def test_hunks_of_a_patch_stand_with_the_lines_around_them() -> None:
    (change,) = changes_of(call("apply_patch", input=PATCH), SETTINGS)
    assert change.path == "src/crane.py"
    assert change.old == "    def lift(self):\n        return 1"
    assert change.new == "    def lift(self):\n        return 2"


@pytest.mark.parametrize("name", ["apply_patch", "bash"])
def test_each_hunk_of_a_patch_is_of_the_file_that_it_names(name: str) -> None:
    body = (
        "*** Begin Patch\n*** Update File: crane.py\n*** Move to: hoist.py\n@@\n-load = 1\n+load = 2\n"
        "*** Update File: hook.py\n@@\n-rope = 1\n+rope = 2\n*** Delete File: winch.py\n"
        "*** Add File: port.py\n+quay = 2\n*** End Patch"
    )
    asked = call(name, command=f"apply_patch <<'EOF'\n{body}\nEOF" if name == "bash" else body)
    changes = changes_of(asked, SETTINGS)
    new = [("hoist.py", "load = 2"), ("hook.py", "rope = 2"), ("port.py", "quay = 2")]
    assert [(one.path, one.new) for one in changes] == new
    gone = [(one.path, one.fate) for one in unsaid_of(asked, changes, SETTINGS)]
    assert gone == [("crane.py", "gone"), ("winch.py", "gone")]


def test_each_hunk_of_what_git_prints_is_of_its_file() -> None:
    one = "diff --git a/{0} b/{0}\nindex 1..2 100644\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-load\n+{1}\n"
    asked = call("apply_patch", input=one.format("crane.py", "lift") + one.format("hook.py", "hold"))
    assert [(one.path, one.new) for one in changes_of(asked, SETTINGS)] == [("crane.py", "lift"), ("hook.py", "hold")]


@pytest.mark.parametrize(
    ("asked", "fates"),
    [
        (call("delete", file_path="src/crane.py"), [("src/crane.py", "gone")]),
        (call("str_replace_based_edit_tool", command="delete", path="a.py"), [("a.py", "gone")]),
        (call("delete_lines", path="a.py", start=1), [("a.py", "edited")]),
        (call("str_replace_based_edit_tool", command="undo_edit", path="a.py"), [("a.py", "edited")]),
        (
            call("move_file", source="/srv/port/src/old/crane.py", destination="src/crane.py"),
            [("/srv/port/src/old/crane.py", "gone"), ("src/crane.py", "anew")],
        ),
    ],
)
def test_a_tool_tells_which_file_it_removes_or_moves(asked: RequestedCall, fates: list[tuple[str, str]]) -> None:
    lines = FileSettings(tools={**SETTINGS.tools, "delete_lines": "write"})
    assert changes_of(asked, lines) == ()
    assert [(one.path, one.fate) for one in unsaid_of(asked, (), lines)] == fates


def test_a_here_document_is_the_whole_of_its_file_unless_it_is_appended() -> None:
    (written,) = changes_of(call("bash", command=f"cat > a.py <<'EOF'\n{NEW}\nEOF\npython a.py"), SETTINGS)
    assert written == Change(path="a.py", old="", new=NEW, whole=True)
    (indented,) = changes_of(call("bash", command=f"cat > a.py <<-EOF\n\t{NEW}\n\tEOF"), SETTINGS)
    assert indented.new == NEW
    (appended,) = changes_of(call("bash", command=f"cat >> a.py <<EOF\n{NEW}\nEOF"), SETTINGS)
    assert not appended.whole
    of_two_files = f"cat > a.py <<EOF\n{NEW}\nEOF\nmake notes > notes.txt"
    assert changes_of(call("bash", command=of_two_files), SETTINGS) == ()


@pytest.mark.parametrize(
    ("begins", "whole"),
    [
        ("cat > a.py <<'END'", True),
        ("cd port && cat > a.py <<'END' && python a.py", True),
        ('cat <<"END" | sudo tee a.py > /dev/null', True),
        ("cat <<'END' >> a.py", False),
        ("cat <<'END' | tee -a a.py", False),
        ("cat > a.py <<END", None),
        ("python - <<'END' > a.py", None),
        ("cat head.py - > a.py <<'END'", None),
        ("git commit -F - <<'END' 2> a.py", None),
    ],
)
def test_a_here_document_is_text_of_a_file_where_it_comes_there_as_it_is(begins: str, *, whole: bool | None) -> None:
    body = "load = '$HOME/of/the/crane'\nENDS = print(load)"
    asked = call("bash", command=f"{begins}\n{body}\nEND\necho done")
    path = "port/a.py" if begins.startswith("cd") else "a.py"
    changes = () if whole is None else (Change(path=path, old="", new=body, whole=whole),)
    assert changes_of(asked, SETTINGS) == changes
    assert bool(unsaid_of(asked, changes, SETTINGS)) == (whole is None)


@pytest.mark.parametrize(
    "asked",
    [call("Read", file_path="a.py"), call("bash", command="cat a.py"), call("weather", city="a long name of a city")],
    ids=lambda asked: asked.name,
)
def test_a_call_that_writes_no_file_has_no_changes(asked: RequestedCall) -> None:
    assert changes_of(asked, SETTINGS) == ()


@pytest.mark.parametrize("sign", ["\u2192", "\t", "|"])
def test_numbers_that_a_tool_prints_before_lines_are_taken_off(sign: str) -> None:
    text = f"    7{sign}def lift():\n    8{sign}    return 1\n\n<system-reminder>be careful</system-reminder>"
    result = ToolMessage(text, tool_call_id="c")
    assert reading_of(call("Read", file_path="a.py"), result, SETTINGS) == Reading(
        path="a.py", lines=("def lift():", "    return 1"), first=7
    )


def test_a_reading_without_numbers_is_taken_as_it_is() -> None:
    result = ToolMessage("one\ntwo", tool_call_id="c")
    assert reading_of(call("bash", command="cat a.py"), result, SETTINGS) == Reading(path="a.py", lines=("one", "two"))


@pytest.mark.parametrize(
    ("command", "is_reading"),
    [
        ("cd src && cat a.py 2>/dev/null | head -20", True),
        ("nl -ba src/a.py | sed -n 1,20p", True),
        ("cat a.py; git status", False),
        ("cat a.py && pytest -q", False),
        ("cat a.py | grep -n crane", False),
        ("head -5 a.py; tail -5 a.py", False),
        ("echo the crane:; cat a.py", False),
    ],
)
def test_what_other_commands_print_is_no_text_of_a_file(command: str, *, is_reading: bool) -> None:
    found = reading_of(call("bash", command=command), ToolMessage("one\ntwo", tool_call_id="c"), SETTINGS)
    assert (found is not None) == is_reading


def test_several_files_failed_reads_and_what_a_write_gave_are_no_reading() -> None:
    result = ToolMessage("one\ntwo", tool_call_id="c")
    assert reading_of(call("bash", command="cat a.py b.py"), result, SETTINGS) is None
    assert reading_of(call("Edit", file_path="a.py", old_string=OLD, new_string=NEW), result, SETTINGS) is None
    failed = ToolMessage("no such file", tool_call_id="c", status="error")
    assert reading_of(call("Read", file_path="a.py"), failed, SETTINGS) is None


@pytest.mark.parametrize(
    ("command", "fates"),
    [
        ("sed -i 's/load/weight/' src/crane.py", [("src/crane.py", "edited")]),
        ("cd src && mv crane.py lift.py", [("src/lift.py", "anew"), ("src/crane.py", "gone")]),
        ("mv crane.py lift.py 2>/dev/null", [("lift.py", "anew"), ("crane.py", "gone")]),
        ("git mv -k crane.py lift.py", [("lift.py", "anew"), ("crane.py", "gone")]),
        (
            "mv docs/crane.md notes/ && rmdir docs",
            [("notes/crane.md", "anew"), ("docs/crane.md", "gone"), ("docs", "gone")],
        ),
        ("mv docs/crane.md .", [("crane.md", "anew"), ("docs/crane.md", "gone")]),
        ("git checkout --theirs crane.py", [("", "edited")]),
        ("git checkout --theirs -- crane.py", [("crane.py", "edited")]),
        ("cd src && git pull", [("", "edited")]),
        ("git -C src checkout main", [("", "edited")]),
        ("git stash; git merge quay", [("", "edited")]),
        ("git reset --hard HEAD~1", [("", "edited")]),
        ("git checkout -- .", [("", "edited")]),
        ("git -c core.editor=true checkout main", [("", "edited")]),
        ("find src -name '*.py' -exec sed -i s/load/weight/ {} +", [("", "edited")]),
        ("grep -rl load src | xargs sed -i s/load/weight/", [("", "edited")]),
        ("for one in src/*.py; do sed -i s/load/weight/ $one; done", [("", "edited")]),
        ("patch -p1 < crane.patch", [("", "edited")]),
        ("sed -i s/a/b/ crane.py src/*.py 2>/dev/null", [("", "edited"), ("crane.py", "edited")]),
        ("find src -name '*.py' -print | xargs sed -n 1,5p", []),
        ("perl -0pi -e 's/load/weight/' src/crane.py", [("src/crane.py", "edited")]),
        ("perl -i -pe s/load/weight/ src/*.py", [("", "edited")]),
        ("perl -ne print src/crane.py", []),
        (".venv/bin/python -c \"open('src/crane.py', 'w')\"", [("src/crane.py", "edited")]),
        ("python3 - <<'E'\nopen('src/crane.py', 'w').write('')\nE", [("src/crane.py", "edited")]),
        ("cd src; python -c 'print(open(\"crane.py\").read())'", []),
        ("git rm --cached crane.py", []),
        ("git branch quay; git add crane.py; git log; git commit -m merge", []),
        ("cp a.md b.md notes", [("notes/a.md", "anew"), ("notes/b.md", "anew")]),
        ("echo log.txt >> log.txt", []),
        ("rm -rf build/out.txt", [("build/out.txt", "gone")]),
        ("make notes > notes.txt", [("notes.txt", "anew")]),
        ("echo more >> notes.txt; touch src/crane.py; cat src/crane.py", []),
    ],
)
def test_a_shell_tells_what_becomes_of_a_file_where_it_does_not_say_its_words(
    command: str, fates: list[tuple[str, str]]
) -> None:
    asked = call("bash", command=command)
    assert [(one.path, one.fate) for one in unsaid_of(asked, (), SETTINGS)] == fates


def test_a_here_document_says_what_its_file_is() -> None:
    asked = call("tools/bash", command=f"cat > src/crane.py <<'EOF'\n{NEW}\nEOF\n")
    assert unsaid_of(asked, (), SETTINGS) == (Unsaid(path="src/crane.py", fate="anew"),)
    assert unsaid_of(asked, changes_of(asked, SETTINGS), SETTINGS) == ()
    edited = call("Edit", file_path="a.py", old_string=OLD, new_string=NEW)
    assert unsaid_of(edited, changes_of(edited, SETTINGS), SETTINGS) == ()
