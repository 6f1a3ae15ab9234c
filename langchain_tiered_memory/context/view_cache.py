"""In-process cache of views between two requests, beside what the database keeps.

Zones, so that an alert comes once; what was said once; the last recall of each view, so that it stays as it is during
a tool loop, and those before it, so that they stay where they were; what others added to requests. All of it bounded,
and safe to lose: after a restart an alert may come again, a recall is made anew, and what others add is learnt again
from the first request.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from langchain_tiered_memory.types.outcomes import Zone
    from langchain_tiered_memory.types.records import Summary

T = TypeVar("T")

_REMEMBERED = 1000
"""Views, summaries, and things said once."""
_ROOMS = 8
"""Views whose room for notes is remembered: one that is small, or large, for once decides nothing."""
_OF_A_SESSION = 4
"""What is kept of one session's recall, at most, under names of its own."""


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
    pruning: tuple[tuple[int, str], ...] = ()
    """What would leave it, and why, as planned in the danger zone; used when the zone gets critical."""
    pruning_of: tuple[int, str] | None = None
    """What that plan was made of: the session's epoch, and the plan of the view."""
    outcomes: int = 0
    """How many it had: of two at one moment each has an id of its own."""


class ViewCache:
    """Bounded maps behind one lock."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._kept: defaultdict[str, dict[Hashable, Any]] = defaultdict(dict)
        self._writes_paused_until = float("-inf")

    def _get(self, of: str, key: Hashable) -> Any:  # noqa: ANN401 - whatever was kept
        with self._lock:
            return self._kept[of].get(key)

    def _put(self, of: str, key: Hashable, value: object, *, most: int = _REMEMBERED) -> bool:
        """Whether nothing was kept there before."""
        with self._lock:
            kept = self._kept[of]
            is_new = kept.pop(key, None) is None
            kept[key] = value
            if len(kept) > most:
                del kept[next(iter(kept))]
            return is_new

    def view(self, session_key: int, name: str) -> ViewStanding | None:
        """How a view stood, if it is remembered."""
        found: ViewStanding | None = self._get("views", (session_key, name))
        return found

    def note(self, session_key: int, name: str, standing: ViewStanding) -> None:
        """Remember how a view stands."""
        self._put("views", (session_key, name), standing)

    def first_time(self, what: Hashable) -> bool:
        """Whether this was not said before; it is from now on."""
        return self._put("said", what, "said")

    def recalled(self, session_key: int, name: str, key: Hashable) -> Any:  # noqa: ANN401 - whatever was kept
        """What was kept for a view under a name, if that was under the same `key`."""
        found = self._get("recalls", (session_key, name))
        return found[1] if found is not None and found[0] == key else None

    def keep_recalled(self, session_key: int, name: str, key: Hashable, value: object) -> None:
        """Keep what was recalled."""
        self._put("recalls", (session_key, name), (key, value), most=_OF_A_SESSION * _REMEMBERED)

    def forms(self, summary: Summary, make: Callable[[], T]) -> T:
        """What a summary is told by at each resolution: made once for a summary as it is, and counted once."""
        as_told, found = replace(summary, parent_id=None), self._get("forms", summary.id)
        if found is not None and found[0] == as_told:
            return cast("T", found[1])
        made = make()
        self._put("forms", summary.id, (as_told, made))
        return made

    def aside(self, key: Hashable) -> Any:  # noqa: ANN401 - whatever was kept
        """What was kept of earlier requests under a key."""
        return self._get("asides", key)

    def keep_aside(self, key: Hashable, value: object) -> None:
        """Keep what requests had besides what was counted for them."""
        self._put("asides", key, value)

    def note_list_room(self, session_key: int, track: str, room: int) -> None:
        """Remember how many tokens a view has for what must last."""
        before = self._get("rooms", (session_key, track)) or ()
        self._put("rooms", (session_key, track), (*before, room)[-_ROOMS:])

    def list_room(self, session_key: int, track: str) -> int | None:
        """The most tokens that one of the last views has for what must last; `None` where nobody remembers."""
        return max(self._get("rooms", (session_key, track)) or (), default=None)

    def note_review(self, session_key: int, track: str, seq: int) -> None:
        """Remember that a model went through the notes of messages up to one."""
        self._put("reviews", (session_key, track), seq)

    def reviewed(self, session_key: int, track: str) -> int:
        """The last message whose notes a model went through; 0 where nobody remembers."""
        return self._get("reviews", (session_key, track)) or 0

    def note_wish(self, session_id: str) -> None:
        """Remember that a view of a session needs what a model has yet to write."""
        self._put("wishes", session_id, session_id)

    def take_wish(self, session_id: str) -> bool:
        """Whether one does that nobody was told of; it is from now on."""
        with self._lock:
            return self._kept["wishes"].pop(session_id, None) is not None

    def pause_writes(self, until: float) -> None:
        """Remember that what is derived could not be written, and when on the monotonic clock to try again."""
        with self._lock:
            self._writes_paused_until = until

    def writes_paused(self, now: float) -> bool:
        """Whether it is too early to try again."""
        with self._lock:
            return now < self._writes_paused_until

    def clear(self) -> None:
        """Let go of everything: something was removed, and what was recalled may quote it."""
        with self._lock:
            for of in ("views", "recalls", "forms"):
                self._kept[of].clear()
