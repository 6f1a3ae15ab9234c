"""One model call of an agent, as a flow: remember, assemble, call, and try again once if the window overflowed.

Refusals and answers show how large the agent's next request may be.
"""

from __future__ import annotations

import logging
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_tiered_memory.context.request import with_learnt_window
from langchain_tiered_memory.driver import Flow, each_step
from langchain_tiered_memory.errors import BudgetError, StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.agent.called_models import aside_of, measured, note_behind, stepped
from langchain_tiered_memory.integrations.agent.reply import keep_request, outgoing_of
from langchain_tiered_memory.integrations.agent.request import Asked, Choices, warn_of_summaries
from langchain_tiered_memory.integrations.graph.branches import named
from langchain_tiered_memory.integrations.graph.client_resends import ids_of, stored_of
from langchain_tiered_memory.integrations.graph.memory_node import EVENT_NAME, Notices, Streams
from langchain_tiered_memory.integrations.graph.node_wiring import found_on
from langchain_tiered_memory.integrations.graph.tracks import Line, Place, line_of_agent, session_at
from langchain_tiered_memory.integrations.state import BranchRecord, branch_in
from langchain_tiered_memory.models.overflow import is_overflow, overflow_in, smaller_budget
from langchain_tiered_memory.models.window_budget import ModelProfile, budget_of, confirm_window, learn_window
from langchain_tiered_memory.sessions.last_request import epoch_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.contexts import Context

logger = logging.getLogger("langchain_tiered_memory")

MESSAGES_KEY = "messages"
"""The key of an agent's state that holds its messages."""
_warned: set[str | None] = set()


def take_turn(memory: TieredMemory, asked: Asked, notices: Notices) -> Flow[tuple[Any, BranchRecord]]:
    """Store new messages and call the model with a context. Returns its response and the record of the messages.

    Raises:
        TieredMemoryError: if the messages cannot be stored, or no context can be made.
        Exception: whatever the model raises. A request that overflowed is tried once more, smaller.
    """
    state, changes = asked.request.state, asked.changes
    warn_of_summaries(memory.core.runtime, asked.place.session_id, state, asked.held, changes.before, changes.behind)
    record = branch_in(state, MESSAGES_KEY)
    session, line, held = _placed(memory, asked.choices, asked.place, asked.held, record)
    journey = _on_track(session, held, asked, record=record, line=line)
    prepared = yield from each_step(journey, session.core.runtime.store.database.snapshot)
    where = {"session_id": session.session_id, "track": session.track}
    streams = Streams(asked.config)
    yield streams.telling(notices.of(prepared.context.guard, **where))
    outgoing = outgoing_of(prepared)
    try:
        response = yield outgoing
    except Exception as error:
        if not is_overflow(error):
            raise
        overflow = {"type": EVENT_NAME, **where, "event": "overflow", "refused_tokens": prepared.context.tokens}
        try:
            prepared = yield from _smaller(prepared, error, outgoing.all)
        except BudgetError as too_small:
            raise error from too_small
        overflow["retry_tokens"] = prepared.context.tokens
        yield streams.telling([overflow, *notices.of(prepared.context.guard, **where)])
        outgoing = outgoing_of(prepared)
        response = yield outgoing
    _learn(prepared, response.result, outgoing.all)
    keep_request(prepared, response.result, outgoing)
    return _as_new(prepared, response), prepared.record


def _as_new(prepared: Prepared, response: Any) -> Any:  # noqa: ANN401 - LangChain's own
    """A response whose answers have new ids, because a cached answer carries the id of its first use.

    LangGraph would put it in the earlier answer's place, and the transcript would treat it as that answer.
    """
    answers = [one for one in response.result if isinstance(one, AIMessage) and one.id]
    session = prepared.session
    known = {one.id for one in prepared.asked.held}
    if answers:
        store, ids = session.core.runtime.store, ids_of(answers)
        head = store.transcript.head(session.session_id, track=session.track, seq=0, ids=ids)
        known |= set(stored_of(session, answers)) if head is not None and head.has_ids else set()
    if not any(one.id in known for one in answers):
        return response
    result = [
        one.model_copy(update={"id": str(uuid.uuid4())}) if isinstance(one, AIMessage) and one.id in known else one
        for one in response.result
    ]
    return replace(response, result=result)


