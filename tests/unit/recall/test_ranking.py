"""Which entries come first for a question."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.recall.questions import Question, read_question
from langchain_tiered_memory.recall.ranking import Candidate, RankedEntry, rank
from langchain_tiered_memory.text.terms import analyse
from langchain_tiered_memory.types.records import TextStatistics

START = datetime(2023, 5, 1, tzinfo=UTC)


def candidate(sequence: int, *texts: str, similarity: float | None = None, **other: object) -> Candidate:
    terms = tuple(" ".join(analyse(text)) for text in texts)
    plain = Candidate(sequence=sequence, sitting=0, terms=terms, similarities=(similarity,) * len(texts))
    return plain._replace(**other)


def ranked(question: Question | str, *candidates: Candidate) -> list[RankedEntry]:
    asked = read_question(question) if isinstance(question, str) else question
    passages = [set(terms.split()) for each in candidates for terms in each.terms]
    collection = TextStatistics(
        ceiling=2000,
        passages=max(len(passages), 20),
        average_terms=5.0,
        document_frequency={term: sum(term in passage for passage in passages) for term in asked.terms},
    )
    return rank(asked, candidates, collection=collection)[0]


def order(question: Question | str, *candidates: Candidate) -> list[int]:
    return [entry.sequence for entry in ranked(question, *candidates)]


def test_the_entry_with_the_words_of_the_question_comes_first() -> None:
    assert order("Who painted the lake?", candidate(1, "we ate soup"), candidate(9, "I painted the lake"))[0] == 9


def test_a_similar_entry_without_those_words_comes_before_a_dissimilar_one() -> None:
    similar = candidate(9, "what a fine canvas that is", similarity=0.7)
    assert order("Who painted?", candidate(1, "we ate our soup", similarity=0.1), similar)[0] == 9


def test_an_entry_beside_the_words_of_the_question_comes_before_one_far_off() -> None:
    asked = candidate(4, "what call_style is the lake house")
    assert order("What call_style is the lake house?", candidate(1, "it is green"), asked, candidate(5, "it is green"))[
        :2
    ] == [4, 5]


def test_where_everything_was_said_in_one_sitting_what_matches_nothing_has_no_score_of_its_own() -> None:
    found = ranked("Who painted the lake?", candidate(1, "we ate soup"), candidate(9, "I painted the lake"))
    assert {entry.sequence: entry.own_score > 1e-9 for entry in found} == {9: True, 1: False}
    assert found[0].own_score < found[0].score


def test_an_entry_of_the_sitting_that_matches_comes_before_one_of_another() -> None:
    entries = (
        candidate(1, "we ate soup"),
        candidate(5, "we ate bread", sitting=1),
        candidate(9, "the lake", sitting=1),
    )
    assert order("Who painted the lake?", *entries) == [9, 5, 1]


def test_the_named_speaker_comes_first_among_equals() -> None:
    question = read_question("What did Anna paint?", speakers=["Anna", "Bert"])
    said = [candidate(1, "I like to paint", speaker="Bert"), candidate(9, "I like to paint", speaker="Anna")]
    assert order(question, *said) == [9, 1]


def test_a_person_comes_before_an_assistant_who_says_the_same() -> None:
    assert order("paint", candidate(1, "red paint"), candidate(9, "red paint", by_person=True)) == [9, 1]


def test_the_named_time_comes_first_then_shortly_after_then_before() -> None:
    question = read_question("What did we paint on 10 May 2023?", now=START + timedelta(days=60))
    times = {1: -5, 20: 30, 40: 11, 60: 9}
    said = [
        candidate(sequence, "we paint today", time=START + timedelta(days=days)) for sequence, days in times.items()
    ]
    assert order(question, *said) == [60, 40, 20, 1]


def test_a_question_for_a_time_prefers_an_entry_that_tells_one() -> None:
    told, untold = candidate(9, "I bought paint there yesterday"), candidate(1, "I bought paint there cheaply")
    assert order("When did you buy paint?", untold, told)[0] == 9


def test_equal_entries_keep_the_order_of_the_conversation() -> None:
    assert order("soup", candidate(30, "red paint"), candidate(10, "red paint"), candidate(20, "red paint")) == [
        10,
        20,
        30,
    ]


def test_each_passage_has_its_own_score() -> None:
    (entry,) = ranked("Where is the lake house?", candidate(1, "We talked a lot.", "The lake house is in Norway."))
    assert entry.passage_scores[1] > entry.passage_scores[0]


def test_no_candidates_give_no_ranking() -> None:
    assert ranked("anything") == []


def test_a_candidate_without_passages_is_left_out() -> None:
    assert order("paint", candidate(1), candidate(2, "paint")) == [2]


CANDIDATES = st.lists(
    st.builds(
        candidate,
        st.integers(0, 40),
        st.sampled_from(["paint", "lake house", "we ate soup", "", "yesterday I went"]),
        st.sampled_from(["the lake", "!!"]),
        similarity=st.one_of(st.none(), st.floats(-1, 1)),
        sitting=st.integers(0, 2),
        by_person=st.booleans(),
    ),
    max_size=15,
    unique_by=lambda each: each.sequence,
)


@given(CANDIDATES, st.randoms(use_true_random=False))
def test_the_ranking_does_not_depend_on_the_order_of_the_candidates(
    candidates: list[Candidate], random: object
) -> None:
    shuffled = candidates.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert ranked("When did we paint the lake?", *candidates) == ranked("When did we paint the lake?", *shuffled)


@given(CANDIDATES)
def test_every_candidate_is_ranked_once_with_falling_scores(candidates: list[Candidate]) -> None:
    entries = ranked("When did we paint the lake?", *candidates)
    assert sorted(entry.sequence for entry in entries) == sorted(each.sequence for each in candidates)
    scores = [entry.score for entry in entries]
    assert scores == sorted(scores, reverse=True)
    assert all(score == pytest.approx(score) and score >= 0 for score in scores)
