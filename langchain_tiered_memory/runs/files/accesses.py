"""Accesses to hot files that are not written down yet, and what came back, by session.

An access to a file that is in hot already moves nothing: what it changes is its place in the order, a time and a count.
So it waits: every change of the tiers writes what waits first, in its own transaction, so one process sees the order in
which files were opened. A process that is killed loses at most what waits: no file, no content and no tier.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_tiered_memory.runs.files.monitor import SESSIONS
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.sql.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_tiered_memory.settings.runs import TierSettings
    from langchain_tiered_memory.types.records import SessionRef


MOST_WAITING = 1000
"""Accesses that wait at most, in one session: fewer than one in a hundred writes, so the 99th percentile is a read."""
LONGEST_WAIT_SECONDS = 30.0
"""For the oldest of them, and for a run's figures: a twentieth of the time after which a file leaves hot. Who tends the
run writes them then, or else who opens a file."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Accesses to one file that are not written down."""

    count: int
    at: float
    """When the last one was."""


@dataclass(slots=True)
class _Session:
    """What waits for one session."""

    ref: SessionRef
    since: float
    """The moment of the oldest access, on the monotonic clock."""
    files: dict[str, Waiting] = field(default_factory=dict)
    """By path, the last opened file last."""


class WaitingAccesses:
    """By session and path; safe for threads."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._waiting: dict[int, _Session] = {}

    def note(self, ref: SessionRef, path: str, *, at: float, moment: float) -> int:
        """Have an access wait that was at a time, which is this `moment` on the monotonic clock.

        Returns how many accesses to the file wait.
        """
        with self._lock:
            files = self._waiting.setdefault(ref.key, _Session(ref, moment)).files
            before = files.pop(path, None)  # the last one opened stands last
            files[path] = Waiting((before.count if before is not None else 0) + 1, at)
            return files[path].count

    def is_due(self, key: int, *, moment: float) -> bool:
        """Whether what waits for a session is to be written now."""
        with self._lock:
            waiting = self._waiting.get(key)
            if waiting is None:
                return False
            is_full = sum(one.count for one in waiting.files.values()) >= MOST_WAITING
            return is_full or moment - waiting.since >= LONGEST_WAIT_SECONDS

    def sessions(self) -> list[SessionRef]:
        """Sessions with something that waits."""
        with self._lock:
            return [one.ref for one in self._waiting.values()]

    def take(self, key: int) -> Mapping[str, Waiting]:
        """What waits for a session, the last opened file last; nothing waits from then on."""
        with self._lock:
            waiting = self._waiting.pop(key, None)
            return waiting.files if waiting is not None else {}

    def put_back(self, ref: SessionRef, taken: Mapping[str, Waiting]) -> None:
        """Have accesses wait that could not be written, before those that came since: they are due at once."""
        if not taken:
            return
        with self._lock:
            waiting = self._waiting.setdefault(ref.key, _Session(ref, 0.0))
            since, waiting.since = waiting.files, -math.inf
            waiting.files = {path: one for path, one in taken.items() if path not in since}
            for path, one in since.items():
                waiting.files[path] = Waiting(one.count + (taken[path].count if path in taken else 0), one.at)


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
        self._by_session = Remembered[int, _Seen](SESSIONS)

    def note(self, key: int, *, at: float, distance: int = 0) -> None:
        """Remember that a file was opened again, after `distance` others were; 0 for one that was in hot."""
        with self._lock:
            seen = self._by_session.of(key, _Seen)
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
            seen = self._by_session.of(key, _Seen)
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


def _is_recent(at: float, now: float) -> bool:
    return 0 <= now - at <= _REMEMBERED_SECONDS
