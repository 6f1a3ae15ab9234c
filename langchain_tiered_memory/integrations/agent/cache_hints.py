"""Tells a provider which part of a request comes again, where it wants to be told before it caches a prompt.

Anthropic caches up to explicit breakpoints, at most four in a request; a request is served from the longest prefix that
ended at one before. OpenAI caches by itself, and sends requests with one `prompt_cache_key` to one machine, where their
prefix is. Source: "Prompt caching" in the documentation of both.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

Provider: TypeAlias = Literal["anthropic", "openai"]

_PROVIDERS: Final[dict[str, Provider]] = {
    "anthropic-chat": "anthropic",
    "openai-chat": "openai",
    "azure-openai-chat": "openai",
}
"""By `_llm_type`: a name, so that neither package has to be installed."""
_CONTROL: Final = "cache_control"
_MARK: Final = {"type": "ephemeral"}
_NOT_MARKED: Final = frozenset({"thinking", "redacted_thinking"})
"""Blocks that Anthropic refuses a breakpoint on."""
_KEY_CHARS: Final = 32
"""Of a digest: OpenAI takes at most 64, and a session's name is nobody else's business."""


def provider_of(model: object) -> Provider | None:
    """Which provider's hints a chat model understands."""
    return _PROVIDERS.get(str(getattr(model, "_llm_type", "")))


def has_breakpoints(parts: Sequence[Any], settings: dict[str, Any]) -> bool:
    """Whether somebody else set breakpoints: in messages, in tools (there in `extras`), or for the whole call."""
    return _CONTROL in settings or any(
        _CONTROL in block for part in parts if part is not None for block in _blocks_of(part)
    )


def _blocks_of(part: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a message, a tool, or a tool's schema
    if isinstance(part, dict):
        return [part]
    content = getattr(part, "content", None)
    blocks = content if isinstance(content, list) else [getattr(part, "extras", None)]
    return [block for block in blocks if isinstance(block, dict)]


def cache_key(session_id: str, track: str) -> str:
    """OpenAI's `prompt_cache_key` for the requests of one conversation."""
    return hashlib.sha256(f"{session_id}\x1f{track}".encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_CHARS]


def with_breakpoints(messages: Sequence[BaseMessage], places: Sequence[int]) -> list[BaseMessage]:
    """Messages with a breakpoint behind those places of the list; one that cannot carry it is left as it is."""
    marked = set(places)
    return [_marked(message) if at in marked else message for at, message in enumerate(messages)]


def with_tool_breakpoint(tools: Sequence[Any]) -> list[Any]:
    """Tools with a breakpoint behind the last one, where that can carry it: `langchain-anthropic` reads `extras`.

    For a request without a system prompt, whose own breakpoint would stand behind the tools, too.
    """
    last = tools[-1] if tools else None
    if last is None or not hasattr(last, "extras") or not hasattr(last, "model_copy"):
        return list(tools)
    return [*tools[:-1], last.model_copy(update={"extras": {**(last.extras or {}), _CONTROL: _MARK}})]


def _marked(message: BaseMessage) -> BaseMessage:
    content: list[Any]
    if isinstance(message.content, str):
        if not message.content.strip():
            return message  # Anthropic refuses a breakpoint on an empty text
        content = [{"type": "text", "text": message.content}]
    else:
        content = list(message.content)
    last = content[-1] if content else None
    block = {"type": "text", "text": last} if isinstance(last, str) else last
    if not isinstance(block, dict) or block.get("type") in _NOT_MARKED or block.get("text") == "":
        return message
    content[-1] = {**block, _CONTROL: _MARK}
    return message.model_copy(update={"content": content})
