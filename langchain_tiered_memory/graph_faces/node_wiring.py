"""Finds what a node works on: the memory, the session and the track of a run, and the messages in its state."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_tiered_memory.decisions.messages import coerce
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.graph_faces.branches import keep_branch, named
from langchain_tiered_memory.graph_faces.first_records import first_record
from langchain_tiered_memory.graph_faces.places import place_of
from langchain_tiered_memory.graph_faces.resent import recognised
from langchain_tiered_memory.state import BranchRecord, branch_in, part_of

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.graph_faces.places import Place
    from langchain_tiered_memory.memory import Session, TieredMemory

MemorySource: TypeAlias = "TieredMemory | Callable[[], TieredMemory]"
"""A memory, or what opens one when it is first needed: it is called off the event loop, each time anew, so it keeps
what it opened (`functools.cache`)."""


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
    place = place_of(config, wiring.user_key)
    record = branch_in(state, wiring.messages_key) if wiring.messages_key is not None else None
    messages = _messages(state, wiring.messages_key)
    track = wiring.track
    if track is None:
        # A sub-graph that shares the list of the graph above it was handed its record too: it is one conversation.
        track = record.track if record is not None else place.own_track
    session = memory.session(place.session_id, user=place.user, track=track)
    is_truth = wiring.messages_key is not None and place.has_checkpointer
    if record is None and wiring.messages_key is not None and is_truth:
        record = yield from session._own(first_record(session, wiring.messages_key, messages, place))  # noqa: SLF001
    if wiring.messages_key is not None and not is_truth:
        messages = yield from session._own(recognised(session, messages))  # noqa: SLF001
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
