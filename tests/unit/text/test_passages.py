"""How a message is cut into passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.text.sentences import MAX_WORDS, split_passages

MARKED = st.lists(
    st.sampled_from(
        ["word ", "End. ", "\n", "\n\n", "```\n", "~~~", "- item\n", "\u597d", "\u3002", "x" * 40, "Steps:\n"]
    ),
    max_size=120,
).map("".join)


def pieces(text: str, *, max_words: int = MAX_WORDS) -> list[str]:
    return [text[span.start : span.stop] for span in split_passages(text, max_words=max_words)]


@given(st.one_of(st.text(max_size=300), MARKED), st.integers(1, 30))
def test_passages_cover_the_text_without_gap_or_overlap(text: str, max_words: int) -> None:
    spans = split_passages(text, max_words=max_words)
    assert "".join(pieces(text, max_words=max_words)) == text
    assert all(span.start < span.stop for span in spans)


@given(MARKED, st.integers(1, 30))
def test_no_passage_has_more_words_than_allowed(text: str, max_words: int) -> None:
    assert all(piece.count("word ") <= max_words for piece in pieces(text, max_words=max_words))


@given(MARKED)
def test_the_same_text_is_cut_in_the_same_way(text: str) -> None:
    assert split_passages(text) == split_passages(text)


def test_an_empty_text_has_no_passage() -> None:
    assert split_passages("") == []


def test_a_short_message_is_one_passage() -> None:
    assert pieces("We went to the lake. It rained!") == ["We went to the lake. It rained!"]


def test_a_passage_ends_where_a_sentence_ends() -> None:
    text = "One two three four five. " * 10
    assert all(piece.endswith(". ") for piece in pieces(text, max_words=12))


def test_a_block_of_code_is_not_torn_apart_while_it_fits() -> None:
    code = "```python\nfor item in items:\n    print(item)\n\nreturn None\n```\n"
    assert any(
        code in piece for piece in pieces(f"{'Some words before it. ' * 4}\n{code}{'Some after. ' * 8}", max_words=20)
    )


def test_a_line_that_announces_a_list_goes_with_it() -> None:
    text = (
        f"{'Some words before it here. ' * 3}\nYou need these:\n- flour\n- eggs\n- sugar and salt and a lot of time\n"
    )
    assert "You need these:\n- flour" in pieces(text, max_words=18)[1]


def test_ideographs_are_cut_at_their_full_stops() -> None:
    text = "\u6211\u559c\u6b22\u732b\u3002" * 20
    assert all(piece.endswith("\u3002") for piece in pieces(text, max_words=10))
    assert len(pieces(text, max_words=10)) > 1


def test_a_line_without_any_space_is_cut_too() -> None:
    assert len(pieces("x" * 100_000)) > 1


def test_a_limit_below_one_word_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        split_passages("anything", max_words=0)
