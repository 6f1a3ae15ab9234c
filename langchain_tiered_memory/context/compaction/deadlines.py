"""Gives a flow a deadline: between two requests it is ended, and a model call in it may not outlast it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_tiered_memory.driver import ModelCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.driver import Flow

T = TypeVar("T")


def until(flow: Flow[T], *, seconds: float, monotonic: Callable[[], float]) -> Flow[T | None]:
    """Drive `flow` for at most `seconds`; what it holds when they are over it gives back.

    Returns:
        What it returned, or `None` when its time ran out.
    """
    ends = monotonic() + seconds
    answer: Any = None
    error: BaseException | None = None
    while True:
        if error is None and monotonic() >= ends:
            flow.close()
            return None
        try:
            request = flow.throw(error) if error is not None else flow.send(answer)
        except StopIteration as stop:
            finished: T = stop.value
            return finished
        if isinstance(request, ModelCall):
            left = max(ends - monotonic(), 0.001)
            own = request.deadline_seconds
            request = replace(request, deadline_seconds=left if own is None else min(own, left))
        answer, error = None, None
        try:
            answer = yield request
        except GeneratorExit:
            flow.close()
            raise
        except BaseException as raised:  # noqa: BLE001 - the flow decides what becomes of it
            error = raised
