from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.text.similarity import near_duplicates
from tests.growth import is_linear

LONG = "the quick brown fox jumps over the lazy dog and then it sleeps for a long time in the warm afternoon sun"


def test_case_and_spacing_do_not_make_a_difference() -> None:
    assert near_duplicates([LONG, f"  {LONG.upper()}\n"]) == {1: 0}


def test_a_word_more_is_a_near_duplicate() -> None:
    assert near_duplicates(["something else entirely, of some length, to begin with", LONG, f"{LONG} again"]) == {2: 1}


def test_another_figure_makes_it_another_thing() -> None:
    log = "build finished with warnings in module core after running all of the integration suites on worker "
    assert near_duplicates([f"{log}17", f"{log}18"]) == {}


def test_a_negation_makes_it_another_thing() -> None:
    assert near_duplicates([LONG, LONG.replace("sleeps", "never sleeps")]) == {}


def test_short_answers_are_never_duplicates() -> None:
    assert near_duplicates(["Yes, please do.", "Yes, please do."]) == {}


def test_what_is_too_short_or_too_long_to_compare_hides_no_duplicate_behind_it() -> None:
    giant = " ".join(f"word{number}" for number in range(30_000))
    for first in ("Yes, please do.", giant):
        assert near_duplicates([first, LONG, f"{LONG} again", LONG]) == {2: 1, 3: 1}
    assert near_duplicates([LONG, LONG, "Yes.", f"{LONG} again"]) == {1: 0, 3: 0}


def test_duplicates_point_to_the_first_of_their_kind() -> None:
    assert near_duplicates([LONG, f"{LONG} now", f"{LONG} now"]) == {1: 0, 2: 0}


def test_texts_without_spaces_are_compared_by_their_characters() -> None:
    text = "我们决定在下个星期把新的服务部署到生产环境里面去"
    assert near_duplicates([text, text + "了"]) == {1: 0}


@given(st.lists(st.text(max_size=80), max_size=12))
def test_the_first_is_earlier_and_no_duplicate_itself(texts: list[str]) -> None:
    found = near_duplicates(texts)
    assert all(first < index and first not in found for index, first in found.items())


@given(
    st.lists(
        st.sampled_from(["red", "green", "blue", "brown", "black", "white", "grey", "pink"]), min_size=8, max_size=40
    )
)
def test_an_equal_text_is_always_found(words: list[str]) -> None:
    text = " ".join(words)
    assert near_duplicates([text, "other", text]) == {2: 0}


def test_many_texts_that_differ_take_no_quadratic_time() -> None:
    def found(count: int) -> object:
        names = ("".join(chr(ord("a") + int(digit)) for digit in str(number)) for number in range(count))
        return near_duplicates([f"{name} went to {name} with {name} and came back from {name}" for name in names])

    assert is_linear(found, length=300)
