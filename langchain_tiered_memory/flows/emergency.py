"""When not even the musts fit as they are: they stand there head and tail; then the essentials alone.

The essentials are those of the design's aggressive pruning: system prompt, current task, active file, last user
message, last error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.essentials import essentials
from langchain_tiered_memory.decisions.groups import as_groups
from langchain_tiered_memory.decisions.request import Piece, shortened, shown
from langchain_tiered_memory.decisions.water_level import water_level, whole_again
from langchain_tiered_memory.flows.asking import Flow, do

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.flows.desk import Desk
    from langchain_tiered_memory.flows.showing import Sight
    from langchain_tiered_memory.records import Entry

LEAST_READABLE_TOKENS = 48
"""A message shown head and tail with less can hardly be worked with: rather fewer of them."""
LEAST_TOKENS = 10
"""With less, a message says nothing at all."""
_TOUCHED_FILES = 100
_READ_ENTRIES = 200
"""Newest messages among which a minimal view looks for what is essential."""


def shortened_musts(desk: Desk, sight: Sight) -> list[Piece] | None:
    """Head and recent messages within the room, the longest head and tail; `None` where that says too little.

    They come before recall: what is set aside for it is theirs when they need it.
    """
    wanted = sight.tail_tokens
    head = list(sight.head)
    if sight.tokens > desk.room:
        # No must: what it stands for is named in the account all the same.
        head = [piece for piece in head if piece.part not in ("history", "files")]
    head_tokens = sum(piece.tokens for piece in head)
    room = min(max(desk.room, head_tokens + wanted), desk.room + desk.rooms.recall) - head_tokens
    if wanted <= room:
        return [*head, *sight.recent()]
    level = water_level([piece.tokens for piece in sight.recent()], room)
    if level < LEAST_READABLE_TOKENS:
        return None
    return [*head, *_cut(desk, sight.recent(), level, room=room)]


def _cut(desk: Desk, pieces: Sequence[Piece], level: int, *, room: int) -> list[Piece]:
    """Pieces cut to a level; the newest of those that gave up more than they had to are whole again."""
    counter = desk.house.counter
    cut = [
        piece
        if piece.tokens <= level or piece.entry is None
        else shortened(piece.entry, max_tokens=level, counter=counter, part=piece.part)
        for piece in pieces
    ]
    stays = whole_again([piece.tokens for piece in cut], [piece.tokens for piece in pieces], room)
    return [pieces[at] if at in stays else piece for at, piece in enumerate(cut)]


def minimal_pieces(desk: Desk, sight: Sight | None, *, least_tokens: int) -> Flow[list[Piece] | None]:
    """The essentials within the room, cut where they are too long; `None` where `least_tokens` of each do not fit."""
    tail: Sequence[Entry] = sight.tail if sight is not None else (yield from _newest(desk))
    groups = as_groups(tail)
    store = desk.house.store
    touches = yield from do(store.files.latest, desk.ref, track=desk.track, limit=_TOUCHED_FILES)
    tasks = yield from do(store.runs.tasks, desk.ref, newest_finished=0)
    current = yield from do(store.runs.current_task, desk.ref, desk.track)
    chosen = (yield from do(essentials, groups, tasks=tasks, current_task=current, touches=touches)).keys
    # A call that waits for its result must be shown with what comes.
    waiting = {group.first_seq for group in groups[-1:] if group.unanswered}
    entries = [entry for group in groups if group.first_seq in {*chosen, *waiting} for entry in group.entries]
    there = {entry.seq for entry in entries}
    goal = [entry for entry in desk.musts.opening if entry.seq not in there]
    last = desk.musts.last_user
    if last is not None and last.seq not in there | {entry.seq for entry in goal}:
        entries = [last, *entries]
    wanted = sorted([*goal, *entries], key=lambda entry: entry.seq)
    room = desk.room + desk.rooms.recall
    level = max((entry.tokens for entry in wanted), default=0)
    if sum(entry.tokens for entry in wanted) > room:
        level = water_level([entry.tokens for entry in wanted], room)
        if level < least_tokens:
            return None
    opening = {entry.seq for entry in goal}
    pieces = [shown(entry, part="goal" if entry.seq in opening else "recent") for entry in wanted]
    return _cut(desk, pieces, level, room=room)


def _newest(desk: Desk) -> Flow[list[Entry]]:
    found = yield from do(
        desk.house.store.transcript.entries,
        desk.ref,
        track=desk.track,
        newest_first=True,
        limit=_READ_ENTRIES,
    )
    return [entry for entry in reversed(found) if entry.seq not in desk.off]
