import pytest

from langchain_tiered_memory.summaries.facts.clauses import shortened
from langchain_tiered_memory.summaries.facts.values import states_figure


@pytest.mark.parametrize(
    ("sentence", "states"),
    [("Use 8443, not 8080.", True), ("Bring v2.1, not v2.0.", True), ("Bring 3, not 2.", False), ("Use tea.", False)],
)
def test_a_figure_that_takes_anothers_place_is_stated_and_a_count_of_one_digit_is_none(
    sentence: str, *, states: bool
) -> None:
    assert states_figure(sentence) is states


@pytest.mark.parametrize("place", [0, 30, 99])
def test_what_is_shortened_keeps_what_it_is_about_with_words_before_it(place: int) -> None:
    words = [f"word{number}" for number in range(100)]
    words[place] = "violet"
    said = " ".join(words)
    at = said.index("violet")
    short = shortened(said, around=(at, at + 6))
    assert "violet" in short
    assert len(short.split()) <= 30
    assert short.startswith("\u2026") == (place > 10)
    assert place == 0 or words[place - 1] in short
