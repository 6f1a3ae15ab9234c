"""What every context must show, read with a handful of small queries, however long the session is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.planning import Recent

if TYPE_CHECKING:
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.records import Entry, SessionRef

_OPENING_PROMPTS = 3
"""System messages that a history may begin with."""
_KEEP_LAST = 3
"""Newest messages that are never condensed in a view, with their groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Musts:
    """The goal, what is pinned, the last user messages, and where the part begins that must stay as it is."""

    opening: tuple[Entry, ...] = ()
    """System messages that the history began with, and the goal: the first user message."""
    pinned: tuple[Entry, ...] = ()
    recent: Recent = field(default_factory=lambda: Recent(guard=1, users=()))

    @property
    def last_user(self) -> Entry | None:
        """The latest user message."""
        return self.recent.users[-1] if self.recent.users else None

    @property
    def last_user_text(self) -> str:
        """What the user said last."""
        return self.last_user.text if self.last_user is not None else ""


def read_musts(house: House, ref: SessionRef, track: str, *, off: frozenset[int]) -> Flow[Musts]:
    """Read them, without what is `off` this branch."""
    most = len(off)
    transcript = house.store.transcript
    first = yield from do(transcript.entries, ref, track=track, roles=("user",), limit=1 + most)
    goal = next((entry for entry in first if entry.seq not in off), None)
    opening: list[Entry] = []
    if goal is not None:
        opening = yield from do(
            transcript.entries, ref, track=track, roles=("system",), up_to=goal.seq, limit=_OPENING_PROMPTS
        )
        opening = [*(entry for entry in opening if entry.seq not in off), goal]
    users = yield from do(
        transcript.entries,
        ref,
        track=track,
        roles=("user",),
        newest_first=True,
        limit=house.settings.context.keep_user_messages + most,
    )
    users = [entry for entry in users if entry.seq not in off][: house.settings.context.keep_user_messages]
    newest = yield from do(transcript.entries, ref, track=track, newest_first=True, limit=_KEEP_LAST + most)
    newest = [entry for entry in newest if entry.seq not in off][:_KEEP_LAST]
    waiting = yield from do(transcript.waiting_heads, ref, track=track)
    pinned = yield from do(transcript.pinned, ref)
    since = users[-1].seq if users else 0
    guarded = [entry.group for entry in newest] + [
        head.seq for head in waiting if head.seq >= since and head.seq not in off
    ]
    return Musts(
        opening=tuple(opening),
        pinned=tuple(entry for entry in pinned if entry.seq not in off),
        recent=Recent(guard=min(guarded, default=1), users=tuple(reversed(users))),
    )
