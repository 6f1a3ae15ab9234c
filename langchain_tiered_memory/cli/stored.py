"""Reads what is stored as it is, for commands that show or write it: no public verb gives it whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.store import SqlStore
    from langchain_tiered_memory.types.records import Entry, SessionRef, Summary

_ROOTS = 1000
"""More top summaries than a session of millions of messages has."""


def entries_of(memory: TieredMemory, session_id: str) -> Iterator[Entry]:
    """Every message of a session in order, all tracks.

    Raises:
        NotFoundError: when there is no such session.
    """
    store, ref = _place(memory, session_id)
    for page in store.inspection.entry_pages(ref):
        yield from page


def require_messages(memory: TieredMemory, session_id: str, message_ids: Sequence[str]) -> None:
    """See that a session has these messages.

    Raises:
        NotFoundError: when it has not; the message names those that are missing.
    """
    store, ref = _place(memory, session_id)
    missing = sorted(set(message_ids) - {entry.id for entry in store.transcript.by_id(ref, message_ids)})
    if missing:
        msg = f"the session {session_id!r} has no message {', '.join(map(repr, missing))}"
        raise NotFoundError(msg)


def embedder_of(memory: TieredMemory) -> str | None:
    """Who made the database's vectors; `None` where it has none."""
    return memory.core.runtime.store.vector_queue.embedder()


def cover_of(memory: TieredMemory, session_id: str) -> list[Summary]:
    """The highest summaries of a session, in order: what stands for its history.

    Raises:
        NotFoundError: when there is no such session.
    """
    store, ref = _place(memory, session_id)
    return sorted(store.tree.roots(ref, limit=_ROOTS), key=lambda summary: summary.first_seq)


def summary_of(memory: TieredMemory, session_id: str, summary_id: str) -> Summary:
    """One summary, by its id or the beginning of it.

    Raises:
        NotFoundError: when the session has none, or several that begin so.
    """
    store, ref = _place(memory, session_id)
    found = store.tree.by_prefix(ref, summary_id)
    if len(found) != 1:
        number = "no summary" if not found else f"{len(found)} summaries"
        msg = f"the session {session_id!r} has {number} with the id {summary_id!r}: `inspect` lists them"
        raise NotFoundError(msg)
    return found[0]


def _place(memory: TieredMemory, session_id: str) -> tuple[SqlStore, SessionRef]:
    store = memory.core.runtime.store
    ref = store.transcript.find(session_id)
    if ref is None:
        msg = f"there is no session {session_id!r} in this database"
        raise NotFoundError(msg)
    return store, ref
