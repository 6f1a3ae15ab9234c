"""A server on loopback that speaks the part of OpenAI's Responses API that an agent uses, and keeps what it was sent.

Asked to (`context_management` with a `compact_threshold`), it compacts as the real one does: what stands before the
last compaction item counts no more, and where the rest has more tokens than the threshold it puts another item before
its answer. An item that is not as it gave it is refused, and so is a result without its call.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.json_server import JsonServer

if TYPE_CHECKING:
    from collections.abc import Callable

_CHARS_PER_TOKEN = 4


def effective_items(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The items of the input that the model is shown: those from the last compaction on."""
    items = [one for one in body["input"] if one.get("role") not in {"system", "developer"}]
    starts = [at for at, one in enumerate(items) if one.get("type") == "compaction"]
    return items[starts[-1] :] if starts else items


def _fault_in(body: dict[str, Any], given: list[dict[str, Any]]) -> str | None:
    items = body["input"]
    if any(one not in given for one in items if one.get("type") == "compaction"):
        return "a compaction item is not as it was returned"
    called: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            called.add(item["call_id"])
        if item.get("type") == "function_call_output" and item["call_id"] not in called:
            return f"No tool call found for function call output with call_id {item['call_id']}."
    return None


class ResponsesServer(JsonServer):
    """The server.

    Args:
        answer: Output items for a request's body.
    """

    path = "/v1"

    def __init__(self, answer: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> None:
        super().__init__()
        self.compactions: list[dict[str, Any]] = []
        """The compaction items that it gave."""
        self._answer = answer

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """What the API would say."""
        fault = _fault_in(body, self.compactions)
        if fault is not None:
            return 400, {"error": {"message": fault, "type": "invalid_request_error"}}
        output = self._answer(body)
        asked = [one["compact_threshold"] for one in body.get("context_management") or ()]
        if asked and len(json.dumps(effective_items(body))) > asked[0] * _CHARS_PER_TOKEN:
            number = len(self.compactions) + 1
            item = {"type": "compaction", "id": f"cmp_{number}", "encrypted_content": f"sealed{number}" + "q" * 600}
            self.compactions.append(item)
            output = [item, *output]
        return 200, _response(body, output, number=len(self.bodies))


def _response(body: dict[str, Any], output: list[dict[str, Any]], *, number: int) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
        },
    }


def said(text: str, *, number: int) -> dict[str, Any]:
    """An output item with a text."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}


def called(name: str, arguments: dict[str, Any], *, number: int) -> dict[str, Any]:
    """An output item that calls a tool."""
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": name,
        "arguments": json.dumps(arguments),
        "status": "completed",
    }
