"""Which tier a file is in: a state machine over frozen values. No database, no clock, no content.

The state holds the files in hot and warm, and those cold ones that are asked about: cold is unlimited, and an access
must not cost more in a long run. Each function takes a state in which the limits hold and gives one in which they hold.
A pinned file is in hot, and nothing but `unpin`, or a limit that was lowered below the number of pins, takes it out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import PinLimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from langchain_tiered_memory.runs.files.accesses import Rest
    from langchain_tiered_memory.settings.runs import TierRule, TierSettings
    from langchain_tiered_memory.types.files import MoveReason, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A file and its tier."""

    path: str
    tier: Tier
    accessed_at: float
    order: int
    """The number of its last access in the session: who came first, whatever the clock says."""
    accesses: int = 1
    size: int = 0
    pinned: bool = False


@dataclass(frozen=True, slots=True)
class Tiers:
    """Files by path, and why those that changed their tier did."""

    files: Mapping[str, Placed]
    reasons: Mapping[str, MoveReason] = field(default_factory=dict)

    def of(self, tier: Tier) -> list[Placed]:
        """The files of a tier."""
        return [one for one in self.files.values() if one.tier == tier]

    def count(self, tier: Tier) -> int:
        """How many files are in a tier."""
        return sum(one.tier == tier for one in self.files.values())

    def put(self, file: Placed, reason: MoveReason) -> Tiers:
        """With this file in the place of the one of its path."""
        return Tiers({**self.files, file.path: file}, {**self.reasons, file.path: reason})

    def without(self, path: str) -> Tiers:
        """Without this file."""
        return Tiers({name: one for name, one in self.files.items() if name != path}, self.reasons)


EVICTIONS: Mapping[str, Callable[[Placed], tuple[float, ...]]] = {
    "least_recently_used": lambda one: (one.order,),
    "least_often_used": lambda one: (one.accesses, one.order),
    "largest": lambda one: (-one.size, one.order),
}
"""By the name of a policy, the sort key of files: the first one leaves first."""


_DOUBLED_SECONDS = 100.0
"""A file that was opened twice as often as another is held as if it was opened so much later: what is read once leaves
before what a run comes back to, and an old favourite leaves all the same. Of 0 to 3,600 s, 80 to 140 lost fewest."""


_BELOW: Mapping[Tier, Tier] = {"hot": "warm", "warm": "cold"}


def access(tiers: Tiers, path: str, *, now: float, order: int, size: int, rules: TierSettings) -> Tiers:
    """The state after a file was opened: it is in hot, or below where pinned files leave no place there."""
    known = tiers.files.get(path)
    file = Placed(
        path=path,
        tier=known.tier if known is not None else "cold",
        accessed_at=now,
        order=order,
        accesses=known.accesses + 1 if known is not None else 1,
        size=size,
        pinned=known is not None and known.pinned,
    )
    return _enter(tiers.without(path), file, "hot", "opened", rules)


def pin(tiers: Tiers, path: str, rules: TierSettings) -> Tiers:
    """The state with a file pinned, in hot."""
    file = tiers.files[path]
    pinned = sum(one.pinned for one in tiers.files.values() if one.path != path)
    if pinned >= rules.hot.files:
        msg = (
            f"{pinned} files are pinned, and hot holds at most {rules.hot.files}: unpin one before {path!r}, or raise "
            "tiers.hot.files"
        )
        raise PinLimitError(msg)
    return _enter(tiers.without(path), replace(file, pinned=True), "hot", "pinned", rules)


def unpin(tiers: Tiers, path: str) -> Tiers:
    """The state with a file let go: it stays where it is until its time is over."""
    file = tiers.files[path]
    return Tiers({**tiers.files, path: replace(file, pinned=False)}, tiers.reasons)


def collect(tiers: Tiers, *, now: float, rules: TierSettings) -> Tiers:
    """The state with what nobody opened for its tier's time one tier lower, warm before hot.

    A file leaves hot for a free place in warm: it sends nobody to cold whose time there is not over. One whose time in
    warm is over too, because nobody looked for so long, is in cold at once.
    """
    for tier, rule in reversed(_bounded(rules)):
        old = [one for one in tiers.files.values() if one.tier == tier and not one.pinned]
        for file in sorted((one for one in old if now - one.accessed_at >= rule.seconds), key=lambda one: one.order):
            if tier == "warm" or now - file.accessed_at >= rules.warm.seconds:
                tiers = tiers.put(replace(file, tier="cold"), "unused")
            elif tiers.count("warm") < rules.warm.files:
                tiers = _enter(tiers.without(file.path), file, "warm", "unused", rules)
    return tiers


