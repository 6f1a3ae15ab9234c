"""Mends ids, names and arguments of the calls that a message makes, so that every provider takes them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.messages.content_blocks import CALL_TYPES, call_id_in, compact_json, requested_calls
from langchain_tiered_memory.messages.validity.message_repairs import blocks_of

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

    from langchain_tiered_memory.messages.content_blocks import RequestedCall

VALID_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""What OpenAI's chat completions (40 characters at most), its responses, Anthropic, Google and Bedrock (64) all take.
Mistral wants exactly 9, which its integration sees to."""
VALID_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_A_TOOL_NAME = re.compile(r"[^A-Za-z0-9_-]")


def with_valid_calls(message: AIMessage, taken: set[str]) -> tuple[AIMessage, dict[str, str]]:
    """`message` with calls that every provider takes, and the ids that had to change (old to new).

    Invalid calls become calls with their raw arguments under `invalid_arguments`; calls that stand in the content only
    are added; names and ids get characters that all providers take; an id in `taken` gets another, for Anthropic wants
    them unique in the whole request.
    """
    calls = requested_calls(message)
    legacy = _legacy_call(message)
    if not calls and legacy is None:
        return message, {}
    used = set(taken)
    renamed: dict[str, str] = {}
    made: list[dict[str, Any]] = []
    for number, call in enumerate(calls):
        new_id = _valid_id(call, number, used)
        used.add(new_id)
        if call.id is not None and call.id != new_id:
            renamed.setdefault(call.id, new_id)
        args = call.args if call.raw is None else {"invalid_arguments": call.raw}
        made.append({"name": valid_tool_name(call.name), "args": args, "id": new_id, "type": "tool_call"})
    same = not message.invalid_tool_calls and [_identity(call) for call in message.tool_calls] == [
        _identity(call) for call in made
    ]
    if same and not message.additional_kwargs.get("function_call"):
        return message, {}
    update: dict[str, Any] = {
        "tool_calls": made,
        "invalid_tool_calls": [],
        "content": [_renamed_block(block, renamed) for block in message.content]
        if isinstance(message.content, list)
        else message.content,
        # Integrations fall back to the raw calls in here, which still have the old ids.
        "additional_kwargs": {
            key: value for key, value in message.additional_kwargs.items() if key not in {"tool_calls", "function_call"}
        },
    }
    if legacy is not None:
        update["content"] = [*blocks_of(update["content"]), {"type": "text", "text": legacy}]
    return message.model_copy(update=update), renamed


def _legacy_call(message: AIMessage) -> str | None:
    """A call from before there were tool calls. Beside tool calls it only repeats one of them."""
    call = message.additional_kwargs.get("function_call")
    if not isinstance(call, Mapping) or requested_calls(message):
        return None
    return f"{call.get('name')}({call.get('arguments')})"


def _valid_id(call: RequestedCall, number: int, used: set[str]) -> str:
    if call.id and VALID_CALL_ID.fullmatch(call.id) and call.id not in used:
        return call.id
    seed = f"{call.id or ''}\n{number}\n{call.name}\n{compact_json(call.args)}"
    for attempt in range(len(used) + 1):
        digest = hashlib.sha256(f"{seed}\n{attempt}".encode("utf-8", "surrogatepass")).hexdigest()
        if f"call_{digest[:24]}" not in used:
            break
    return f"call_{digest[:24]}"


def valid_tool_name(name: str) -> str:
    """The name of a tool with characters, and as many, as every provider takes."""
    return name if VALID_TOOL_NAME.fullmatch(name) else _NOT_IN_A_TOOL_NAME.sub("_", name[:64]) or "unknown_tool"


def _identity(call: Mapping[str, Any]) -> tuple[Any, ...]:
    return (call.get("id"), call.get("name"))


def _renamed_block(block: str | dict[Any, Any], renamed: Mapping[str, str]) -> str | dict[Any, Any]:
    new_id = renamed.get(call_id_in(block) or "")
    if new_id is None or not isinstance(block, dict) or block.get("type") not in CALL_TYPES:
        return block
    return {**block, "call_id" if block.get("call_id") else "id": new_id}
