import posixpath
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.models.message_counting import estimated_tokens
from langchain_tiered_memory.runs.file_list import each_once, files_block
from langchain_tiered_memory.types.runs import FileAccess, FileOperation


def access(path: str, seq: int = 1, operation: FileOperation = "read", tool: str = "read_file") -> FileAccess:
    return FileAccess(path=path, operation=operation, tool=tool, seq=seq, at=float(seq), turn=seq // 3)


def block(accesses: list[FileAccess], room: int = 10_000) -> str:
    return files_block(accesses, room_tokens=room, count=estimated_tokens)


def project(files: int) -> list[FileAccess]:
    return [access(f"/home/ada/harbour/src/package_{n % 4}/module_number_{n}.py", n) for n in range(1, files + 1)]


def named_in(text: str) -> set[str]:
    """Every path that a reader can put together from a list."""
    base, paths = "", set()
    for line in text.splitlines()[1:]:
        if line.startswith("\u2026 = "):
            base = line[4:]
        elif folded := re.fullmatch(r"(?:changed|read|found|listed)(?: in (.+?))?: (.+)", line):
            folder = (folded[1] or "").replace("\u2026", base)
            paths |= {posixpath.join(folder, name) for name in folded[2].split(", ")}
        elif not line.endswith(":") and not re.fullmatch(r"and \d+ more", line):
            paths.add(re.sub(r" \(via \S+, turn \d+\)$", "", line))
    return paths


def test_nothing_is_shown_where_there_is_nothing() -> None:
    assert block([]) == ""


def test_nothing_is_shown_where_there_is_no_room() -> None:
    assert block([access("a.py")], 0) == ""
    assert block([access("a.py")], 3) == ""


@pytest.mark.parametrize("path", ["src/app/[id]/page.tsx", "src/app/[[...slug]]/page.tsx", "src/[berth].astro"])
def test_a_folder_of_a_route_has_its_brackets(path: str) -> None:
    assert f"{path} (via " in block([access(path)])
    assert "[read, message 3]" not in block([access("src/[read, message 3]/x.py")])


def test_files_are_grouped_with_the_changed_ahead_and_the_latest_first() -> None:
    text = block(
        [
            access("src", 10, "list", "ls"),
            access("docs/f.py", 9, "list", "ls"),
            access("src/a.py", 1, "write", "edit"),
            access("src/b.py", 3),
            access("src/c.py", 7),
            access("src/d.py", 8, "search", "grep"),
            access("src/e.py", 2, "write", "edit"),
        ]
    )
    assert text.splitlines()[1:] == [
        "changed:",
        "src/e.py (via edit, turn 0)",
        "src/a.py (via edit, turn 0)",
        "read:",
        "src/c.py (via read_file, turn 2)",
        "src/b.py (via read_file, turn 1)",
        "found:",
        "src/d.py (via grep, turn 2)",
        "listed:",
        "docs/f.py (via ls, turn 3)",
    ]


def test_a_path_stands_once_and_a_change_stays_a_change() -> None:
    text = block([access("a.py", 2, "write", "edit"), access("a.py", 5), access("a.py", 1)])
    assert text.splitlines()[1:] == ["changed:", "a.py (via edit, turn 1)"]


def test_marks_go_before_whole_paths_do() -> None:
    files = project(8)
    marked = block(files)
    bare = block(files, estimated_tokens(marked) - 1)
    assert "turn" in marked
    assert "turn" not in bare
    assert named_in(bare) == {one.path for one in files}
    assert all(one.path in bare for one in files)


def test_in_a_short_room_the_latest_stay_whole_and_the_others_are_folded() -> None:
    files = project(40)
    bare = "\n".join(one.path for one in files)
    text = block(files, estimated_tokens(bare) * 3 // 4)
    assert files[-1].path in text
    assert files[0].path not in text
    assert "module_number_1.py" in text or "more" in text
    assert named_in(text) <= {one.path for one in files}
    assert len(named_in(text)) > sum(one.path in text for one in files)


def test_what_does_not_fit_is_counted() -> None:
    files = project(200)
    text = block(files, 150)
    more = re.search(r"^and (\d+) more$", text, re.MULTILINE)
    assert more is not None
    assert len(named_in(text)) + int(more[1]) == 200


def test_what_was_only_found_goes_before_what_was_read() -> None:
    files = [access(f"pkg/part_{n}/found.py", 100 + n, "search") for n in range(30)] + [
        access("pkg/read_long_ago.py", 1)
    ]
    assert "pkg/read_long_ago.py" in block(files, 60)


def test_a_changed_file_that_parts_name_too_goes_after_what_was_only_found() -> None:
    changed = access("pkg/changed.py", 1, "write", "edit")
    files = [access(f"pkg/part_{n}/found.py", 100 + n, "search") for n in range(30)] + [changed]
    text = files_block(files, room_tokens=60, count=estimated_tokens, elsewhere=[changed])
    assert "changed:\npkg/changed.py" in text


def test_many_files_are_told_by_their_folders() -> None:
    found = [access(f"/srv/project/vendor/part_{n}.py", n, "search", "glob") for n in range(1, 255)]
    text = block([*found, access("/srv/project/src/a.py", 300, "write", "edit")], 3000)
    lines = text.splitlines()
    assert lines[1:3] == ["changed:", "/srv/project/src/a.py (via edit, turn 100)"]
    assert len(lines) == 104
    assert lines[-1].startswith("found in /srv/project/vendor: part_155.py, part_154.py")


def test_a_file_is_listed_once_whatever_it_is_called() -> None:
    named = [
        access("/srv/project/src/a.py", 1, "write", "edit"),
        access("src/a.py", 4),
        access("./docs/../src/b.py", 5),
        access("/srv/project/src/b.py", 2),
        access("/srv/project/README.md", 3),
        access("/srv/project/docs/guide.md", 6),
        access("guide.md", 7),  # it may be another one, beside the folder where the others begin
    ]
    assert block(named).splitlines()[1:] == [
        "changed:",
        "/srv/project/src/a.py (via edit, turn 1)",
        "read:",
        "guide.md (via read_file, turn 2)",
        "/srv/project/docs/guide.md (via read_file, turn 2)",
        "/srv/project/src/b.py (via read_file, turn 1)",
        "/srv/project/README.md (via read_file, turn 1)",
    ]


names = st.text("abcdefgh_.", min_size=1, max_size=12).filter(lambda name: name.strip(".") != "")
paths = st.lists(names, min_size=1, max_size=5).map("/".join)
accesses = st.lists(
    st.builds(
        access,
        st.one_of(paths, paths.map(lambda path: f"/{path}"), paths.map(lambda path: f"/home/ada/code/{path}")),
        st.integers(1, 50),
        st.sampled_from(["read", "write", "search", "list"]),
    ),
    max_size=30,
)


@given(accesses, st.integers(0, 400))
def test_it_never_takes_more_than_its_room(files: list[FileAccess], room: int) -> None:
    assert estimated_tokens(block(files, room)) <= room


@given(accesses, st.integers(0, 400))
def test_every_file_is_named_so_that_its_path_can_be_put_together_or_counted(
    files: list[FileAccess], room: int
) -> None:
    text = block(files, room)
    if text:
        more = re.search(r"^and (\d+) more$", text, re.MULTILINE)
        known = {one.path for one in each_once(files)}
        assert named_in(text) <= known
        assert len(named_in(text)) + (int(more[1]) if more else 0) == len(known)


@given(accesses)
def test_the_order_in_which_accesses_are_given_does_not_matter(files: list[FileAccess]) -> None:
    distinct = list({(one.path, one.seq): one for one in files}.values())
    assert block(distinct, 120) == block(distinct[::-1], 120)


def test_a_search_through_many_files_pushes_out_none_that_was_changed_or_read() -> None:
    changed = [access(f"/srv/app/changed_{n}.py", n, "write", "edit") for n in range(26)]
    found = [access(f"/srv/lib/part_{n % 7}/found_{n}.py", 100 + n, "search", "grep") for n in range(150)]
    for room in (800, 1600):
        assert {one.path for one in changed} <= named_in(block(changed + found, room)), room


def test_what_was_read_lately_is_named_before_what_was_changed_long_ago() -> None:
    changed = [access(f"/srv/app/part_{n}/changed.py", n, "write", "edit") for n in range(20)]
    read = [access(f"/srv/lib/part_{n}/read.py", 100 + n) for n in range(6)]
    named = named_in(block(changed + read, 100))
    assert {one.path for one in read} <= named
    assert changed[-1].path in named
    assert changed[0].path not in named
