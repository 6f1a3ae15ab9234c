from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.text.noun_phrases import noun_phrases, subjects


def test_what_follows_an_article_or_a_preposition_is_a_noun_phrase() -> None:
    found = list(noun_phrases("We planned the charity race and spent hours on handling user sessions with my sister."))
    assert found == ["charity race", "user sessions", "sister"]


def test_verbs_and_fillers_are_no_subjects() -> None:
    said = ["I planned it and spent a lot of time.", "She planned it too and spent the whole day."]
    assert not {"planned", "spent", "lot", "time", "day"} & set(subjects(said, dull=frozenset(), count=5))


def test_what_comes_up_again_is_a_subject_first() -> None:
    said = ["The ferry is late.", "We take the ferry to the old harbour.", "My ferry was full. I like Lund."]
    assert subjects(said, dull=frozenset(), count=1) == ["ferry"]


def test_names_keep_their_capitals_and_who_is_called_is_none() -> None:
    said = ["I live in Lund now.", "We meet in Lund, Mel!", "Thanks, Mel!"]
    assert subjects(said, dull=frozenset(), count=3) == ["Lund"]


@given(st.lists(st.text(max_size=120), max_size=6), st.integers(1, 5))
def test_there_are_never_more_than_asked_for_and_none_twice(said: list[str], count: int) -> None:
    found = subjects(said, dull=frozenset({"mel"}), count=count)
    assert len(found) <= count
    assert len({one.casefold() for one in found}) == len(found)
