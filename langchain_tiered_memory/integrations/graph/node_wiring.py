"""Finds what a node works on: the memory, the session and the track of a run, and the messages in its state.

A list that was never stored gets its first record here, which relates it to what its track has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from langchain_core.messages import BaseMessage, HumanMessage
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_exponential

from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.graph.branches import keep_branch, named, off_branch
from langchain_tiered_memory.integrations.graph.client_resends import recognised, stored_of
from langchain_tiered_memory.integrations.graph.tracks import (
    Line,
    Place,
    has_company,
    keeps_to_itself,
    line_of_nodes,
    place_of,
    session_at,
)
from langchain_tiered_memory.integrations.state import (
    STATE_KEY,
    ArchivedPart,
    BranchRecord,
    begins_with,
    branch_in,
    current,
    digests_of,
    part_of,
)
from langchain_tiered_memory.memory import TieredMemory
from langchain_tiered_memory.messages.groups import just_said
from langchain_tiered_memory.transcript.remember import asked_anew, asked_behind, said_beside

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple

    from langchain_tiered_memory.integrations.checks import MemorySource
    from langchain_tiered_memory.memory import Session


WIRES = ("messages_key", "track", "user_key")
"""The arguments of nodes that say where they find what they work on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a node works on in one run."""

    session: Session
    place: Place
    messages: list[BaseMessage]
    record: BranchRecord | None
    """The list's record from when it was last stored."""
    is_truth: bool
    """Whether the list is its whole branch: a checkpointer keeps it, or it is a separate conversation."""
    is_apart: bool = False
    """Whether it is a separate conversation, whatever else its track has."""
    forgotten: frozenset[str] = frozenset()
    """Ids of forgotten messages that a client sent again."""
    again: Mapping[str, str] = field(default_factory=dict)
    """As in a `BranchRecord`."""

    @property
    def is_alone(self) -> bool:
        """Whether it sees nothing of other tracks: it is a separate conversation, or other tasks run beside it."""
        own = self.is_apart or keeps_to_itself(self.place, self.session.track)
        return own or has_company(self.session.core.engine, self.place)

    def remembered(self, *, kind: str | None = None, task: str | None = None) -> BranchRecord:
        """Write the messages of the list that the transcript lacks, and return the list's new record."""
        record = keep_branch(
            self.session,
            self.messages,
            record=self.record,
            is_truth=self.is_truth,
            kind=kind,
            task=task,
            forgotten=self.forgotten,
        )
        return replace(record, apart=self.is_apart, again=self.again)

    def off(self, record: BranchRecord) -> frozenset[int] | None:
        """Numbers of the track's messages that a context for this list does not show. `None` if it shows all."""
        if self.is_truth:
            return off_branch(self.session, self.messages, record)
        core = self.session.core
        return frozenset(said_beside(core.runtime, core.ref, self.session.track, self.messages).values()) or None


def opened(memory: MemorySource) -> TieredMemory:
    """The memory itself."""
    found: object = memory() if callable(memory) else memory
    if not isinstance(found, TieredMemory):
        msg = f"memory must be a function that opens a TieredMemory: it returned {found!r}"
        raise SettingsError(msg)
    return found


def found_in(
    memory: MemorySource,
    state: object,
    config: RunnableConfig,
    *,
    messages_key: str | None = "messages",
    track: str | None = None,
    user_key: str = "user_id",
) -> Found:
    """The session and messages of a node, with no messages if the state has no list. The arguments are the node's."""
    there, place = opened(memory), place_of(config, user_key)
    record = branch_in(state, messages_key) if messages_key is not None else None
    line = line_of_nodes(there, place, record, track=track)
    session = session_at(there, place, track=line.track)
    if messages_key is None:
        return Found(session=session, place=place, messages=[], record=None, is_truth=False, is_apart=line.is_apart)
    if record is None or place.saver is None:
        session.core.check_owner()
    return found_on(session, place, line, _messages(state, messages_key), record=record, messages_key=messages_key)


def found_on(
    session: Session,
    place: Place,
    line: Line,
    messages: list[BaseMessage],
    *,
    record: BranchRecord | None,
    messages_key: str,
) -> Found:
    """The messages of a state on their line. The session's owner is checked.

    If a client keeps the conversation and sends it again, the messages get the transcript's ids. If a checkpointer
    keeps it, a list that was never stored continues what its track has.
    """
    is_truth = place.saver is not None or line.is_apart
    forgotten: frozenset[str] = frozenset()
    again: Mapping[str, str] = {}
    if is_truth:
        messages, again = _put_back(session, messages, record)
    else:
        sent = record.count if record is not None else None
        messages, forgotten = recognised(session, messages, sent=sent)
        if record is None or not begins_with(messages, record):  # else this run has stored them under these ids
            messages = asked_anew(session.core.runtime, session.core.ref, session.track, messages)
    if is_truth and record is None and not line.is_apart:
        record = first_record(session, messages_key, messages, place)
    return Found(
        session=session,
        place=place,
        messages=messages,
        record=record,
        is_truth=is_truth,
        is_apart=line.is_apart,
        forgotten=forgotten,
        again=again,
    )


