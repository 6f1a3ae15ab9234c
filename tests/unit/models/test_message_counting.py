import hashlib
import pathlib
import re
from collections.abc import Callable
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.tools import BaseTool, tool
from pydantic import BaseModel

from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.models.message_counting import (
    Calibration,
    EncodingName,
    EstimatingCounter,
    FramedCounter,
    estimated_tokens,
)
from langchain_tiered_memory.models.token_counters import TiktokenCounter, adapt_counter, best_counter, encoding_file
from langchain_tiered_memory.protocols import TokenCounter
from tests.strategies import messages, odd_text
from tests.unit.models.token_samples import SAMPLES

ENCODINGS: list[EncodingName] = ["o200k_base", "cl100k_base"]
needs_tiktoken = pytest.mark.skipif(
    any(encoding_file(name) is None for name in ENCODINGS), reason="tiktoken's encodings are not in its cache"
)


class Weather(BaseModel):
    """The weather of a city."""

    city: str


def book(city: str, nights: int = 1) -> str:
    """Book a room.

    Args:
        city: Where.
        nights: How many.
    """
    return f"{city} {nights}"


def made_tool(description: str = "Finds things.") -> BaseTool:
    @tool(description=description)
    def search(query: str) -> str:
        return query

    return search


@needs_tiktoken
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_the_estimate_is_about_right_for_every_kind_of_text(encoding: EncodingName) -> None:
    counter = TiktokenCounter(encoding)
    errors = {name: estimated_tokens(text, encoding) / counter.count_text(text) - 1 for name, text in SAMPLES.items()}
    assert sum(map(abs, errors.values())) / len(errors) < 0.11
    assert {name: error for name, error in errors.items() if abs(error) > 0.32} == {}


@given(odd_text, odd_text)
def test_the_estimate_takes_any_text_and_grows_with_it(first: str, second: str) -> None:
    assert (estimated_tokens(first) == 0) == (first == "")
    assert estimated_tokens(f"{first}\n{second} and more words") >= estimated_tokens(second) > -1


@given(messages())
def test_any_message_can_be_counted(message: BaseMessage) -> None:
    counter = EstimatingCounter()
    assert counter.count_message(message) == counter.count_message(message) >= 4


def test_an_image_costs_the_same_whatever_its_bytes() -> None:
    def image(data: str, **more: str) -> HumanMessage:
        return HumanMessage([{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}", **more}}])

    counter = EstimatingCounter()
    assert counter.count_message(image("A" * 4)) == counter.count_message(image("A" * 400_000)) == 1109
    assert counter.count_message(image("A" * 4, detail="low")) == 89


def test_calls_and_names_count_and_a_repeated_call_block_does_not() -> None:
    counter = EstimatingCounter()
    call = {"name": "search", "args": {"query": "the order of Monday"}, "id": "a"}
    bare = counter.count_message(AIMessage(""))
    called = counter.count_message(AIMessage("", tool_calls=[call]))
    block = {"type": "tool_use", "id": "a", "name": "search", "input": call["args"]}
    assert called > bare + 8
    assert counter.count_message(AIMessage([block], tool_calls=[call])) == called
    assert counter.count_message(AIMessage("", name="bob")) > bare


@pytest.mark.parametrize("made", [made_tool(), Weather, book, {"type": "web_search"}, {"name": "f", "parameters": {}}])
def test_every_kind_of_tool_is_counted(made: object) -> None:
    assert EstimatingCounter().count_tools([made]) > 20
    assert EstimatingCounter().count_tools([]) == 0


def test_an_object_that_is_no_tool_is_counted_by_what_it_says() -> None:
    assert EstimatingCounter().count_tools([object()]) > 0


def test_equal_tools_are_counted_once_and_a_changed_one_anew() -> None:
    counted = []

    class Counting(FramedCounter):
        @property
        def fingerprint(self) -> str:
            return "test"

        def count_text(self, text: str) -> int:
            counted.append(text)
            return len(text)

    counter = Counting()
    first = counter.count_tools([made_tool()])
    assert counter.count_tools([made_tool()]) == first
    assert len(counted) == 1
    assert counter.count_tools([made_tool("Finds things and people.")]) > first


@needs_tiktoken
@given(odd_text)
def test_tiktoken_takes_any_text(text: str) -> None:
    assert (TiktokenCounter().count_text(text) > 0) == (text != "")


@needs_tiktoken
@pytest.mark.parametrize("name", ["english", "python", "chinese", "emoji", "blank", "log"])
def test_a_long_text_is_counted_as_tiktoken_counts_it(name: str) -> None:
    text = (SAMPLES[name] + "\n") * (120_000 // len(SAMPLES[name]))
    whole = len(tiktoken.get_encoding("o200k_base").encode_ordinary(text))
    assert TiktokenCounter().count_text(text) == pytest.approx(whole, rel=0.005)


@pytest.mark.slow
@needs_tiktoken
@pytest.mark.parametrize("text", ["a" * 10_000_000, " " * 10_000_000, "\u4f60" * 1_000_000, "ab/+" * 1_000_000])
def test_ten_megabytes_in_one_line_can_be_counted(text: str) -> None:
    assert 0 < TiktokenCounter().count_text(text) <= len(text)


@needs_tiktoken
@given(st.lists(st.tuples(st.sampled_from("ab \n\u2003\u4f60"), st.integers(1, 450)), max_size=6))
def test_runs_of_more_than_400_characters_are_counted_in_pieces_and_nothing_else_is(
    runs: list[tuple[str, int]],
) -> None:
    text = "".join(character * length for character, length in runs)
    pieces: list[str] = [""]
    for run in re.findall(r"\S+|\s+", text):
        if len(run) > 400:
            pieces += [run[at : at + 400] for at in range(0, len(run), 400)] + [""]
        else:
            pieces[-1] += run
    encoding = tiktoken.get_encoding("o200k_base")
    wanted = sum(len(encoding.encode_ordinary(piece)) for piece in pieces)
    whole = len(encoding.encode_ordinary(text))
    assert TiktokenCounter().count_text(text) == (whole if len(text) <= 400 else wanted)


@needs_tiktoken
def test_special_tokens_are_text() -> None:
    assert TiktokenCounter().count_text("<|endoftext|>") > 1


@needs_tiktoken
@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-4", "cl100k_base"),
        ("openai:gpt-4o-mini", "o200k_base"),
        ("claude-sonnet", "o200k_base"),
        (None, "o200k_base"),
    ],
)
def test_the_best_counter_fits_the_model(model: str | None, encoding: str) -> None:
    assert encoding in best_counter(model).fingerprint


@pytest.mark.parametrize("content", [None, b"", b"not an encoding"])
def test_without_the_right_file_nothing_is_downloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, content: bytes | None
) -> None:
    url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    kept = tmp_path / hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest()
    if content is not None:
        kept.write_bytes(content)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("tiktoken.load.read_file", lambda *_: pytest.fail("tiktoken went to the network"))
    assert best_counter("gpt-4o").fingerprint == "estimate/o200k_base/2"
    assert best_counter("gpt-4").fingerprint == "estimate/cl100k_base/2"
    with pytest.raises(SettingsError, match="TIKTOKEN_CACHE_DIR"):
        TiktokenCounter("o200k_base")
    assert kept.exists() == (content is not None)


