"""What an agent's model is shown for one call: its messages are remembered, then a context is made and added to."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.decisions.budget import budget_of
from langchain_tiered_memory.decisions.overflow import overflow_in, smaller_budget
from langchain_tiered_memory.errors import StorageError
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.requests import with_learnt_window
from langchain_tiered_memory.flows.windows import confirm_window, learn_window
from langchain_tiered_memory.graph_faces.branches import both_ids, keep_branch, named, off_branch
from langchain_tiered_memory.graph_faces.first_records import first_record
from langchain_tiered_memory.graph_faces.resent import recognised
from langchain_tiered_memory.records import DEFAULT_TRACK
from langchain_tiered_memory.sessions.told import told_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage, SystemMessage

    from langchain_tiered_memory.contexts import Context
    from langchain_tiered_memory.decisions.budget import Told
    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.graph_faces.agent_calls import CalledModels
    from langchain_tiered_memory.graph_faces.agent_request import ViewChanges
    from langchain_tiered_memory.graph_faces.places import Place
    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.state import BranchRecord

logger = logging.getLogger("langchain_tiered_memory")

MESSAGES_KEY = "messages"
"""The key of an agent's state that has its messages."""
_ROOM_STEP_TOKENS = 512
"""Room for what others add is set aside in steps: a budget that moves with each call would make each view anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """How an agent's requests are assembled."""

    max_tokens: int | None
    view: str
    profile: str | None
    recall: bool
    project: tuple[str, ...]
    project_tokens: int
    track: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as the journey sees it."""

    place: Place
    held: Sequence[BaseMessage]
    """The messages of the state."""
    changes: ViewChanges
    system: SystemMessage | None
    tools: Sequence[Any]
    model: BaseChatModel
    record: BranchRecord | None
    """How the state's messages stood to the transcript at the last call."""
    called: CalledModels
    """Which models were really called for it."""
    projected: dict[str, Any] = field(default_factory=dict)
    """Chosen keys of the state."""

    def under_ids(self, held: Sequence[BaseMessage], known: Sequence[BaseMessage]) -> Asked:
        """The same with `known` in the place of the state's messages `held`, one for one."""
        renamed = {str(old.id): str(new.id) for old, new in zip(held, known, strict=True)}
        edits = {renamed.get(key, key): edit for key, edit in self.changes.edits.items()}
        return replace(self, held=tuple(known), changes=replace(self.changes, edits=edits))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A context, and all that is needed to make a smaller one."""

    session: Session
    asked: Asked
    """The request, with its messages under the ids of the transcript."""
    record: BranchRecord
    off: frozenset[int] | None
    """Numbers of messages that are on other branches; `None` for none."""
    room: int
    """Tokens set aside for what is put beside the context."""
    learned: int | None
    """The window that refusals taught of the model before."""
    context: Context


def prepared_for(memory: TieredMemory, asked: Asked, choices: Choices) -> Flow[Prepared]:
    """Remember what is new of the state's messages, and make a context for them."""
    house = memory._open_house()  # noqa: SLF001 - one face in several modules
    held = named(asked.held)
    session = yield from _session(memory, asked.place, held, track=choices.track)
    return (yield from session._own(_on_track(house, session, held, asked, choices)))  # noqa: SLF001


def kept(
    memory: TieredMemory,
    place: Place,
    messages: Sequence[BaseMessage],
    *,
    record: BranchRecord | None,
    track: str | None,
) -> Flow[BranchRecord | None]:
    """Remember what is new of the state's messages where an agent ends; `None` where the database cannot take it now.

    Whatever it is, it is paid for and stands in the state: the next request writes it.
    """
    held = named(messages)
    try:
        session = yield from _session(memory, place, held, track=track)
        known = yield from session._own(_known(session, held, place))  # noqa: SLF001
        return (yield from session._own(_kept(session, known, record, place)))  # noqa: SLF001
    except StorageError as error:
        memory._open_house().report(  # noqa: SLF001
            "answer_not_stored", f"{type(error).__name__}: {error}", session_id=place.session_id
        )
        return None


def _session(memory: TieredMemory, place: Place, held: Sequence[BaseMessage], *, track: str | None) -> Flow[Session]:
    chosen = track or place.own_track
    if track is None and place.namespace:
        chosen = yield from _shared_track(memory._open_house(), place, held)  # noqa: SLF001
    return memory.session(place.session_id, user=place.user, track=chosen)


def _shared_track(house: House, place: Place, held: Sequence[BaseMessage]) -> Flow[str]:
    """The track of a sub-graph: the one its first message stands on, where it goes on with another's conversation."""
    ref = yield from do(house.store.transcript.find, place.session_id)
    if ref is None:
        return DEFAULT_TRACK
    own = yield from do(house.store.transcript.by_id, ref, both_ids(held[:1], place.own_track))
    return own[0].track if own else place.own_track


