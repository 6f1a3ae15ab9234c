from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.messages.file_accesses import patched_paths, paths_in_command, plain_path, touches_of
from langchain_tiered_memory.messages.ingest import draft_of
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.settings import FileSettings

SETTINGS = FileSettings()


def calling(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": "c1"}])


def touched(
    message: AIMessage | ToolMessage | HumanMessage, settings: FileSettings = SETTINGS
) -> list[tuple[str, str]]:
    return [(touch.operation, touch.path) for touch in touches_of(message, settings)]


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("read_file", "read"),
        ("Read", "read"),
        ("ReadFile", "read"),
        ("mcp__fs__read_file", "read"),
        ("functions.read_file", "read"),
        ("filesystem_read_file", "read"),
        ("read-file", "read"),
        ("MultiEdit", "write"),
        ("Write", "write"),
        ("Grep", "search"),
        ("list_directory", "list"),
        ("read_text_file", "read"),
        ("write_to_file", "write"),
        ("delete", "write"),
    ],
)
def test_a_tool_is_known_by_its_name_alone_or_behind_a_prefix(name: str, operation: str) -> None:
    assert touched(calling(name, path="src/a.py")) == [(operation, "src/a.py")]


@pytest.mark.parametrize("name", ["send_mail", "thread", "already_read", "Task", "get_weather"])
def test_other_tools_touch_no_files(name: str) -> None:
    assert touched(calling(name, path="src/a.py", file="b.py")) == []


@pytest.mark.parametrize("key", ["path", "file_path", "filePath", "target_file", "notebook_path", "abs_path"])
def test_a_path_is_taken_from_any_of_the_usual_arguments(key: str) -> None:
    assert touched(calling("read_file", **{key: "a.py", "content": "/etc/hosts.txt"})) == [("read", "a.py")]


def test_lists_of_paths_and_of_objects_with_paths_are_read() -> None:
    assert touched(calling("read_file", paths=["a.py", "b.py"])) == [("read", "a.py"), ("read", "b.py")]
    assert touched(calling("read_file", files=[{"path": "a.py"}, {"lines": "1-2"}])) == [("read", "a.py")]


@pytest.mark.parametrize(
    ("command", "operation"), [("view", "read"), ("create", "write"), ("str_replace", "write"), ("insert", "write")]
)
def test_an_editor_with_commands_does_what_its_command_says(command: str, operation: str) -> None:
    assert touched(calling("str_replace_editor", command=command, path="/app/a.py")) == [(operation, "/app/a.py")]


def test_a_patch_names_the_files_it_changes() -> None:
    body = (
        "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: src/b.py\n+z\n*** Move to: src/c.py\n"
        "*** Delete File: old.py\n*** End Patch"
    )
    expected = ["src/a.py", "src/b.py", "src/c.py", "old.py"]
    assert touched(calling("apply_patch", input=body)) == [("write", path) for path in expected]
    assert touched(calling("shell", command=["apply_patch", body])) == [("write", path) for path in expected]


