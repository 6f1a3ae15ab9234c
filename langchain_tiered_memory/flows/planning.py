"""The plan of a view: where its recent part starts, and what stands for everything before.

A plan is kept until the recent part outgrows its room. Then the border moves over finished level-1 summaries in one
big step: new nodes are appended behind the old ones while the cover's cap allows, else the cover is made anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.view_plan import ViewPlan
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.covering import cover_of_levels, grown_cover, selected_cover, whole_cover

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.decisions.cover import (
        CoverItem,
    )
    from langchain_tiered_memory.flows.desk import Desk

_PAGE = 64


def plan_view(desk: Desk, previous: ViewPlan | None) -> Flow[ViewPlan]:
    """The next plan of a view: its border moved as far as needed, over finished level-1 summaries only."""
    floor = previous.border if previous is not None else 0
    border, found = yield from _next_border(desk, floor=floor)
    cap = desk.rooms.cover
    if desk.works_on_files:
        settings, total = desk.house.settings.files, desk.rooms.total
        least = min(settings.least_cover_tokens, round(settings.least_cover_share * total))
        cap = min(cap, max(least, round(settings.cover_share * total)))
    appended: tuple[CoverItem, ...] | None = None
    if desk.look is not None and desk.look.levels is not None:
        appended = yield from cover_of_levels(desk, border=border, cap=cap, levels=desk.look.levels)
    elif desk.house.settings.context.older == "selection":
        appended = yield from selected_cover(desk, border=border, room=cap)
    elif previous is not None and not previous.provisional and not desk.off:
        appended = yield from grown_cover(desk, previous, border=border, cap=cap)
    if appended is None:
        appended = yield from whole_cover(desk, border=border, cap=cap)
    skip, tail_from = _overlap(border, found)
    queries = tuple(entry.seq for entry in desk.musts.recent.users if entry.seq < tail_from)
    return ViewPlan(
        border=border,
        tail_from=tail_from,
        items=appended,
        skip=skip,
        queries=queries,
        ratio=desk.ratio,
        # A call that waits for its result, or just got it, is shown, though everything around it is condensed.
        kept=tuple(sorted(seq for seq in desk.musts.recent.held if seq < tail_from)),
    )


def _next_border(desk: Desk, *, floor: int) -> Flow[tuple[int, list[tuple[str, int, int]]]]:
    """The new border, and the level-1 summaries around it."""
    tree, ref, track = desk.house.store.tree, desk.ref, desk.track
    wanted = yield from _keep_from(desk)
    blocked = yield from do(tree.first_uncondensed, ref, track=track, after=floor)
    guard = desk.musts.recent.guard
    limit = guard if blocked is None else min(guard, blocked)
    near = yield from do(tree.borders, ref, track=track, after=max(wanted - 2, floor), limit=_PAGE)
    chosen = next((last for _, _, last in near if last < limit), None)
    if chosen is None:
        newest = yield from do(tree.last_border, ref, track=track, before=limit)
        chosen = newest[2] if newest is not None else 0
    border = max(chosen, floor)
    around = yield from do(tree.borders, ref, track=track, after=border, limit=_PAGE)
    before = yield from do(tree.last_border, ref, track=track, before=border + 1)
    return border, ([before] if before is not None else []) + around


def _keep_from(desk: Desk) -> Flow[int]:
    """The first of the newest messages that a condensation leaves as they are."""
    messages = desk.look.last_messages if desk.look is not None else None
    tokens = max(desk.rooms.keep, desk.rooms.recent_least)
    first, up_to = 0, None
    while True:
        page = yield from do(
            desk.house.store.transcript.entries,
            desk.ref,
            track=desk.track,
            up_to=up_to,
            newest_first=True,
            limit=_PAGE,
        )
        for entry in page:
            if entry.seq in desk.off:
                continue
            if messages is None:
                tokens -= entry.tokens
            else:
                messages -= 1
            if tokens < 0 or (messages is not None and messages < 0):
                return first or entry.seq + 1
            first = entry.seq
        if len(page) < _PAGE:
            return first
        up_to = page[-1].seq - 1


def _overlap(border: int, found: Sequence[tuple[str, int, int]]) -> tuple[tuple[str, ...], int]:
    """Where the recent part starts when groups were interleaved, and which summaries behind that are in the cover."""
    behind = [first for _, first, last in found if last > border]
    tail_from = min([border + 1, *behind])
    return tuple(one for one, _, last in found if tail_from <= last <= border), tail_from
