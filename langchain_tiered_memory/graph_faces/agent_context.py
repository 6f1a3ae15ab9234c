"""What an agent's model is shown for one call: its messages are remembered, then a context is made and added to."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_tiered_memory.decisions.budget import budget_of
from langchain_tiered_memory.decisions.overflow import overflow_in, smaller_budget
from langchain_tiered_memory.decisions.projection import state_note
from langchain_tiered_memory.decisions.request import MARK
from langchain_tiered_memory.decisions.validity import make_valid
from langchain_tiered_memory.flows.asking import Flow, do
from langchain_tiered_memory.flows.windows import learn_window
from langchain_tiered_memory.graph_faces.branches import both_ids, branch_ids, copy_id, keep_branch, named
from langchain_tiered_memory.graph_faces.first_records import first_record
from langchain_tiered_memory.sessions.views import told_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.language_models import BaseChatModel

    from langchain_tiered_memory.flows.house import House
    from langchain_tiered_memory.graph_faces.agent_request import ViewChanges
    from langchain_tiered_memory.graph_faces.places import Place
    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.records import Context
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
    store_answers: bool


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
    projected: dict[str, Any] = field(default_factory=dict)
    """Chosen keys of the state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """What the model is sent. As a step: call it, and give its answer's messages."""

    system: SystemMessage | None
    messages: list[BaseMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A context, and all that is needed to make a smaller one."""

    session: Session
    record: BranchRecord
    branch: list[str] | None
    room: int
    """Tokens set aside for what is put beside the context."""
    context: Context


def prepared_for(memory: TieredMemory, asked: Asked, choices: Choices) -> Flow[Prepared]:
    """Remember what is new of the state's messages, and make a context for them."""
    house = memory._open_house()  # noqa: SLF001 - one face in several modules
    held = named(asked.held)
    track = choices.track or asked.place.own_track
    if choices.track is None and asked.place.namespace:
        track = yield from _shared_track(house, asked.place, held)
    session = memory.session(asked.place.session_id, user=asked.place.user, track=track)
    return (yield from session._own(_on_track(house, session, held, asked, choices)))  # noqa: SLF001


def _shared_track(house: House, place: Place, held: Sequence[BaseMessage]) -> Flow[str]:
    """The track of a sub-graph: the one its first message stands on, where it goes on with another's conversation."""
    ref = yield from do(house.store.transcript.find, place.session_id)
    if ref is None:
        return "main"
    own = yield from do(house.store.transcript.by_id, ref, both_ids(held[:1], place.own_track))
    return own[0].track if own else place.own_track


def _on_track(
    house: House, session: Session, held: Sequence[BaseMessage], asked: Asked, choices: Choices
) -> Flow[Prepared]:
    record = asked.record
    if record is None and asked.place.has_checkpointer:
        record = yield from first_record(session, MESSAGES_KEY, held, asked.place)
    record = yield from keep_branch(session, held, record=record, is_truth=asked.place.has_checkpointer)
    branch = yield from branch_ids(session, held, record)
    room = _room_aside(house, asked, choices)
    most = yield from _most_tokens(house, asked, choices, room)
    context = yield from _context(session, asked, choices, max_tokens=most, branch=branch)
    return Prepared(session=session, record=record, branch=branch, room=room, context=context)


def _context(
    session: Session, asked: Asked, choices: Choices, *, max_tokens: int | None, branch: list[str] | None
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
            branch=branch,
            langgraph_checkpoint_id=asked.place.checkpoint_id,
        )
    )


def _most_tokens(house: House, asked: Asked, choices: Choices, room: int) -> Flow[int | None]:
    """`max_tokens` of the context: as chosen, else all that the window of this request's model allows."""
    told = told_of(asked.model)
    if told.name is not None:
        learned = yield from do(house.store.windows.read, told.name)
        told = replace(told, learned=learned)
    wished = choices.max_tokens
    if wished is None:
        wished = house.settings.guard.window or told.window or told.learned
        if wished is None:
            _warn_of_window(told.name, house.settings.context.max_tokens)
    if not room:
        return wished
    return max(budget_of(wished, told, settings=house.settings).max_tokens - room, 1)


_warned: set[str] = set()


def _warn_of_window(name: str | None, tokens: int) -> None:
    if name not in _warned:
        _warned.add(str(name))
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


def outgoing_of(memory: TieredMemory, asked: Asked, choices: Choices, prepared: Prepared) -> Outgoing:
    """The context as a request: the system prompt apart, and with it what others and the projection add."""
    house = memory._open_house()  # noqa: SLF001
    shown = [_as_edited(message, asked, prepared.session.track) for message in prepared.context.messages]
    last_user = max((at for at, one in enumerate(shown) if _is_users(one)), default=len(shown))
    shown[last_user:last_user] = asked.changes.before
    shown += asked.changes.behind
    if asked.projected and _is_partial(asked.held, prepared):
        framing = house.counter.count_message(_note(""))
        note = state_note(asked.projected, max_tokens=choices.project_tokens - framing, count=house.counter.count_text)
        shown += [_note(note)] if note else []
    if asked.changes.any:
        shown = make_valid(shown, unanswered=house.settings.context.unanswered).messages
    first = shown[0] if shown else None
    if isinstance(first, SystemMessage):
        return Outgoing(system=first, messages=shown[1:])
    return Outgoing(system=None, messages=shown)


def _note(text: str) -> HumanMessage:
    return HumanMessage(text, additional_kwargs={MARK: {"part": "state"}})


def _is_users(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and MARK not in message.additional_kwargs


def _as_edited(message: BaseMessage, asked: Asked, track: str) -> BaseMessage:
    """A message that stands there as itself, as the middlewares around word it."""
    for key, edit in asked.changes.edits.items():
        if message.id in (key, copy_id(key, track)):
            held = next((one for one in asked.held if one.id == key), None)
            return edit if held is not None and held.content == message.content else message
    return message


def _is_partial(held: Sequence[BaseMessage], prepared: Prepared) -> bool:
    """Whether some message of the state is not shown whole: only then may its plan be out of sight."""
    shown = set(prepared.context.entry_ids)
    track = prepared.session.track
    return any(one.id not in shown and copy_id(str(one.id), track) not in shown for one in held)


def shrunk(
    memory: TieredMemory, asked: Asked, choices: Choices, prepared: Prepared, error: Exception
) -> Flow[Prepared]:
    """Learn what the refusal tells of the window, and assemble again, strictly smaller."""
    house = memory._open_house()  # noqa: SLF001
    told = overflow_in(error)
    sent = prepared.context.tokens + prepared.room
    name = told_of(asked.model).name
    # Without a figure all that is known is that this request and the room for its answer were too much together.
    learned = told.limit_tokens or sent + prepared.context.guard.window.reserved_tokens
    if name:
        yield from learn_window(house, name, learned)
    most = max(smaller_budget(sent, told) - prepared.room, 1)
    session = prepared.session
    context = yield from session._own(  # noqa: SLF001
        _context(session, asked, choices, max_tokens=most, branch=prepared.branch)
    )
    return replace(prepared, context=context)
