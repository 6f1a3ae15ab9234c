"""A summary read again in detail: the messages that it stands for, word for word, within a budget of tokens.

Where something is asked, the messages that answer it come first; else they are read from the beginning on. What does
not fit whole is shown head and tail while there is room for that, and named where there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.messages.quoting import pointer_to
from langchain_tiered_memory.recall.finding import find
from langchain_tiered_memory.summaries.rendering import Quoted, recall_block
from langchain_tiered_memory.text.truncation import head_and_tail
from langchain_tiered_memory.types.contexts import Detail
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry, SessionRef

_LEAST_TOKENS = 40
"""Less of a message than this says nothing."""
_FRAMING_TOKENS = 16
"""A dated header and a pointer to the whole, about."""


def detail_of(runtime: Runtime, ref: SessionRef, entries: Sequence[Entry], *, query: str, max_tokens: int) -> Detail:
    """As much of `entries` as `max_tokens` hold, quoted in their order."""
    told = [entry for entry in entries if entry.text.strip()]
    chosen: dict[int, Quoted] = {}
    best = Detail()
    left = max_tokens - runtime.counter.count_text(_block(runtime, ()))
    for entry in _ranked(runtime, ref, told, query):
        if left < _LEAST_TOKENS:
            break
        quoted = _within(runtime, entry, left)
        trial = {**chosen, entry.seq: quoted}
        made = _made(runtime, trial)
        if made.tokens <= max_tokens:
            chosen, best = trial, made
            left = max_tokens - made.tokens
    missed = [entry for entry in told if entry.seq not in chosen]
    left_out = tuple(LeftOut(what=one.id, reason="did not fit", tokens=one.tokens) for one in missed)
    return Detail(
        text=best.text,
        tokens=best.tokens,
        message_ids=best.message_ids,
        passage_ids=best.passage_ids,
        left_out=left_out,
    )


def _ranked(runtime: Runtime, ref: SessionRef, entries: Sequence[Entry], query: str) -> list[Entry]:
    """Those that answer the question first, the best of them before the others; then as they were said."""
    if not query.strip():
        return list(entries)
    found = find(runtime, ref, query, best=0)
    places = {one.sequence: place for place, one in enumerate(found.ranked) if found.is_hit(one.sequence)}
    return sorted(entries, key=lambda entry: (places.get(entry.seq, len(places)), entry.seq))


def _within(runtime: Runtime, entry: Entry, room: int) -> Quoted:
    if entry.tokens + _FRAMING_TOKENS <= room:
        return Quoted(entry=entry)
    count = runtime.counter.count_text
    most = max(room - 2 * _FRAMING_TOKENS, 0)
    return Quoted(
        entry=entry,
        passages=(head_and_tail(entry.text, max_tokens=most, count=count, pointer=pointer_to(entry)),),
    )


def _made(runtime: Runtime, chosen: dict[int, Quoted]) -> Detail:
    quotes = [chosen[seq] for seq in sorted(chosen)]
    text = _block(runtime, quotes)
    return Detail(
        text=text,
        tokens=runtime.counter.count_text(text),
        message_ids=tuple(one.entry.id for one in quotes if not one.passages),
        passage_ids=tuple(one.entry.id for one in quotes if one.passages),
    )


def _block(runtime: Runtime, quotes: Sequence[Quoted]) -> str:
    return recall_block(quotes, sitting_gap_seconds=runtime.settings.recall.sitting_gap_seconds)
