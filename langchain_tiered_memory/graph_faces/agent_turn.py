"""One model call of an agent, as a journey: remember, assemble, call, and once more where the window overflowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.decisions.overflow import is_overflow
from langchain_tiered_memory.errors import BudgetError
from langchain_tiered_memory.flows.asking import Errand, Flow
from langchain_tiered_memory.graph_faces.agent_context import Asked, Choices, Prepared, confirmed, prepared_for, shrunk
from langchain_tiered_memory.graph_faces.agent_outgoing import outgoing_of
from langchain_tiered_memory.graph_faces.notices import EVENT_NAME

if TYPE_CHECKING:
    from langchain_tiered_memory.graph_faces.notices import Notices
    from langchain_tiered_memory.graph_faces.places import Place
    from langchain_tiered_memory.memory import TieredMemory
    from langchain_tiered_memory.outcomes import GuardReport
    from langchain_tiered_memory.state import BranchRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Errand):
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
    yield Told(report=prepared.context.guard, track=prepared.session.track)
    try:
        response = yield outgoing_of(memory, choices, prepared)
    except Exception as error:
        if not is_overflow(error):
            raise
        response = yield from _once_more(memory, choices, prepared, error)
    yield from confirmed(memory, prepared, response.result)
    return response, prepared.record


def _once_more(memory: TieredMemory, choices: Choices, prepared: Prepared, error: Exception) -> Flow[Any]:
    """Call the model with a smaller context."""
    try:
        smaller = yield from shrunk(memory, choices, prepared, error)
    except BudgetError as too_small:
        raise error from too_small
    overflow = {"refused_tokens": prepared.context.tokens, "retry_tokens": smaller.context.tokens}
    yield Told(report=None, track=prepared.session.track, overflow=overflow)
    yield Told(report=smaller.context.guard, track=prepared.session.track)
    return (yield outgoing_of(memory, choices, smaller))


def notices_of(told: Told, place: Place, notices: Notices) -> list[dict[str, Any]]:
    """What the caller is told, in plain JSON."""
    found: list[dict[str, Any]] = []
    if told.overflow is not None:
        named = {"type": EVENT_NAME, "session_id": place.session_id, "track": told.track}
        found.append(named | {"event": "overflow"} | told.overflow)
    if told.report is not None:
        found += notices.of(told.report, session_id=place.session_id, track=told.track)
    return found
