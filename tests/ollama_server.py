"""A server on loopback that speaks the part of Ollama's API that a chat and its embeddings use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tests.json_server import JsonServer

if TYPE_CHECKING:
    from collections.abc import Callable

_DIMENSIONS = 32


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
        answer: What the model says to a request's body.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], str]) -> None:
        super().__init__()
        self._answer = answer

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """One line of the stream: the whole answer, or the vectors of what is to be embedded."""
        model = body["model"]
        if "input" in body:
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            return 200, {"model": model, "embeddings": [vector_of(text) for text in texts]}
        if not body.get("messages"):
            return 400, {"error": "missing messages"}
        said = {"role": "assistant", "content": self._answer(body)}
        counts = {"prompt_eval_count": 10, "eval_count": 5}
        return 200, {
            "model": model,
            "created_at": "2026-03-03T12:00:00Z",
            "message": said,
            "done": True,
            "done_reason": "stop",
            **counts,
        }
