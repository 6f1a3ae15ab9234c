"""Tool calls whose arguments are too long to show: their long texts stand there head and tail.

An agent that writes a file puts the file into its call. Nothing else in such a message can give way.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage

from langchain_tiered_memory.text.truncation import head_and_tail, water_level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from langchain_core.messages import BaseMessage

_LEAST_TOKENS = 24
"""A text shorter than this is never cut: its pointer would take as much."""


def with_shorter_calls(
    message: BaseMessage, *, excess_tokens: int, count: Callable[[str], int], pointer: str
) -> BaseMessage:
    """`message` with `excess_tokens` less in the arguments of its calls, where they have so much to give.

    Names, ids, keys and everything that is no long text stay. What a provider's own blocks repeat of the calls is cut
    alike.
    """
    if not isinstance(message, AIMessage) or not message.tool_calls or excess_tokens <= 0:
        return message
    long = [text for call in message.tool_calls for text in _texts(call["args"]) if count(text) > _LEAST_TOKENS]
    sizes = [count(text) for text in long]
    level = max(water_level(sizes, sum(sizes) - excess_tokens), _LEAST_TOKENS)

    def cut(text: str) -> str:
        return head_and_tail(text, max_tokens=level, count=count, pointer=pointer)

    calls = [{**call, "args": _walked(call["args"], cut)} for call in message.tool_calls]
    by_id = {call["id"]: call["args"] for call in calls}
    kwargs = {key: value for key, value in message.additional_kwargs.items() if key != "tool_calls"}
    content = message.content
    if isinstance(content, list):
        content = [_block(block, by_id) if isinstance(block, dict) else block for block in content]
    return message.model_copy(update={"tool_calls": calls, "additional_kwargs": kwargs, "content": content})


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _walked(value: Any, cut: Callable[[str], str]) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return cut(value)
    if isinstance(value, dict):
        return {key: _walked(one, cut) for key, one in value.items()}
    if isinstance(value, list):
        return [_walked(one, cut) for one in value]
    return value


def _block(block: dict[str, Any], by_id: dict[str | None, Any]) -> dict[str, Any]:
    """A provider's own block of a call, with the arguments that the call has now."""
    args = by_id.get(block.get("call_id") or block.get("id"))
    if args is None:
        return block
    if block.get("type") == "tool_use":
        return {**block, "input": args}
    if block.get("type") == "tool_call":
        return {**block, "args": args}
    if block.get("type") == "function_call":
        return {**block, "arguments": json.dumps(args)}
    return block
