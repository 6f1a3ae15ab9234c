"""What every provider takes, stated as a check; it shares no code with `make_valid`, so that each tests the other."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_NAME_CHARS = 64
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_content")
_CALLS = ("tool_use", "tool_call", "function_call")


def check_valid(messages: Sequence[BaseMessage], *, complete: bool = False) -> list[str]:
    """The violations in an outgoing list, each with the place it was found at; empty where every provider takes it.

    Args:
        messages: The list, system message included.
        complete: Whether it is sent as it is, so that the user or a tool must have the last word.
    """
    found = [f"{at}: {fault}" for at, message in enumerate(messages) for fault in _alone(message)]
    found += _order(messages)
    found += _pairs(messages)
    if complete and not (messages and isinstance(messages[-1], HumanMessage | ToolMessage)):
        found.append("the last message is neither the user's nor a tool result")
    return found


def _alone(message: BaseMessage) -> Iterator[str]:
    if not isinstance(message, SystemMessage | HumanMessage | AIMessage | ToolMessage):
        yield f"a {type(message).__name__} is not for every provider"
        return
    if message.name is not None and not isinstance(message, ToolMessage) and not _is_name(message.name):
        yield f"a message with the name {message.name!r}"
    content = message.content
    for block in content if isinstance(content, list) else ():
        text = block if isinstance(block, str) else block.get("text")
        plain = isinstance(block, str) or block.get("type") in {"text", None}
        if plain and isinstance(text, str) and not text.strip():
            yield "a blank text block"
        if isinstance(block, dict) and block.get("type") == "tool_result":
            yield "a tool result in the content"
    if isinstance(message, AIMessage):
        yield from _assistant(message)
    elif not isinstance(message, ToolMessage) and not _has_content(content):
        yield "an empty message"


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _MAX_NAME_CHARS and not any(char.isspace() or char in "<|\\/>" for char in name)


def _has_content(content: object) -> bool:
    if isinstance(content, list):
        return any(not (isinstance(block, dict) and block.get("type") in _THOUGHTS) for block in content)
    return isinstance(content, str) and bool(content.strip())


def _assistant(message: AIMessage) -> Iterator[str]:
    if not message.tool_calls and not _has_content(message.content):
        yield "an empty assistant message"
    if message.invalid_tool_calls:
        yield "invalid tool calls"
    if message.additional_kwargs.get("function_call"):
        yield "a function call of the old kind"
    for call in message.tool_calls:
        if not (call["id"] and _CALL_ID.fullmatch(call["id"])):
            yield f"a call with the id {call['id']!r}"
        if not _TOOL_NAME.fullmatch(call["name"]):
            yield f"a call of the tool {call['name']!r}"
    yield from _assistant_blocks(message)


def _assistant_blocks(message: AIMessage) -> Iterator[str]:
    known = {call["id"] for call in message.tool_calls}
    blocks = message.content if isinstance(message.content, list) else []
    for at, block in enumerate(blocks):
        if not isinstance(block, dict):
            continue
        kind = block.get("type")
        if kind in _CALLS and block.get("name") and (block.get("call_id") or block.get("id")) not in known:
            yield "a call in the content that is none of the message's"
        if kind == "thinking" and not block.get("signature"):
            yield "a thinking block without its signature"
        if kind in _THOUGHTS and at == len(blocks) - 1 and not message.tool_calls:
            yield "reasoning that nothing follows"


def _begins_anew(message: BaseMessage) -> bool:
    """Whether a provider's own summary of what was said before stands in it."""
    content = message.content if isinstance(message, AIMessage) else ""
    found = [block.get("value", block) for block in content if isinstance(block, dict)]
    return any(isinstance(one, dict) and one.get("type") == "compaction" for one in found)


def _order(messages: Sequence[BaseMessage]) -> Iterator[str]:
    if any(isinstance(message, SystemMessage) for message in messages[1:]):
        yield "a system message behind the first place"
    turns = [message for message in messages if not isinstance(message, SystemMessage)]
    if turns and not isinstance(turns[0], HumanMessage) and not _begins_anew(turns[0]):
        yield "the first message is not the user's"
    for before, after in pairwise(turns):
        if isinstance(before, AIMessage) and isinstance(after, AIMessage):
            yield "two assistant messages in a row"


def _pairs(messages: Sequence[BaseMessage]) -> Iterator[str]:
    seen: set[str] = set()
    expected: list[str] = []
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.tool_call_id in expected:
                expected.remove(message.tool_call_id)
            else:
                yield f"{at}: a result that answers no call of the message before it"
            continue
        if expected:
            yield f"{at}: the calls {expected} have no result directly behind them"
        expected = [str(call["id"]) for call in message.tool_calls] if isinstance(message, AIMessage) else []
        if len(set(expected)) < len(expected) or seen.intersection(expected):
            yield f"{at}: a call id occurs twice"
        seen.update(expected)
    if expected:
        yield f"the calls {expected} have no result"
