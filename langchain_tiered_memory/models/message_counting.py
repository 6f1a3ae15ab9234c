"""Counting tokens: how a provider frames messages and tools, and the estimate for where no tokenizer is at hand.

Framing figures are OpenAI's (Cookbook, "How to count tokens with tiktoken"): 3 tokens around each message, the role, 1
more for a name, and 3 that prime the answer. Media have a fixed cost, whatever their bytes:

| part | tokens | source |
|---|---|---|
| image | 1,105 | OpenAI's vision guide: 85 + 170 for each of at most 6 tiles; Anthropic bills up to about 1,600 |
| image, `detail: low` | 85 | the same |
| audio | 1,000 | half a minute at Gemini's 32 tokens per second |
| video | 8,000 | half a minute at Gemini's 263 tokens per second |
| file | 3,000 | the upper end of what Anthropic names for one page of a PDF |

A provider's compaction counts as its summary does; one that is encrypted, as a text of as many bytes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.messages.content_blocks import MEDIA, compact_json, parts_of, requested_calls
from langchain_tiered_memory.messages.tool_schemas import schema_text
from langchain_tiered_memory.models.calibration import Calibration
from langchain_tiered_memory.models.estimation import estimated_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.messages.content_blocks import Part
    from langchain_tiered_memory.models.estimation import EncodingName
    from langchain_tiered_memory.protocols import TokenCounter

__all__ = ["PRIMING_TOKENS", "Calibration", "EstimatingCounter", "FramedCounter", "framed_tokens", "request_tokens"]

MESSAGE_TOKENS = 4
"""Around each message, its role included."""
NAME_TOKENS = 1
CALL_TOKENS = 8
"""Around each tool call; its name and arguments come on top."""
TOOL_TOKENS = 8
"""Around each tool schema."""
TOOLS_TOKENS = 12
"""Once, where there are tools at all."""
PRIMING_TOKENS = 3
"""Once per request: what makes the model answer."""
IMAGE_TOKENS = 1105
LOW_DETAIL_IMAGE_TOKENS = 85
ENCRYPTED_CHARS_PER_TOKEN = 16 / 3
"""Base64 has four characters for three bytes, and a token of prose is about four bytes."""
MEDIA_TOKENS = {"image": IMAGE_TOKENS, "audio": 1000, "video": 8000, "file": 3000}

_REMEMBERED_TEXTS = 512


class FramedCounter(ABC):
    """Counts messages and tools, given a way to count a bare text."""

    def __init__(self) -> None:
        self._tools: dict[str, int] = {}

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Names the way of counting; kept with the counts, so that another counter is noticed."""

    @abstractmethod
    def count_text(self, text: str) -> int:
        """Tokens of a bare text."""

    def count_message(self, message: BaseMessage) -> int:
        """Tokens of `message` with its framing: content, reasoning, calls and name; media at their fixed cost.

        Artifacts, ids and metadata are not sent, and do not count.
        """
        return framed_tokens(message, self.count_text)

    def count_tools(self, tools: Sequence[Any]) -> int:
        """Tokens of tool schemas, counted as JSON: somewhat more than OpenAI's own notation takes, never less.

        Equal tools are counted once, whichever objects they are.
        """
        if not tools:
            return 0
        return TOOLS_TOKENS + sum(TOOL_TOKENS + self._tool(schema_text(tool)) for tool in tools)

    def _tool(self, text: str) -> int:
        count = self._tools.get(text)
        if count is None:
            if len(self._tools) >= _REMEMBERED_TEXTS:
                self._tools.clear()
            count = self._tools[text] = self.count_text(text)
        return count


class EstimatingCounter(FramedCounter):
    """Estimates from the scripts that a text is written in, without any tokenizer. See `estimation` for its error.

    Args:
        encoding: Whose counts to come close to.
    """

    def __init__(self, encoding: EncodingName = "o200k_base") -> None:
        super().__init__()
        self._encoding_name: EncodingName = encoding

    @property
    def fingerprint(self) -> str:
        """Changes with the rates."""
        return f"estimate/{self._encoding_name}/1"

    def count_text(self, text: str) -> int:
        """Tokens of a bare text, about right for prose, code and most scripts. Never raises."""
        return estimated_tokens(text, self._encoding_name)


def framed_tokens(message: BaseMessage, count_text: Callable[[str], int]) -> int:
    """Tokens of `message` by way of a text counter, framing included."""
    tokens = MESSAGE_TOKENS + sum(_part_tokens(part, count_text) for part in parts_of(message.content))
    for call in requested_calls(message):
        arguments = call.raw if call.raw is not None else compact_json(call.args)
        tokens += CALL_TOKENS + count_text(call.name) + count_text(arguments)
    for key in ("reasoning_content", "function_call"):
        sent = message.additional_kwargs.get(key)
        if sent:
            tokens += count_text(sent if isinstance(sent, str) else compact_json(sent))
    if message.name:
        tokens += NAME_TOKENS + count_text(message.name)
    return tokens


def request_tokens(counter: TokenCounter, messages: Iterable[BaseMessage], *, tools: Sequence[Any] = ()) -> int:
    """Raw tokens of a whole request: messages (system prompt among them), tool schemas and what primes the answer."""
    return PRIMING_TOKENS + counter.count_tools(tools) + sum(counter.count_message(message) for message in messages)


def _part_tokens(part: Part, count_text: Callable[[str], int]) -> int:
    if part.kind == "call":
        return 0  # counted with the message's calls
    if part.kind in MEDIA:
        return LOW_DETAIL_IMAGE_TOKENS if part.low_detail else MEDIA_TOKENS[part.kind]
    if part.kind == "compaction":
        return count_text(part.sent) + math.ceil(part.encrypted_chars / ENCRYPTED_CHARS_PER_TOKEN)
    return count_text(part.text)
