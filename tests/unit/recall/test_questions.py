"""What is read from a question."""

from datetime import UTC, datetime

import pytest

from langchain_tiered_memory.recall.questions import read_question


def test_a_named_speaker_is_told_from_the_terms() -> None:
    question = read_question("What did Anna paint?", speakers=["Anna", "Bert"])
    assert question.speakers == {"Anna"}
    assert "paint" in question.terms
    assert "anna" not in question.terms
    assert read_question("And Anna?", speakers=["Anna", "Bert"]).terms == {"anna"}


def test_a_question_about_both_prefers_neither() -> None:
    assert read_question("What do Anna and Bert share?", speakers=["Anna", "Bert"]).speakers == frozenset()


def test_one_part_of_a_name_is_enough() -> None:
    assert read_question("Is Khan well?", speakers=["Fahd Khan", "Bert"]).speakers == {"Fahd Khan"}


@pytest.mark.parametrize(
    "text", ["When did it rain?", "how many days did it take", "Which year was that?", "How long was it?"]
)
def test_a_question_for_a_time_is_recognised(text: str) -> None:
    assert read_question(text).asks_when


def test_times_are_read_only_where_now_is_known() -> None:
    text = "What happened in May 2023?"
    assert read_question(text).intervals == ()
    assert len(read_question(text, now=datetime(2024, 1, 1, tzinfo=UTC)).intervals) == 1


def test_an_empty_question_has_no_terms() -> None:
    assert not read_question("").terms
