import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.settings import LevelSettings, TreeSettings
from langchain_tiered_memory.summaries.tree.sizing import cut_to_size, target_and_cap


def words(text: str) -> int:
    return len(text.split())


def characters(text: str) -> int:
    return (len(text) + 3) // 4


WORTH = """## Overview
They talked at length about their weekend and how nice it had been.

## Key points
- user: oh that is lovely, thank you so much
- user: the ducks of the pond made everybody laugh again
- user: 5108 visitors came to the lantern kiln
- assistant: that sounds great, good for you

## Decisions
- user: we decided to replace lib/basalt_0.py with conf/zz_new.toml
- user: nice to hear"""


@pytest.mark.parametrize(
    ("level", "source", "cap"), [(1, 2000, 1000), (1, 600, 300), (2, 5000, 1500), (2, 4000, 1200), (3, 4500, 400)]
)
def test_the_cap_is_the_share_of_the_level_and_the_aim_leaves_room_for_what_is_added(
    level: int, source: int, cap: int
) -> None:
    size = target_and_cap(TreeSettings().level(level), source)
    assert size.max_tokens == cap
    assert 0.8 * cap < size.target_tokens < 0.9 * cap


def test_a_level_may_have_its_minimum() -> None:
    assert target_and_cap(TreeSettings().level(3), 500).max_tokens == 200


@given(st.integers(0, 200_000), st.integers(3, 60))
def test_from_the_third_level_on_a_summary_is_of_one_size_whatever_it_stands_for(source: int, level: int) -> None:
    assert target_and_cap(TreeSettings().level(level), source) == target_and_cap(TreeSettings().level(3), source)
    assert target_and_cap(TreeSettings().level(level), source).max_tokens <= 400


@given(st.integers(0, 100_000), st.floats(0.01, 1), st.integers(16, 5000), st.integers(0, 500))
def test_neither_target_nor_cap_exceeds_the_source_or_the_level(
    source: int, ratio: float, most: int, least: int
) -> None:
    level = LevelSettings(messages=1, strategy="detailed", target_ratio=ratio, max_tokens=most, min_tokens=least)
    size = target_and_cap(level, source)
    assert 1 <= size.target_tokens <= size.max_tokens <= max(1, min(source, most))


def test_a_text_that_fits_stays_as_it_is() -> None:
    assert cut_to_size("Short. Text.", max_tokens=5, count_text=words).text == "Short. Text."


@pytest.mark.parametrize("most", range(26, 60, 4))
def test_figures_and_decisions_stay_before_chat_wherever_they_stand(most: int) -> None:
    cut = cut_to_size(WORTH, max_tokens=most, count_text=words)
    kept = cut.text.splitlines()
    assert "- user: 5108 visitors came to the lantern kiln" in kept
    assert "- user: we decided to replace lib/basalt_0.py with conf/zz_new.toml" in kept
    assert [line for line in WORTH.splitlines() if line in kept and line] == [line for line in kept if line]
    assert cut.lines == 7 - sum(line[:1] not in ("", "#") for line in kept) > 0


def test_the_overview_stays_which_says_whom_the_rest_is_about() -> None:
    overview = "## Overview\n- Kate, a student, and Emily became friends."
    told = [f"- Kate decided on trip {number}: 2,{number}00 euros, paid to agency F-{number}." for number in range(9)]
    text = "\n".join([overview, "## Key outcomes", *told])
    cut = cut_to_size(text, max_tokens=60, count_text=words)
    assert cut.text.startswith(overview)
    assert "decided on trip" in cut.text
    assert cut.lines > 0


def test_what_ends_a_note_stays_before_what_merely_happened() -> None:
    chat = "".join(f"- The user of the Northern Lights {number} met Ann Smith in Ghent.\n" for number in range(12))
    cut = cut_to_size(f"{chat}- [instead of #0123abcd] It is done.", max_tokens=16, count_text=words)
    assert "[instead of #0123abcd] It is done." in cut.text


def test_no_heading_is_left_without_content() -> None:
    cut = cut_to_size(
        "## Overview\nAll is well here.\n\n## Notes\n## Empty\n- only one more bullet of words",
        max_tokens=6,
        count_text=words,
    ).text
    assert cut == "## Overview\nAll is well here."


def test_prose_is_cut_behind_a_sentence() -> None:
    assert (
        cut_to_size("One two three. Four five six. Seven.", max_tokens=6, count_text=words).text
        == "One two three. Four five six."
    )


def test_a_single_long_sentence_is_cut_between_words_and_marked() -> None:
    assert cut_to_size("word " * 50, max_tokens=3, count_text=words).text == "word word word\u2026"


def test_code_stays_whole_or_goes() -> None:
    text = "Do this now:\n```py\nfirst = 1\nsecond = 2\n```\nThen rest well."
    assert "```" not in cut_to_size(text, max_tokens=5, count_text=words).text


@given(st.text(max_size=400), st.integers(1, 60))
def test_a_cut_never_exceeds_its_size(text: str, most: int) -> None:
    for count in (words, characters):
        assert count(cut_to_size(text, max_tokens=most, count_text=count).text) <= most


@pytest.mark.slow
@given(st.lists(st.from_regex(r"\A[a-z]{1,9}( [a-z]{1,9}){0,8}\.\Z"), min_size=1, max_size=30), st.integers(12, 60))
def test_every_line_of_a_cut_list_stood_in_it(lines: list[str], most: int) -> None:
    text = "## List\n" + "\n".join(f"- {line}" for line in lines)
    cut = cut_to_size(text, max_tokens=most, count_text=words).text
    assert set(cut.splitlines()) <= set(text.splitlines())
