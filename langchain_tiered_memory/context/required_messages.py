"""What every context must show, read at once, however long the session is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Entry, SessionRef

_OPENING_PROMPTS = 3
"""System messages that a history may begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """What a plan must not condense."""

    guard: int
    """The first of the newest messages: all from here on have to stay in the recent part."""
    held: frozenset[int] = frozenset()
    """First `seq`s of groups that stay, wherever they began: those that wait for a result since the user spoke, and
    those that the newest messages belong to."""
    users: tuple[Entry, ...]
    """The latest user messages, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredMessages:
    """The goal, what is pinned, the last user messages, and where the part begins that must stay as it is."""

    opening: tuple[Entry, ...] = ()
    """System messages that the history began with, and the goal: the first user message."""
    pinned: tuple[Entry, ...] = ()
    last_seq: int = 0
    """The newest message."""
    recent: Recent = field(default_factory=lambda: Recent(guard=1, users=()))

    @property
    def last_user(self) -> Entry | None:
        """The latest user message."""
        return self.recent.users[-1] if self.recent.users else None

    @property
    def last_user_text(self) -> str:
        """What the user said last."""
        return self.last_user.text if self.last_user is not None else ""


def read_required(
    runtime: Runtime, ref: SessionRef, track: str, *, off: frozenset[int], alone: bool = False
) -> RequiredMessages:
    """Read them, without what is `off` this branch; where the track is shown `alone`, pins are its own."""
    found = runtime.store.transcript.required(
        ref,
        track=track,
        off=off,
        opening=_OPENING_PROMPTS,
        users=runtime.settings.context.keep_user_messages,
        newest=runtime.settings.condensation.keep_messages,
    )
    since = found.users[0].seq if found.users else 0
    return RequiredMessages(
        opening=found.opening,
        pinned=tuple(one for one in found.pinned if not alone or one.track == track),
        last_seq=max((entry.seq for entry in found.newest), default=0),
        recent=Recent(
            guard=min((entry.seq for entry in found.newest), default=1),
            held=frozenset(
                [*(head.seq for head in found.waiting if head.seq >= since), *(entry.group for entry in found.newest)]
            ),
            users=found.users,
        ),
    )
