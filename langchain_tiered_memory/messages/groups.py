"""Which messages a provider needs together: an assistant's message that calls tools, and the results of its calls."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from langchain_tiered_memory.types.records import Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_tiered_memory.types.records import Draft, Entry


def assign_groups(
    drafts: Sequence[Draft], first_seq: int, open_calls: Mapping[tuple[str, str], int] | None = None
) -> list[int]:
    """The group of each draft: `seq` of the group's first entry.

    A result joins the latest message of its track that made the call, whatever stands between, if that still waits for
    it. Everything else, a result that nobody waits for included, is a group of its own. How a conversation is cut into
    batches makes no difference.

    Args:
        drafts: New messages in their order; the first gets the number `first_seq`, the next `first_seq + 1`.
        first_seq: See above.
        open_calls: Calls of stored entries that have no result yet: (track, call id) to the group that made the call.
    """
    waiting = dict(open_calls or {})
    groups: list[int] = []
    for seq, draft in enumerate(drafts, first_seq):
        group = seq if draft.answers is None else waiting.pop((draft.track, draft.answers), seq)
        groups.append(group)
        waiting.update({(draft.track, call): group for call in draft.calls})
    return groups


def as_groups(entries: Iterable[Entry]) -> list[Group]:
    """`entries` as groups, ordered by their first entry; inside a group by `seq`. Loses none and splits none."""
    by_group = sorted(entries, key=attrgetter("group", "seq"))
    groups = [Group(entries=tuple(members)) for _, members in groupby(by_group, key=attrgetter("group"))]
    return sorted(groups, key=attrgetter("first_seq"))
