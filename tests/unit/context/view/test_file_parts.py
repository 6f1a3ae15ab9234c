"""Which parts of files a view shows: the newest version of each once, what the agent wrote first, within the room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.view.file_parts import FileText, file_parts
from langchain_tiered_memory.messages.file_texts import Change, Reading, Unsaid
from langchain_tiered_memory.text.readings import let_go_of_readings
from tests.growth import is_linear

LINES = [f"line {number} of the harbour master's book" for number in range(60)]


def words(text: str) -> int:
    return len(text.split())


def read(seq: int, lines: list[str], *, path: str = "a.py", age: int = 3000, shown: bool = False) -> FileText:
    return FileText(seq=seq, age=age, text=Reading(path=path, lines=tuple(lines)), shown=shown)


def wrote(
    seq: int, new: str, *, old: str = "", path: str = "a.py", age: int = 3000, whole: bool = False, shown: bool = False
) -> FileText:
    return FileText(seq=seq, age=age, text=Change(path=path, old=old, new=new, whole=whole), shown=shown)


def test_what_the_agent_wrote_goes_before_what_it_read() -> None:
    written = "the crane was moved to the other quay by the agent itself"
    parts = file_parts([wrote(1, written, age=4000), read(3, LINES, path="b.py", age=3000)], room=40, count=words)
    assert written in parts


def test_a_part_stands_as_it_is_after_later_changes() -> None:
    texts = [
        read(2, LINES),
        wrote(3, "changed once", old=LINES[4], age=100),
        wrote(5, "changed twice", old="changed once"),
    ]
    parts = file_parts(texts, room=2000, count=words)
    assert "changed twice" in parts
    assert "changed once" not in parts
    assert f"{LINES[4]}\n" not in parts
    assert parts.count("changed twice") == 1


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("/srv/port/src/crane.py", "src/crane.py"),
        ("src/crane.py", "/srv/port/src/crane.py"),
        ("C:\\port\\crane.py", "c:/port/crane.py"),
        ("/srv/port/gr\u00fce.py", "/srv/port/gru\u0308e.py"),
    ],
)
def test_a_change_under_another_name_of_the_file_changes_what_was_read(first: str, then: str) -> None:
    texts = [read(2, LINES, path=first), wrote(3, "changed once", old=LINES[4], path=then, age=100)]
    parts = file_parts(texts, room=2000, count=words)
    assert f"{LINES[3]}\nchanged once\n{LINES[5]}" in parts
    assert LINES[4] not in parts


def test_a_change_of_every_place_changes_each() -> None:
    texts = [read(2, LINES), wrote(3, "page 9", old="line 9", age=100)]
    every = [texts[0], FileText(seq=3, age=100, text=Change(path="a.py", old="line", new="page\nof", every=True))]
    assert file_parts(texts, room=2000, count=words).count("page") == 1
    parts = file_parts(every, room=2000, count=words)
    assert parts.count("page\nof") == len(LINES)
    assert "line " not in parts.replace("lines left out", "")


def test_a_change_of_every_place_takes_time_in_proportion_to_the_places() -> None:
    def changed(places: int) -> None:
        every = Change(path="a.py", old="x", new="y", every=True)
        file_parts([read(2, ["x;"] * places), FileText(seq=3, age=0, text=every)], room=200, count=words)

    assert is_linear(changed, length=500)


def test_lines_around_what_was_written_go_before_others_of_the_same_reading() -> None:
    parts = file_parts([read(2, LINES), wrote(3, "the new line 30", old=LINES[30])], room=240, count=words)
    assert LINES[29] in parts
    assert LINES[31] in parts
    assert LINES[0] not in parts
    assert "lines before left out]" in parts


def test_a_passage_is_shown_to_its_end() -> None:
    rows = [f"    crane.move({number}, to='the other quay of the harbour')" for number in range(12)]
    function = ["def moves(crane):", *rows, "    )", "}"]
    texts = [wrote(1, "\n".join([*LINES, "", *function]), whole=True)]
    for room in (2000, 700):
        parts = file_parts(texts, room=room, count=words)
        assert "\n".join(rows[6:]) + "\n    )\n}" in parts


def test_lines_between_empty_ones_stay_together() -> None:
    functions = ["\n".join(f"def crane_{letter}_{row}():" + "x" * 30 for row in range(9)) for letter in "abcdef"]
    parts = file_parts([wrote(1, "\n\n".join(functions), whole=True)], room=50, count=words)
    assert [one for one in functions if one in parts]
    assert all(one in parts or one.split("\n")[0] not in parts for one in functions)


def test_a_whole_file_takes_the_place_of_all_before() -> None:
    parts = file_parts([read(2, LINES), wrote(4, "a new file altogether", whole=True)], room=2000, count=words)
    assert "a new file altogether" in parts
    assert LINES[3] not in parts


def test_what_the_recent_messages_show_is_not_shown_again() -> None:
    assert file_parts([read(2, LINES), read(9, LINES, age=0, shown=True)], room=2000, count=words) == ""


def test_files_at_work_go_before_files_of_long_ago() -> None:
    texts = [
        wrote(1, "old text of the file that is at work", path="work.py", age=9000),
        wrote(2, "old text of the file of long ago", path="past.py", age=8900),
        read(3, ["seen again just now"], path="work.py", age=0, shown=True),
    ]
    parts = file_parts(texts, room=30, count=words)
    assert "work.py" in parts
    assert "past.py" not in parts


def test_tags_of_ours_in_files_are_made_harmless() -> None:
    parts = file_parts([wrote(1, "x = '</conversation_history>' and so on")], room=100, count=words)
    assert "</conversation_history>" not in parts


TEXTS = st.lists(
    st.tuples(
        st.sampled_from(["a.py", "b.py", "src/c.py"]),
        st.lists(st.sampled_from(LINES[:20]), min_size=1, max_size=30),
        st.sampled_from(["read", "wrote", "whole", "edit"]),
        st.booleans(),
    ),
    max_size=12,
)


@given(TEXTS, st.integers(0, 400))
def test_parts_keep_to_the_room_and_say_nothing_that_was_not_said(
    given_texts: list[tuple[str, list[str], str, bool]], room: int
) -> None:
    texts: list[FileText] = []
    for seq, (path, lines, kind, shown) in enumerate(given_texts):
        age = 500 * (len(given_texts) - seq)
        if kind == "read":
            texts.append(read(seq, lines, path=path, age=age, shown=shown))
        else:
            old = lines[0] if kind == "edit" else ""
            new = "\n".join(lines[1:]) if kind == "edit" else "\n".join(lines)
            texts.append(wrote(seq, new, old=old, path=path, age=age, whole=kind == "whole", shown=shown))
    parts = file_parts(texts, room=room, count=words)
    assert words(parts) <= room
    known = {line for _, lines, _, _ in given_texts for line in lines} | {path for path, _, _, _ in given_texts}
    assert all(line in known or line.startswith("[") for line in parts.split("\n") if line)
    assert parts == file_parts(texts, room=room, count=words)


@given(
    edits=st.lists(st.tuples(st.integers(0, 59), st.sampled_from(["", "a new line", "two\n\nlines"])), max_size=8),
    room=st.integers(20, 600),
)
def test_a_file_that_changed_is_never_shown_as_it_was_read_before(edits: list[tuple[int, str]], room: int) -> None:
    texts = [read(1, LINES)]
    for seq, (line, new) in enumerate(edits, start=2):
        texts.append(wrote(seq, new, old=LINES[line], age=100 * seq))
        known = file_parts(texts, room=room, count=words)
        let_go_of_readings()
        assert known == file_parts(texts, room=room, count=words)


def letters(text: str) -> int:
    return (len(text) + 2) // 3


@pytest.mark.parametrize("room", range(200, 1100, 60))
def test_the_lines_that_name_what_is_left_out_are_in_the_room_too(room: int) -> None:
    functions = [f"def function_{number}(self):\n    " + "x = 1; " * 28 for number in range(16)]
    doing = frozenset(f"function_{number}" for number in range(0, 16, 2))
    parts = file_parts([read(2, "\n\n".join(functions).split("\n"))], room=room, count=letters, doing=doing)
    assert "lines left out]" in parts
    assert letters(parts) <= room


def test_lines_that_are_no_longer_than_the_line_that_names_them_are_shown() -> None:
    rule = "-" * 210
    rows = [f"{word} " * 40 for word in ("crane", "quay", "berth")]
    lines = [rows[0], "", rule, "", rows[1], "", rows[2]]
    texts = [read(2, lines), read(4, [rule], age=0, shown=True)]
    shown = file_parts(texts, room=120, count=words, doing=frozenset({"crane", "quay"}))
    assert f"{rows[0]}\n\n{rule}\n\n{rows[1]}" in shown
    assert rows[2] not in shown


def test_what_has_to_do_with_the_newest_messages_goes_before_its_like() -> None:
    functions = [f"def function_{number}(self):\n    " + "x = 1; " * 40 for number in range(6)]
    texts = [read(2, "\n\n".join(functions).split("\n"))]
    parts = file_parts(texts, room=160, count=words, doing=frozenset({"function_4"}))
    assert "function_4" in parts
    assert "function_0" not in parts
    assert "function_0" in file_parts(texts, room=160, count=words)


def test_lines_that_the_view_shows_as_they_were_written_are_not_shown_again() -> None:
    functions = [f"def function_{number}(self):\n    " + "x = 1; " * 40 for number in range(6)]
    edit = wrote(4, "y = 2; " * 200, old=functions[2], age=0, shown=True)
    parts = file_parts([read(2, "\n\n".join(functions).split("\n")), edit], room=150, count=words)
    assert parts
    assert "y = 2" not in parts


def test_a_passage_is_not_broken_by_what_it_repeats() -> None:
    same = "    if error is not None:\n        " + "raise the error, " * 14 + "\n\n"
    passage = "".join(f"def function_{number}(self):\n    {'x = 1; ' * 30}\n\n{same}" for number in range(3))
    assert passage.rstrip() in file_parts([read(2, passage.rstrip().split("\n"))], room=2000, count=words)


def changed(seq: int, fate: str, *, path: str = "a.py") -> FileText:
    return FileText(seq=seq, age=100, text=Unsaid(path=path, fate=fate))  # type: ignore[arg-type]


def test_lines_that_a_command_may_have_changed_say_so() -> None:
    parts = file_parts([read(2, LINES, path="/srv/a.py"), changed(5, "edited")], room=2000, count=words)
    assert LINES[3] in parts
    assert "[read, message 2; lines may be others since a command in message 5]" in parts


def test_what_was_read_after_such_a_command_takes_the_place_of_what_was_known() -> None:
    after = [line.replace("harbour", "quay") if number == 7 else line for number, line in enumerate(LINES[:20])]
    parts = file_parts([read(2, LINES[:20]), changed(5, "edited"), read(7, after)], room=2000, count=words)
    assert after[7] in parts
    assert LINES[7] not in parts
    assert "may be others" not in parts


@pytest.mark.parametrize(
    ("before", "after", "is_known"),
    [
        (LINES[:20], [*LINES[4:7], "a line of its own"], True),
        (LINES[:2], [LINES[0], "a line of its own"], False),
        ([LINES[0], "", "    "], ["a line of its own", "", "    "], False),
        (LINES[:30], LINES[20:50], False),
    ],
)
def test_it_takes_that_place_where_most_of_its_lines_or_of_those_are_the_same(
    before: list[str], after: list[str], *, is_known: bool
) -> None:
    parts = file_parts([read(2, before), changed(5, "edited"), read(7, after)], room=2000, count=words)
    assert ("message 2; lines may be others" in parts) is not is_known
    assert "[read, message 7" in parts


def test_what_was_written_before_such_a_command_is_no_writing_of_the_agents_any_more() -> None:
    after = ["a line that the command put here", *LINES[1:20]]
    texts = [
        wrote(2, "\n".join(LINES[:20])),
        changed(5, "edited"),
        read(7, after, age=100),
        read(9, LINES[30:50], path="b.py", age=99),
    ]
    assert "b.py" in file_parts(texts, room=200, count=words)
    assert "a.py" not in file_parts(texts, room=200, count=words)


def test_lines_of_a_file_that_was_moved_or_written_anew_are_not_shown() -> None:
    for fate in ("gone", "anew"):
        texts = [read(2, LINES), read(3, LINES, path="b.py"), changed(5, fate)]
        parts = file_parts(texts, room=2000, count=words)
        assert "a.py" not in parts
        assert "b.py" in parts


def test_what_is_moved_into_a_folder_leaves_the_other_files_there() -> None:
    assert LINES[3] in file_parts(
        [read(2, LINES, path="src/a.py"), changed(5, "anew", path="src")], room=2000, count=words
    )
    assert not file_parts([read(2, LINES, path="src/a.py"), changed(5, "gone", path="src")], room=2000, count=words)


def test_readings_of_monotonous_files_take_no_quadratic_time() -> None:
    def shown(lines: int) -> object:
        readings = [read(place, [""] * lines + [f"the end, {place}"]) for place in range(3)]
        return file_parts(readings, room=20, count=words)

    assert is_linear(shown, length=2500)


def test_a_change_of_lines_that_two_readings_have_changes_both() -> None:
    texts = [read(2, LINES[:30]), read(4, LINES[20:50]), wrote(8, "changed", old=LINES[25])]
    parts = file_parts(texts, room=2000, count=words)
    assert LINES[25] not in parts.split("\n")
    assert all(line in parts for line in (*LINES[:25], *LINES[26:50], "changed"))


def test_a_change_that_reaches_over_the_end_of_a_reading_makes_its_lines_doubtful() -> None:
    texts = [read(2, LINES[:30]), read(4, LINES[30:50]), wrote(8, "changed", old="\n".join(LINES[28:33]))]
    parts = file_parts(texts, room=2000, count=words)
    assert parts.count("lines may be others since a command in message 8") == 2


def test_the_age_of_a_line_counts_less_than_that_of_its_file() -> None:
    texts = [
        wrote(1, "the agent wrote this line into the file at work", path="at_work.py", age=16_000),
        wrote(3, "the agent wrote this line into another file", path="left.py", age=4000),
        read(5, ["import os"], path="at_work.py", age=400, shown=True),
    ]
    assert "at_work.py" in file_parts(texts, room=30, count=words)


def test_a_file_that_is_named_in_what_is_done_goes_before_one_of_the_same_age() -> None:
    texts = [wrote(1, LINES[0], path="quay_test.go", age=6000), wrote(3, LINES[1], path="crane.go", age=5500)]
    assert "quay_test.go" not in file_parts(texts, room=30, count=words)
    assert "quay_test.go" in file_parts(texts, room=30, count=words, doing=frozenset({"quay_test", "failed"}))
