"""A server on loopback that speaks the part of Anthropic's Messages API that an agent uses, and keeps what it was sent.

It refuses what the real one refuses of prompt caching: more than four breakpoints, and one on an empty text. Asked to
(`context_management` with a `compact_20260112` edit), it compacts as the real one does: it passes over what stands
before the last compaction block, and where the rest has more tokens than the trigger it begins its answer with another
one. A block that is not as it gave it is refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.json_server import JsonServer, Streamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_BREAKPOINTS = 4
_CHARS_PER_TOKEN = 4
_DEFAULT_TRIGGER = 150_000
_PIECE_CHARS = 12


def effective_blocks(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of the messages that the model is shown: those from the last compaction on."""
    blocks = [one for one in blocks_of(body) if "role" in one]
    starts = [at for at, one in enumerate(blocks) if one.get("type") == "compaction" and one.get("content")]
    return blocks[starts[-1] :] if starts else blocks


def _trigger_of(body: dict[str, Any]) -> int | None:
    edits = (body.get("context_management") or {}).get("edits") or ()
    wanted = [one for one in edits if one["type"] == "compact_20260112"]
    return int((wanted[0].get("trigger") or {}).get("value", _DEFAULT_TRIGGER)) if wanted else None


def blocks_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """All blocks of a request in the order in which it is cached: tools, system prompt, messages."""
    found = [dict(one) for one in body.get("tools") or ()]
    system = body.get("system") or []
    found += [{"type": "text", "text": system}] if isinstance(system, str) else [dict(one) for one in system]
    for message in body["messages"]:
        content = message["content"]
        said = [{"type": "text", "text": content}] if isinstance(content, str) else content
        found += [{"role": message["role"], **one} for one in said]
    return found


def _events(said: dict[str, Any]) -> Iterator[str]:
    """A message as the events of a stream: each block empty, then what it holds in pieces."""

    def event(kind: str, **what: Any) -> str:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **what})}\n\n"

    yield event("message_start", message={**said, "content": [], "stop_reason": None})
    for index, block in enumerate(said["content"]):
        empty, deltas = _in_pieces(block)
        yield event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    stop = {"stop_reason": said["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=stop, usage=said["usage"])
    yield event("message_stop")


def _in_pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    def cut(text: str) -> list[str]:
        return [text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS)]

    match block["type"]:
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in cut(block["text"])]
        case "tool_use":
            pieces = cut(json.dumps(block["input"]))
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    whole = {key: one for key, one in block.items() if key != "type"}
    return {**block, **dict.fromkeys(whole)}, [{"type": f"{block['type']}_delta", **whole}]


class AnthropicServer(JsonServer):
    """The server.

    Args:
        answer: Content blocks for a request's body.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
        super().__init__()
        self.compactions: list[dict[str, Any]] = []
        """The compaction blocks that it gave."""
        self._answer = answer

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any] | Streamed]:
        """What the API would say, in events where it is asked to stream."""
        fault = self._fault_in(body)
        if fault is not None:
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": fault}}
        content = self._answer(body)
        trigger, shown = _trigger_of(body), effective_blocks(body)
        if trigger is not None and len(json.dumps(shown)) > trigger * _CHARS_PER_TOKEN:
            number = len(self.compactions) + 1
            block = {
                "type": "compaction",
                "content": f"<summary>Compaction {number} of {len(shown)} blocks.</summary>",
                "encrypted_content": f"sealed+{number}/" + "q" * 300,
            }
            self.compactions.append(block)
            content = [block, *content]
        calls = any(one["type"] == "tool_use" for one in content)
        said = {
            "id": f"msg_{len(self.bodies)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if calls else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        return 200, Streamed(kind="text/event-stream", pieces=_events(said)) if body.get("stream") else said

    def _fault_in(self, body: dict[str, Any]) -> str | None:
        marked = [one for one in blocks_of(body) if "cache_control" in one]
        if len(marked) > _MOST_BREAKPOINTS or any(one.get("text") == "" for one in marked):
            return "cache_control: too many, or on an empty text"
        for block in blocks_of(body):
            given = {key: one for key, one in block.items() if key not in {"role", "cache_control"} and one is not None}
            if block.get("type") == "compaction" and given not in self.compactions:
                return "compaction: not as it was returned"
        return None
