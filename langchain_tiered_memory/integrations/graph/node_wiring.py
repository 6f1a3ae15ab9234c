"""Finds what a node works on: the memory, the session and the track of a run, and the messages in its state.

A list that was never remembered gets its first record here: how it relates to what its track has.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_exponential

from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.graph.branches import keep_branch, named
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
from langchain_tiered_memory.messages.codec import coerce

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import CheckpointTuple

    from langchain_tiered_memory.integrations.checks import MemorySource
    from langchain_tiered_memory.memory import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Where a node finds what it works on."""

    messages_key: str | None = "messages"
    """The state's list of messages; `None` where there is none."""
    track: str | None = None
    """Of all the node's messages; `None`: by the place in the graph."""
    user_key: str = "user_id"
    """Key of the config's `configurable` that says whose session it is, where it is there."""


WIRES = tuple(field.name for field in fields(Wiring))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a node works on in one run."""

    session: Session
    place: Place
    messages: list[BaseMessage]
    record: BranchRecord | None
    """How the list stood when it was last remembered."""
    is_truth: bool
    """Whether the list is all of its branch: a checkpointer keeps it, or it is a conversation of its own."""
    is_apart: bool = False
    """Whether it is a conversation of its own, whatever its track has besides."""
    forgotten: frozenset[str] = frozenset()
    """Ids of messages that a client sent again after they were forgotten."""

    @property
    def is_alone(self) -> bool:
        """Whether it is shown nothing of other tracks: a conversation of its own, or tasks run beside it."""
        own = self.is_apart or keeps_to_itself(self.place, self.session.track)
        return own or has_company(self.session.core.engine, self.place)

    def remembered(self, *, kind: str | None = None, task: str | None = None) -> BranchRecord:
        """Write what the transcript does not have yet of the list, and say how the list stands to it."""
        record = keep_branch(
            self.session,
            self.messages,
            record=self.record,
            is_truth=self.is_truth,
            kind=kind,
            task=task,
            forgotten=self.forgotten,
        )
        return replace(record, apart=self.is_apart)


def opened(memory: MemorySource) -> TieredMemory:
    """The memory itself."""
    found: object = memory() if callable(memory) else memory
    if not isinstance(found, TieredMemory):
        msg = f"memory must be a function that opens a TieredMemory: it gave {found!r}"
        raise SettingsError(msg)
    return found


def found_in(memory: MemorySource, wiring: Wiring, state: object, config: RunnableConfig) -> Found:
    """The session and messages of a node."""
    there, place, key = opened(memory), place_of(config, wiring.user_key), wiring.messages_key
    record = branch_in(state, key) if key is not None else None
    line = line_of_nodes(there, place, record, track=wiring.track)
    session = session_at(there, place, track=line.track)
    if key is None:
        return Found(session=session, place=place, messages=[], record=None, is_truth=False, is_apart=line.is_apart)
    if record is None or place.saver is None:
        session.core.check_owner()
    return found_on(session, place, line, _messages(state, key), record=record, messages_key=key)


def found_on(
    session: Session,
    place: Place,
    line: Line,
    messages: list[BaseMessage],
    *,
    record: BranchRecord | None,
    messages_key: str,
) -> Found:
    """The messages of a state on their line; the session's owner is checked.

    Where a client keeps the conversation and sends it again they are under the ids of the transcript; where a
    checkpointer keeps it, a list that was never remembered goes on with what its track has.
    """
    is_truth = place.saver is not None or line.is_apart
    forgotten: frozenset[str] = frozenset()
    if not is_truth:
        messages, forgotten = recognised(session, messages)
    elif record is None and not line.is_apart:
        record = first_record(session, messages_key, messages, place)
    return Found(
        session=session,
        place=place,
        messages=messages,
        record=record,
        is_truth=is_truth,
        is_apart=line.is_apart,
        forgotten=forgotten,
    )


def write_turn(
    session: Session,
    state: object,
    config: RunnableConfig,
    keys: Sequence[tuple[str, bool]],
    *,
    kind: str | None,
    task: str | None,
) -> int:
    """Write what stands at these keys of a state, each with whether it is the user's: texts, messages, lists of them.

    What has no id gets one from the run's step, so that a step that is tried again says the same thing once. An answer
    is new at each step, though a cached one carries the id of its first time. Returns how many messages there are.
    """
    step = str((config.get("metadata") or {}).get("langgraph_checkpoint_ns") or "") or uuid.uuid4().hex
    found: list[BaseMessage] = []
    step_ids: list[str] = []
    for key, is_users in keys:
        value = part_of(state, key)
        for number, one in enumerate(value if isinstance(value, list | tuple) else [value] if value else []):
            message = (HumanMessage(one) if is_users else AIMessage(one)) if isinstance(one, str) else coerce(one)
            said = hashlib.blake2b(f"{step}\0{key}\0{number}".encode(), digest_size=12).hexdigest()
            step_ids.append(f"turn-{said}")
            found.append(message if message.id else message.model_copy(update={"id": step_ids[-1]}))
    session.core.check_owner()
    session.core.add_turn(found, kind=kind, task=task, renamed=step_ids.__getitem__, as_given=False)
    return len(found)


def _messages(state: object, key: str) -> list[BaseMessage]:
    value = part_of(state, key)
    if value is None:
        return []
    if isinstance(value, BaseMessage | str) or not isinstance(value, Sequence):
        msg = (
            f"the state's {key!r} holds a {type(value).__name__}, not a list of messages: name the list with "
            "messages_key, or pass input_key and output_key for single texts"
        )
        raise InvalidInputError(msg)
    return named(value)


_WRITTEN_WITHIN = 1.5
"""Seconds in which a checkpoint that is being written is there: a busy machine and a database far away need some."""
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
    """A checkpoint that a step began with: LangGraph may write it while that step runs already."""
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
    """How the nodes of a graph above found the list of that key, as the step began that leads here."""
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
