"""Fingerprints of tool calls: the same tool with the same arguments reads the same thing again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from langchain_tiered_memory.messages.quoting import message_or_stand_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_tiered_memory.types.records import Group


def same_looks(groups: Iterable[Group]) -> dict[int, str]:
    """A key by `seq` of each tool output. Failed calls are left out: they replace nothing."""
    looks: dict[int, str] = {}
    for group in groups:
        made: dict[str, str] = {}
        for entry in group.entries:
            if entry.calls:
                calls = getattr(message_or_stand_in(entry)[0], "tool_calls", ())
                made |= {
                    str(call["id"]): json.dumps([call["name"], call["args"]], sort_keys=True, default=str)
                    for call in calls
                }
            elif entry.answers in made and getattr(message_or_stand_in(entry)[0], "status", "success") != "error":
                looks[entry.seq] = made[entry.answers]
    return looks