def test_a_unified_diff_names_what_it_changes() -> None:
    assert patched_paths("--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n--- a/y.py\n+++ /dev/null\n") == ("x.py",)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat a.py b.py", [("read", "a.py"), ("read", "b.py")]),
        ("cd app && cat src/a.py", [("read", "app/src/a.py")]),
        ("head -n 20 a.py | grep foo", [("read", "a.py")]),
        ("tail -50 log/run.txt 2>&1", [("read", "log/run.txt")]),
        ("sed -n '1,20p' a.py", [("read", "a.py")]),
        ("sed -i 's/a/b/' a.py", [("write", "a.py")]),
        ("sed -i '' -e 's/a/b/' a.py", [("write", "a.py")]),
        ("perl -pi -e 's/a/b/' a.py", [("write", "a.py")]),
        ("grep -rn 'a|b' src/a.py", [("search", "src/a.py")]),
        ("grep -A 3 -e foo a.py", [("search", "a.py")]),
        ("rg -t py foo src/app", [("search", "src/app")]),
        ("find src/app -name '*.py'", [("search", "src/app")]),
        ("ls -la src/app", [("list", "src/app")]),
        ("rm -rf build/out.txt", [("write", "build/out.txt")]),
        ("mv a.py b.py", [("write", "b.py"), ("write", "a.py")]),
        ("cp a.py b.py", [("write", "b.py"), ("read", "a.py")]),
        ("git mv a.py app/", [("write", "app/a.py"), ("write", "a.py")]),
        ("git checkout HEAD~2 -- app/a.py", [("write", "app/a.py")]),
        ("git restore -s main -- a.py", [("write", "a.py")]),
        ("git restore --staged a.py; git checkout main; git diff a.py", []),
        ("echo hi > out.txt", [("write", "out.txt")]),
        ("echo hi | tee -a out.txt", [("write", "out.txt")]),
        ("cat > a.py <<'EOF'\nrm b.py\ncat c.py\nEOF\ncat d.py", [("write", "a.py"), ("read", "d.py")]),
        ("sort < in.txt", [("read", "in.txt")]),
        ("sudo cat 'my notes.txt' conf.ini", [("read", "my notes.txt"), ("read", "conf.ini")]),
        ("cat my\\ notes.txt; sed -i s/a/b/ 'the plan.md'", [("read", "my notes.txt"), ("write", "the plan.md")]),
        ("cat > 'the plan.md' <<END\ncat a.py\nEND", [("write", "the plan.md")]),
        ("cat src\\a.py 'C:\\port\\b.py'", [("read", "src/a.py"), ("read", "C:/port/b.py")]),
        ("sed -Ei 's/a/b/' a.py; sed -nE '1,5p' b.py", [("write", "a.py"), ("read", "b.py")]),
        ("make &> out.txt; make >| all.txt; make 2>&1", [("write", "out.txt"), ("write", "all.txt")]),
        ("timeout 5 cat a.py; if true; then rm b.py; fi", [("read", "a.py"), ("write", "b.py")]),
        ("git -C port checkout -- a.py; git rm --cached b.py", [("write", "a.py")]),
        ("FOO=1 cat a.py; # cat b.py", [("read", "a.py")]),
        ("cat *.py $FILE `which x` /dev/null -", []),
        ("python run.py --out x.txt", []),
        ("go test ./... 2>/dev/null", []),
        ("find / -name x", []),
        ("# Let's see.\ncat a.py\nrm b.py", [("read", "a.py"), ("write", "b.py")]),
        ("# Let's see.\ncat a.py  # It's there.\nrm b.py", [("read", "a.py"), ("write", "b.py")]),
        ("git commit -m 'Mend #12\n# and #13' && rm b.py", [("write", "b.py")]),
        ("cat a#b.py", [("read", "a#b.py")]),
        ("bash -c 'make all' && rm -f a.py", [("write", "a.py")]),
        ("wc -w <<< hello\nrm a.py", [("write", "a.py")]),
        ("rm -f \\\n  a.py \\\n  b.py", [("write", "a.py"), ("write", "b.py")]),
        ("cat 'open quote", []),
        ("", []),
    ],
)
def test_a_shell_command_touches_what_its_plain_words_name(command: str, expected: list[tuple[str, str]]) -> None:
    assert [(operation, path) for path, operation in paths_in_command(command)] == expected
    assert touched(calling("Bash", command=command)) == list(dict.fromkeys(expected))


def test_what_is_done_in_a_temporary_folder_is_no_work_of_the_project() -> None:
    command = "cd /tmp && mkdir trial && cd trial && git init && echo one > file.txt; cat ../../app/a.py"
    assert touched(calling("Bash", command=command)) == [("read", "/app/a.py")]


def test_a_tool_that_moves_a_file_touches_both_of_its_names() -> None:
    both = [("write", "a.py"), ("write", "b.py")]
    assert touched(calling("mcp__fs__move_file", source="a.py", destination="b.py")) == both
    assert touched(calling("str_replace_editor", command="rename", old_path="a.py", new_path="b.py")) == both


def test_a_command_given_as_words_is_read_too() -> None:
    assert touched(calling("terminal", commands=["cat a.py", "rm b.py"])) == [("read", "a.py"), ("write", "b.py")]
    assert touched(calling("shell", command=["bash", "-lc", "cat a.py"])) == [("read", "a.py")]
    assert touched(calling("shell", command="bash -lc 'cd src && cat a.py'")) == [("read", "src/a.py")]
    written = """/bin/sh -c "cat > a.py <<END\nimport port\nEND\nsed -i 's/a/b/' b.py\""""
    assert touched(calling("shell", command=written)) == [("write", "a.py"), ("write", "b.py")]
    assert touched(calling("local_shell", command=["cat", "a.py"])) == [("read", "a.py")]
    assert touched(calling("shell", commands="git push -f && cat a.py")) == [("read", "a.py")]


def test_a_search_finds_the_paths_that_stand_on_lines_of_their_own() -> None:
    text = "Found 3 files\nsrc/a.py\n/app/src/b.py:12: def go\nsrc/c.py-13-x\nsee src/no.py for more\nREADME\n"
    result = ToolMessage(text, tool_call_id="c1", name="Grep")
    assert touched(result) == [("search", "src/a.py"), ("search", "/app/src/b.py"), ("search", "src/c.py")]
    assert touched(ToolMessage(text, tool_call_id="c1", name="read_file")) == []
    assert touched(ToolMessage(text, tool_call_id="c1")) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("grep_files", '[{"file": "src/a.py", "line": 3}, {"path": "b.py", "text": "see \\"c.py\\""}]'),
        ("brain_search", '{"results": [{"file": "src/a.py", "score": 0.4}, {"file_path": "b.py"}], "file_count": "2"}'),
        ("search_files", '[{"file": "src/a.py", "line": 3},\n {"file": "b.py", "text": "cut off he'),
        ("grep_files", "src/a.py:3: def go\nb.py:12: go()\nno.py is not one\n12:30: neither"),
    ],
)
def test_what_a_search_found_is_read_from_json_and_from_lines(name: str, text: str) -> None:
    assert touched(ToolMessage(text, tool_call_id="c1", name=name)) == [("search", "src/a.py"), ("search", "b.py")]


