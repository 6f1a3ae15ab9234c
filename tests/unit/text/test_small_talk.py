from __future__ import annotations

import pytest
from hypothesis import given

from langchain_tiered_memory.summaries.writers.ranking import is_filler, kind_of
from langchain_tiered_memory.text.small_talk import is_small_talk, only_reacts
from tests.strategies import odd_text

REACTIONS = [
    "Thanks, Gina!",
    "Hello there Anna",
    "Hey Maria Gonzalez!",
    "Wow, Nora, gorgeous!",
    "yes please",
    "ok 2",
    "Hey, how's it going?",
    "Hi Nora, how are you today?",
    "Hey, how have you been doing lately?",
    "Merci beaucoup.",
    "/compact",
]
SAYINGS = [
    "Sure, we decided on Redis.",
    "OK, the service must stay under 200 ms.",
    "Thanks, the harbour opens at six.",
    "OK, and the harbour?",
    "Hey Nora, where is the ladder?",
    "Sure, I'll send the report to the bank by Friday.",
    "The kiln broke.",
    "Danke, die Prüfung ist am Freitag.",
]


@pytest.mark.parametrize("said", REACTIONS)
def test_what_only_greets_thanks_or_reacts_is_small_talk_to_everybody_who_asks(said: str) -> None:
    assert only_reacts(said)
    assert is_small_talk(f"Wow! {said}")
    assert is_filler(said)


@pytest.mark.parametrize("said", SAYINGS)
def test_what_says_something_is_none_however_it_begins(said: str) -> None:
    assert not only_reacts(said)
    assert not is_small_talk(f"Wow! {said}")


def test_what_somebody_will_do_is_to_be_done_though_they_agree_first() -> None:
    assert kind_of("Sure, I'll send the report to the bank by Friday.") == "action"
    assert kind_of("Sounds good, talk to you next week!") == "point"


@given(odd_text)
def test_any_text_is_small_talk_or_not(text: str) -> None:
    assert is_small_talk(text) in (True, False)
