"""The files that a track's tool calls touched lately: each once, whatever it was called, with the turn of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.messages.file_accesses import same_names

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import SessionRef
    from langchain_tiered_memory.types.runs import FileAccess


_LOOKED_AT = 300
"""Latest names among which two of one file are looked for: a view lists as many at most."""


def accessed_files(
    runtime: Runtime, ref: SessionRef, *, track: str, limit: int, off: Collection[int] = ()
) -> list[FileAccess]:
    """One access for each file, the latest first.

    Args:
        runtime: The memory.
        ref: The session.
        track: Whose calls.
        limit: How many at most.
        off: Numbers of messages that do not count.
    """
    found = runtime.store.files.latest(ref, track=track, limit=max(limit, _LOOKED_AT) + len(off))
    files = each_once(one for one in found if one.seq not in off)[:limit]
    turns = runtime.store.files.turns(ref, {one.seq for one in files}, track=track)
    return [replace(one, turn=turns[one.seq]) for one in files]


def each_once(accesses: Iterable[FileAccess]) -> list[FileAccess]:
    """Of the accesses to one file the latest, under its longest name, which holds anywhere; a change stays a change."""
    ordered = sorted(accesses, key=lambda one: (-one.seq, -one.at, one.operation != "write", one.path))
    names = same_names({one.path for one in ordered})
    latest: dict[str, FileAccess] = {}
    for access in ordered:
        name = names[access.path]
        newer = latest.setdefault(name, access)
        is_changed = "write" in (access.operation, newer.operation)
        path = max(newer.path, access.path, key=len)
        latest[name] = replace(newer, path=path, operation="write" if is_changed else newer.operation)
    return list(latest.values())