def _smaller(prepared: Prepared, error: Exception, sent: Sequence[BaseMessage]) -> Flow[Prepared]:
    """Learn the window and others' additions from the refusal, and assemble again, strictly smaller."""
    asked, session = prepared.asked, prepared.session
    runtime = session.core.runtime
    told, window = overflow_in(error), prepared.context.guard.window
    _, behind = measured(prepared, sent)
    beside = prepared.room + behind
    total = prepared.context.tokens + beside
    name = asked.called.last(asked.model.name)
    if name:  # where a middleware behind called another model, the refusal says nothing of the request's own
        # Without a figure all that is known is that this request and the room for its answer were too much together.
        learn_window(runtime, name, told.limit_tokens or total + window.reserved_tokens)
    if name == asked.model.name:
        note_behind(runtime, session, name, behind)
    most = smaller_budget(total, told) - beside
    if told.limit_tokens is not None:
        most = min(most, told.limit_tokens - window.reserved_tokens - beside)
    else:  # where others take most of the room, little can be saved here: half of ours is tried all the same
        most = max(most, prepared.context.tokens // 2)
    context = yield from context_of(session, asked, max_tokens=max(most, 1), off=prepared.off, model=asked.model)
    return replace(prepared, context=context)


def _learn(prepared: Prepared, answer: Sequence[BaseMessage], sent: Sequence[BaseMessage]) -> None:
    """Learn from an answer what others added to its request, and whether a learnt window is too small.

    Some messages of an answer report the provider's own count of the request. `sent` is the request with its system
    prompt.
    """
    asked, session = prepared.asked, prepared.session
    runtime = session.core.runtime
    name = asked.model.name
    usages = [getattr(message, "usage_metadata", None) or {} for message in answer]
    took = max((int(usage.get("input_tokens") or 0) for usage in usages), default=0)
    raw_tokens, behind = measured(prepared, sent)
    session.core.engine.sent.put((session.session_id, session.track), raw_tokens)
    if asked.called.last(name) != name:
        return
    note_behind(runtime, session, name, behind)
    if name is None or prepared.learned is None or took <= prepared.learned:
        return
    try:
        confirm_window(runtime, name, took)
    except StorageError as error:  # the answer is there, and paid for; the next one teaches the same
        told = f"{type(error).__name__}: {error}"
        runtime.report(EventName.WINDOW_NOT_LEARNED, told, session_id=session.session_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A context, and everything needed to make a smaller one."""

    session: Session
    asked: Asked
    """The request. Its messages have the transcript's ids."""
    record: BranchRecord
    off: frozenset[int] | None
    """Numbers of messages that are on other branches or left out of this request. `None` if there are none."""
    room: int
    """Tokens reserved for what is added to the context."""
    learned: int | None
    """The model's window as learnt from earlier refusals."""
    context: Context
    epoch: int | None = None
    """The session's epoch if the request is kept for a later condensing call."""


def kept(
    memory: TieredMemory, choices: Choices, place: Place, messages: Sequence[BaseMessage], record: BranchRecord | None
) -> BranchRecord | None:
    """Store the new messages of the state when an agent ends. `None` if the database cannot store them now.

    They are still in the state, so the next request stores them.
    """
    try:
        session, line, held = _placed(memory, choices, place, messages, record)
        return found_on(session, place, line, held, record=record, messages_key=MESSAGES_KEY).remembered()
    except StorageError as error:
        memory.core.runtime.report(
            EventName.ANSWER_NOT_STORED, f"{type(error).__name__}: {error}", session_id=place.session_id
        )
        return None


def _placed(
    memory: TieredMemory, choices: Choices, place: Place, messages: Sequence[BaseMessage], record: BranchRecord | None
) -> tuple[Session, Line, list[BaseMessage]]:
    held = named(messages)
    line = line_of_agent(memory, place, record, held, track=choices.track)
    session = session_at(memory, place, track=line.track)
    session.core.begun_by, session.core.scope = line.begun_by, choices.scope
    session.core.check_owner()
    return session, line, held


def _on_track(
    session: Session, held: list[BaseMessage], asked: Asked, *, record: BranchRecord | None, line: Line
) -> Flow[Prepared]:
    runtime = session.core.runtime
    found = found_on(session, asked.place, line, held, record=record, messages_key=MESSAGES_KEY)
    asked = asked.under_ids(held, found.messages)
    record = found.remembered()
    asked = replace(asked, alone=found.is_alone)
    off = found.off(record)
    if asked.changes.left_out:  # by other middlewares: for this request they are as if on another branch
        gone = stored_of(session, [one for one in asked.held if one.id in asked.changes.left_out])
        off = (off or frozenset()) | {entry.seq for entry in gone.values()}
    room = _room_aside(runtime, asked)
    told = with_learnt_window(runtime, asked.model)
    aside = aside_of(runtime, session, told.name)
    most = _most_tokens(runtime, told, asked.choices, room + aside)
    is_kept = asked.request.response_format is None
    epoch = epoch_of(runtime, session.session_id, asked.request.model) if is_kept else None
    try:
        context = yield from context_of(session, asked, max_tokens=most, off=off, model=told)
    except BudgetError:
        if not aside:
            raise
        # What others added may be gone by now, and what they add is theirs to answer for: let the provider decide.
        most = _most_tokens(runtime, told, asked.choices, room)
        context = yield from context_of(session, asked, max_tokens=most, off=off, model=told)
    return Prepared(
        session=session,
        asked=asked,
        record=record,
        off=off,
        room=room,
        learned=told.learned,
        context=context,
        epoch=epoch,
    )


def context_of(
    session: Session, asked: Asked, *, max_tokens: int | None, off: frozenset[int] | None, model: ModelProfile
) -> Flow[Context]:
    """The context of a request within `max_tokens`."""
    return session.core.context(
        None if asked.choices.recall else "",
        max_tokens=max_tokens,
        system=asked.request.system_message,
        tools=asked.tools,
        model=model,
        view=asked.choices.view,
        profile=asked.choices.profile,
        off=off,
        alone=asked.alone,
        langgraph_checkpoint_id=asked.place.checkpoint_id,
        complete=True,
        reworded=frozenset(asked.changes.edits),
    )


def _most_tokens(runtime: Runtime, told: ModelProfile, choices: Choices, room: int) -> int | None:
    """`max_tokens` of the context: the chosen one, else all that the window of this request's model allows."""
    wished = choices.max_tokens
    if wished is None:
        wished = runtime.settings.guard.window or told.window or told.learned
        if wished is None and told.name not in _warned:
            _warned.add(told.name)
            logger.warning(
                "%s does not tell its window; a budget of %d tokens is used (pass max_tokens, or set guard.window)",
                told.name or "the model",
                runtime.settings.context.max_tokens,
            )
    if not room:
        return wished
    return max(budget_of(wished, told, settings=runtime.settings).max_tokens - room, 1)


def _room_aside(runtime: Runtime, asked: Asked) -> int:
    """Tokens of what is added to the context, in steps."""
    count = runtime.counter.count_message
    changes = asked.changes
    added = sum(count(message) for message in (*changes.before, *changes.behind))
    held = {message.id: message for message in asked.held if message.id in changes.edits}
    added += sum(max(count(edit) - count(held[key]), 0) for key, edit in changes.edits.items())
    return stepped(added) + (asked.choices.project_tokens if asked.choices.project else 0)
