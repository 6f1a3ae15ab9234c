"""What was read from a text is kept: read once, never out of date, bounded, and let go of."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.text import readings
from langchain_tiered_memory.text.identifiers import identifiers
from langchain_tiered_memory.text.readings import let_go_of_readings, read_once
from langchain_tiered_memory.text.terms import analyse


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    let_go_of_readings()
    yield
    let_go_of_readings()


def test_a_text_is_read_once_and_another_one_by_itself() -> None:
    seen: list[str] = []

    @read_once
    def length(text: str) -> int:
        seen.append(text)
        return len(text)

    assert [length(text) for text in ("one", "three", "one", "three")] == [3, 5, 3, 5]
    assert seen == ["one", "three"]


def test_readers_do_not_get_what_another_reader_found() -> None:
    @read_once
    def upper(text: str) -> str:
        return text.upper()

    @read_once
    def lower(text: str) -> str:
        return text.lower()

    assert (upper("Oslo"), lower("Oslo")) == ("OSLO", "oslo")


def test_what_was_read_as_nothing_is_kept_too() -> None:
    seen: list[str] = []

    @read_once
    def nothing(text: str) -> None:
        seen.append(text)

    nothing("same")
    nothing("same")
    assert seen == ["same"]


def test_a_forgotten_text_is_not_kept() -> None:
    identifiers("the port is 8443 in src/app.py")
    assert readings.kept_count() == 1
    let_go_of_readings()
    assert readings.kept_count() == 0


def test_a_pasted_file_is_not_kept() -> None:
    identifiers("word " * 20_000)
    assert readings.kept_count() == 0


@pytest.mark.slow
def test_what_is_kept_is_bounded_whatever_is_read() -> None:
    for number in range(600):
        identifiers(f"{number} " + "x" * 19_000)
    most = 2 * (2_000_000 // 19_000 + 2)
    assert 0 < readings.kept_count() <= most


@given(st.text(max_size=80))
def test_terms_are_the_same_however_often_they_are_asked_and_belong_to_the_caller(text: str) -> None:
    first = analyse(text)
    kept = list(first)
    first.append("changed by the caller")
    assert analyse(text) == kept
