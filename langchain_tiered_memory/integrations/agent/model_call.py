"""One model call of an agent, as a journey: remember, assemble, call, and once more where the window overflowed.

Refusals and answers teach how large the agent's next request may be.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage

from langchain_tiered_memory.driver import Flow, HostCall
from langchain_tiered_memory.errors import BudgetError, StorageError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.agent.called_models import aside_of, keep_aside, measured, unseen_in
from langchain_tiered_memory.integrations.agent.context import Asked, Prepared, context_of, prepared_for
from langchain_tiered_memory.integrations.agent.reply import keep_request, outgoing_of
from langchain_tiered_memory.integrations.graph.client_resends import ids_of, stored_of
from langchain_tiered_memory.integrations.graph.stream_events import EVENT_NAME, Notices
from langchain_tiered_memory.messages.content_blocks import compacts
from langchain_tiered_memory.messages.ingest import reported_by
from langchain_tiered_memory.models.overflow import is_overflow, overflow_in, smaller_budget
from langchain_tiered_memory.models.window_budget import confirm_window, learn_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.integrations.state import BranchRecord
    from langchain_tiered_memory.memory import TieredMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(HostCall):
    """Tell the caller what the guard did, or that a request overflowed: in plain JSON."""

    notices: Sequence[dict[str, Any]]


def take_turn(memory: TieredMemory, asked: Asked, notices: Notices) -> Flow[tuple[Any, BranchRecord]]:
    """Remember what is new, and call the model with a context: its response, and how the state's messages stand.

    Raises:
        TieredMemoryError: when the messages cannot be stored, or no context can be made.
        Exception: whatever the model raises, as it is; a request that overflowed is tried once more, smaller.
    """
    prepared = yield from prepared_for(memory, asked)
    session = prepared.session
    named = {"session_id": session.session_id, "track": session.track}
    yield Told(notices=notices.of(prepared.context.guard, **named))
    outgoing = outgoing_of(prepared)
    try:
        response = yield outgoing
    except Exception as error:
        if not is_overflow(error):
            raise
        overflow = {"type": EVENT_NAME, **named, "event": "overflow", "refused_tokens": prepared.context.tokens}
        try:
            prepared = yield from _smaller(prepared, error, outgoing.all)
        except BudgetError as too_small:
            raise error from too_small
        overflow["retry_tokens"] = prepared.context.tokens
        yield Told(notices=[overflow, *notices.of(prepared.context.guard, **named)])
        outgoing = outgoing_of(prepared)
        response = yield outgoing
    _learn(prepared, response.result, outgoing.all)
    keep_request(prepared, response.result, outgoing)
    return _as_new(prepared, response), prepared.record


def _as_new(prepared: Prepared, response: Any) -> Any:  # noqa: ANN401 - LangChain's own
    """A response whose answers are new messages: one from a cache carries the id of its first time.

    LangGraph would put it where that one stands, and the transcript would take it for that one.
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
    """Learn what the refusal tells of the window and of what others add, and assemble again, strictly smaller."""
    asked, session = prepared.asked, prepared.session
    runtime = session.core.runtime
    told, window = overflow_in(error), prepared.context.guard.window
    _, behind = measured(runtime, prepared, sent, asked.tools)
    beside = prepared.room + behind
    total = prepared.context.tokens + beside
    unseen = max((told.sent_tokens or 0) - total, 0)
    name = asked.called.last(asked.model.name)
    if name:  # where a middleware behind called another model, the refusal says nothing of the request's own
        # Without a figure all that is known is that this request and the room for its answer were too much together.
        learn_window(runtime, name, told.limit_tokens or total + window.reserved_tokens)
    if name == asked.model.name:
        aside = prepared.aside.after(behind=behind, unseen=unseen if told.sent_tokens else None)
        keep_aside(runtime, session, name, aside, before=prepared.aside)
    most = smaller_budget(total, told) - beside
    if told.limit_tokens is not None:
        most = min(most, told.limit_tokens - window.reserved_tokens - unseen - beside)
    else:  # where others take most of the room, little can be saved here: half of ours is tried all the same
        most = max(most, prepared.context.tokens // 2)
    context = yield from context_of(session, asked, max_tokens=max(most, 1), off=prepared.off, model=asked.model)
    return replace(prepared, context=context)


def _learn(prepared: Prepared, answer: Sequence[BaseMessage], sent: Sequence[BaseMessage]) -> None:
    """Learn from an answer what others added to its request, and whether a learnt window is larger than was thought.

    Some messages of an answer report the provider's own count of the request; `sent` is the request, system prompt
    included.
    """
    asked, session = prepared.asked, prepared.session
    runtime = session.core.runtime
    name = asked.model.name
    usages = [getattr(message, "usage_metadata", None) or {} for message in answer]
    took = max((int(usage.get("input_tokens") or 0) for usage in usages), default=0)
    raw_tokens, behind = measured(runtime, prepared, sent, asked.tools)
    session.core.engine.note_sent(session.session_id, session.track, raw_tokens)
    if asked.called.last(name) != name:
        return
    before = aside_of(runtime, session, name)
    counted = prepared.context.tokens + prepared.room + behind
    unseen = unseen_in(took=took, counted=counted)
    if unseen and any(reported_by(message) or compacts(message) for message in answer):
        unseen = 0  # the calibration learns of it; of a compacted request nothing can be learnt
    aside = before.after(behind=behind, unseen=unseen)
    keep_aside(runtime, session, name, aside, before=before)
    if name is None or prepared.learned is None or took <= prepared.learned:
        return
    try:
        confirm_window(runtime, name, took)
    except StorageError as error:  # the answer is there, and paid for; the next one teaches the same
        told = f"{type(error).__name__}: {error}"
        runtime.report(EventName.WINDOW_NOT_LEARNED, told, session_id=session.session_id)
