"""Entries quoted within a room: whole where they fit, else head and tail; of too many the newest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.text.fencing import short_id
from langchain_tiered_memory.text.truncation import head_and_tail, water_level

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.types.records import Entry

QUOTE_TOKENS = 4
"""A quote's speaker and line break."""
_LEAST_TOKENS = 24
"""A quote shorter than this says nothing: rather fewer of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes:
    """What is quoted, and what is not."""

    texts: tuple[tuple[Entry, str], ...]
    """In the order they came."""
    left_out: tuple[Entry, ...]

    @property
    def whole(self) -> tuple[Entry, ...]:
        """Entries quoted whole."""
        return tuple(entry for entry, text in self.texts if text == entry.text)

    @property
    def cut(self) -> tuple[Entry, ...]:
        """Entries of which head and tail are quoted."""
        return tuple(entry for entry, text in self.texts if text != entry.text)


def pointer_to(entry: Entry) -> str:
    """How to get at the whole of a message that is shown in part."""
    return f'expand "{short_id(entry.id)}" for the whole'


def quotes_within(entries: Sequence[Entry], *, room: int, count: Callable[[str], int]) -> Quotes:
    """Quote `entries` within `room` tokens, as much of each as there is room for; at least the newest one a little."""
    kept = list(entries)
    while True:
        level = water_level([entry.tokens for entry in kept], max(room - QUOTE_TOKENS * len(kept), 0))
        short = level < min(_LEAST_TOKENS, max((entry.tokens for entry in kept), default=0))
        if len(kept) <= 1 or not short:
            break
        kept.pop(0)
    texts = []
    for entry in kept:
        if entry.tokens <= level:
            texts.append((entry, entry.text))
        else:
            most = max(level, _LEAST_TOKENS)
            texts.append((entry, head_and_tail(entry.text, max_tokens=most, count=count, pointer=pointer_to(entry))))
    return Quotes(
        texts=tuple((entry, text) for entry, text in texts if text),
        left_out=tuple(entry for entry in entries if entry not in kept),
    )