def _known(session: Session, held: Sequence[BaseMessage], place: Place) -> Flow[list[BaseMessage]]:
    """The state's messages; under the ids of the transcript, where a client keeps the conversation and resends it."""
    return list(held) if place.has_checkpointer else (yield from recognised(session, held))


def _kept(
    session: Session, held: Sequence[BaseMessage], record: BranchRecord | None, place: Place
) -> Flow[BranchRecord]:
    if record is None and place.has_checkpointer:
        record = yield from first_record(session, MESSAGES_KEY, held, place)
    return (yield from keep_branch(session, held, record=record, is_truth=place.has_checkpointer))


def _on_track(
    house: House, session: Session, held: Sequence[BaseMessage], asked: Asked, choices: Choices
) -> Flow[Prepared]:
    known = yield from _known(session, held, asked.place)
    asked = asked.under_ids(held, known)
    record = yield from _kept(session, known, asked.record, asked.place)
    off = yield from off_branch(session, known, record)
    room = _room_aside(house, asked, choices)
    told = yield from with_learnt_window(house, told_of(asked.model))
    most = _most_tokens(house, told, choices, room)
    context = yield from _context(session, asked, choices, max_tokens=most, off=off)
    return Prepared(
        session=session, asked=asked, record=record, off=off, room=room, learned=told.learned, context=context
    )


def _context(
    session: Session, asked: Asked, choices: Choices, *, max_tokens: int | None, off: frozenset[int] | None
) -> Flow[Context]:
    return (
        yield from session._context(  # noqa: SLF001
            None if choices.recall else "",
            max_tokens=max_tokens,
            system=asked.system,
            tools=asked.tools,
            model=asked.model,
            view=choices.view,
            profile=choices.profile,
            off=off,
            langgraph_checkpoint_id=asked.place.checkpoint_id,
            complete=True,
        )
    )


def _most_tokens(house: House, told: Told, choices: Choices, room: int) -> int | None:
    """`max_tokens` of the context: as chosen, else all that the window of this request's model allows."""
    wished = choices.max_tokens
    if wished is None:
        wished = house.settings.guard.window or told.window or told.learned
        if wished is None:
            _warn_of_window(told.name, house.settings.context.max_tokens)
    if not room:
        return wished
    return max(budget_of(wished, told, settings=house.settings).max_tokens - room, 1)


_warned: set[str | None] = set()


def _warn_of_window(name: str | None, tokens: int) -> None:
    if name not in _warned:
        _warned.add(name)
        logger.warning(
            "%s does not tell its window; a budget of %d tokens is used (pass max_tokens, or set guard.window)",
            name,
            tokens,
        )


def _room_aside(house: House, asked: Asked, choices: Choices) -> int:
    """Tokens of what is put beside the context, in steps."""
    count = house.counter.count_message
    changes = asked.changes
    added = sum(count(message) for message in (*changes.before, *changes.behind))
    held = {message.id: message for message in asked.held if message.id in changes.edits}
    added += sum(max(count(edit) - count(held[key]), 0) for key, edit in changes.edits.items())
    added = math.ceil(added / _ROOM_STEP_TOKENS) * _ROOM_STEP_TOKENS
    return added + (choices.project_tokens if choices.project else 0)


def shrunk(memory: TieredMemory, choices: Choices, prepared: Prepared, error: Exception) -> Flow[Prepared]:
    """Learn what the refusal tells of the window, and assemble again, strictly smaller."""
    house, asked = memory._open_house(), prepared.asked  # noqa: SLF001
    told = overflow_in(error)
    sent = prepared.context.tokens + prepared.room
    name = asked.called.last(told_of(asked.model).name)
    # Without a figure all that is known is that this request and the room for its answer were too much together.
    learned = told.limit_tokens or sent + prepared.context.guard.window.reserved_tokens
    if name:  # where a middleware behind called another model, the refusal says nothing of the request's own
        yield from learn_window(house, name, learned)
    most = max(smaller_budget(sent, told) - prepared.room, 1)
    session = prepared.session
    context = yield from session._own(  # noqa: SLF001
        _context(session, asked, choices, max_tokens=most, off=prepared.off)
    )
    return replace(prepared, context=context)


def confirmed(memory: TieredMemory, prepared: Prepared, answer: Sequence[BaseMessage]) -> Flow[None]:
    """Correct a learnt window that the provider's own count of an answered request shows to be too small."""
    asked = prepared.asked
    name, known = told_of(asked.model).name, prepared.learned
    if name is None or known is None or asked.called.last(name) != name:
        return
    usages = [getattr(message, "usage_metadata", None) or {} for message in answer]
    took = max((int(usage.get("input_tokens") or 0) for usage in usages), default=0)
    if took <= known:
        return
    house = memory._open_house()  # noqa: SLF001
    try:
        yield from confirm_window(house, name, took)
    except StorageError as error:  # the answer is there, and paid for; the next one teaches the same
        house.report("window_not_learned", f"{type(error).__name__}: {error}", session_id=asked.place.session_id)
