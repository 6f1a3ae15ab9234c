"""Writes the answers of a turn as new messages, whatever ids they carry: a cached answer has an old one.

An answer's id is no name: one from a cache carries the id of the call that filled it, and some models give every answer
the same. In a conversation that is written turn by turn an answer with a known id is therefore neither the old one nor
its edit. The id of anything else was chosen by whoever says it, who may say it once more.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.messages.codec import encode
from langchain_tiered_memory.messages.groups import overlap
from langchain_tiered_memory.messages.ingest import redacted
from langchain_tiered_memory.messages.message_text import role_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.runtime import Runtime

_NEW_ID_CHARS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnMessages:
    """What a turn said, as it is written."""

    messages: list[BaseMessage]
    new_ids: frozenset[str]
    """Ids that the track must not have yet."""


def as_turn(
    runtime: Runtime,
    session_id: str,
    track: str,
    messages: Sequence[BaseMessage],
    *,
    renamed: Callable[[int], str] | None = None,
    settled: frozenset[str] = frozenset(),
    may_be_again: bool = True,
) -> TurnMessages:
    """The messages of a turn, with answers under ids that the track does not have yet, but for those written again.

    Args:
        runtime: The memory.
        session_id: Which session.
        track: Which line of it.
        messages: What was said, each with an id.
        renamed: The id of the answer at a place, where its own is taken; a random one, if not given.
        settled: Ids that this turn has given its messages before.
        may_be_again: Whether a beginning that the track ends with, the same ids and words, is a write tried once more.
    """
    transcript = runtime.store.transcript
    ref = transcript.find(session_id)
    known: set[str] = set()
    again = 0
    if ref is not None and messages:
        found = transcript.by_id(ref, [str(one.id) for one in messages], track=track)
        known = {entry.id for entry in found}
        if known and may_be_again:
            newest = transcript.entries(ref, track=track, newest_first=True, limit=len(messages))
            said = [(str(one.id), _digest(runtime, one)) for one in messages]
            again = overlap(said, [(entry.id, entry.digest) for entry in reversed(newest)])
    named: list[BaseMessage] = []
    new_ids: set[str] = set()
    for place, message in enumerate(messages):
        message_id = str(message.id)
        if place < again or message_id in settled or role_of(message) != "assistant":
            known.add(message_id)
            named.append(message)
        elif message_id not in known:
            known.add(message_id)
            new_ids.add(message_id)
            named.append(message)
        elif renamed is not None:
            named.append(message.model_copy(update={"id": renamed(place)}))
        else:
            message_id = f"{message_id}-{uuid.uuid4().hex[:_NEW_ID_CHARS]}"
            new_ids.add(message_id)
            named.append(message.model_copy(update={"id": message_id}))
    return TurnMessages(messages=named, new_ids=frozenset(new_ids))


def _digest(runtime: Runtime, message: BaseMessage) -> str:
    redact = runtime.settings.redact
    return encode(message if redact is None else redacted(message, redact)).digest
