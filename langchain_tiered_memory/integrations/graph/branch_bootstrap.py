"""First record of a branch: how a state's list that was never remembered relates to what its track has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.graph.branches import adopted, archived_of, stored_of
from langchain_tiered_memory.integrations.state import STATE_KEY, BranchRecord, begins_with, branch_in, current

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.integrations.graph.run_identity import Place
    from langchain_tiered_memory.memory import Session

_CHECKPOINTS_LOOKED_AT = 20
"""A branch that begins has a few LangGraph checkpoints of its own; those of the branch it left come right behind."""


def first_record(
    session: Session, messages_key: str, messages: Sequence[BaseMessage], place: Place
) -> BranchRecord | None:
    """For a list that was never remembered: what the track had before it is on its branch, as if moved out of it.

    Unless this very thread said it: then the list is a fork from before that. A sub-agent that is handed
    the list of a graph above, whose state keeps its record to itself, goes by that record.
    """
    runtime = session.core.runtime
    above = _record_above(place, messages_key)
    if above is not None and above.track == session.track and begins_with(messages, above):
        return above
    ref = runtime.store.transcript.find(session.session_id)
    if ref is None:
        return None
    stored = stored_of(session, messages)
    if not stored:
        part = adopted(session)
    else:
        part = None
        first_seq = min(entry.seq for entry in stored.values())
        earlier = runtime.store.transcript.numbers(ref, track=session.track, up_to=first_seq - 1)
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
    remembers = _thread_remembers(place, messages_key)
    if remembers is None:
        runtime.report(
            EventName.THREAD_NOT_READ,
            f"{type(place.saver).__name__} does not list its checkpoints to this kind of call: a fork from before the "
            "first message cannot be told from a new thread: what the session had before is shown",
            session_id=session.session_id,
        )
    return None if remembers else part


def _record_above(place: Place, messages_key: str) -> BranchRecord | None:
    """How the nodes of a graph above found the list of that key, as the step began that leads here."""
    namespace = place.namespace
    for part in reversed(place.parts):
        namespace = namespace.rpartition("|")[0]
        if not part.step:
            continue
        where = {"thread_id": place.session_id, "checkpoint_ns": namespace, "checkpoint_id": part.step}
        try:
            found = place.saver.get_tuple({"configurable": where})
        except NotImplementedError:
            return None
        state = found.checkpoint["channel_values"] if found is not None else {}
        record = branch_in(state, messages_key)
        if record is not None:
            return record
    return None


def _thread_remembers(place: Place, messages_key: str) -> bool | None:
    """Whether some LangGraph checkpoint of this thread carries a record of the list: another branch of it, then.

    Runs off the event loop, where sync and async savers answer; `None` where one does not.
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
