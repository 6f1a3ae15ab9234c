import pytest

from langchain_tiered_memory.summaries.facts.values import states_figure


@pytest.mark.parametrize(
    ("sentence", "states"),
    [("Use 8443, not 8080.", True), ("Bring v2.1, not v2.0.", True), ("Bring 3, not 2.", False), ("Use tea.", False)],
)
def test_a_figure_that_takes_anothers_place_is_stated_and_a_count_of_one_digit_is_none(
    sentence: str, *, states: bool
) -> None:
    assert states_figure(sentence) is states
