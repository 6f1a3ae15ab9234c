import dataclasses
import datetime as dt
import enum
import json
import math
import pathlib
from typing import Any

import pytest
from hypothesis import example, given
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from pydantic import BaseModel

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.messages.codec import coerce, decode, encode
from langchain_tiered_memory.messages.message_text import answers_of, calls_of, role_of, text_of
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from tests.strategies import messages, rich_values


@dataclasses.dataclass(frozen=True)
class Seat:
    row: int
    taken_at: dt.datetime


class CallStyle(enum.Enum):
    RED = "red"


class Plain(AIMessage):
    """A subclass without fields of its own."""


class Wider(HumanMessage):
    mood: str = "calm"


class Unprintable:
    def __repr__(self) -> str:
        msg = "no repr today"
        raise RuntimeError(msg)


def result(artifact: object) -> ToolMessage:
    return ToolMessage("done", tool_call_id="a", artifact=artifact)


def calling(*calls: dict[str, Any]) -> AIMessage:
    return AIMessage("", tool_calls=list(calls))


def parts_within(value: object) -> list[object]:
    """`value` and everything that can be reached through it."""
    inner: list[object] = []
    if isinstance(value, BaseModel):
        inner = [value.__dict__, value.__pydantic_fields_set__, value.__pydantic_extra__, value.__pydantic_private__]
    elif isinstance(value, dict):
        inner = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner = [*value]
    return [value, *(part for one in inner for part in parts_within(one))]


def changeable_within(value: object) -> set[int]:
    return {id(part) for part in parts_within(value) if isinstance(part, list | dict | set | bytearray | BaseModel)}


def spoil(message: BaseMessage) -> None:
    """Do the worst that a caller could do to a message that it was given."""
    for part in parts_within(message):
        if isinstance(part, list | dict | set | bytearray):
            part.clear()


@given(messages())
def test_any_message_comes_back_equal_and_of_its_class(message: BaseMessage) -> None:
    encoded = encode(message)
    back = decode(encoded.payload)
    assert encoded.problems == ()
    assert encoded.payload.isascii()
    assert back == message
    assert type(back) is type(message)
    assert encode(back) == encoded


@given(messages())
def test_what_is_done_to_a_message_reaches_no_other_one_of_the_same_payload(message: BaseMessage) -> None:
    payload = encode(message).payload
    first, second = decode(payload), decode(payload)
    assert not changeable_within(first) & changeable_within(second)
    spoil(first)
    assert decode(payload) == second == message
    assert encode(decode(payload)).payload == payload


def test_a_long_message_is_read_anew_each_time() -> None:
    message = calling({"name": "write", "args": {"lines": ["x" * 10_000]}, "id": "a"})
    first = decode(encode(message).payload)
    spoil(first)
    assert decode(encode(message).payload) == message


@given(rich_values)
@example("\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"))
@example("\ud83d" + "\ude00")
@example(10**5000)
@example({("a", 1): {b"b"}, "$t": "x"})
def test_any_artifact_of_plain_parts_comes_back_equal(artifact: object) -> None:
    assert decode(encode(result(artifact)).payload) == result(artifact)


@pytest.mark.parametrize(
    "artifact",
    [
        Seat(row=3, taken_at=dt.datetime(2026, 1, 2, tzinfo=dt.UTC)),
        CallStyle.RED,
        pathlib.Path("a/b"),
        [Document("x", id="1")],
    ],
)
def test_objects_of_loaded_classes_come_back_as_themselves(artifact: object) -> None:
    back = decode(encode(result(artifact)).payload)
    assert back == result(artifact)


def test_an_object_of_a_class_that_is_gone_comes_back_as_its_fields() -> None:
    stored = encode(result(Seat(row=3, taken_at=dt.datetime(2026, 1, 2, tzinfo=dt.UTC)))).payload
    back = decode(stored.replace('"Seat"', '"Chair"'))
    assert isinstance(back, ToolMessage)
    assert back.artifact["row"] == 3


def test_infinities_and_nan_survive() -> None:
    back = decode(encode(result([math.inf, -math.inf, math.nan])).payload)
    assert isinstance(back, ToolMessage)
    assert back.artifact[:2] == [math.inf, -math.inf]
    assert math.isnan(back.artifact[2])
    json.loads(encode(result([math.nan])).payload, parse_constant=pytest.fail)


