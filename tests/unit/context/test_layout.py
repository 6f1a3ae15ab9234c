import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_tiered_memory.context.layout import recall_position
from langchain_tiered_memory.context.pieces import MARK, Piece, ours, shortened, system_message
from langchain_tiered_memory.messages.codec import encode
from langchain_tiered_memory.messages.message_text import calls_of, text_of
from langchain_tiered_memory.models.message_counting import EstimatingCounter
from langchain_tiered_memory.text.truncation import water_level, whole_again
from langchain_tiered_memory.types.records import Entry

COUNTER = EstimatingCounter()


def piece(message: object) -> Piece:
    return Piece(part="recent", message=message, tokens=1)  # type: ignore[arg-type]


def entry(text: str) -> Entry:
    return entry_of(HumanMessage(text, id="m1"))


def entry_of(message: BaseMessage) -> Entry:
    return Entry(
        seq=1,
        id="m1",
        role="user",
        text=str(message.text),
        payload=encode(message).payload,
        digest="",
        tokens=COUNTER.count_message(message),
        at=0.0,
        name=None,
        track="main",
        kind=None,
        task=None,
        calls=calls_of(message),
        answers=None,
        group=1,
        pinned=False,
        revision=0,
        summary_id=None,
    )


def test_recall_stands_before_the_last_user_message_while_an_answer_is_due() -> None:
    pieces = [piece(HumanMessage("a")), piece(AIMessage("b")), piece(HumanMessage("c"))]
    assert recall_position(pieces) == 2


def test_recall_stays_before_the_question_during_its_tool_loop() -> None:
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    pieces = [piece(HumanMessage("a")), piece(call), piece(ToolMessage("found", tool_call_id="c1"))]
    assert recall_position(pieces) == 0


def test_recall_stands_last_when_the_next_word_is_the_users() -> None:
    assert recall_position([piece(HumanMessage("a")), piece(AIMessage("done"))]) == 2


def test_recall_never_takes_a_message_of_ours_for_the_users() -> None:
    history = ours("record", part="history", counter=COUNTER)
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    assert MARK in history.message.additional_kwargs
    assert recall_position([history, piece(call)]) == 2


def test_an_entry_that_fits_is_shown_as_it_was() -> None:
    shown = shortened(entry("short"), max_tokens=100, counter=COUNTER)
    assert shown.message == HumanMessage("short", id="m1")
    assert shown.whole_entries


def test_an_entry_too_large_is_shown_head_and_tail_with_a_pointer_and_is_no_longer_whole() -> None:
    text = "head " + "middle " * 3000 + "tail"
    shown = shortened(entry(text), max_tokens=120, counter=COUNTER, expands=True)
    assert shown.tokens <= 120
    assert str(shown.message.content).startswith("head")
    assert str(shown.message.content).endswith("tail")
    assert f'expand "{entry(text).seq}"' in str(shown.message.content)
    assert not shown.whole_entries
    bare = shortened(entry(text), max_tokens=120, counter=COUNTER)
    assert "tokens left out ...]" in str(bare.message.content), "nothing to call where no tool takes it"


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=40), st.integers(0, 20_000))
def test_the_water_level_fills_the_room_and_never_overflows(sizes: list[int], room: int) -> None:
    level = water_level(sizes, room)
    assert sum(min(size, level) for size in sizes) <= room
    if level < max(sizes):
        assert sum(min(size, level + 1) for size in sizes) > room - len(sizes)


def test_no_system_prompt_is_no_message() -> None:
    assert system_message(None) is None
    assert system_message("") is None


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 5000)), max_size=12), st.integers(0, 9000))
def test_what_is_whole_again_fits_and_the_newest_comes_first(sizes: list[tuple[int, int]], spare: int) -> None:
    cut = [size for size, _ in sizes]
    whole = [size + more for size, more in sizes]
    room = sum(cut) + spare
    stays = whole_again(cut, whole, room)
    together = sum(whole[at] if at in stays else size for at, size in enumerate(cut))
    assert together <= room
    assert all(
        whole[at] - cut[at] > room - together for at in range(len(cut)) if at not in stays and whole[at] > cut[at]
    )
    if sizes and 0 < sizes[-1][1] <= spare:
        assert len(sizes) - 1 in stays


def picture(text: str) -> Entry:
    image = {"type": "image", "base64": "eA==" * 40, "mime_type": "image/png"}
    return entry_of(HumanMessage([{"type": "text", "text": text}, image, image], id="pictures"))


def test_media_without_room_are_described_from_the_first_on() -> None:
    entry = picture("What is on these?")
    both = shortened(entry, max_tokens=2600, counter=COUNTER)
    one = shortened(entry, max_tokens=1500, counter=COUNTER)
    none = shortened(entry, max_tokens=120, counter=COUNTER)
    kinds = [[block["type"] for block in piece.message.content] for piece in (both, one, none)]
    assert kinds == [["text", "image", "image"], ["text", "text", "image"], ["text", "text", "text"]]
    assert all("What is on these?" in str(piece.message.content) for piece in (both, one, none))
    assert [piece.tokens <= most for piece, most in ((both, 2600), (one, 1500), (none, 120))] == [True] * 3


