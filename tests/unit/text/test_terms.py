"""What `analyse` makes of words, identifiers, numbers, other scripts and odd text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.text.terms import MAX_TERM_CHARS, STOP_WORDS, analyse

SAFE = re.compile(r"[^\s'\"\\:&|!()<>*]+")
ODD = st.text(st.characters(codec=None, exclude_categories=[]), max_size=200)


@given(ODD)
def test_every_term_is_safe_to_store_and_to_quote(text: str) -> None:
    terms = analyse(text)
    assert all(SAFE.fullmatch(term) and len(term) <= MAX_TERM_CHARS for term in terms)
    assert " ".join(terms).split() == terms


@given(st.text(max_size=100))
def test_the_terms_of_a_text_do_not_depend_on_what_was_analysed_before(text: str) -> None:
    first = analyse(text)
    analyse("something else entirely")
    assert analyse(text) == first


@given(st.text(alphabet="abcdefgh ", max_size=80), st.text(alphabet="abcdefgh ", max_size=80))
def test_two_texts_side_by_side_have_the_terms_of_both(left: str, right: str) -> None:
    assert analyse(f"{left} {right}") == analyse(left) + analyse(right)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("painting", "painted"),
        ("CAFÉ", "cafe"),
        ("bought", "buy"),
        ("children", "child"),
        ("userId", "user_id"),
        ("e-mail", "email"),
        ("3,000", "3000"),
        ("7th", "7"),
        ("Caroline's", "Caroline"),
        ("\uff21\uff22\uff23", "abc"),
        ("Straße", "strasse"),
    ],
)
def test_spellings_of_one_word_meet_in_a_term(one: str, other: str) -> None:
    assert not set(analyse(one)).isdisjoint(analyse(other))


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=200))
def test_a_text_has_the_same_terms_whether_or_not_a_letter_beyond_ascii_stands_behind_it(text: str) -> None:
    assert analyse(f"{text} \u00e9") == [*analyse(text), "e"]


@given(st.lists(st.text(max_size=60).filter(lambda line: "\n" not in line), max_size=5))
def test_a_text_has_the_terms_of_its_lines(lines: list[str]) -> None:
    assert analyse("\n".join(lines)) == [term for line in lines for term in analyse(line)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user_id", ["userid", "user", "id"]),
        ("getUserName", ["getusernam", "get", "user", "name"]),
        ("E1234", ["e1234", "1234"]),
        ("2023-05-07", ["20230507", "2023", "05", "07"]),
    ],
)
def test_an_identifier_is_kept_whole_and_split(text: str, expected: list[str]) -> None:
    assert analyse(text) == expected


def test_a_path_is_found_by_each_of_its_parts() -> None:
    terms = analyse("see src/app.py")
    assert {"src", "app", "py"} < set(terms)
    assert any(term.startswith("srcapp") for term in terms)


def test_a_decimal_is_not_the_number_without_its_point() -> None:
    assert "35" not in analyse("3.5")


def test_contractions_and_function_words_leave_nothing() -> None:
    assert analyse("I don't think it's what they'd have") == ["think"]


def test_a_text_of_stop_words_has_no_terms() -> None:
    assert analyse(" ".join(sorted(STOP_WORDS))) == []


def test_text_without_spaces_is_cut_into_pairs() -> None:
    assert analyse("\uc548\ub155\ud558") == ["\uc548\ub155", "\ub155\ud558"]


def test_a_single_ideograph_finds_a_sentence_that_has_it() -> None:
    assert set(analyse("\u732b")) <= set(analyse("\u6211\u6709\u4e00\u53ea\u732b"))


def test_vowel_signs_stay_in_their_word() -> None:
    assert analyse("\u0939\u093f\u0928\u094d\u0926\u0940") == ["\u0939\u093f\u0928\u094d\u0926\u0940"]


def test_surrogates_and_control_characters_separate_words() -> None:
    assert analyse("red\ud800blue\x00green") == ["red", "blue", "green"]


def test_a_blob_stays_one_short_term() -> None:
    assert len(analyse("a1b2" * 5000)) == 1
