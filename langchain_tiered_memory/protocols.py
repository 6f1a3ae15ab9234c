"""The protocol of token counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.types.arguments import Tool


@runtime_checkable
class TokenCounter(Protocol):
    """Counts tokens. It must not use the network or raise on odd text, and must count equal input equally."""

    @property
    def fingerprint(self) -> str:
        """Identifies the way of counting. It is stored with the counts, so that another counter is noticed."""
        ...

    def count_text(self, text: str) -> int:
        """Return the tokens of a text."""
        ...

    def count_message(self, message: BaseMessage) -> int:
        """Return the tokens of a message as billed: content, calls, name and framing. Images have a fixed cost."""
        ...

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Return the tokens of tool schemas: LangChain tools, pydantic classes, functions or OpenAI-style dicts."""
        ...