_LONG = "The shed costs 900 euros. " * 400


@pytest.mark.parametrize(
    "block",
    [
        {"type": "search_result", "source": "u", "title": "t", "content": [{"type": "text", "text": _LONG}]},
        {"type": "json", "json": {"found": _LONG}},
        {"type": "file", "source_type": "text", "text": _LONG, "mime_type": "text/plain"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": _LONG}},
    ],
    ids=lambda block: block["type"],
)
def test_what_stands_in_a_block_that_cannot_be_cut_becomes_a_text_that_can(block: dict[str, Any]) -> None:
    entry = entry_of(ToolMessage([block], tool_call_id="c", id="found"))
    cut = shortened(entry, max_tokens=300, counter=COUNTER)
    assert 200 < cut.tokens <= 300
    assert "The shed costs 900 euros." in cut.message.text
    assert shortened(entry, max_tokens=entry.tokens, counter=COUNTER).message.content == [block]


def test_a_providers_own_call_and_its_result_become_texts_together() -> None:
    said = {"type": "text", "text": "It is 900."}
    call = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "shed"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"title": _LONG}]}
    cut = shortened(entry_of(AIMessage([call, found, said], id="a")), max_tokens=300, counter=COUNTER)
    assert cut.tokens <= 300
    kinds = [one["type"] for one in cut.message.content if isinstance(one, dict)]
    assert set(kinds) == {"text"}
    assert cut.message.content[-1] == said


@pytest.mark.parametrize(
    "args",
    [
        {"rows": [[number, number * 7, number * 11] for number in range(900)]},
        {"words": ["shed"] * 3000},
        {f"field_{number}": number for number in range(900)},
    ],
    ids=["numbers", "words", "keys"],
)
def test_arguments_without_a_long_text_become_one_that_is_cut(args: dict[str, Any]) -> None:
    block = {"type": "tool_use", "id": "c", "name": "write", "input": args}
    short = {"name": "look", "args": {"order": 5}, "id": "d"}
    made = [{"name": "write", "args": args, "id": "c"}, short]
    message = AIMessage([{"type": "text", "text": "I write."}, block], tool_calls=made, id="m1")
    cut = shortened(entry_of(message), max_tokens=300, counter=COUNTER).message
    assert isinstance(cut, AIMessage)
    assert 150 < COUNTER.count_message(cut) <= 300
    assert "tokens left out" in cut.tool_calls[0]["args"]["shortened_arguments"]
    assert cut.tool_calls[1]["args"] == short["args"]
    assert cut.content == [{"type": "text", "text": "I write."}, {**block, "input": cut.tool_calls[0]["args"]}]


def test_arguments_that_are_no_json_are_cut_too() -> None:
    wrong = {"name": "write", "args": '{"text": "' + _LONG, "id": "c", "error": "cut off", "type": "invalid_tool_call"}
    cut = shortened(entry_of(AIMessage("", invalid_tool_calls=[wrong])), max_tokens=300, counter=COUNTER).message
    assert isinstance(cut, AIMessage)
    assert 150 < COUNTER.count_message(cut) <= 300
    assert str(cut.invalid_tool_calls[0]["args"]).startswith('{"text": "The shed')


@pytest.mark.parametrize("repeated", [False, True])
def test_a_call_from_before_there_were_tool_calls_is_cut(*, repeated: bool) -> None:
    args = {"text": _LONG}
    calls = [{"name": "write", "args": args, "id": "c"}] if repeated else []
    legacy = {"function_call": {"name": "write", "arguments": json.dumps(args)}, "kept": True}
    message = AIMessage("I write.", tool_calls=calls, additional_kwargs=legacy)
    cut = shortened(entry_of(message), max_tokens=300, counter=COUNTER).message
    assert 150 < COUNTER.count_message(cut) <= 300
    assert cut.additional_kwargs == {"kept": True}
    assert "The shed" in text_of(cut)


def test_reasoning_beside_the_content_leaves_before_the_words_do() -> None:
    said = AIMessage("The shed costs 900 euros.", additional_kwargs={"reasoning_content": _LONG, "kept": True})
    cut = shortened(entry_of(said), max_tokens=300, counter=COUNTER).message
    assert (cut.content, cut.additional_kwargs) == (said.content, {"kept": True})


def test_texts_that_are_too_many_are_shown_as_one() -> None:
    pages = [{"type": "text", "text": f"Page {number} says this and that."} for number in range(900)]
    cut = shortened(entry_of(HumanMessage(pages)), max_tokens=300, counter=COUNTER)
    assert 150 < cut.tokens <= 300
    assert cut.message.text.startswith("Page 0 says this and that.\nPage 1 says")
    assert cut.message.text.endswith("Page 899 says this and that.")
