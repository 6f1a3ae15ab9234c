"""What holds for a user, told from what holds for a conversation by its wording."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from langchain_tiered_memory.across.user_facts import holds_for_user
from langchain_tiered_memory.summaries.facts.related import by_words
from tests.store_builders import fact

OF_THE_USER = [
    "I'm Zoe and I'm allergic to peanuts.",
    "My sister is called Marta and she lives in Lisbon.",
    "I prefer dark roast coffee.",
    "I don't eat meat.",
    "I work as a nurse at St. Mary's hospital.",
    "I'm a software engineer from Leeds.",
    "My favourite colour is teal.",
    "Please always answer in French.",
    "Call me Zo.",
    "Never send me emails on weekends.",
    "From now on, use metric units.",
    "I have two kids.",
]
OF_THE_MATTER = [
    "For this draft keep it under 300 words.",
    "Let's use PostgreSQL for this project.",
    "My budget for this trip is 900 euros.",
    "I live in the file config.py now.",
    "The server runs on port 8080.",
    "I like the above version.",
    "I prefer the function to return None.",
    "Never touch the branch release.",
    "Do I live in Oslo?",
    "Can you call me tomorrow?",
    "The board decided to postpone the launch to May 3.",
]


@pytest.mark.parametrize("said", OF_THE_USER)
def test_what_somebody_says_of_themself_holds_for_them(said: str) -> None:
    assert holds_for_user(fact(1, said, kind="statement"))


@pytest.mark.parametrize("said", OF_THE_MATTER)
def test_what_points_at_the_matter_in_hand_stays_where_it_was_said(said: str) -> None:
    assert not holds_for_user(fact(1, said, kind="statement"))


def test_neither_answers_nor_quotes_nor_goals_say_anything_of_the_user() -> None:
    said = "I prefer dark roast coffee."
    assert not holds_for_user(fact(1, said, kind="statement", by="assistant"))
    assert not holds_for_user(fact(1, said, kind="statement", speaker="quoted"))
    assert not holds_for_user(fact(1, said, kind="goal"))


def test_statements_with_the_same_words_come_newest_first_in_whatever_order_they_say_them() -> None:
    stated, foods = fact(1, ""), ["coffee", "bread", "cheese", "apples", "olives", "honey", "pasta", "rice", "soup"]
    chance = random.Random(1)
    for _ in range(600):
        words = chance.sample(foods, 5)
        texts = [" ".join(chance.sample(words, 5)) for _ in range(6)]
        texts += [word for often, word in enumerate(words) for _ in range(often)]
        known = [replace(stated, text=text, seq=seq) for seq, text in enumerate(texts)]
        found = [fact.seq for fact in by_words(known, " ".join(words))]
        assert [seq for seq in found if seq < 6] == [5, 4, 3, 2, 1, 0], texts
