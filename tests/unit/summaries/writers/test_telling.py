import pytest
from hypothesis import given

from langchain_tiered_memory.summaries.writers.extractive_sources import units_of_text
from langchain_tiered_memory.summaries.writers.ranking import is_filler, telling
from tests.strategies import odd_text


@pytest.mark.parametrize(
    "text",
    [
        "I totally agree, Mel.",
        "Luna and Oliver!",
        "Wow, Mel, that sounds awesome!",
        "Thanks, that means a lot.",
        "I'm so glad you liked it.",
        "Your paintings look amazing!",
        "Flowers bring joy.",
    ],
)
def test_agreement_thanks_and_reactions_are_fillers(text: str) -> None:
    assert is_filler(text)


@pytest.mark.parametrize(
    "text",
    [
        "I just signed up for a pottery class in Bergen.",
        "We decided to move the launch to 9 June.",
        "The quote of 4,711 euros came from Oslo.",
        "Ich habe gestern den Vertrag unterschrieben.",
        "服务器的端口改成了八千四百四十三。",
    ],
)
def test_events_decisions_results_and_other_languages_are_none(text: str) -> None:
    assert not is_filler(text)
    assert telling(text) >= 0.7


def test_what_happened_tells_more_than_what_leans_on_something_else() -> None:
    assert telling("I went to a workshop in Oslo with my sister.") > telling("It was in Oslo with my sister then.")


@given(odd_text)
def test_any_text_has_a_weight(text: str) -> None:
    assert 0 < telling(text) < 3


def test_what_somebody_used_to_do_is_no_call_and_a_code_that_is_told_is_no_code() -> None:
    text = (
        "- user: used to live in Bergen until 2019, now in Oslo.\n- Ann: Code: 4417 opens the gate.\n"
        '- assistant: used read_file(path="a.py").\n- assistant: Code: `def main()`.'
    )
    assert [(one.is_call, one.is_code) for one in units_of_text(text)] == [
        (False, False), (False, False), (True, False), (False, True)
    ]  # fmt: skip
