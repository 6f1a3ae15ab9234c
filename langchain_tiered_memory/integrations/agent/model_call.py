"""One model call of an agent, as a journey: remember, assemble, call, and once more where the window overflowed."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage

from langchain_tiered_memory.driver import Flow, HostCall
from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.integrations.agent.context import Asked, Choices, Prepared, prepared_for
from langchain_tiered_memory.integrations.agent.last_request import keep_request
from langchain_tiered_memory.integrations.agent.lessons import answered, shrunk
from langchain_tiered_memory.integrations.agent.reply import Outgoing, outgoing_of
from langchain_tiered_memory.integrations.graph.branches import stored_of
from langchain_tiered_memory.integrations.graph.stream_events import EVENT_NAME
from langchain_tiered_memory.models.overflow import is_overflow

if TYPE_CHECKING:
    from langchain_tiered_memory.integrations.graph.run_identity import Place
    from langchain_tiered_memory.integrations.graph.stream_events import Notices
    from langchain_tiered_memory.integrations.state import BranchRecord
    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.types.outcomes import GuardReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement(HostCall):
    """Tell the caller what the guard did, or that a request overflowed."""

    report: GuardReport | None
    track: str
    overflow: dict[str, Any] | None = None


def take_turn(memory: TieredMemory, asked: Asked, choices: Choices) -> Flow[tuple[Any, BranchRecord]]:
    """Remember what is new, and call the model with a context: its response, and how the state's messages stand.

    Raises:
        TieredMemoryError: when the messages cannot be stored, or no context can be made.
        Exception: whatever the model raises, as it is; a request that overflowed is tried once more, smaller.
    """
    prepared = yield from prepared_for(memory, asked, choices)
    yield Announcement(report=prepared.context.guard, track=prepared.session.track)
    outgoing = outgoing_of(memory, choices, prepared)
    try:
        response = yield outgoing
    except Exception as error:
        if not is_overflow(error):
            raise
        prepared = yield from _smaller(memory, choices, prepared, error, outgoing)
        outgoing = outgoing_of(memory, choices, prepared)
        response = yield outgoing
    answered(memory, prepared, response.result, outgoing.all)
    keep_request(memory, prepared, response.result, outgoing)
    return _as_new(prepared, response), prepared.record


def _as_new(prepared: Prepared, response: Any) -> Any:  # noqa: ANN401 - LangChain's own
    """A response whose answers are new messages: one from a cache carries the id of its first time.

    LangGraph would put it where that one stands, and the transcript would take it for that one.
    """
    answers = [one for one in response.result if isinstance(one, AIMessage) and one.id]
    there = stored_of(prepared.session, answers)
    known = {*there, *(one.id for one in prepared.asked.held)}
    if not any(one.id in known for one in answers):
        return response
    result = [
        one.model_copy(update={"id": str(uuid.uuid4())}) if isinstance(one, AIMessage) and one.id in known else one
        for one in response.result
    ]
    return replace(response, result=result)


def _smaller(
    memory: TieredMemory, choices: Choices, prepared: Prepared, error: Exception, refused: Outgoing
) -> Flow[Prepared]:
    """A smaller context for a request that did not fit; the caller is told."""
    try:
        smaller = yield from shrunk(memory, choices, prepared, error, refused.all)
    except BudgetError as too_small:
        raise error from too_small
    overflow = {"refused_tokens": prepared.context.tokens, "retry_tokens": smaller.context.tokens}
    yield Announcement(report=None, track=prepared.session.track, overflow=overflow)
    yield Announcement(report=smaller.context.guard, track=prepared.session.track)
    return smaller


def notices_of(told: Announcement, place: Place, notices: Notices) -> list[dict[str, Any]]:
    """What the caller is told, in plain JSON."""
    found: list[dict[str, Any]] = []
    if told.overflow is not None:
        named = {"type": EVENT_NAME, "session_id": place.session_id, "track": told.track}
        found.append(named | {"event": "overflow"} | told.overflow)
    if told.report is not None:
        found += notices.of(told.report, session_id=place.session_id, track=told.track)
    return found