def test_a_counter_is_taken_as_it_is() -> None:
    counter = EstimatingCounter()
    assert adapt_counter(counter) is counter
    assert isinstance(counter, TokenCounter)
    assert isinstance(adapt_counter(None), TokenCounter)


@pytest.mark.parametrize("count", [len, lambda text: len(text.split())])
def test_a_function_of_a_text_gets_framing_around_it(count: Callable[[Any], int]) -> None:
    counter = adapt_counter(count)
    assert counter.count_text("one two three") == count("one two three")
    assert counter.count_message(HumanMessage("one two three")) == count("one two three") + 4


def test_a_function_of_messages_knows_its_own_framing() -> None:
    counter = adapt_counter(count_tokens_approximately)
    message = HumanMessage("one two three")
    assert counter.count_message(message) == count_tokens_approximately([message])
    assert 0 < counter.count_text("one two three") < counter.count_message(message)
    assert counter.count_tools([book]) > 10


@pytest.mark.parametrize(
    "odd", [3, object(), lambda: 1, lambda _: "many", lambda _: 7, lambda _: -1, "no_such_encoding", int]
)
def test_what_cannot_count_is_refused(odd: object) -> None:
    with pytest.raises(SettingsError):
        adapt_counter(odd)


@pytest.mark.parametrize("answer", [-1, 1.5, True, None])
def test_an_answer_that_is_no_count_is_refused(answer: object) -> None:
    counter = adapt_counter(lambda text: answer if text == "bad" else len(text))
    with pytest.raises(SettingsError, match="whole number"):
        counter.count_text("bad")


def test_calibration_learns_the_ratio_that_is_reported() -> None:
    calibration = Calibration()
    for _ in range(10):
        calibration = calibration.observe(1000, 1700)
    assert calibration.ratio == pytest.approx(1.7, rel=0.01)
    assert calibration.apply(100) == 170 or calibration.apply(100) == 171


def test_one_wrong_report_does_not_spoil_what_was_learnt() -> None:
    calibration = Calibration(ratio=1.2, samples=20)
    assert calibration.observe(1000, 50_000).ratio < 1.2 * 1.07
    assert calibration.observe(1000, 1).ratio > 1.2 * 0.93


@given(st.lists(st.tuples(st.integers(-5, 10**9), st.integers(-5, 10**9)), max_size=30))
def test_calibration_stays_within_its_bounds(reports: list[tuple[int, int]]) -> None:
    calibration = Calibration()
    for estimated, reported in reports:
        calibration = calibration.observe(estimated, reported)
    assert 0.5 <= calibration.ratio <= 3.0
    assert calibration.apply(0) == 0


def test_reports_that_tell_nothing_are_ignored() -> None:
    assert Calibration().observe(10, 30) == Calibration().observe(1000, 0) == Calibration()
