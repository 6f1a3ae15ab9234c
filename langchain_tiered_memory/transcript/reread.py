"""Handles damaged rows in a view: reports them once, and derives a message's columns anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import UnknownMessageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.codec import decode
from langchain_tiered_memory.messages.ingest import draft_of

if TYPE_CHECKING:
    from langchain_tiered_memory.errors import DamagedRowError
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.records import Draft


def tell_of_damage(runtime: Runtime, error: DamagedRowError) -> None:
    """Report a row that cannot be read, once for each opened memory."""
    if runtime.view_cache.first_time((error.table, error.row, error.column)):
        runtime.report(EventName.DAMAGED_ROW, str(error), table=error.table, row=error.row, column=error.column)


def reread(runtime: Runtime, payload: str) -> Draft | None:
    """What a stored message gives when it is read anew; `None` where it cannot be."""
    try:
        message = decode(payload)
    except UnknownMessageError:
        return None
    incoming, _ = draft_of(
        message,
        counter=runtime.counter,
        message_id=message.id or "",
        at=0.0,
        track="",
        kind=None,
        task=None,
        passage_words=runtime.settings.recall.passage_words,
        as_given=False,
    )
    return incoming.draft
