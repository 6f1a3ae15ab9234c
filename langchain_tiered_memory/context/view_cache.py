"""In-process cache of views between two requests, beside what the database keeps.

Zones, so that an alert comes once; what was said once; the last recall of each view, so that it stays as it is during
a tool loop, and those before it, so that they stay where they were; what others added to requests. All of it bounded,
and safe to lose: after a restart an alert may come again, a recall is made anew, and what others add is learnt again
from the first request.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langchain_tiered_memory.sql.remembered import Remembered
from langchain_tiered_memory.types.records import Summary

if TYPE_CHECKING:
    from langchain_tiered_memory.types.outcomes import Zone

T = TypeVar("T")

_ROOMS = 8
"""Views whose room for notes is remembered: one that is small, or large, for once decides nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewStanding:
    """How a view stood at its last request."""

    zone: Zone
    over_share: bool | None
    """Whether it took more of the window than a checkpoint's trigger; `None` where nobody remembers."""
    checkpoint_at: float | None
    """When the session's last checkpoint was made; its run's start where there was none."""
    failure: str = ""
    """The failure that was kept last, so that its repetition is not."""
    outcomes: int = 0
    """How many it had: of two at one moment each has an id of its own."""


class ViewCache:
    """Bounded maps, each behind a lock."""

    def __init__(self) -> None:
        self.views = Remembered[tuple[int, str], ViewStanding]()
        """How views stood, by session and name."""
        self.asides = Remembered[Hashable, tuple[int, ...]]()
        """Tokens that others added to the latest requests, newest last."""
        self.wishes = Remembered[str, str]()
        """Sessions with a view that needs what a model has yet to write, until somebody is told."""
        self.reviewed = Remembered[tuple[int, str], int]()
        """The last message whose notes a model joined for room, by session and track."""
        self.writes_paused_until = float("-inf")
        """When on the monotonic clock to try again to write what is derived."""
        self._said = Remembered[Hashable, None]()
        self._rooms = Remembered[tuple[int, str], tuple[int, ...]]()
        self._recalls = Remembered[tuple[int, str], tuple[Hashable, Any]]()
        self._forms = Remembered[str, tuple[Summary, Any]]()

    def first_time(self, what: Hashable) -> bool:
        """Whether this was not said before; it is from now on."""
        return self._said.put(what, None)

    def recalled(self, session_key: int, name: str, key: Hashable) -> Any:  # noqa: ANN401 - whatever was kept
        """What was kept for a view under a name, if that was under the same `key`."""
        found = self._recalls.get((session_key, name))
        return found[1] if found is not None and found[0] == key else None

    def keep_recalled(self, session_key: int, name: str, key: Hashable, value: object) -> None:
        """Keep what was recalled."""
        self._recalls.put((session_key, name), (key, value))

    def note_list_room(self, session_key: int, track: str, room: int) -> None:
        """Remember how many tokens a view has for what must last."""
        before = self._rooms.get((session_key, track)) or ()
        self._rooms.put((session_key, track), (*before, room)[-_ROOMS:])

    def list_room(self, session_key: int, track: str) -> int | None:
        """The most tokens that one of the last views has for what must last; `None` where nobody remembers."""
        return max(self._rooms.get((session_key, track)) or (), default=None)

    def forms(self, summary: Summary, make: Callable[[], T]) -> T:
        """What a summary is told by at each resolution: made once for a summary as it is, and counted once."""
        as_told, found = replace(summary, parent_id=None), self._forms.get(summary.id)
        if found is not None and found[0] == as_told:
            return cast("T", found[1])
        made = make()
        self._forms.put(summary.id, (as_told, made))
        return made

    def clear(self) -> None:
        """Let go of everything: something was removed, and what was recalled may quote it."""
        self.views.clear()
        self._recalls.clear()
        self._forms.clear()
