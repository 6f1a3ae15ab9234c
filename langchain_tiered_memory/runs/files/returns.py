"""How many files hot and warm rest at: as few as are enough for the files that come back, by what came back lately.

Of a scan nothing comes back, of files at work all do: so each file that is opened again tells how many others were
opened since, and where nearly all come back before a number of others did, no more files than that need be held.

What was seen is remembered in this process alone: one that has seen nothing yet lets nothing go.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from langchain_tiered_memory.settings.tiers import TierSettings

_REST_SHARE = 0.70
"""Of what hot and warm may hold: the source's target, held to where nothing speaks for more."""
_REMEMBERED_SECONDS = 1800.0
"""What came back longer ago says nothing of what is at work now. With half as long, more files are lost to cold
(`benchmarks.tier_workloads`)."""
_EXCEPTIONS = 1
"""Files that may come back later than all others without room being kept for their like. With 0 the tiers are fuller,
with 2 more files are lost to cold (`benchmarks.tier_workloads`)."""
_REMEMBERED = 512
"""Files that came back, in one session."""
_SESSIONS = 200


@dataclass(frozen=True, slots=True)
class Rest:
    """What hot and warm are to hold together."""

    files: int
    newest_first: bool = False
    """Whether the files of warm that were opened last leave first: where all that comes back does so in a round that is
    longer than the tiers, those that wait longest are the next to be asked for."""


@dataclass(slots=True)
class _Seen:
    """What came back in one session."""

    far: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    """When, and how many others were opened since: for hot these are too few to count."""
    near: deque[float] = field(default_factory=lambda: deque(maxlen=_EXCEPTIONS + 1))
    let_go: int = 0
    """Files that left since anything came back: after as many as the tiers may hold, it is a scan."""


class Returns:
    """Files that came back, by session; safe for threads."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._by_session: OrderedDict[int, _Seen] = OrderedDict()

    def note(self, key: int, *, at: float, distance: int = 0) -> None:
        """Remember that a file was opened again, after `distance` others were; 0 for one that was in hot."""
        with self._lock:
            seen = self._of(key)
            seen.let_go = 0
            if distance:
                seen.far.append((at, distance))
            else:
                seen.near.append(at)

    def rest(self, key: int, *, now: float, files: int, rules: TierSettings) -> Rest:
        """What a session's tiers, which hold that many `files`, are to hold."""
        held = rules.hot.files + rules.warm.files
        most = math.floor(rules.cleanup_share * held)
        least = min(math.floor(_REST_SHARE * held), most)
        with self._lock:
            seen = self._of(key)
            near = sum(_is_recent(at, now) for at in seen.near)
            far = [distance for at, distance in seen.far if _is_recent(at, now)]
            if near + len(far) <= _EXCEPTIONS:
                seen.let_go += max(files - most, 0)
                is_round = bool(far) and far[0] >= most
                return Rest(least if seen.let_go >= held else most, newest_first=is_round)
        within = sorted((one for one in far if one < most), reverse=True)
        if len(far) - len(within) > _EXCEPTIONS and not any(one >= rules.hot.files for one in within):
            return Rest(most, newest_first=True)
        return Rest(max(least, within[_EXCEPTIONS] + 1) if len(within) > _EXCEPTIONS else least)

    def _of(self, key: int) -> _Seen:
        seen = self._by_session.setdefault(key, _Seen())
        self._by_session.move_to_end(key)
        if len(self._by_session) > _SESSIONS:
            self._by_session.popitem(last=False)
        return seen


def _is_recent(at: float, now: float) -> bool:
    return 0 <= now - at <= _REMEMBERED_SECONDS
