from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.text.statements import clause_cut, shown_lines, statements


def texts(text: str) -> list[str]:
    return [one.text for one in statements(text)]


def test_short_items_stand_with_the_line_that_announces_them() -> None:
    text = "1. **Flight HAT069**\n   - Departure: 06:00 AM\n   - Price: $121\n\nPlease choose one of these flights."
    assert texts(text) == ["Flight HAT069: Departure: 06:00 AM; Price: $121", "Please choose one of these flights."]


def test_a_short_label_names_the_sentence_behind_it() -> None:
    assert texts("**Sessions**:\n- Store the id of the user after each login.") == [
        "Sessions: Store the id of the user after each login."
    ]


def test_a_sentence_that_leans_brings_the_one_before_it() -> None:
    assert texts("The gateway is in Lund. It listens on 8443. We like Oslo.") == [
        "The gateway is in Lund. It listens on 8443.",
        "We like Oslo.",
    ]
    assert statements("They left.")[0].leans


def test_a_row_of_a_table_is_told_by_its_cells() -> None:
    assert texts("| port | 8443 |\n|---|---|\n| host | lund |") == ["port: 8443", "host: lund"]


def test_what_a_program_printed_loses_its_marks_and_the_numbered_lines_of_files() -> None:
    shown = "<h1>Title</h1>\n   12\u2192x = 0\na/b.py:7:x = 1\nb.py-9-y = 2\na/b.py:8:    return 2"
    assert shown_lines(shown) == ["Title"]
    said = ["10:45 is the time", "404: no such page", "a/b.py:7: error: no x", "a/b.go:7:5: undefined: x", "7\tAnn"]
    assert shown_lines("\n".join(said)) == [" ".join(line.split()) for line in said]
    assert shown_lines("> # Tide tables\n\n  - Lund at 7") == ["Tide tables", "Lund at 7"]
    for line in ("load > 90 means failure", "it froze at - 5 degrees", 'File "a.py", line 26, in <module> main()'):
        assert shown_lines(line) == [line]
    assert shown_lines('[{"id": 4, "to": {"city": "Lund"}}]') == ["id 4", "to: city Lund"]


def test_a_cut_ends_where_a_clause_ends() -> None:
    assert clause_cut("We took the ferry at nine, because the road was closed", most_chars=40) == (
        "We took the ferry at nine\u2026"
    )


@given(st.text(max_size=300), st.integers(1, 60), st.integers(0, 300))
def test_a_cut_is_never_longer_than_asked_for_but_for_its_marks(text: str, most: int, reach: int) -> None:
    assert len(clause_cut(text, most_chars=most, reach=min(reach, len(text)))) <= most + 2


@given(st.text(alphabet="ab. :-*|\n#`It", max_size=200))
def test_statements_never_raise_and_invent_no_word(text: str) -> None:
    plain = "".join(char for char in text if char.isalnum())
    for one in statements(text):
        assert "".join(char for char in one.text if char.isalnum()) in plain