@pytest.mark.parametrize("artifact", [object(), lambda: 1, open, Unprintable(), [1, {"deep": object()}]])
def test_an_artifact_that_cannot_be_stored_is_described_and_the_message_kept(artifact: object) -> None:
    encoded = encode(result(artifact))
    assert len(encoded.problems) == 1
    assert encoded.problems[0].startswith("artifact: ")
    assert decode(encoded.payload).content == "done"


def test_the_description_is_the_same_in_every_process() -> None:
    assert encode(result(object())) == encode(result(object()))


def test_an_artifact_that_holds_itself_is_described() -> None:
    knot: list[Any] = []
    knot.append(knot)
    assert len(encode(result(knot)).problems) == 1


def test_usage_metadata_ids_and_chunks_do_not_change_what_is_said() -> None:
    said = AIMessage("yes", id="1")
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    later = AIMessage("yes", id="2", usage_metadata=usage, response_metadata={"model_name": "m"})
    assert encode(said).digest == encode(later).digest == encode(AIMessageChunk("yes")).digest


@pytest.mark.parametrize(
    "other",
    [
        AIMessage("no"),
        HumanMessage("yes"),
        AIMessage("yes", name="bob"),
        AIMessage("yes", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
        AIMessage("yes", additional_kwargs={"reasoning_content": "hm"}),
        AIMessage(["yes"]),
    ],
)
def test_other_content_has_another_digest(other: BaseMessage) -> None:
    assert encode(AIMessage("yes")).digest != encode(other).digest


@pytest.mark.parametrize("odd", [RemoveMessage("x"), BaseMessage("x", type="made-up"), Wider("x"), "text", None])
def test_what_is_no_known_message_is_refused(odd: Any) -> None:
    with pytest.raises(UnknownMessageError):
        encode(odd)


def test_a_subclass_without_fields_is_kept_as_the_class_it_extends() -> None:
    encoded = encode(Plain("hi", id="1"))
    assert decode(encoded.payload) == AIMessage("hi", id="1")
    assert "Plain" in encoded.problems[0]


@pytest.mark.parametrize(
    "payload", ["", "[]", "{}", '{"v": 99, "class": "AIMessage"}', '{"v":1,"class":"RemoveMessage"}']
)
def test_a_payload_that_is_not_ours_is_refused(payload: str) -> None:
    with pytest.raises(UnknownMessageError):
        decode(payload)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hi", HumanMessage("hi")),
        (("system", "be kind"), SystemMessage("be kind")),
        ({"role": "user", "content": "hi", "name": "ann"}, HumanMessage("hi", name="ann")),
        ({"role": "tool", "content": "42", "tool_call_id": "a"}, ToolMessage("42", tool_call_id="a")),
    ],
)
def test_what_langchain_takes_for_a_message_is_taken(value: object, expected: BaseMessage) -> None:
    assert coerce(value) == expected


def test_a_call_with_broken_arguments_becomes_an_invalid_call() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{x"}},
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "[1]"}},
        {"id": "d", "type": "function", "function": {"name": "f", "arguments": ""}},
    ]
    message = coerce({"role": "assistant", "content": None, "tool_calls": calls})
    assert isinstance(message, AIMessage)
    assert [call["id"] for call in message.tool_calls] == ["a", "d"]
    assert [call["id"] for call in message.invalid_tool_calls] == ["b", "c"]
    assert calls_of(message) == ("a", "d", "b", "c")


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        {},
        {"role": "wizard", "content": "x"},
        {"role": "user"},
        ("user", "a", "b"),
        [],
        b"x",
        {"role": "tool", "content": "no id"},
        {"role": "assistant", "content": "", "tool_calls": 3},
        {"role": "user", "content": object()},
        RemoveMessage("x"),
        object(),
    ],
)
def test_anything_else_is_refused_with_a_typed_error(value: object) -> None:
    with pytest.raises(UnknownMessageError):
        coerce(value)