def test_a_list_of_paths_is_what_a_listing_found() -> None:
    text = '["src/a.py", "src/b.py", "done", "see src/no.py"]'
    assert touched(ToolMessage(text, tool_call_id="c1", name="glob_files")) == [
        ("list", "src/a.py"),
        ("list", "src/b.py"),
    ]
    assert touched(calling("glob_files", path="src")) == [("list", "src")]


def test_a_shell_finds_no_file_in_a_line_of_a_log() -> None:
    text = "example.com:80: refused\napp.main:12: started"
    assert touched(ToolMessage(text, tool_call_id="c1", name="bash")) == []


def test_a_result_finds_at_most_fifty_files() -> None:
    text = "\n".join(f"src/part_{n}.py" for n in range(500))
    assert len(touches_of(ToolMessage(text, tool_call_id="c1", name="glob"), SETTINGS)) == 50


@pytest.mark.parametrize(
    "path",
    [
        "/tmp/x.py",  # noqa: S108 - a name
        "src/__pycache__/a.pyc",
        "node_modules/a/b.js",
        "web/node_modules/a.js",
        "poetry.lock",
        "a/.git/HEAD",
    ],
)
def test_temporary_and_generated_files_are_left_out(path: str) -> None:
    assert touched(calling("read_file", path=path)) == []


def test_a_project_below_a_folder_called_tmp_is_not_temporary() -> None:
    assert touched(calling("read_file", path="tmp/x.py")) == [("read", "tmp/x.py")]


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("./src/a.py", "src/a.py"),
        ("src//a.py", "src/a.py"),
        ("src/", "src"),
        ('"a.py"', "a.py"),
        ("file:///app/a.py", "/app/a.py"),
        ("C:\\app\\a.py", "C:\\app\\a.py"),
        ("~/notes.md", "~/notes.md"),
        (".", None),
        ("..", None),
        ("", None),
        ("https://example.org/a.py", None),
        ("two\nlines", None),
        ("x" * 2000, None),
    ],
)
def test_one_path_has_one_spelling(written: str, path: str | None) -> None:
    assert plain_path(written) == path


def test_a_path_is_named_once_for_each_operation() -> None:
    calls = [{"name": name, "args": {"path": "a.py"}, "id": name} for name in ("read_file", "view", "edit_file")]
    assert touched(AIMessage("", tool_calls=calls)) == [("read", "a.py"), ("write", "a.py")]


def test_people_may_add_tools_and_arguments_of_their_own() -> None:
    settings = FileSettings(tools={"open_sheet": "read"}, path_keys=("sheet",), ignore=())
    assert touched(calling("open_sheet", sheet="a.lock"), settings) == [("read", "a.lock")]
    assert touched(calling("read_file", path="a.py"), settings) == []


def test_nothing_is_looked_for_without_a_tool() -> None:
    assert touched(calling("read_file", path="a.py"), FileSettings(tools={})) == []


def test_what_people_say_touches_nothing() -> None:
    assert touched(HumanMessage("please read_file(path=a.py)")) == []


@given(st.text(max_size=300))
def test_no_command_and_no_result_breaks_it(text: str) -> None:
    touches_of(calling("bash", command=text), SETTINGS)
    touches_of(calling("apply_patch", input=text, path=text, files=[text, {"path": text}]), SETTINGS)
    touches_of(ToolMessage(text, tool_call_id="c1", name="grep"), SETTINGS)


@pytest.mark.parametrize("piece", ["a/", "cat ", "<<EOF\n", "'\"", "x" * 100 + "/", "../", "a-1-", "+++ b/"])
def test_a_long_monotonous_text_takes_no_quadratic_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    touches_of(calling("bash", command=text), SETTINGS)
    touches_of(calling("apply_patch", input=text), SETTINGS)
    touches_of(ToolMessage(text, tool_call_id="c1", name="grep"), SETTINGS)


def test_a_draft_carries_its_files_where_they_are_asked_for() -> None:
    def drafted(files: FileSettings | None) -> list[str]:
        incoming, _ = draft_of(
            calling("edit_file", path="a.py"),
            counter=EstimatingCounter(),
            message_id="m1",
            at=0.0,
            track="main",
            kind=None,
            task=None,
            files=files,
        )
        return [touch.path for touch in incoming.touches]

    assert drafted(SETTINGS) == ["a.py"]
    assert drafted(None) == []