def to_rest(tiers: Tiers, rest: Rest, rules: TierSettings) -> Tiers:
    """The state with no more files in hot and warm than they are to rest at; who leaves is in warm."""
    while tiers.count("hot") + tiers.count("warm") > rest.files:
        free = [one for one in tiers.of("warm") if not one.pinned]
        if not free:
            break
        leaving = max(free, key=lambda one: one.order) if rest.newest_first else min(free, key=_resting(rules))
        tiers = tiers.put(replace(leaving, tier="cold"), "rest")
    return tiers


def _resting(rules: TierSettings) -> Callable[[Placed], tuple[float, ...]]:
    if rules.eviction != "least_recently_used":
        return EVICTIONS[rules.eviction]
    return lambda one: (one.accessed_at + _DOUBLED_SECONDS * math.log2(max(one.accesses, 1)), one.order)


def clean_up(tiers: Tiers, rules: TierSettings) -> Tiers:
    """The state after the aggressive cleanup: hot and warm hold what it leaves, or their pinned files."""
    while tiers.count("hot") > rules.hot.files_after_cleanup and (file := _first_to_go(tiers, "hot", rules)):
        tiers = _enter(tiers.without(file.path), file, "warm", "cleanup", rules)
    while tiers.count("warm") > rules.warm.files_after_cleanup and (file := _first_to_go(tiers, "warm", rules)):
        tiers = tiers.put(replace(file, tier="cold"), "cleanup")
    return tiers


def fit(tiers: Tiers, rules: TierSettings) -> Tiers:
    """The state within limits that may have been lowered since it was written: pinned files go last."""
    for tier, rule in _bounded(rules):
        while tiers.count(tier) > rule.files:
            file = _first_to_go(tiers, tier, rules) or min(tiers.of(tier), key=EVICTIONS[rules.eviction])
            tiers = tiers.put(replace(file, tier=_BELOW[tier]), "limits")
    return tiers


def restore(
    tiers: Tiers, *, hot: Iterable[str], warm: Iterable[str], pinned: Iterable[str], rules: TierSettings
) -> Tiers:
    """The state with the named files, most recent first, in the tiers that they are named for, if they are there.

    All of them that are kept are among `tiers`. What was pinned since `pinned` was read stays so.
    """
    wanted = [path for path in dict.fromkeys([*pinned, *hot]) if path in tiers.files]
    kept_pins = [one.path for one in tiers.of("hot") if one.pinned and one.path not in wanted]
    in_hot = [*kept_pins, *wanted][: rules.hot.files]
    in_warm = [path for path in dict.fromkeys([*wanted, *warm]) if path in tiers.files and path not in in_hot]
    to_pin = {*kept_pins, *pinned} & set(in_hot)
    hot_or_warm: tuple[tuple[list[str], Tier], ...] = ((in_hot, "hot"), (in_warm[: rules.warm.files], "warm"))
    places = {path: tier for paths, tier in hot_or_warm for path in paths}
    for file in list(tiers.files.values()):
        tier = places.get(file.path, "cold")
        is_pinned = file.pinned or file.path in to_pin
        if (tier, is_pinned) != (file.tier, file.pinned):
            tiers = tiers.put(replace(file, tier=tier, pinned=is_pinned), "restored")
    return tiers


def _enter(tiers: Tiers, file: Placed, tier: Tier, reason: MoveReason, rules: TierSettings) -> Tiers:
    """Put a file that is in no tier now into one, or into the first below that has a place or somebody to send away."""
    rule = dict(_bounded(rules)).get(tier)
    if rule is None:
        return tiers.put(replace(file, tier="cold"), reason)
    below = _BELOW[tier]
    if tiers.count(tier) >= rule.files:
        leaving = _first_to_go(tiers, tier, rules)
        if leaving is None:
            return _enter(tiers, file, below, reason, rules)
        tiers = _enter(tiers.without(leaving.path), leaving, below, "least_recently_used", rules)
    return tiers.put(replace(file, tier=tier), reason)


def _bounded(rules: TierSettings) -> tuple[tuple[Tier, TierRule], ...]:
    """The tiers that may not hold everything, from the top."""
    return ("hot", rules.hot), ("warm", rules.warm)


def _first_to_go(tiers: Tiers, tier: Tier, rules: TierSettings) -> Placed | None:
    free = (one for one in tiers.of(tier) if not one.pinned)
    return min(free, key=EVICTIONS[rules.eviction], default=None)
