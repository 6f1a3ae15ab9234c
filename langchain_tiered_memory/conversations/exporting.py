"""Writes stored messages as lines that `read_conversations` gives back: lossless but for earlier revisions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from langchain_tiered_memory.types.records import DEFAULT_TRACK, utc

if TYPE_CHECKING:
    from langchain_tiered_memory.types.records import Entry


def export_line(session_id: str, entry: Entry) -> str:
    """One message as JSON: session, id and time, what is set of track, kind, task and pin, and the message itself."""
    row: dict[str, object] = {"session": session_id, "id": entry.id, "at": utc(entry.at).isoformat()}
    if entry.track != DEFAULT_TRACK:
        row["track"] = entry.track
    if entry.kind is not None:
        row["kind"] = entry.kind
    if entry.task is not None:
        row["task"] = entry.task
    if entry.pinned:
        row["pinned"] = True
    row["message"] = json.loads(entry.payload)
    return json.dumps(row, ensure_ascii=False)
