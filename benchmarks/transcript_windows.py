"""Simple ways to bound an agent's context, to compare with: windows over the latest messages.

All take messages from the latest back while they fit. None pays for anything but its messages: no system prompt, no
framing of the request, no validity.

- `window`: messages as they are; the first that does not fit ends it.
- `window+stub`: tool results outside the last 10 messages and over 300 tokens are cut to their first 60 tokens.
- `window+2k cap`: every tool result is cut to its first 2,000 tokens.
- `window+paths`: the window, and a line for each path touched so far, paid from the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, ToolMessage

from benchmarks.agent_transcripts import Probe, Transcript, searchable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.protocols import TokenCounter

METHODS = ("window", "window+stub", "window+2k cap", "window+paths")

_STUB_TOKENS = 60
_STUBBED_FROM_TOKENS = 300
_RECENT = 10
_CAP_TOKENS = 2000
_CHARS_PER_TOKEN = 8  # no text has many more; bounds what is looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    text: str
    tokens: int


class Windows:
    """The windows over one transcript.

    Args:
        transcript: The run.
        counter: Of tokens, the same as the memory's.
    """

    def __init__(self, transcript: Transcript, *, counter: TokenCounter) -> None:
        self._touched = transcript.touched
        self._count = counter.count_text
        messages = transcript.messages
        self._full = [_shown(message, counter) for message in messages]
        capped = [_cut(message, _CAP_TOKENS, counter) for message in messages]
        stubbed = [
            _cut(message, _STUB_TOKENS, counter) if whole.tokens > _STUBBED_FROM_TOKENS else message
            for message, whole in zip(messages, self._full, strict=True)
        ]
        self._capped = self._others(messages, capped, counter)
        self._stubbed = self._others(messages, stubbed, counter)

    def _others(
        self, messages: Sequence[BaseMessage], cut: Sequence[BaseMessage], counter: TokenCounter
    ) -> list[_Shown]:
        return [
            whole if one is other else _shown(other, counter)
            for whole, one, other in zip(self._full, messages, cut, strict=True)
        ]

    def needed_tokens(self, probe: Probe, method: str) -> int | None:
        """The smallest budget within which `method` shows the needle; `None` where no budget would do."""
        used = 0
        if method == "window+paths":
            paths = list(dict.fromkeys(path for place, path in self._touched if place < probe.at))
            used = sum(self._count(f"{path}\n") for path in paths)
            if probe.kind == "file_return" and probe.needle in paths:
                return used
        for place in range(probe.at - 1, -1, -1):
            shown = self._at(place, probe, method)
            used += shown.tokens
            if place in probe.sources and probe.needle in shown.text:
                return used
        return None

    def used_tokens(self, at: int, method: str, budget: int) -> int:
        """Tokens of what `method` shows before message `at`."""
        probe = Probe(at=at, kind="", needle="", sources=frozenset(), gap=0)
        used = 0
        if method == "window+paths":
            used = sum(self._count(f"{path}\n") for path in {path for place, path in self._touched if place < at})
        for place in range(at - 1, -1, -1):
            tokens = self._at(place, probe, method).tokens
            if used + tokens > budget:
                break
            used += tokens
        return used

    def _at(self, place: int, probe: Probe, method: str) -> _Shown:
        if method == "window+2k cap":
            return self._capped[place]
        if method == "window+stub" and place < probe.at - _RECENT:
            return self._stubbed[place]
        return self._full[place]


def _shown(message: BaseMessage, counter: TokenCounter) -> _Shown:
    return _Shown(text=searchable(message), tokens=counter.count_message(message))


def _cut(message: BaseMessage, most: int, counter: TokenCounter) -> BaseMessage:
    """A tool result within `most` tokens of text; anything else as it is."""
    if not isinstance(message, ToolMessage):
        return message
    text = str(message.text)
    if len(text) <= most or counter.count_text(text) <= most:
        return message
    low, high = 0, min(len(text), most * _CHARS_PER_TOKEN)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if counter.count_text(text[:middle]) <= most else (low, middle - 1)
    return message.model_copy(update={"content": f"{text[:low]} [cut]"})
