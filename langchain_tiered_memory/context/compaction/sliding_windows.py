"""Sliding windows: which messages leave a view when summaries cannot help.

Two of them. `drop_half` takes the older half between the first message and the recent ones, as in the
condensation-mechanism design; `keep_last` keeps the first message and the last few. Both look at whole groups, so no
call is parted from its results, and name what they leave out by each group's `first_seq`, oldest first.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.records import Group

_PAIR = 2
"""A user's message and its answer leave together where nothing else decides."""


def drop_half(
    groups: Sequence[Group],
    *,
    must_stay: frozenset[int],
    room_tokens: int,
    share: float,
    keeps_first: bool = True,
) -> tuple[int, ...]:
    """The groups to leave out so that the rest fits: the older half, and half of what is left, until it does.

    Each round takes the oldest groups that together have no more than `share` of the messages that may go: an even
    number of messages where such a run of whole groups exists, two messages if that is more, and at least one group.
    The rest is over its room only when nothing more may go.

    Args:
        groups: Oldest first.
        must_stay: `first_seq` of groups that stay; the newest group always does.
        room_tokens: Raw tokens that the rest may take; nothing leaves where all of them fit.
        share: Of the messages that may go, 0 to 1, that leave at once.
        keeps_first: Whether the oldest group begins the conversation, and so stays: not behind summaries.
    """
    going: list[Group] = []
    movable = _movable(groups, must_stay, keeps_first=keeps_first)
    excess = _tokens(groups) - room_tokens
    while movable and excess > 0:
        count = _round(movable, share)
        going += movable[:count]
        excess -= _tokens(movable[:count])
        movable = movable[count:]
    return tuple(group.first_seq for group in going)


def keep_last(
    groups: Sequence[Group], *, must_stay: frozenset[int], room_tokens: int, keep: int, keeps_first: bool = True
) -> tuple[int, ...]:
    """The groups to leave out so that the first and the last messages remain, once there are more than `keep + 1`.

    A group that reaches past the last `keep` messages leaves whole, save the newest. While the rest is larger than its
    room, fewer of the last messages remain: the oldest leave first. The arguments are those of `drop_half`.
    """
    movable = _movable(groups, must_stay, keeps_first=keeps_first)
    enough = keep + 1 if keeps_first else keep
    outside = _before_last(groups, keep) if sum(len(group.entries) for group in groups) > enough else frozenset()
    excess = _tokens(groups) - room_tokens
    going: list[Group] = []
    for group in movable:
        if group.first_seq not in outside and excess <= 0:
            break
        going.append(group)
        excess -= group.tokens
    return tuple(group.first_seq for group in going)


def chosen_by(selector_answer: object, groups: Sequence[Group], *, must_stay: frozenset[int]) -> tuple[int, ...]:
    """What of a `TruncationSelector`'s answer can be followed: groups that are there and may go, oldest first.

    The selector is somebody else's code: what is no collection of numbers says nothing. `groups` are as it was shown,
    `must_stay` as in `drop_half`.
    """
    if not isinstance(selector_answer, Collection) or isinstance(selector_answer, str | bytes):
        return ()
    named = {one for one in selector_answer if isinstance(one, int) and not isinstance(one, bool)}
    movable = _movable(groups, must_stay, keeps_first=False)
    return tuple(group.first_seq for group in movable if group.first_seq in named)


def _movable(groups: Sequence[Group], must_stay: frozenset[int], *, keeps_first: bool) -> list[Group]:
    between = groups[1 if keeps_first else 0 : -1]
    return [group for group in between if group.first_seq not in must_stay]


def _round(movable: Sequence[Group], share: float) -> int:
    """How many of `movable`, from the oldest on, leave in one round."""
    wanted = int(share * sum(len(group.entries) for group in movable))
    messages = within = even = 0
    for number, group in enumerate(movable, 1):
        messages += len(group.entries)
        if messages > max(wanted, _PAIR):
            break
        if messages % 2 == 0:
            even = number
        if messages <= wanted:
            within = number
    return even or within or 1


def _before_last(groups: Sequence[Group], keep: int) -> frozenset[int]:
    """Groups that are not among the last `keep` messages."""
    messages = itertools.accumulate(len(group.entries) for group in reversed(groups))
    return frozenset(group.first_seq for group, count in zip(reversed(groups), messages, strict=True) if count > keep)


def _tokens(groups: Sequence[Group]) -> int:
    return sum(group.tokens for group in groups)
