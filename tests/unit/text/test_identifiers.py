from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.text import identifiers as module
from langchain_tiered_memory.text.identifiers import identifiers, kept_share, marks_of, names


def test_paths_are_found_with_and_without_a_folder() -> None:
    found = identifiers("See /etc/app/config.yml, src/main.py, C:\\work\\a.txt and README.md.")
    assert {"/etc/app/config.yml", "src/main.py", "c:\\work\\a.txt", "readme.md"} <= found


def test_a_pair_of_words_with_a_slash_is_no_path() -> None:
    assert identifiers("he/she and/or them") == frozenset()


def test_numbers_keep_their_unit_and_currency() -> None:
    assert {"$12,000", "30%", "5 gb", "10,000 tokens"} <= identifiers("$12,000, 30%, 5 GB and 10,000 tokens")


def test_a_bare_single_digit_is_not_worth_keeping() -> None:
    assert identifiers("we have 3 of them") == frozenset()


def test_a_code_may_end_in_letters() -> None:
    assert "k-200a" in identifiers("It's a 1968 Kustom K-200A guitar.")


def test_codes_versions_hashes_and_dates_are_found_whole() -> None:
    found = identifiers("v1.2.3 broke JIRA-123 on 2024-05-06 at commit 3f2a9bc with ORA-00942")
    assert found == {"v1.2.3", "jira-123", "2024-05-06", "3f2a9bc", "ora-00942"}


def test_program_symbols_are_found_in_every_style() -> None:
    assert {"parse_config()", "tieredmemory", "user_id", "--dry-run"} <= identifiers(
        "call parse_config() in TieredMemory with user_id and --dry-run"
    )


def test_names_are_found_where_they_do_not_start_a_sentence() -> None:
    assert identifiers("Yesterday we met Anna Berg in Oslo.") == {"anna berg", "oslo"}


def test_a_wrapped_sentence_names_what_it_names_on_one_line() -> None:
    assert identifiers("Yesterday we met\nAnna Berg in Oslo.") == {"anna berg", "oslo"}


def test_what_begins_a_line_behind_a_full_stop_is_no_name() -> None:
    assert identifiers("It rained.\nAnna stayed in Oslo.") == {"oslo"}
    assert identifiers("It rained \nAnna stayed in Oslo.") == {"oslo"}


_WORDS = (
    *("See ", "Anna ", "Oslo, ", "src/main.py ", "-.py ", '"a plan" ', "12 ", "3.5 GB ", "2024-05-06 ", "6th of May "),
    *(
        "May 6 ",
        "v1.2 ",
        "#12 ",
        "0x1f ",
        "user_id ",
        "run() ",
        "--dry ",
        "https://a.bc/d ",
        "a@b.cd ",
        "; ",
        "\u00e9 ",
    ),
)
_LINE = st.lists(st.sampled_from(_WORDS), max_size=6).map("".join)


@given(st.lists(_LINE, min_size=1, max_size=4))
def test_a_text_names_what_its_lines_name_each_with_its_full_stop(lines: list[str]) -> None:
    each = [f"{line}." for line in lines]
    assert identifiers("\n".join(each)) == frozenset[str]().union(*map(identifiers, each))


@given(_LINE, st.sampled_from(["", " ", "\t", "  "]))
def test_the_margin_of_a_line_says_nothing(line: str, margin: str) -> None:
    assert identifiers(f"{margin}{line.strip()}{margin}") == identifiers(line.strip())


def test_dates_and_amounts_of_an_unspaced_script_are_found() -> None:
    assert {"5月12日", "12000"} <= identifiers("会议在5月12日。预算是12000元。")


def test_a_summary_that_states_everything_keeps_all() -> None:
    assert kept_share(["The port is 8443 in src/app.py"], "Port 8443 (src/app.py)") == 1.0


def test_a_number_inside_a_longer_number_is_not_kept() -> None:
    assert kept_share(["The code is 4711"], "The code is 47110") == 0.0


def test_sources_without_identifiers_lose_nothing() -> None:
    assert kept_share(["hello there"], "") == 1.0


@given(st.text(max_size=300))
def test_any_text_is_taken_and_keeps_all_of_itself(text: str) -> None:
    assert kept_share([text], text) == 1.0


@given(st.lists(st.text(max_size=60), max_size=4), st.text(max_size=100))
def test_the_share_lies_between_zero_and_one(sources: list[str], summary: str) -> None:
    assert 0.0 <= kept_share(sources, summary) <= 1.0


def _one_shape_after_the_other(text: str) -> frozenset[str]:
    """What the shapes find when each is looked for everywhere, whatever its sign says, and then replaced."""
    found: set[str] = set()
    for pattern in (module.URL, module.EMAIL, module.PATH, module.DATE, module.CODE, module.SYMBOL):
        ends = ".,;:!?'\"\u2019\u201d)]}" if pattern is module.URL else "."
        found |= {" ".join(match[0].casefold().split()).rstrip(ends) for match in pattern.finditer(text)}
        text = pattern.sub("\x00", text)
    for match in module.NUMBER.finditer(text):
        number = " ".join(match[0].casefold().split()).strip(".,;:!?'\"\u2019\u201d)]}")
        if sum(char.isdigit() for char in number) > 1 or not number.lstrip("+-").isdigit():
            found.add(number)
    return frozenset(found | set(names(text)))


_PIECES = st.sampled_from(
    (
        *(
            "https://a.de/x1",
            "/etc/a.yml",
            "src/b.py",
            "ab@c.de",
            "2024-05-06",
            "3 May",
            "v1.2",
            "ORA-00942",
            "deadbe7",
        ),
        *("user_id", "parse()", "12,000 EUR", "7", "+42", "Anna Lee", ".", " ", "\n", "::", "\u0663\u0664", "\x00"),
    )
)


@given(st.lists(_PIECES | st.text(max_size=6), max_size=14))
def test_the_signs_and_the_single_scan_find_what_the_shapes_find_one_by_one(pieces: list[str]) -> None:
    text = "".join(pieces).replace('"', " ").replace("`", " ")
    text = text.translate(dict.fromkeys(map(ord, "\u201c\u201d\u300c\u300d\u00ab\u00bb"), " "))  # quotes are no shape
    assert identifiers(text) == _one_shape_after_the_other(text)


def test_a_run_of_letters_that_is_no_name_is_none() -> None:
    assert names(f"we saw the {'Z' + 'q' * 50_000}1 and then the Harbour Light") == ["harbour light"]


def test_a_line_of_a_million_characters_is_read_in_one_pass() -> None:
    many = 100_000  # copied anew for each thing it names, it would take minutes
    marks = marks_of("ERR-4021 " * many)
    assert len(marks.left) == 9 * many
    assert marks.keys == {"err-4021"}
