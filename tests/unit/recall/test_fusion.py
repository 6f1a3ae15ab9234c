"""The arithmetic of ranking."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.recall.fusion import (
    above_floor,
    best_of_each,
    bm25,
    from_neighbours,
    idf_of,
    over_best,
    sitting_means,
)


def scores_of(terms: set[str], *passages: str, frequency: int = 1) -> list[float]:
    return matched(terms, *passages, frequency=frequency)[0]


def matched(
    terms: set[str], *passages: str, stretches: Sequence[frozenset[str]] = (), frequency: int = 1
) -> tuple[list[float], list[list[float]]]:
    scores, shared, _ = bm25(
        terms,
        [passage.split() for passage in passages],
        stretches=stretches,
        passage_count=10,
        average_terms=4.0,
        document_frequency=dict.fromkeys(terms, frequency),
    )
    return scores.tolist(), shared.tolist()


def test_bm25_of_one_term_is_the_textbook_figure() -> None:
    assert scores_of({"lake"}, "lake wind boat sail") == pytest.approx([math.log1p(9.5 / 1.5)])


def test_bm25_does_not_depend_on_the_other_candidates() -> None:
    assert scores_of({"lake"}, "lake boat")[0] == scores_of({"lake"}, "lake boat", "lake lake", "sea")[0]


def test_a_rare_term_counts_more_than_a_common_one() -> None:
    assert scores_of({"lake"}, "lake")[0] > scores_of({"lake"}, "lake", frequency=8)[0]


def test_a_passage_that_has_all_of_one_stretch_comes_before_one_that_has_a_word_of_each() -> None:
    stretches = [frozenset({"lake", "boat"}), frozenset({"soup", "rye"})]
    terms = {"lake", "boat", "soup", "rye"}
    (whole, mixed), shared = matched(terms, "lake boat", "lake soup", stretches=stretches)
    assert whole > mixed
    one = idf_of(1, 10)
    assert shared == [pytest.approx([2 * one, one]), pytest.approx([0, one])]


def test_two_words_side_by_side_tell_more_than_both_of_them() -> None:
    words = {"quay", "calder"}
    stretch = frozenset({"calder", "quay", "calder quay"})
    scores, [shared] = matched(words, "calder quay red", "quay red calder", stretches=[stretch])
    assert shared[0] > shared[1]
    assert scores[0] == scores[1]


def test_two_words_that_always_stand_side_by_side_tell_little_more() -> None:
    words = {"berth", "fee"}
    passages = [f"berth fee {number}" for number in range(40)]
    _, [shared] = matched(words, *passages, stretches=[frozenset({"berth", "fee", "berth fee"})])
    assert shared[0] == pytest.approx(2 * idf_of(1, 10), abs=0.05)


def test_a_frequency_beyond_the_collection_is_no_error() -> None:
    assert scores_of({"lake"}, "lake", frequency=99)[0] >= 0


def test_shares_of_nothing_are_nothing() -> None:
    assert over_best(np.zeros(3)).tolist() == [0, 0, 0]


def test_similarity_is_scaled_between_the_best_and_the_depth() -> None:
    assert above_floor([0.8, 0.5, 0.2, None, 0.1], depth=3) == pytest.approx([1, 0.5, 0, 0, 0])


def test_more_similar_passages_than_the_depth_change_nothing() -> None:
    few, many = above_floor([0.8, 0.5, 0.2], depth=3), above_floor([0.8, 0.5, 0.2, 0.1, -0.4], depth=3)
    assert many[:3].tolist() == few.tolist()


def test_a_single_similarity_is_the_best() -> None:
    assert above_floor([None, 0.4], depth=300).tolist() == [0, 1]


def test_without_any_similarity_there_is_no_score() -> None:
    assert above_floor([None, None], depth=300).tolist() == [0, 0]


@given(st.lists(st.one_of(st.none(), st.floats(-1, 1)), max_size=40), st.integers(1, 50))
def test_scaled_similarities_stay_between_0_and_1(values: list[float | None], depth: int) -> None:
    scaled = above_floor(values, depth=depth)
    assert len(scaled) == len(values)
    assert ((scaled >= 0) & (scaled <= 1)).all()


def test_the_best_passage_speaks_for_its_entry() -> None:
    assert best_of_each(np.array([0.1, 0.7, 0.4]), np.array([0, 0, 2]), count=3).tolist() == [0.7, 0, 0.4]


def test_neighbours_give_by_their_side_and_distance() -> None:
    gained = from_neighbours(
        np.array([0.0, 1.0, 0.0, 0.0]), np.arange(4), np.zeros(4, dtype=int), before=(0.3, 0.1), after=(0.2,)
    )
    assert gained == pytest.approx([0.2, 0, 0.3, 0.1])


def test_neither_a_gap_nor_another_sitting_is_a_neighbour() -> None:
    gained = from_neighbours(np.ones(3), np.array([1, 3, 4]), np.array([0, 0, 1]), before=(0.5,), after=(0.5,))
    assert gained.tolist() == [0, 0, 0]


def test_a_sitting_is_judged_by_its_best_entries() -> None:
    means = sitting_means(np.array([0.2, 1.0, 0.6, 0.4]), np.array([7, 7, 7, 9]), best=2)
    assert means == pytest.approx([0.8, 0.8, 0.8, 0.4])
