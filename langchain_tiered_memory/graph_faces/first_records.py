"""How a state's list that was never remembered stands to what its track has already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.graph_faces.branches import adopted, archived_of, stored_of
from langchain_tiered_memory.state import STATE_KEY, BranchRecord, current

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.graph_faces.places import Place
    from langchain_tiered_memory.memory import Session

_CHECKPOINTS_LOOKED_AT = 20
"""A branch that begins has a few LangGraph checkpoints of its own; those of the branch it left come right behind."""


def first_record(
    session: Session, messages_key: str, messages: Sequence[BaseMessage], place: Place
) -> Flow[BranchRecord | None]:
    """For a list that was never remembered: what the track had before it is on its branch, as if moved out of it.

    Unless this very thread said it: then the list is a fork from before that.
    """
    house = session._house  # noqa: SLF001 - one face in several modules
    ref = yield from do(house.store.transcript.find, session.session_id)
    if ref is None:
        return None
    stored = yield from stored_of(session, messages)
    if not stored:
        part = yield from adopted(session)
    else:
        part = None
        first_seq = min(entry.seq for entry in stored.values())
        earlier = yield from do(house.store.transcript.entries, ref, track=session.track, up_to=first_seq - 1)
        if earlier:
            part = BranchRecord(
                track=session.track,
                count=0,
                ids="",
                said="",
                seq=0,
                epoch=-1,
                whole=False,
                archived=archived_of(earlier),
            )
    if part is None:
        return None
    remembers = yield from do(_thread_remembers, place, messages_key)
    if remembers is None:
        house.report(
            "thread_not_read",
            f"{type(place.saver).__name__} does not list its checkpoints in this colour, so a fork from before the "
            "first message cannot be told from a new thread: what the session had before is shown",
            session_id=session.session_id,
        )
    return None if remembers else part


def _thread_remembers(place: Place, messages_key: str) -> bool | None:
    """Whether some LangGraph checkpoint of this thread carries a record of the list: another branch of it, then.

    Runs off the event loop, where savers of both colours answer; `None` where one does not.
    """
    thread: RunnableConfig = {"configurable": {"thread_id": place.session_id, "checkpoint_ns": place.namespace}}
    try:
        for kept in place.saver.list(thread, limit=_CHECKPOINTS_LOOKED_AT):
            written = current(kept.checkpoint["channel_values"].get(STATE_KEY))
            if messages_key in written.get("branches", {}):
                return True
    except NotImplementedError:
        return None
    return False
