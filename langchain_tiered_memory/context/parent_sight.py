"""What a track is shown of its parent's: quotes within a fixed room, beside recall, read and never written.

The room is set aside whole, however much of it is used: what the parent says next changes neither the room of the
view nor when it is condensed. What stands in it stays until the user speaks again, as recall does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.context.layout import Piece, ours
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.required_messages import read_required
from langchain_tiered_memory.messages.quoting import pointer_to
from langchain_tiered_memory.recall.recall import recall
from langchain_tiered_memory.summaries.rendering import Quoted, sight_block
from langchain_tiered_memory.text.truncation import head_and_tail
from langchain_tiered_memory.types.drafts import SearchFilters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_tiered_memory.context.request import Request, RequestInputs
    from langchain_tiered_memory.models.window_budget import Budget
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry, SessionRef

_NEWEST = 12
"""Messages of the parent that are looked at from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentSight:
    """The section `parent` of a context."""

    room: int = 0
    """Raw tokens that are set aside for it."""
    piece: Piece | None = None


NO_SIGHT = ParentSight()


def sight_of(
    runtime: Runtime, ref: SessionRef, request: Request, request_inputs: RequestInputs, budget: Budget
) -> ParentSight:
    """What a request is shown of the parent's track: nothing, where its scope gives no sight.

    Args:
        runtime: The memory.
        ref: The session.
        request: Its scope names the parent, and the tokens.
        request_inputs: Its question.
        budget: Of the request.
    """
    parent = request.sight.sight_from(request.track) if request.sight is not None else None
    if request.sight is None or parent is None:
        return NO_SIGHT
    rooms = request_inputs.rooms(runtime, request, budget, request_inputs.ratio)
    allowed = int(request.sight.sight_tokens / max(request_inputs.ratio, 1.0))
    room = min(allowed, int(NUMBERS.parent_share * (rooms.total - rooms.fixed)))
    if room < NUMBERS.parent_least_tokens:
        return NO_SIGHT
    last = request_inputs.required.last_user
    name = f"{request_inputs.name}:{parent}"
    key = (ref.epoch, request_inputs.query, last.seq if last is not None else 0, room)
    kept: ParentSight | None = runtime.view_cache.recalled(ref.key, name, key)
    if kept is None:
        kept = ParentSight(room=room, piece=_piece(runtime, ref, parent, query=request_inputs.query, room=room))
        runtime.view_cache.keep_recalled(ref.key, name, key, kept)
    return kept


def _piece(runtime: Runtime, ref: SessionRef, parent: str, *, query: str, room: int) -> Piece | None:
    """Quotes of the parent's track within `room`, in the order in which they were said."""
    chosen: dict[int, Quoted] = {}
    best: Piece | None = None
    for quoted in _candidates(runtime, ref, parent, query=query, room=room):
        if quoted.entry.seq in chosen or not quoted.entry.text.strip():
            continue
        quotes = [*chosen.values(), quoted]
        quotes.sort(key=lambda one: one.entry.seq)
        made = _rendered(runtime, quotes, parent)
        if made.tokens <= room:
            chosen[quoted.entry.seq] = quoted
            best = made
    return best


def _candidates(runtime: Runtime, ref: SessionRef, parent: str, *, query: str, room: int) -> Iterable[Quoted]:
    """What may be quoted, the most telling first."""
    count, most = runtime.counter.count_text, int(NUMBERS.parent_each_share * room)

    def within(entry: Entry) -> Quoted:
        if entry.tokens <= most:
            return Quoted(entry=entry)
        cut = head_and_tail(entry.text, max_tokens=most, count=count, pointer=pointer_to(entry))
        return Quoted(entry=entry, passages=(cut,))

    required = read_required(runtime, ref, parent, off=frozenset(), alone=True)
    yield from (within(one) for one in required.opening if one.role == "user")
    if query.strip():
        filters = SearchFilters(tracks=(parent,))
        half = int(NUMBERS.parent_recalled_share * room)
        yield from recall(
            runtime, ref, query, room=half, code_room=half // 2, shown=frozenset(), filters=filters
        ).quotes
    yield from (within(one) for one in reversed(required.pinned))
    newest = runtime.store.transcript.entries(ref, track=parent, newest_first=True, limit=_NEWEST)
    yield from (within(one) for one in sorted(newest, key=lambda one: -one.seq))


def _rendered(runtime: Runtime, quotes: list[Quoted], parent: str) -> Piece:
    text = sight_block(quotes, parent=parent, sitting_gap_seconds=runtime.settings.recall.sitting_gap_seconds)
    piece = ours(text, part="parent", counter=runtime.counter)
    return replace(
        piece,
        quoted=tuple(one.entry for one in quotes if not one.passages),
        passages=tuple(one.entry for one in quotes if one.passages),
    )
