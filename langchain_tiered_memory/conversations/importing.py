"""Puts a conversation into a session as it was said (times, tracks, kinds, tasks and pins too), and writes one out.

What is written, `read_conversations` gives back: lossless but for earlier revisions.
"""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING

from langchain_tiered_memory.types.records import DEFAULT_TRACK, utc

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.conversations.nouns import Conversation, Turn
    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.types.records import Entry


_BATCH = 200
"""Messages per write: what an interrupted import may have to repeat."""


def add_conversation(
    memory: TieredMemory, session_id: str, conversation: Conversation, *, on_step: Callable[[], None]
) -> None:
    """Add every turn of `conversation` to the session, in order; `on_step` is called once for each, new or not.

    Raises:
        InvalidInputError: when the memory refuses a message; those of the batches before remain.
    """
    for (track, kind, task), run in groupby(conversation.turns, key=lambda turn: (turn.track, turn.kind, turn.task)):
        session = memory.session(session_id, track=track)
        turns = list(run)
        for start in range(0, len(turns), _BATCH):
            batch = turns[start : start + _BATCH]
            times = [turn.at for turn in batch if turn.at]
            at = times if len(times) == len(batch) else None
            session.add_messages([turn.message for turn in batch], at=at, kind=kind, task=task)
            _pin(memory, session_id, batch)
            for _ in batch:
                on_step()


def _pin(memory: TieredMemory, session_id: str, turns: list[Turn]) -> None:
    session = memory.session(session_id)
    for turn in turns:
        if turn.pinned:
            session.pin(turn.id)


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
