"""Which messages a provider needs together: an assistant's message that calls tools, and the results of its calls."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from langchain_core.messages import HumanMessage

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.messages.content_blocks import compact_json, requested_calls
from langchain_tiered_memory.text.truncation import first_chars
from langchain_tiered_memory.types.records import Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.messages.content_blocks import RequestedCall
    from langchain_tiered_memory.types.records import Draft, Entry

_MAX_CHARS = 120
T = TypeVar("T")


def assign_groups(
    drafts: Sequence[Draft], first_seq: int, open_calls: Mapping[tuple[str, str], int] | None = None
) -> list[int]:
    """The group of each draft: `seq` of the group's first entry.

    A result joins the latest message of its track that made the call, whatever stands between, if that still waits for
    it. Everything else, a result that nobody waits for included, is a group of its own. How a conversation is cut into
    batches makes no difference. The first of `drafts`, which are in their order, gets the number `first_seq`.
    `open_calls` are calls of stored entries that have no result yet: (track, call id) to the group that made the call.
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


def unfinished_calls(entries: Sequence[Entry]) -> dict[str, tuple[str, ...]]:
    """By message id, the calls of whole groups that have no result, each as `name(argument=value)`, shortened.

    A stored message that cannot be read is named by the ids of its calls. Never raises.
    """
    answered = {entry.answers for entry in entries}
    return {entry.id: _in_words(entry, waiting) for entry in entries if (waiting := frozenset(entry.calls) - answered)}


def _in_words(entry: Entry, waiting: frozenset[str]) -> tuple[str, ...]:
    try:
        requested = requested_calls(decode(entry.payload))
    except UnknownMessageError:
        return tuple(call for call in entry.calls if call in waiting)
    return tuple(_line(call) for call in requested if call.id in waiting)


def _line(call: RequestedCall) -> str:
    given = (
        call.raw if call.raw is not None else ", ".join(f"{key}={compact_json(one)}" for key, one in call.args.items())
    )
    return first_chars(" ".join(f"{call.name}({given})".split()), _MAX_CHARS)


def just_said(messages: Sequence[BaseMessage]) -> int:
    """Where the current turn of a list begins: at its last user messages.

    A list without a user message is one turn.
    """
    last = max((place for place, one in enumerate(messages) if isinstance(one, HumanMessage)), default=0)
    while last and isinstance(messages[last - 1], HumanMessage):
        last -= 1
    return last


def overlap(first: Sequence[T], last: Sequence[T]) -> int:
    """Length of the longest beginning of `first` that `last` ends with, in linear time (Knuth, Morris and Pratt)."""
    fallback = [0] * len(first)
    count = 0
    for at in range(1, len(first)):
        while count and first[at] != first[count]:
            count = fallback[count - 1]
        count += first[at] == first[count]
        fallback[at] = count
    count = 0
    for one in last if first else ():
        if count == len(first):
            count = fallback[count - 1]
        while count and one != first[count]:
            count = fallback[count - 1]
        count += one == first[count]
    return count
