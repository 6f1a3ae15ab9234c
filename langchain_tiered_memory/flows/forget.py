"""The one way to remove: rows, summaries above them, vectors, bytes; with a receipt that can be checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.decisions.message_moulds import let_go_of_kept
from langchain_tiered_memory.drafts import Removed
from langchain_tiered_memory.errors import (
    EmbedderMismatchError,
    IndexUnavailableError,
    InvalidInputError,
    NotFoundError,
)
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.indexing import drop_forgotten, usable_index
from langchain_tiered_memory.reports import Receipt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.flows.house import House


def forget_messages(house: House, session_id: str, message_ids: Sequence[str]) -> Flow[Receipt]:
    """Remove messages of a session. What their summaries covered besides is summarised again.

    Raises:
        NotFoundError: when one of them is not in the session; nothing was removed then.
    """
    ref = yield from do(house.store.transcript.find, session_id)
    found = (yield from do(house.store.transcript.by_id, ref, message_ids)) if ref is not None else []
    missing = sorted(set(message_ids) - {entry.id for entry in found})
    if ref is None or missing:
        msg = f"the session {session_id!r} has no message {', '.join(map(repr, missing)) or 'at all'}"
        raise NotFoundError(msg)
    removed = yield from do(house.store.removal.messages, ref, list(message_ids))
    return (yield from _receipt(house, removed, (session_id,)))


def forget_sessions(house: House, *, session_id: str | None, user: str | None) -> Flow[Receipt]:
    """Remove a session whole, or every session of a user. What is not there any more is no error.

    Raises:
        InvalidInputError: when neither or both are named.
    """
    if (session_id is None) == (user is None):
        msg = "name either a session_id or a user to forget"
        raise InvalidInputError(msg)
    if session_id is not None:
        ref = yield from do(house.store.transcript.find, session_id)
        refs = [ref] if ref is not None else []
    else:
        refs = yield from do(house.store.transcript.sessions, user=user)
    removed = Removed()
    for ref in refs:
        removed += yield from do(house.store.removal.session, ref)
    return (yield from _receipt(house, removed, removed.session_ids))


def _receipt(house: House, removed: Removed, session_ids: tuple[str, ...]) -> Flow[Receipt]:
    remains: tuple[str, ...] = ()
    vectors = 0
    let_go_of_kept()
    house.standing.clear()
    try:
        index = yield from usable_index(house)
        if index is not None:
            vectors = yield from drop_forgotten(house, index)
            remains += yield from do(index.compact)
    except (IndexUnavailableError, EmbedderMismatchError) as error:
        remains += (f"Chroma: the vectors of what was forgotten, until it can be reached again ({error})",)
    remains += yield from do(house.store.removal.erase_traces)
    house.report(
        "forgotten",
        f"{removed.entries} messages, {removed.summaries} summaries",
        sessions=len(session_ids),
        entries=removed.entries,
    )
    return Receipt(
        session_ids=session_ids,
        entries=removed.entries,
        revisions=removed.revisions,
        summaries=removed.summaries,
        passages=removed.passages,
        vectors=vectors,
        may_remain=remains,
        at=house.now(),
    )
