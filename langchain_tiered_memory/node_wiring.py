"""Finds what a node works on: the memory, the session and the track of a run, and the messages in its state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_tiered_memory.agent_request import place_of
from langchain_tiered_memory.branches import adopted, chained, keep_branch, named, stored_of
from langchain_tiered_memory.decisions.messages import coerce
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.state import STATE_KEY, ArchivedPart, BranchRecord, branch_in, current, part_of

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.agent_request import Place
    from langchain_tiered_memory.memory import Session, TieredMemory

MemorySource: TypeAlias = "TieredMemory | Callable[[], TieredMemory]"
"""A memory, or what opens one when it is first needed: it is called off the event loop, each time anew, so it keeps
what it opened (`functools.cache`)."""

_CHECKPOINTS_LOOKED_AT = 20
"""A branch that begins has a few LangGraph checkpoints of its own; those of the branch it left come right behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """Where a node finds what it works on."""

    messages_key: str | None
    """The state's list of messages; `None` where there is none."""
    track: str | None
    """Of all the node's messages; `None`: by the place in the graph."""
    user_key: str
    """Key of the config's `configurable` that says whose session it is, where it is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a node works on in one run."""

    session: Session
    place: Place
    messages: list[BaseMessage]
    record: BranchRecord | None
    """How the list stood when it was last remembered."""
    is_truth: bool
    """Whether the list is all of its branch: a checkpointer keeps it, and no other list does."""

    def remembered(self, *, kind: str | None = None, task: str | None = None) -> Flow[BranchRecord]:
        """Write what the transcript does not have yet of the list, and say how the list stands to it."""
        return keep_branch(
            self.session,
            self.messages,
            record=self.record,
            is_truth=self.is_truth,
            kind=kind,
            task=task,
        )


def opened(memory: MemorySource) -> Flow[TieredMemory]:
    """The memory itself."""
    return (yield from do(memory)) if callable(memory) else memory


def found_in(memory: TieredMemory, wiring: Wiring, state: object, config: RunnableConfig) -> Flow[Found]:
    """What a node of that wiring works on.

    Raises:
        InvalidInputError: when the config has no `thread_id`, or the state's list is none of messages.
        MixedOwnersError: when the session belongs to another user.
    """
    place = place_of(config)
    record = branch_in(state, wiring.messages_key) if wiring.messages_key is not None else None
    messages = _messages(state, wiring.messages_key)
    track = wiring.track
    if track is None:
        # A sub-graph that shares the list of the graph above it was handed its record too: it is one conversation.
        track = record.track if record is not None else place.own_track
    user = (config.get("configurable") or {}).get(wiring.user_key)
    session = memory.session(place.session_id, user=str(user) if user is not None else None, track=track)
    is_truth = wiring.messages_key is not None and place.has_checkpointer
    if record is None and wiring.messages_key is not None and is_truth:
        record = yield from session._own(_first_record(session, wiring.messages_key, messages, config))  # noqa: SLF001
    return Found(session=session, place=place, messages=messages, record=record, is_truth=is_truth)


def said_in_turn(state: object, config: RunnableConfig, keys: Sequence[tuple[str, bool]]) -> list[BaseMessage]:
    """What stands at these keys of a state, each with whether it is the user's: texts, messages, or lists of them.

    What has no id gets one from the run's step, so that a step that is tried again says the same thing once.
    """
    step = str((config.get("metadata") or {}).get("langgraph_checkpoint_ns") or "")
    found: list[BaseMessage] = []
    for key, is_users in keys:
        value = part_of(state, key)
        for number, one in enumerate(value if isinstance(value, list | tuple) else [value] if value else []):
            message = (HumanMessage(one) if is_users else AIMessage(one)) if isinstance(one, str) else coerce(one)
            if not message.id and step:
                said = hashlib.blake2b(f"{step}\0{key}\0{number}".encode(), digest_size=12).hexdigest()
                message = message.model_copy(update={"id": f"turn-{said}"})
            found.append(message)
    return found


def langgraph_checkpoint_of(config: RunnableConfig) -> str | None:
    """The LangGraph checkpoint that the present step began with; `None` where none is kept."""
    if not place_of(config).has_checkpointer:
        return None
    configurable = config.get("configurable") or {}
    *above, _ = str(configurable.get("checkpoint_ns") or "").split("|")
    known = (configurable.get("checkpoint_map") or {}).get("|".join(above)) or configurable.get("checkpoint_id")
    return str(known) if known else None


def _messages(state: object, key: str | None) -> list[BaseMessage]:
    if key is None:
        return []
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


def _first_record(
    session: Session, messages_key: str, messages: Sequence[BaseMessage], config: RunnableConfig
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
            archived = ArchivedPart(
                seq=earlier[-1].seq,
                last_id=earlier[-1].id,
                count=len(earlier),
                digest=chained("", [entry.id for entry in earlier]),
            )
            part = BranchRecord(
                track=session.track, count=0, ids="", said="", seq=0, epoch=-1, whole=False, archived=archived
            )
    if part is None or (yield from do(_thread_remembers, config, messages_key)):
        return None
    return part


def _thread_remembers(config: RunnableConfig, messages_key: str) -> bool:
    """Whether some LangGraph checkpoint of this thread carries a record of the list: another branch of it, then.

    Runs off the event loop, where savers of both colours answer.
    """
    configurable = config.get("configurable") or {}
    saver: Any = configurable.get("__pregel_checkpointer")
    *above, _ = str(configurable.get("checkpoint_ns") or "").split("|")
    thread: RunnableConfig = {
        "configurable": {"thread_id": configurable.get("thread_id"), "checkpoint_ns": "|".join(above)}
    }
    try:
        for kept in saver.list(thread, limit=_CHECKPOINTS_LOOKED_AT):
            written = current(kept.checkpoint["channel_values"].get(STATE_KEY))
            if messages_key in written.get("branches", {}):
                return True
    except NotImplementedError:
        return False  # a saver that answers in one colour alone
    return False
