"""Quotes what answers a question, filled into a budget, without what the context already shows.

A summary is read again in detail here too: the messages that it stands for, word for word. Where something is asked,
those that answer it come first; else they are read from the beginning on. What does not fit whole is shown head and
tail while there is room for that, and named where there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.messages.showing import LEAST_TOKENS, pointer_to
from langchain_tiered_memory.recall.filling import POINTER_TOKENS, fill, mended, offers_of, wording_of
from langchain_tiered_memory.recall.finding import find
from langchain_tiered_memory.recall.judgement import judge
from langchain_tiered_memory.summaries.facts.listing import line_of
from langchain_tiered_memory.summaries.rendering import Quoted, recall_block, sitting_header
from langchain_tiered_memory.text.truncation import head_and_tail
from langchain_tiered_memory.types.contexts import Detail
from langchain_tiered_memory.types.records import LeftOut

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from langchain_tiered_memory.recall.filling import Chosen, Offer
    from langchain_tiered_memory.recall.finding import Found
    from langchain_tiered_memory.recall.ranking import RankedEntry
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.text.sentences import Span
    from langchain_tiered_memory.types.drafts import SearchFilters
    from langchain_tiered_memory.types.records import Entry, Fact, SessionRef, Summary

_FILLINGS = 8
"""Times that a room is filled, each with the last one's error mended."""
_WELL_FILLED = 0.9
"""A block that takes this share of its room is left as it is."""
_NEAR_MISSES = 10
"""Best entries that did not fit, as named in the account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """The recalled part of a context."""

    text: str = ""
    tokens: int = 0
    """Of `text`."""
    quotes: tuple[Quoted, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    asked_at: float | None = None
    """When the message was said that it stands before."""


def recall(
    runtime: Runtime,
    ref: SessionRef,
    query: str,
    *,
    room: int,
    code_room: int,
    shown: frozenset[int],
    shown_texts: frozenset[str] = frozenset(),
    summaries: Sequence[Summary] = (),
    filters: SearchFilters | None = None,
    said_at: int | None = None,
    asked_at: float | None = None,
    found: Found | None = None,
    expands: bool = False,
) -> Recalled:
    """Quote what answers a question within `room` tokens, without what the context already shows.

    Args:
        runtime: The memory.
        ref: The session.
        query: The question.
        room: Tokens of the whole block, fence and headers included.
        code_room: The most that code and tool output may take of it.
        shown: `seq`s of entries that stand in the context already, or are the question itself.
        shown_texts: What these say (`wording_of`): it is not quoted from another entry either.
        summaries: Stand behind the quotes.
        filters: Which messages may be found.
        said_at: `seq` of the message that is the question, where it is what the user said last in a conversation that
            goes on: then only what answers it is worth its room, and what is near that where it asks.
        asked_at: When the message was said before which the block stands.
        found: What `find` gave for this question with these filters, where it was asked before.
        expands: Whether who reads it has a tool that shows the whole of a message.
    """
    count = runtime.counter.count_text
    least = count(recall_block((), summaries=summaries, asked_at=asked_at))
    if room <= least + POINTER_TOKENS or not query.strip():
        return Recalled()
    found = find(runtime, ref, query, filters=filters, asked_at=said_at) if found is None else found

    def is_hidden(seq: int) -> bool:
        return seq not in shown and wording_of(found.entries[seq]) not in shown_texts

    judged = judge(found, is_hidden)
    ranked = judged.worth_quoting() if said_at is not None else judged.hidden
    # What a tool gave is long: it never gives way to short words that answer less.
    given = [one.sequence for one in ranked if one.sequence in judged.answers & judged.work]
    offers = offers_of(found, ranked, (*judged.best, *given), code_room=code_room)
    first = {found.sittings[seq]: seq for seq in sorted(found.entries, reverse=True)}
    headers = {number: count(sitting_header(found.entries[seq].at)) + 1 for number, seq in first.items()}
    replaced: dict[int, Sequence[Fact]] = {}

    def with_replaced(quotes: Sequence[Quoted]) -> tuple[Quoted, ...]:
        seen = shown | {one.entry.seq for one in quotes}
        asked = [one.entry.seq for one in quotes if one.entry.seq not in replaced]
        if asked:
            known = runtime.store.facts.replaced(ref, asked)
            replaced.update((seq, known.get(seq, ())) for seq in asked)
        # A call and what it gave are what happened then: nothing replaces that.
        stated = (() if one.entry.calls or one.entry.answers else replaced.get(one.entry.seq, ()) for one in quotes)
        since = zip(quotes, stated, strict=True)
        return tuple(replace(one, replaced_by=_told(later, seen, filters)) for one, later in since)

    def made(quotes: tuple[Quoted, ...]) -> Recalled:
        text = recall_block(quotes, summaries=summaries, asked_at=asked_at, expands=expands)
        missed = _missed(found, ranked, quotes)
        return Recalled(text=text, tokens=count(text), quotes=quotes, left_out=missed, asked_at=asked_at)

    best, bare = Recalled(), Recalled()
    budget = room - least
    for _ in range(_FILLINGS):
        # Prices are those counted once for each message; the block itself is counted whole, and the budget mended.
        offers, chosen = _filled(found, offers, budget, headers, judged.unseen)
        quotes = tuple(_quoted(found, *one) for one in chosen.items())
        noted = made(with_replaced(quotes))
        tokens = noted.tokens
        if quotes and best.tokens < tokens <= room:
            best = noted
        elif tokens > room and noted.quotes != quotes:
            alone = made(quotes)
            bare = alone if bare.tokens < alone.tokens <= room else bare
        if room * _WELL_FILLED <= tokens <= room or not quotes:
            break
        # What overshoots may be priced too low throughout, as tool outputs are, whose lines are set apart.
        budget += room - tokens if tokens <= room else min(room - tokens, -(room // 50))
    # What answers is worth more than what is said of it.
    lost = {one.entry.seq for one in bare.quotes} - {one.entry.seq for one in best.quotes}
    return bare if lost & judged.answers else best


def _filled(
    found: Found,
    offers: list[Offer],
    max_tokens: int,
    header_tokens: Mapping[int, int],
    hidden: Mapping[int, RankedEntry],
) -> tuple[list[Offer], Chosen]:
    """What is chosen, and from which offers: without small talk, the halves of an exchange together."""
    shown = fill(offers, max_tokens=max_tokens, header_tokens=header_tokens)
    better = mended(found, offers, set(shown), hidden=hidden)
    if better != offers:
        shown = fill(better, max_tokens=max_tokens, header_tokens=header_tokens)
    return better, shown


def _told(later: Sequence[Fact], seen: Collection[int], filters: SearchFilters | None) -> tuple[str, ...]:
    """What replaced a statement, where it is not `seen` itself and may be found."""
    tracks = filters.tracks if filters is not None else None
    return tuple(line_of(one) for one in later if one.seq not in seen and (tracks is None or one.track in tracks))


def _missed(found: Found, ranked: Sequence[RankedEntry], quotes: Sequence[Quoted]) -> tuple[LeftOut, ...]:
    quoted = {one.entry.seq for one in quotes}
    missed = [found.entries[one.sequence] for one in ranked if one.sequence not in quoted]
    return tuple(
        LeftOut(what=entry.id, reason="did not fit into recall", tokens=entry.tokens) for entry in missed[:_NEAR_MISSES]
    )


def _quoted(found: Found, seq: int, chosen: tuple[Span, ...] | None) -> Quoted:
    entry = found.entries[seq]
    if chosen is None:
        return Quoted(entry=entry)
    return Quoted(entry=entry, passages=tuple(entry.text[one.start : one.stop] for one in chosen))


def detail_of(runtime: Runtime, ref: SessionRef, entries: Sequence[Entry], *, query: str, max_tokens: int) -> Detail:
    """As much of `entries` as `max_tokens` hold, quoted in their order."""
    told = [entry for entry in entries if entry.text.strip()]
    chosen: dict[int, Quoted] = {}
    best = Detail()
    left = max_tokens - _detail(runtime, {}).tokens
    for entry in _ranked(runtime, ref, told, query):
        if left < LEAST_TOKENS:
            break
        trial = {**chosen, entry.seq: _within(runtime, entry, left)}
        made = _detail(runtime, trial)
        if made.tokens <= max_tokens:
            chosen, best = trial, made
            left = max_tokens - made.tokens
    missed = [entry for entry in told if entry.seq not in chosen]
    left_out = tuple(LeftOut(what=one.id, reason="did not fit", tokens=one.tokens) for one in missed)
    return replace(best, left_out=left_out)


def _ranked(runtime: Runtime, ref: SessionRef, entries: Sequence[Entry], query: str) -> list[Entry]:
    """Those that answer the question first, the best of them before the others; then as they were said."""
    if not query.strip():
        return list(entries)
    found = find(runtime, ref, query)
    places = {one.sequence: place for place, one in enumerate(found.ranked) if one.sequence in found.hits}
    return sorted(entries, key=lambda entry: (places.get(entry.seq, len(places)), entry.seq))


def _within(runtime: Runtime, entry: Entry, room: int) -> Quoted:
    if entry.tokens + POINTER_TOKENS <= room:  # a dated header takes about as much as a pointer to the whole
        return Quoted(entry=entry)
    most = max(room - 2 * POINTER_TOKENS, 0)
    pointer = pointer_to(entry, expands=True)
    part = head_and_tail(entry.text, max_tokens=most, count=runtime.counter.count_text, pointer=pointer)
    return Quoted(entry=entry, passages=(part,))


def _detail(runtime: Runtime, chosen: Mapping[int, Quoted]) -> Detail:
    quotes = [chosen[seq] for seq in sorted(chosen)]
    text = recall_block(quotes, expands=True)
    return Detail(
        text=text,
        tokens=runtime.counter.count_text(text),
        message_ids=tuple(one.entry.id for one in quotes if not one.passages),
        passage_ids=tuple(one.entry.id for one in quotes if one.passages),
    )
