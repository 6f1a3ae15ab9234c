"""What a passage has in common with what is being done."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.context.view.file_parts import relatedness, words_in

WORDS = st.frozensets(st.sampled_from(["open_file", "close", "Reader", "size", "total_count"]))


def test_a_rare_name_tells_more_than_one_that_stands_everywhere() -> None:
    passages = [words_in("def open_file(self)"), words_in("def close(self)"), words_in("def size(self)")]
    found = relatedness(passages, words_in("the test of open_file fails in self"))
    assert found[0] == 1
    assert 0 < found[1] < 0.5
    assert found[1] == found[2]


def test_nothing_in_common_is_nothing() -> None:
    assert relatedness([words_in("def close(self)"), frozenset()], words_in("open_file")) == [0, 0]
    assert relatedness([], words_in("open_file")) == []


@given(st.lists(WORDS, max_size=6), WORDS)
def test_one_share_for_each_passage(passages: list[frozenset[str]], doing: frozenset[str]) -> None:
    found = relatedness(passages, doing)
    assert len(found) == len(passages)
    assert all(0 <= one <= 1 for one in found)
    for words, share in zip(passages, found, strict=True):
        assert bool(words & doing) == (share > 0)
