"""Openings of files, made up and real, and the source's own algorithm for its tiers, to measure ours beside.

The algorithm is the one of the document that the tiers came from, in its plainest form: least recently used, hot 20
files for 10 minutes, warm 30 for an hour, a collection every 5 minutes and when the two are more than 80 % full, an
optimisation every 15 minutes, and above 90 % the cleanup that halves both.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.agent_transcripts import Transcript

Workload: TypeAlias = "tuple[tuple[float, str], ...]"
"""When a file was opened, in seconds, and which."""

_HOT, _WARM = 20, 30
_HOT_SECONDS, _WARM_SECONDS = 600.0, 3600.0
_COLLECT_SECONDS, _OPTIMISE_SECONDS = 300.0, 900.0
_ALERT, _OPTIMISE, _CLEAN_UP = 0.80, 0.75, 0.90
_IN_USE = 5
"""Files opened last that count as in use: none of them should leave hot."""
_LONGEST_PAUSE = 300.0
"""Of the chained run: nights are no part of one."""


@dataclass(slots=True)
class SourceTiers:
    """The source's tiers by path, each with the time of its last access, the least recent first."""

    counts: Counter[str] = field(default_factory=Counter)
    _hot: dict[str, float] = field(default_factory=dict)
    _warm: dict[str, float] = field(default_factory=dict)
    _cold: set[str] = field(default_factory=set)
    _latest: list[str] = field(default_factory=list)
    _collected_at: float | None = None
    _optimised_at: float | None = None

    @property
    def utilisation(self) -> float:
        """Hot and warm files, as a share of what the two may hold."""
        return (len(self._hot) + len(self._warm)) / (_HOT + _WARM)

    def tend(self, now: float) -> None:
        """Do what is due by now, at the moments when it fell due."""
        self._collected_at = now if self._collected_at is None else self._collected_at
        self._optimised_at = now if self._optimised_at is None else self._optimised_at
        while now - self._collected_at >= _COLLECT_SECONDS:
            self._collected_at += _COLLECT_SECONDS
            self._collect(self._collected_at)
        while now - self._optimised_at >= _OPTIMISE_SECONDS:
            self._optimised_at += _OPTIMISE_SECONDS
            self._optimise(self._optimised_at)

    def open(self, path: str, now: float) -> str:
        """Open a file; returns the tier that it was in, or `new`."""
        tier = "hot" if path in self._hot else "warm" if path in self._warm else "cold"
        tier = tier if tier != "cold" or path in self._cold else "new"
        self.counts[tier] += 1
        self._latest = [*(one for one in self._latest if one != path), path][-_IN_USE:]
        if tier != "hot" and len(self._hot) >= _HOT:
            self._from_hot()
        self._hot.pop(path, None)
        self._warm.pop(path, None)
        self._cold.discard(path)
        self._hot[path] = now
        if self.utilisation > _ALERT:
            self._collect(now)
        return tier

    def _collect(self, now: float) -> None:
        for _ in [one for one in self._hot.values() if now - one > _HOT_SECONDS]:
            self._from_hot(is_over=True)
        for _ in [one for one in self._warm.values() if now - one > _WARM_SECONDS]:
            self._from_warm()

    def _optimise(self, now: float) -> None:
        if self.utilisation < _OPTIMISE:
            return
        for _ in [one for one in self._hot.values() if now - one > _HOT_SECONDS]:
            self._from_hot(is_over=True)
        if self.utilisation > _CLEAN_UP:
            self.counts["cleanups"] += 1
            while len(self._hot) > _HOT // 2:
                self._from_hot()
            while len(self._warm) > _WARM // 2:
                self._from_warm()

    def _from_hot(self, *, is_over: bool = False) -> None:
        leaving = min(self._hot, key=self._hot.__getitem__)
        self.counts["in_use"] += leaving in self._latest and not is_over  # its time
        if len(self._warm) >= _WARM:
            self._from_warm()
        self._warm[leaving] = self._hot.pop(leaving)

    def _from_warm(self) -> None:
        leaving = min(self._warm, key=self._warm.__getitem__)
        del self._warm[leaving]
        self._cold.add(leaving)


def scan(files: int = 600, every: float = 12.0) -> Workload:
    """Each file once."""
    return tuple((place * every, f"s{place}") for place in range(files))


