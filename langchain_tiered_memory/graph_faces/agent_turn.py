"""One model call of an agent, as a journey: remember, assemble, call, and once more where the window overflowed.

Written once for both colours: it yields steps, and `drive` or `adrive` takes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from langchain_tiered_memory.decisions.overflow import is_overflow
from langchain_tiered_memory.errors import BudgetError, StorageError
from langchain_tiered_memory.flows.asking import Flow, arun, run
from langchain_tiered_memory.graph_faces.agent_context import (
    Asked,
    Choices,
    Outgoing,
    Prepared,
    outgoing_of,
    prepared_for,
    shrunk,
)
from langchain_tiered_memory.graph_faces.branches import named
from langchain_tiered_memory.graph_faces.notices import unstreamed
from langchain_tiered_memory.state import BranchRecord

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.memory import Session, TieredMemory
    from langchain_tiered_memory.outcomes import GuardReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """As a step: tell the caller what the guard did, or that a request overflowed."""

    report: GuardReport | None
    track: str
    overflow: dict[str, Any] | None = None


Step: TypeAlias = Flow[Any] | Outgoing | Told
Turn: TypeAlias = Generator[Step, Any, tuple[Any, BranchRecord]]


class Response(Protocol):
    """What a handler of `create_agent` gives back."""

    result: list[BaseMessage]


def take_turn(memory: TieredMemory, asked: Asked, choices: Choices) -> Turn:
    """Remember what is new, call the model with a context, remember its answer.

    Raises:
        TieredMemoryError: when the messages cannot be stored, or no context can be made.
        Exception: whatever the model raises, as it is; a request that overflowed is tried once more, smaller.
    """
    prepared: Prepared = yield prepared_for(memory, asked, choices)
    yield Told(report=prepared.context.guard, track=prepared.session.track)
    try:
        response = yield outgoing_of(memory, asked, choices, prepared)
    except Exception as error:
        if not is_overflow(error):
            raise
        try:
            smaller: Prepared = yield shrunk(memory, asked, choices, prepared, error)
        except BudgetError as too_small:
            raise error from too_small
        overflow = {"refused_tokens": prepared.context.tokens, "retry_tokens": smaller.context.tokens}
        yield Told(report=None, track=prepared.session.track, overflow=overflow)
        yield Told(report=smaller.context.guard, track=prepared.session.track)
        response = yield outgoing_of(memory, asked, choices, smaller)
    if choices.store_answers:
        response = _with_ids(response)
        yield _stored(prepared.session, response.result)
    return response, prepared.record


def _with_ids(response: Any) -> Any:  # noqa: ANN401 - a `Response`, or a message
    """The answer with an id on each message, so that the state and the transcript know it under the same one."""
    result = named(response.result)
    same = all(one is other for one, other in zip(result, response.result, strict=True))
    return response if same else replace(response, result=result)


def _stored(session: Session, answer: Sequence[BaseMessage]) -> Flow[None]:
    try:
        yield from session._own(session._add(answer, at=None, kind=None, task=None, wait=False))  # noqa: SLF001
    except StorageError as error:
        # The answer is paid for and stands in the state: the next request writes it.
        session._house.report(  # noqa: SLF001
            "answer_not_stored", f"{type(error).__name__}: {error}", session_id=session.session_id
        )


def drive(
    turn: Turn, config: RunnableConfig, *, call: Callable[[Outgoing], Any], tell: Callable[[Told], None]
) -> tuple[Any, BranchRecord]:
    """Take a turn in this thread."""
    answer: Any = None
    error: Exception | None = None
    while True:
        try:
            step = turn.throw(error) if error is not None else turn.send(answer)
        except StopIteration as stop:
            found: tuple[Any, BranchRecord] = stop.value
            return found
        answer = error = None
        try:
            if isinstance(step, Outgoing):
                answer = call(step)
            elif isinstance(step, Told):
                tell(step)
            else:
                with unstreamed(config):
                    answer = run(step)
        except Exception as failed:  # noqa: BLE001 - the turn decides what becomes of it
            error = failed


async def adrive(
    turn: Turn,
    config: RunnableConfig,
    *,
    call: Callable[[Outgoing], Awaitable[Any]],
    tell: Callable[[Told], Awaitable[None]],
) -> tuple[Any, BranchRecord]:
    """Take a turn without blocking the event loop."""
    answer: Any = None
    error: Exception | None = None
    while True:
        try:
            step = turn.throw(error) if error is not None else turn.send(answer)
        except StopIteration as stop:
            found: tuple[Any, BranchRecord] = stop.value
            return found
        answer = error = None
        try:
            if isinstance(step, Outgoing):
                answer = await call(step)
            elif isinstance(step, Told):
                await tell(step)
            else:
                with unstreamed(config):
                    answer = await arun(step)
        except Exception as failed:  # noqa: BLE001 - the turn decides what becomes of it
            error = failed
