"""Tool calls that no result came back for, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.messages.content_blocks import compact_json, requested_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.messages.content_blocks import RequestedCall
    from langchain_tiered_memory.types.records import Entry

_MAX_CHARS = 120


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
    line = " ".join(f"{call.name}({given})".split())
    return line if len(line) <= _MAX_CHARS else f"{line[:_MAX_CHARS]}\u2026"