def loop(files: int, rounds: int = 12, every: float = 20.0) -> Workload:
    """The same files again and again, in one order."""
    names = [f"l{place}" for place in range(files)]
    return tuple((place * every, names[place % files]) for place in range(files * rounds))


def drift(files: int, other_every: float, *, hours: float = 6.0, every: float = 20.0, seed: int = 0) -> Workload:
    """Files at work, opened in no order; every so often another takes the place of the oldest."""
    chance = random.Random(seed)
    at_work = [f"d{place}" for place in range(files)]
    found, number, due = [], files, other_every
    for step in range(int(hours * 3600 / every)):
        if step * every >= due:
            at_work, number, due = [*at_work[1:], f"d{number}"], number + 1, due + other_every
        found.append((step * every, chance.choice(at_work)))
    return tuple(found)


def scan_beside_work(files: int = 15, openings: int = 1500, every: float = 15.0, seed: int = 1) -> Workload:
    """Some files at work, and between them others that nobody opens again."""
    chance = random.Random(seed)
    return tuple(
        (place * every, f"w{chance.randrange(files)}" if chance.random() < 1 / 2 else f"s{place}")
        for place in range(openings)
    )


def ranked(files: int = 120, *, hours: float = 6.0, every: float = 20.0, seed: int = 2) -> Workload:
    """Files in no order, the second half as often as the first, the third a third as often."""
    chance = random.Random(seed)
    names, weights = [f"z{place}" for place in range(files)], [1 / (place + 1) for place in range(files)]
    return tuple((step * every, chance.choices(names, weights)[0]) for step in range(int(hours * 3600 / every)))


def with_tasks(own: int = 12, *, shared: int = 6, tasks: int = 30, every: float = 25.0, seed: int = 3) -> Workload:
    """Tasks of 40 openings: of files of their own, of files that all share, and of those of the task before."""
    chance = random.Random(seed)
    found = []
    for task in range(tasks):
        for _ in range(40):
            kind = chance.choices(("own", "shared", "before"), (7, 2, 1))[0]
            before = max(task - 1, 0)
            path = f"shared{chance.randrange(shared)}"
            if kind != "shared":
                path = f"task{task if kind == 'own' else before}_{chance.randrange(own)}"
            found.append((len(found) * every, path))
    return tuple(found)


def made_up(*, is_small: bool) -> dict[str, Workload]:
    """Workloads by name."""
    if is_small:
        return {"scan": scan(60), "loop of 48": loop(48, 2)}
    loops = {f"loop of {files}": loop(files) for files in (15, 40, 45, 48, 60)}
    return {
        "scan": scan(),
        **loops,
        "drift of 15": drift(15, 120.0),
        "fast drift of 20": drift(20, 45.0),
        "drift of 30": drift(30, 120.0),
        "scan beside work": scan_beside_work(),
        "ranked": ranked(),
        "tasks of 12": with_tasks(),
        "tasks of 20": with_tasks(20),
    }


def real(transcripts: Sequence[Transcript]) -> dict[str, Workload]:
    """The openings of each transcript, and of all, one behind the other without their long pauses."""
    found: dict[str, Workload] = {}
    chained: list[tuple[float, str]] = []
    now = 0.0
    for one in transcripts:
        opened = [(one.times[message], path) for message, path in one.touched if message < len(one.times)]
        if not opened:
            continue
        found[one.name] = tuple((at - opened[0][0], path) for at, path in opened)
        for before, (at, path) in zip([opened[0], *opened], opened, strict=False):
            now += min(max(at - before[0], 0.0), _LONGEST_PAUSE)
            chained.append((now, f"{one.name}/{path}"))
    return found | ({"all chained": tuple(chained)} if len(found) > 1 else {})


def moments(workload: Workload, *, every: float) -> Iterator[tuple[float, str | None]]:
    """The openings, and between them the moments when a run is looked at."""
    last: float | None = None
    for at, path in workload:
        while last is not None and at - last > every:
            last += every
            yield last, None
        yield at, path
        last = at


def files_in_use(latest: Sequence[str], demoted: Mapping[str, int]) -> int:
    """How often one of the files opened last left hot."""
    return sum(demoted.get(path, 0) for path in latest[-_IN_USE:])