def _put_back(
    session: Session, messages: list[BaseMessage], record: BranchRecord | None
) -> tuple[list[BaseMessage], Mapping[str, str]]:
    """The list with ids of their own for user messages that were removed from it and put back at its end.

    In the transcript, they stand behind what they are behind in the list: at their old place, the model would not be
    asked them. The ids are returned by those in the list.
    """
    again, first = dict(record.again) if record is not None else {}, just_said(messages)
    known = _renamed(messages, again)
    if not first or (record is not None and record.count > first and begins_with(known, record)):
        return known, again  # the current turn was stored before
    turn = [one for one in known[first:] if isinstance(one, HumanMessage)]
    ids = [str(one.id) for one in turn]
    head = session.core.runtime.store.transcript.head(session.session_id, track=session.track, seq=0, ids=ids)
    if head is None or not head.has_ids:
        return known, again
    stored = stored_of(session, [known[first - 1], *turn])
    before = stored.get(str(known[first - 1].id))
    for held, one in zip(messages[first:], known[first:], strict=True):
        there = stored.get(str(one.id))
        if before is not None and there is not None and there.seq < before.seq:
            again[str(held.id)] = asked_behind(str(held.id), before.id)
    return _renamed(messages, again), again


def _renamed(messages: list[BaseMessage], ids: Mapping[str, str]) -> list[BaseMessage]:
    if not ids:
        return messages
    return [one.model_copy(update={"id": ids[str(one.id)]}) if one.id in ids else one for one in messages]


def _messages(state: object, key: str) -> list[BaseMessage]:
    value = part_of(state, key)
    if value is None:
        return []
    if isinstance(value, BaseMessage | str) or not isinstance(value, Sequence):
        msg = (
            f"the state's {key!r} holds a {type(value).__name__}, not a list of messages: name the list with "
            "messages_key, or write single texts with memory.session(...).add_messages"
        )
        raise InvalidInputError(msg)
    return named(value)


_WRITTEN_WITHIN = 1.5
"""Seconds to wait for a checkpoint that is being written. A busy machine or a remote database needs some."""
_CHECKPOINTS_LOOKED_AT = 20
"""A new branch has a few LangGraph checkpoints of its own. Those of the branch that it left follow right after."""


def first_record(
    session: Session, messages_key: str, messages: Sequence[BaseMessage], place: Place
) -> BranchRecord | None:
    """For a list that was never stored, the track's earlier messages are on its branch, as if moved out of it.

    The exception is messages that this same thread said: then the list is a fork from before them. A sub-agent that
    gets the list of a graph above it uses that graph's record, which its own state does not have.
    """
    runtime = session.core.runtime
    above = _record_above(place, messages_key)
    if above is not None and above.track == session.track and begins_with(messages, above):
        return above
    ref = session.core.ref
    if ref is None:
        return None
    stored = stored_of(session, messages)
    up_to = min(entry.seq for entry in stored.values()) - 1 if stored else None
    earlier = runtime.store.transcript.numbers(ref, track=session.track, up_to=up_to)
    if not earlier:
        return None
    ids, said = ("", "") if stored else digests_of(())
    last_seq, last_id = earlier[-1]
    part = BranchRecord(
        track=session.track,
        count=0,
        ids=ids,
        said=said,
        seq=0 if stored else last_seq,
        epoch=-1 if stored else ref.epoch,
        whole=not stored,
        archived=ArchivedPart(seq=last_seq, last_id=last_id, count=len(earlier)),
    )
    remembers = _thread_remembers(place, messages_key)
    if remembers is None:
        runtime.report(
            EventName.THREAD_NOT_READ,
            f"{type(place.saver).__name__} does not list its checkpoints to this kind of call: a fork from before the "
            "first message cannot be told from a new thread: what the session had before is shown",
            session_id=session.session_id,
        )
    return None if remembers else part


def _written(place: Place, where: RunnableConfig) -> CheckpointTuple | None:
    """The checkpoint at which a step began. LangGraph may write it while the step is already running."""
    seconds = 0.0 if place.writes_at_end else _WRITTEN_WITHIN
    look = Retrying(
        retry=retry_if_result(lambda found: found is None),
        wait=wait_exponential(multiplier=0.01, max=0.3),
        stop=stop_after_delay(seconds),
        retry_error_callback=lambda _: None,
    )
    found: CheckpointTuple | None = look(place.saver.get_tuple, where)
    return found


def _record_above(place: Place, messages_key: str) -> BranchRecord | None:
    """The record of the list at that key by the nodes of a graph above, when the step that leads here began."""
    namespace = place.namespace
    for part in reversed(place.parts):
        namespace = namespace.rpartition("|")[0]
        if not part.step:
            continue
        where = {"thread_id": place.session_id, "checkpoint_ns": namespace, "checkpoint_id": part.step}
        try:
            found = _written(place, {"configurable": where})
        except NotImplementedError:
            return None
        state = found.checkpoint["channel_values"] if found is not None else {}
        record = branch_in(state, messages_key)
        if record is not None:
            return record
    return None


def _thread_remembers(place: Place, messages_key: str) -> bool | None:
    """Whether a LangGraph checkpoint of this thread has a record of the list, which is then on another branch.

    Runs off the event loop, where sync and async savers answer. `None` if the saver does not.
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
