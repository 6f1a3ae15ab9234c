import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simple_methods import Okapi

texts = st.lists(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=8), min_size=1, max_size=12)


def test_a_rare_term_scores_by_the_formula() -> None:
    scores = Okapi([["a", "b"], ["b", "c"], ["c", "c"]]).scores(["a"])
    weight = math.log(2.5) - math.log(1.5)
    assert scores.tolist() == pytest.approx([weight * 2.5 / (1 + 1.5), 0, 0])


def test_a_term_in_most_texts_gets_a_quarter_of_the_mean_weight() -> None:
    scores = Okapi([["a", "b"], ["a", "c"], ["a", "d"]]).scores(["a"])
    rare = math.log(2.5) - math.log(1.5)
    floor = 0.25 * (3 * rare + math.log(0.5) - math.log(3.5)) / 4
    assert scores.tolist() == pytest.approx([floor] * 3)


@given(texts, st.lists(st.sampled_from("abcdefg"), max_size=6))
def test_scores_equal_those_of_the_rank_bm25_package(corpus: list[list[str]], query: list[str]) -> None:
    rank_bm25 = pytest.importorskip("rank_bm25")
    assert np.allclose(Okapi(corpus).scores(query), rank_bm25.BM25Okapi(corpus).get_scores(query))
