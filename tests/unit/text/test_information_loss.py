import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_tiered_memory.summaries.checks.measures import information_loss
from tests.strategies import odd_text, plain_text

TALK = (
    "Ann: The gateway listens on port 8443 in Lund.",
    "Ben: We decided to go with Postgres because Kafka was too slow.",
    "Ann: The handler is in src/billing/retry.py now.",
    "Ben: Let us meet on 14 March 2026 and look at the gateway again.",
)

sources = st.lists(st.one_of(plain_text, st.sampled_from(TALK), odd_text), max_size=6)


def test_the_source_itself_loses_nothing() -> None:
    assert information_loss(TALK, "\n".join(TALK)) == 0.0


def test_a_text_that_shares_nothing_loses_everything() -> None:
    assert information_loss(TALK, "Birds sing before dawn.") == 1.0


def test_nothing_to_say_is_nothing_to_lose() -> None:
    assert information_loss([], "anything") == 0.0
    assert information_loss(["", " \n"], "") == 0.0


def test_an_identifier_weighs_more_than_an_ordinary_word() -> None:
    said = ["the handler waits beside src/retry.py quietly"]
    without_path = information_loss(said, "the handler waits beside it quietly")
    without_word = information_loss(said, "the handler waits beside src/retry.py")
    assert without_path > without_word


def test_what_is_said_once_weighs_more_than_what_is_said_everywhere() -> None:
    said = ["the gateway hums", "the gateway waits", "the gateway moves northward"]
    assert information_loss(said, "gateway") > information_loss(said, "northward")


@pytest.mark.parametrize(
    "text", ["价格100元,端口是8443。", "Der Preis beträgt 4711 €.", "é100abc 12", "Ünïcode/путь.py"]
)
def test_the_source_itself_loses_nothing_in_any_language(text: str) -> None:
    assert information_loss([text], text) == 0.0


@given(sources)
def test_it_is_a_share_and_nothing_is_lost_by_the_source_itself(said: list[str]) -> None:
    assert information_loss(said, "\n".join(said)) == 0.0
    assert 0.0 <= information_loss(said, "order 4711") <= 1.0


@given(sources, st.lists(st.integers(0, 5), max_size=8), odd_text)
def test_adding_a_line_of_the_source_never_raises_it(said: list[str], order: list[int], start: str) -> None:
    text, before = start, information_loss(said, start)
    for place in order:
        if place < len(said):
            text = f"{text}\n{said[place]}"
            after = information_loss(said, text)
            assert after <= before + 1e-9
            before = after


@given(st.permutations(TALK))
def test_adding_a_sentence_to_a_paragraph_never_raises_it(order: list[str]) -> None:
    losses = [information_loss(TALK, " ".join(order[:count])) for count in range(len(order) + 1)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == 0.0
