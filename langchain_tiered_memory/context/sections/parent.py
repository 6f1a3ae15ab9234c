"""What a track is shown of its parent's: quotes within a fixed room, beside recall, read and never written.

The room is set aside whole, however much of it is used: what the parent says next changes neither the room of the
view nor when it is condensed. What stands in it stays until the user speaks again, as recall does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.context.layout import ours
from langchain_tiered_memory.context.numbers import NUMBERS
from langchain_tiered_memory.context.required_messages import read_required
from langchain_tiered_memory.messages.quoting import pointer_to
from langchain_tiered_memory.recall.recall import recall
from langchain_tiered_memory.summaries.rendering import Quoted, sight_block
from langchain_tiered_memory.text.truncation import head_and_tail
from langchain_tiered_memory.types.drafts import SearchFilters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_tiered_memory.context.layout import Piece
    from langchain_tiered_memory.context.request import Inputs
    from langchain_tiered_memory.types.records import Entry

_NEWEST = 12
"""Messages of the parent that are looked at from its end."""


def parent_section(inputs: Inputs) -> tuple[int, Piece | None]:
    """The section `parent`: raw tokens that are set aside for it, and what it shows.

    Nothing of either where the request's scope gives no sight of its parent.
    """
    sight, policy = inputs.request.sight, inputs.policy
    parent = sight.sight_from(inputs.track) if sight is not None and not inputs.is_new else None
    if sight is None or parent is None:
        return 0, None
    room = min(int(sight.sight_tokens / max(inputs.ratio, 1.0)), policy.of("parent"))
    if room < NUMBERS.parent_least_tokens:
        return 0, None
    last, cache = inputs.required.last_user, inputs.runtime.view_cache
    name = f"{inputs.name}:{parent}"
    key = (inputs.ref.epoch, inputs.query, last.seq if last is not None else 0, room)
    kept: tuple[int, Piece | None] | None = cache.recalled(inputs.ref.key, name, key)
    if kept is None:
        kept = room, _piece(inputs, parent, room=room)
        cache.keep_recalled(inputs.ref.key, name, key, kept)
    return kept


def _piece(inputs: Inputs, parent: str, *, room: int) -> Piece | None:
    """Quotes of the parent's track within `room`, in the order in which they were said."""
    chosen: dict[int, Quoted] = {}
    best: Piece | None = None
    for quoted in _candidates(inputs, parent, room=room):
        if quoted.entry.seq in chosen or not quoted.entry.text.strip():
            continue
        made = _rendered(inputs, sorted([*chosen.values(), quoted], key=lambda one: one.entry.seq), parent)
        if made.tokens <= room:
            chosen[quoted.entry.seq] = quoted
            best = made
    return best


def _candidates(inputs: Inputs, parent: str, *, room: int) -> Iterable[Quoted]:
    """What may be quoted, the most telling first."""
    runtime, ref, query = inputs.runtime, inputs.ref, inputs.query
    count, most = inputs.counter.count_text, int(NUMBERS.parent_share * room)

    def within(entry: Entry) -> Quoted:
        if entry.tokens <= most:
            return Quoted(entry=entry)
        cut = head_and_tail(entry.text, max_tokens=most, count=count, pointer=pointer_to(entry))
        return Quoted(entry=entry, passages=(cut,))

    required = read_required(runtime, ref, parent, off=frozenset(), alone=True)
    yield from (within(one) for one in required.opening if one.role == "user")
    if query.strip():
        half, filters = int(NUMBERS.parent_recalled_share * room), SearchFilters(tracks=(parent,))
        found = recall(runtime, ref, query, room=half, code_room=half // 2, shown=frozenset(), filters=filters)
        yield from found.quotes
    yield from (within(one) for one in reversed(required.pinned))
    newest = runtime.store.transcript.entries(ref, track=parent, newest_first=True, limit=_NEWEST)
    yield from (within(one) for one in sorted(newest, key=lambda one: -one.seq))


def _rendered(inputs: Inputs, quotes: list[Quoted], parent: str) -> Piece:
    text = sight_block(quotes, parent=parent, sitting_gap_seconds=inputs.settings.recall.sitting_gap_seconds)
    return ours(
        text,
        part="parent",
        counter=inputs.counter,
        quoted=tuple(one.entry for one in quotes if not one.passages),
        passages=tuple(one.entry for one in quotes if one.passages),
    )
