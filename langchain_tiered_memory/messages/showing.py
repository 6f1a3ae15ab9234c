"""Entries and calls shown within a room (whole where they fit, else head and tail), or stood in for.

An agent that writes a file puts the file into its call, and nothing else in such a message can give way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.messages.content_blocks import call_id_in, compact_json, texts_in, with_texts
from langchain_tiered_memory.text.truncation import first_chars, head_and_tail, text_in, water_level

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.types.records import Entry


QUOTE_TOKENS = 4
"""A quote's speaker and line break."""
LEAST_TOKENS = 24
"""A quote shorter than this says nothing (rather fewer of them), and a cut text has no room beside its pointer."""
_TOLD = "shortened_arguments"
"""Stands for the arguments of a call that are shown as a text."""
_QUOTED_CHARS = 400
"""Of the text that was derived from it before it was damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes:
    """What is quoted, and what is not."""

    texts: tuple[tuple[Entry, str], ...]
    """In the order they came."""
    left_out: tuple[Entry, ...]

    @property
    def whole(self) -> tuple[Entry, ...]:
        """Entries quoted whole."""
        return tuple(entry for entry, text in self.texts if text == entry.text)

    @property
    def cut(self) -> tuple[Entry, ...]:
        """Entries of which head and tail are quoted."""
        return tuple(entry for entry, text in self.texts if text != entry.text)


def name_for_tools(entry: Entry) -> str:
    """By which the tools `expand` and `pin` find a message: its number, for ids of one maker may begin alike.

    An id that is a number itself is found before the message of that number.
    """
    return entry.id if entry.id.isdigit() else str(entry.seq)


def pointer_to(entry: Entry, *, expands: bool) -> str:
    """How to get at the whole of a message that is shown in part; empty where no tool of who reads it `expands`."""
    return f'expand "{name_for_tools(entry)}" for the whole' if expands else ""


def quotes_within(entries: Sequence[Entry], *, room: int, count: Callable[[str], int], expands: bool = False) -> Quotes:
    """Quote `entries` within `room` tokens, as much of each as there is room for; at least the newest one a little."""
    kept = list(entries)
    while True:
        level = water_level([entry.tokens for entry in kept], max(room - QUOTE_TOKENS * len(kept), 0))
        short = level < min(LEAST_TOKENS, max((entry.tokens for entry in kept), default=0))
        if len(kept) <= 1 or not short:
            break
        kept.pop(0)
    texts = []
    for entry in kept:
        if entry.tokens <= level:
            texts.append((entry, entry.text))
        else:
            most = max(level, LEAST_TOKENS)
            pointer = pointer_to(entry, expands=expands)
            texts.append((entry, head_and_tail(entry.text, max_tokens=most, count=count, pointer=pointer)))
    return Quotes(
        texts=tuple((entry, text) for entry, text in texts if text),
        left_out=tuple(entry for entry in entries if entry not in kept),
    )


def message_or_stand_in(entry: Entry) -> tuple[BaseMessage, str | None]:
    """The stored message, or one that says that it is damaged; and why, where it is."""
    try:
        return decode(entry.payload), None
    except UnknownMessageError as error:
        return _stand_in(entry), str(error)


def _stand_in(entry: Entry) -> BaseMessage:
    text = f"[message {entry.id} is damaged in the memory's database and cannot be shown as it was"
    if entry.text:
        text += f"; what is known of it: {first_chars(entry.text, _QUOTED_CHARS)}"
    text += "]"
    if entry.role == "tool" and entry.answers:
        return ToolMessage(text, tool_call_id=entry.answers, id=entry.id)
    if entry.role == "assistant":
        return AIMessage(text, id=entry.id)
    return SystemMessage(text, id=entry.id) if entry.role == "system" else HumanMessage(text, id=entry.id)


def with_shorter_calls(
    message: BaseMessage, *, excess_tokens: int, count: Callable[[str], int], pointer: str
) -> BaseMessage:
    """`message` with `excess_tokens` less in the arguments of its calls, where they have so much to give.

    Names, ids, keys and everything that is no long text stay. What a provider's own blocks repeat of the calls is cut
    alike.
    """
    if not isinstance(message, AIMessage) or not message.tool_calls or excess_tokens <= 0:
        return message

    def as_sent(text: str) -> int:
        return count(compact_json(text))  # a line break is two characters there

    sizes = [as_sent(text) for call in message.tool_calls for text in texts_in(call["args"])]
    sizes = [size for size in sizes if size > LEAST_TOKENS]
    level = max(water_level(sizes, sum(sizes) - excess_tokens), LEAST_TOKENS)

    def cut(text: str) -> str:
        return head_and_tail(text, max_tokens=level, count=as_sent, pointer=pointer)

    calls = [{**call, "args": with_texts(call["args"], cut)} for call in message.tool_calls]
    return _with_calls(message, calls)


def with_told_calls(
    message: BaseMessage, *, excess_tokens: int, count: Callable[[str], int], pointer: str
) -> BaseMessage:
    """As `with_shorter_calls`, where no long text can give way: numbers, many short texts, JSON that was cut off.

    The arguments of the largest calls become their JSON as one text, and that is cut.
    """
    if not isinstance(message, AIMessage):
        return message

    def as_sent(text: str) -> int:
        return count(compact_json({_TOLD: text}))

    whole = [compact_json(call["args"]) for call in message.tool_calls]
    raw = [str(call.get("args") or "") for call in message.invalid_tool_calls]
    sizes = [as_sent(text) for text in (*whole, *raw)]
    level = max(water_level(sizes, sum(map(count, (*whole, *raw))) - excess_tokens), LEAST_TOKENS)

    def cut(text: str) -> str:
        return head_and_tail(text, max_tokens=level, count=as_sent, pointer=pointer)

    calls = [
        call if as_sent(text) <= level else {**call, "args": {_TOLD: cut(text)}}
        for call, text in zip(message.tool_calls, whole, strict=True)
    ]
    invalid = [{**call, "args": cut(text)} for call, text in zip(message.invalid_tool_calls, raw, strict=True)]
    return _with_calls(message, calls).model_copy(update={"invalid_tool_calls": invalid})


def with_joined_texts(message: BaseMessage, *, room: int) -> BaseMessage:
    """`message` with all its texts as one, in the place of the first, where they are too many to show some of each."""
    content = message.content
    places = [at for at, block in enumerate(content) if text_in(block)] if isinstance(content, list) else []
    if room >= LEAST_TOKENS * len(places):
        return message
    joined = {"type": "text", "text": "\n".join(text_in(content[at]) for at in places)}
    kept = [joined if at == places[0] else block for at, block in enumerate(content) if at not in places[1:]]
    return message.model_copy(update={"content": kept})


def _with_calls(message: AIMessage, calls: Sequence[Any]) -> AIMessage:
    """`message` with these calls, also where its content repeats them."""
    by_id = {call["id"]: call["args"] for call in calls}
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key != "tool_calls"}
    content = message.content
    if isinstance(content, list):
        content = [_block(block, by_id) if isinstance(block, dict) else block for block in content]
    return message.model_copy(update={"tool_calls": calls, "additional_kwargs": kwargs, "content": content})


def _block(block: dict[str, Any], by_id: dict[str | None, Any]) -> dict[str, Any]:
    """A provider's own block of a call, with the arguments that the call has now."""
    args = by_id.get(call_id_in(block))
    if args is None:
        return block
    if block.get("type") == "tool_use":
        return {**block, "input": args}
    if block.get("type") == "tool_call":
        return {**block, "args": args}
    if block.get("type") == "function_call":
        return {**block, "arguments": json.dumps(args)}
    return block
