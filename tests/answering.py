"""A stand-in for a model that answers from what it is shown: it tells whether a request holds what was said before."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_tiered_memory.models.token_counters import encoding_file

KNOWN = {
    "And which order was that?": "4711",
    "What is my order number?": "4711",
    "What is my name?": "Bob",
    "Which wood did I choose?": "oak",
    "What do I grow?": "beans",
    "What is my boat called?": "Petrel",
    "What is wrong in hall 4?": "jams",
    "Where do I sail?": "Hollin",
    "What does the quay need?": "oak",
}
"""Questions of papers and examples, and the word that answers each: it was said earlier in the same conversation."""


def text_of(message: dict[str, Any]) -> str:
    """What a message of OpenAI's, Anthropic's or Ollama's form says."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def answered(body: dict[str, Any]) -> str:
    """The word that the last message asks for, where the request has it."""
    texts = [text_of(one) for one in body["messages"]]
    wanted = next((word for question, word in KNOWN.items() if question in texts[-1]), None)
    if wanted is None:
        return "Hello, Bob." if "I am Bob." in texts[-1] else f"Noted: {texts[-1][:60]}"
    return f"It is {wanted}." if any(wanted in one for one in texts) else "I do not know."


def with_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain's own memories count with an encoding of tiktoken's, which must be at hand."""
    found = encoding_file("o200k_base")
    if found is None:
        pytest.skip("no encoding at hand")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(found.parent))