@pytest.mark.parametrize(
    ("message", "role"),
    [
        (HumanMessage(""), "user"),
        (AIMessageChunk(""), "assistant"),
        (SystemMessage(""), "system"),
        (FunctionMessage("", name="f"), "tool"),
        (ChatMessage("", role="Developer"), "system"),
        (ChatMessage("", role="critic"), "other"),
    ],
)
def test_every_message_has_a_role(message: BaseMessage, role: str) -> None:
    assert role_of(message) == role


@given(messages())
def test_the_text_can_go_into_any_database(message: BaseMessage) -> None:
    text = text_of(message)
    text.encode()
    assert "\x00" not in text


def test_media_are_described_and_never_spelled_out() -> None:
    data = "QUJD" * 1000
    message = HumanMessage(
        [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
            {"type": "image", "url": "https://example.org/cat.png"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": data}},
            {"type": "audio", "base64": data, "mime_type": "audio/wav"},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{data}"}},
            {"type": "input_audio", "input_audio": {"data": data, "format": "mp3"}},
            {"type": "my_widget", "blob": data},
        ]
    )
    lines = text_of(message).split("\n")
    assert lines[0] == "look"
    assert lines[1] == "[image: image/png, 3 kB]"
    assert lines[2] == "[image: https://example.org/cat.png]"
    assert lines[3] == "[image: image/jpeg, 3 kB]"
    assert lines[4] == "[audio: audio/wav, 3 kB]"
    assert lines[5].startswith("[file: a.pdf, ")
    assert lines[6] == "[audio: mp3, 3 kB]"
    assert lines[7] == '{"type":"my_widget","blob":"<4,000 characters>"}'


_WORDS = "The shed costs 900."


@pytest.mark.parametrize(
    "block",
    [
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": _WORDS}},
        {"type": "document", "source": {"type": "content", "content": _WORDS}},
        {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": _WORDS}]}},
        {"document": {"format": "txt", "name": "shed", "source": {"text": _WORDS}}},
        {"document": {"format": "txt", "name": "shed", "source": {"content": [{"text": _WORDS}]}}},
        {"type": "text", "text": _WORDS, "source": {"type": "text", "data": "Of page 3."}},
    ],
    ids=repr,
)
def test_a_document_says_the_words_that_stand_in_it(block: dict[str, Any]) -> None:
    assert text_of(HumanMessage([block])) == _WORDS
    assert EstimatingCounter().count_message(HumanMessage([block])) < 50


def test_calls_read_like_calls() -> None:
    message = calling({"name": "book", "args": {"city": "Bergen", "nights": 2}, "id": "a"})
    assert text_of(message) == 'book(city="Bergen", nights=2)'


def test_a_long_argument_keeps_its_lines() -> None:
    body = "line one\nline two\n" * 20
    assert body in text_of(calling({"name": "write", "args": {"path": "a.txt", "content": body}, "id": "a"}))


def test_a_call_that_stands_in_the_content_too_is_told_once() -> None:
    block = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}}
    message = AIMessage(
        [{"type": "text", "text": "ok"}, block], tool_calls=[{"name": "f", "args": {"x": 1}, "id": "a"}]
    )
    assert text_of(message) == "ok\nf(x=1)"
    assert text_of(AIMessage([block])) == "f(x=1)"
    assert calls_of(AIMessage([block])) == ("a",)


def test_a_sentence_cut_at_its_citations_is_read_as_one() -> None:
    cited = {"type": "text", "text": "on Monday", "citations": [{"url": "https://example.org"}]}
    message = AIMessage([{"type": "text", "text": "It ships "}, cited, {"type": "text", "text": "."}])
    assert text_of(message) == "It ships on Monday."


def test_reasoning_is_not_part_of_the_text() -> None:
    thought = {"type": "thinking", "thinking": "secret plan", "signature": "x"}
    assert text_of(AIMessage([thought, {"type": "text", "text": "yes"}])) == "yes"


def test_only_a_call_with_an_id_can_be_waited_for() -> None:
    assert calls_of(calling({"name": "f", "args": {}, "id": None}, {"name": "f", "args": {}, "id": "a"})) == ("a",)
    assert answers_of(ToolMessage("x", tool_call_id="a")) == "a"
    assert answers_of(HumanMessage("x")) is None
