import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langchain_tiered_memory.models.message_counting import estimated_tokens
from langchain_tiered_memory.text.truncation import head_and_tail, shorten_message
from tests.strategies import odd_text, plain_text

POINTER = 'expand "m1" for the whole'
LETTER = "\n".join(f"Line {n} of the letter says that parcel {n * 7} arrived. It was intact." for n in range(500))


def short(text: str, max_tokens: int) -> str:
    return head_and_tail(text, max_tokens=max_tokens, count=estimated_tokens, pointer=POINTER)


@given(st.lists(st.one_of(odd_text, plain_text), max_size=40).map("\n".join), st.integers(-1, 200))
def test_the_result_is_never_over_its_budget(text: str, max_tokens: int) -> None:
    assert estimated_tokens(short(text, max_tokens)) <= max(0, max_tokens)


@given(plain_text, st.integers(0, 100))
def test_a_text_that_fits_is_left_alone(text: str, more: int) -> None:
    assert short(text, estimated_tokens(text) + more) == text


def test_head_tail_and_pointer_are_shown_at_line_borders() -> None:
    shown = short(LETTER, 300).split("\n")
    assert shown[0] == "Line 0 of the letter says that parcel 0 arrived. It was intact."
    assert shown[-1] == LETTER.split("\n")[-1]
    pointers = [line for line in shown if line.startswith("[...")]
    assert len(pointers) == 1
    assert POINTER in pointers[0]
    assert all(line in LETTER.split("\n") for line in shown if line not in pointers)


def test_no_name_of_a_file_is_cut_at_its_dot() -> None:
    text = " ".join(f"please read docs/plans/part-{n}.md and lib/part_{n}.py again" for n in range(200))
    for tokens in range(60, 300, 7):
        head, _, tail = short(text, tokens).partition("\n[...")
        assert set(head.split()) <= set(text.split())
        assert set(tail.partition("...]\n")[2].split()) <= set(text.split())


def test_most_of_the_budget_is_used() -> None:
    assert estimated_tokens(short(LETTER, 400)) > 300


def test_only_the_ends_of_a_giant_text_are_looked_at() -> None:
    looked_at = []

    def count(text: str) -> int:
        looked_at.append(len(text))
        return estimated_tokens(text)

    shown = head_and_tail("word and " * 1_100_000 + "end", max_tokens=500, count=count, pointer=POINTER)
    assert max(looked_at) < 10_000
    assert shown.endswith("end")


@pytest.mark.parametrize("text", ["a" * 100_000, "\u4f60" * 5000, "\n" * 9000, "x " * 9000])
def test_text_without_borders_is_cut_all_the_same(text: str) -> None:
    shown = short(text, 100)
    assert 0 < estimated_tokens(shown) <= 100


def test_a_budget_below_the_pointer_shows_the_first_words_and_that_they_were_cut() -> None:
    shown = short(LETTER, 5)
    assert shown.endswith("\u2026")
    assert LETTER.startswith(shown.removesuffix("\u2026"))
    assert len(shown) > 1
    assert short(LETTER, 0) == ""


@given(st.one_of(odd_text, plain_text), st.integers(0, 60))
def test_nothing_is_cut_silently(text: str, max_tokens: int) -> None:
    shown = short(text, max_tokens)
    assert shown in ("", text) or "\u2026" in shown or "tokens left out" in shown


def test_where_hardly_anything_is_missing_no_line_takes_more_room_than_that() -> None:
    tokens = estimated_tokens(LETTER)
    shown = short(LETTER, tokens - 3)
    assert "tokens left out" not in shown
    assert "\n\u2026\n" in shown
    assert estimated_tokens(shown) > tokens - 40


def test_calls_ids_and_images_stay_whole() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    thought = {"type": "thinking", "thinking": LETTER, "signature": "x"}
    message = AIMessage(
        [thought, {"type": "text", "text": "Short."}, image, {"type": "text", "text": LETTER, "index": 1}],
        tool_calls=[{"name": "f", "args": {"x": LETTER}, "id": "a"}],
        id="m1",
    )
    before = message.model_copy(deep=True)
    shown = shorten_message(message, max_tokens=200, count=estimated_tokens, pointer=POINTER)
    assert message == before
    assert isinstance(shown, AIMessage)
    assert (shown.id, shown.tool_calls) == (message.id, message.tool_calls)
    assert shown.content[:3] == [thought, {"type": "text", "text": "Short."}, image]
    assert isinstance(shown.content[3], dict)
    assert shown.content[3]["index"] == 1
    assert estimated_tokens(shown.content[3]["text"]) <= 200


def test_a_message_that_fits_is_the_very_same() -> None:
    message = HumanMessage("short")
    assert shorten_message(message, max_tokens=50, count=estimated_tokens) is message


def test_a_plain_message_is_shortened_to_its_budget() -> None:
    shown = shorten_message(HumanMessage(LETTER, id="h"), max_tokens=100, count=estimated_tokens, pointer=POINTER)
    assert estimated_tokens(str(shown.content)) <= 100
    assert shown.id == "h"
