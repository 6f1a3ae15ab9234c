"""Counts of texts that were counted before: a request shows most of what the one before it showed.

Kept under a digest, so that no word stays in memory on our account, and in two generations: when the younger one is
full, the older one goes. Neither takes a lock: a count that is lost in a race is made again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.models.message_counting import FramedCounter, framed_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.protocols import TokenCounter

_LEAST_CHARS = 64
"""A shorter text is counted as fast as it is looked up."""
_GENERATION = 8192
"""Counts in each of the two generations: together at most some 2 MB."""


class RememberedCounts:
    """A token counter that counts a text once while it remembers it."""

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self._is_framed = isinstance(counter, FramedCounter) and (
            type(counter).count_message is FramedCounter.count_message
        )
        self._young: dict[bytes, int] = {}
        self._old: dict[bytes, int] = {}

    @property
    def fingerprint(self) -> str:
        """Names the way of counting."""
        return self.counter.fingerprint

    def count_text(self, text: str) -> int:
        """Tokens of a bare text."""
        if len(text) < _LEAST_CHARS:
            return self.counter.count_text(text)
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                found = int(self.counter.count_text(text))
            if len(self._young) >= _GENERATION:
                self._old, self._young = self._young, {}
            self._young[key] = found
        return found

    def count_message(self, message: BaseMessage) -> int:
        """Tokens of a message with its framing."""
        return framed_tokens(message, self.count_text) if self._is_framed else self.counter.count_message(message)

    def count_tools(self, tools: Sequence[Any]) -> int:
        """Tokens of tool schemas."""
        return self.counter.count_tools(tools)

    def clear(self) -> None:
        """Remember nothing any longer."""
        self._young, self._old = {}, {}

    def __len__(self) -> int:
        """How many counts are remembered."""
        return len(self._young) + len(self._old)
