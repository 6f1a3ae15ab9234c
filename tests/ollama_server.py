"""A server on loopback that speaks the part of Ollama's API that a chat and its embeddings use."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from tests.json_server import JsonServer, Streamed

if TYPE_CHECKING:
    from collections.abc import Callable

_DIMENSIONS = 32
_WORDS = re.compile(r"\S+\s*")


def vector_of(text: str) -> list[float]:
    """A vector in which texts that share words are near each other."""
    found = [0.0] * _DIMENSIONS
    for word in text.lower().split():
        found[sum(word.encode()) % _DIMENSIONS] += 1.0
    length = math.sqrt(sum(one * one for one in found)) or 1.0
    return [one / length for one in found]


class OllamaServer(JsonServer):
    """The server.

    Args:
        answer: What the model says to a request's body, or the calls that it makes, as (name, arguments).
    """

    def __init__(self, answer: Callable[[dict[str, Any]], str | list[tuple[str, dict[str, Any]]]]) -> None:
        super().__init__()
        self._answer = answer

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any] | Streamed]:
        """The vectors of what is to be embedded, or the answer: in lines unless it is asked for whole."""
        model = body["model"]
        if "input" in body:
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            return 200, {"model": model, "embeddings": [vector_of(text) for text in texts]}
        if not body.get("messages"):
            return 400, {"error": "missing messages"}
        said = self._answer(body)
        is_text = isinstance(said, str)
        calls = [] if is_text else [{"function": {"name": name, "arguments": given}} for name, given in said]
        parts = _WORDS.findall(said) if is_text and body.get("stream", True) else [said if is_text else ""]
        head = {"model": model, "created_at": "2026-03-03T12:00:00Z"}
        lines = [
            {**head, "message": {"role": "assistant", "content": part, "tool_calls": calls}, "done": False}
            for part in parts
        ]
        end = {"done": True, "done_reason": "stop", "prompt_eval_count": 10, "eval_count": 5}
        if not body.get("stream", True):
            return 200, {**lines[0], **end}
        lines.append({**head, "message": {"role": "assistant", "content": ""}, **end})
        return 200, Streamed(kind="application/x-ndjson", pieces=(f"{json.dumps(line)}\n" for line in lines))
