"""Drives what waits for a model, written once for sync and async.

A journey that calls no model is a plain function; its async form is `off_loop(function, ...)`, that of a public
function `off_loop_function(function)`, of a public verb `off_loop_twin(verb)`. One that does is a *flow*: a generator
that yields what it waits for (a model's answer, a moment, somebody's method, a step of whoever drives it) and gets the
answer sent back in. `run` and `arun` drive it; the pattern is that of httpx's auth flows. What happens between two
requests blocks, so `arun` hands it to langchain-core's `run_in_executor`, which keeps the callback context: neither a
store nor a long computation stands on the event loop.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar

from langchain_core.messages import BaseMessage

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from langchain_core.runnables import Runnable, RunnableConfig

P = ParamSpec("P")
T = TypeVar("T")
Owner = TypeVar("Owner")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a chat model."""

    model: Runnable[Any, BaseMessage]
    messages: list[BaseMessage]
    config: RunnableConfig
    options: dict[str, Any]
    deadline_seconds: float | None
    """How long to wait for it; a model that takes longer gives a `TimeoutError`."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for somebody else's work."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodCall:
    """Call a method of somebody else's object, or in `arun` its async form, which has an `a` before its name."""

    of: Any
    name: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """A step that only whoever drives the flow can take, such as an agent's own model call."""


Request: TypeAlias = ModelCall | Pause | MethodCall | HostCall
Flow: TypeAlias = Generator[Request, Any, T]
Step: TypeAlias = "partial[Request]"
"""Goes on with a flow: by what its request was answered with, or by the error."""


def call_model(
    model: Runnable[Any, BaseMessage],
    messages: list[BaseMessage],
    config: RunnableConfig,
    *,
    deadline_seconds: float | None = None,
    **options: object,
) -> Flow[BaseMessage]:
    """Ask for one answer of a chat model. `options` go to the model's `invoke` as they are.

    Raises:
        TimeoutError: when the model took longer than `deadline_seconds`.
        TypeError: when what was wrapped around the model made something else of its answer than a message.
    """
    answer: object = yield ModelCall(model, messages, config, options, deadline_seconds)
    if not isinstance(answer, BaseMessage):
        msg = f"it returns a {type(answer).__name__}: pass the model without its output parser"
        raise TypeError(msg)
    return answer


def pause(seconds: float) -> Flow[None]:
    """Ask for a wait."""
    yield Pause(seconds)


def stop_point() -> Flow[None]:
    """A place where `stopped` may end the flow, and a cancelled call is told: between the rounds of a long loop."""
    yield Pause(0.0)


@dataclass(frozen=True, slots=True)
class _Finished(Generic[T]):
    value: T


def each_step(flow: Flow[T], within: Callable[[], AbstractContextManager[object]]) -> Flow[T]:
    """`flow`, each stretch between two of its requests inside `within()`: nothing is held while it waits."""

    def advance(step: Step) -> Request | _Finished[T]:
        with within():
            return _advance(step)

    return _relayed(flow, advance)


def until(flow: Flow[T], *, seconds: float, monotonic: Callable[[], float]) -> Flow[T | None]:
    """What `flow` returns within so many seconds, or `None`; what it holds when they are over it gives back."""
    ends = monotonic() + seconds

    def advance(step: Step) -> Request | _Finished[T | None]:
        if monotonic() >= ends and step.func != flow.throw:  # it is told of an error in any case
            return _Finished(None)
        request: Request | _Finished[T | None] = _advance(step)
        if not isinstance(request, ModelCall):
            return request
        left, own = max(ends - monotonic(), 0.001), request.deadline_seconds
        return replace(request, deadline_seconds=left if own is None else min(own, left))

    return _relayed(flow, advance)


def _relayed(flow: Flow[Any], advance: Callable[[Step], Request | _Finished[T]]) -> Flow[T]:
    """A flow that goes on by `advance`, its requests handed on and what they are answered with handed back."""
    step: Step = partial(flow.send, None)
    try:
        while True:
            request = advance(step)
            if isinstance(request, _Finished):
                return request.value
            try:
                step = partial(flow.send, (yield request))
            except GeneratorExit:
                raise
            except BaseException as error:  # noqa: BLE001 - the flow decides what becomes of it
                step = partial(flow.throw, error)
    finally:
        flow.close()


class FlowStopped(Exception):  # noqa: N818 - no error: somebody asked for it
    """A flow was ended between two requests, because `stopped` said so."""


def _advance(step: Step) -> Request | _Finished[Any]:
    """Take a flow up to its next request or its end. Everything that blocks happens in here."""
    try:
        return step()
    except StopIteration as stop:
        return _Finished(stop.value)


def in_time(call: Callable[[], T], *, seconds: float, name: str) -> T:
    """What `call` gives, in a thread of that name and this context, which is left behind when it hangs.

    Raises:
        TimeoutError: when it took longer.
    """
    answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
    context = contextvars.copy_context()

    def called() -> None:
        try:
            answers.put((context.run(call), None))
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            answers.put((None, error))

    threading.Thread(target=called, name=name, daemon=True).start()
    try:
        answer, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise _too_late(seconds) from None
    if error is not None:
        raise error
    found: T = answer
    return found


def _invoked(request: ModelCall) -> BaseMessage:
    """Call a model in this thread, or, with a deadline, in one that is left behind when it hangs."""

    def call() -> BaseMessage:
        return request.model.invoke(request.messages, request.config, **request.options)

    seconds = request.deadline_seconds
    return call() if seconds is None else in_time(call, seconds=seconds, name="tiered-memory-model")


async def _ainvoked(request: ModelCall) -> BaseMessage:
    waiting = request.model.ainvoke(request.messages, request.config, **request.options)
    try:
        return await asyncio.wait_for(waiting, request.deadline_seconds)
    except TimeoutError as error:
        raise _too_late(request.deadline_seconds) from error


async def _acalled(request: MethodCall) -> Any:  # noqa: ANN401 - as the method answers
    try:
        return await getattr(request.of, f"a{request.name}")(*request.args, **request.options)
    except NotImplementedError:  # it has no async form
        return await off_loop(getattr(request.of, request.name), *request.args, **request.options)


def _too_late(seconds: float | None) -> TimeoutError:
    return TimeoutError(f"no answer within {seconds} seconds")


def _nobody(call: HostCall) -> Any:  # noqa: ANN401 - it never answers
    msg = f"nobody here takes {type(call).__name__}: give run or arun a `take`"
    raise TypeError(msg)


def run(flow: Flow[T], *, stopped: Callable[[], bool] | None = None, take: Callable[[Any], Any] = _nobody) -> T:
    """Drive a flow in this thread; `take` goes on its errands.

    Raises:
        FlowStopped: when `stopped` said so between two requests.
    """
    step: Step = partial(flow.send, None)
    while True:
        if stopped is not None and stopped():
            flow.close()
            raise FlowStopped
        request: Request | _Finished[T] = _advance(step)
        if isinstance(request, _Finished):
            return request.value
        try:
            answer: Any = None
            if isinstance(request, Pause):
                time.sleep(request.seconds)
            elif isinstance(request, MethodCall):
                answer = getattr(request.of, request.name)(*request.args, **request.options)
            else:
                answer = _invoked(request) if isinstance(request, ModelCall) else take(request)
            step = partial(flow.send, answer)
        except BaseException as error:  # noqa: BLE001 - the flow decides what becomes of it
            step = partial(flow.throw, error)


def _in_executor(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
    """Begin a blocking call in an executor's thread, in the caller's context."""
    from langchain_core.runnables.config import run_in_executor  # noqa: PLC0415 - it loads LangChain's tracers

    return asyncio.ensure_future(run_in_executor(None, call, *args, **kwargs))


async def off_loop(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a blocking function in an executor's thread; a cancelled call lets it finish first, then ends."""
    step = _in_executor(call, *args, **kwargs)
    try:
        return await asyncio.shield(step)
    except asyncio.CancelledError:
        if not step.done():
            await asyncio.wait([step])
        if not step.cancelled():
            step.exception()  # looked at: it is the cancellation that is raised
        raise


async def arun(flow: Flow[T], *, take: Callable[[Any], Awaitable[Any]] = _nobody) -> T:
    """Drive a flow without blocking the event loop. A cancelled call lets the step in hand finish, then ends."""
    step: Step = partial(flow.send, None)
    while True:
        taken = _in_executor(_advance, step)
        try:
            request: Request | _Finished[T] = await asyncio.shield(taken)
        except asyncio.CancelledError as cancelled:
            if taken.done():
                raise  # the flow let an earlier cancellation through
            await asyncio.wait([taken])
            if taken.exception() is not None or isinstance(taken.result(), _Finished):
                raise
            step = partial(flow.throw, cancelled)  # so that it can give back what it holds
            continue
        if isinstance(request, _Finished):
            return request.value
        try:
            answer: Any = None
            if isinstance(request, Pause):
                await asyncio.sleep(request.seconds)
            elif isinstance(request, MethodCall):
                answer = await _acalled(request)
            else:
                answer = await (_ainvoked(request) if isinstance(request, ModelCall) else take(request))
            step = partial(flow.send, answer)
        except BaseException as error:  # noqa: BLE001 - the flow decides what becomes of it
            step = partial(flow.throw, error)


Verb: TypeAlias = Callable[Concatenate[Owner, P], T]
Twin: TypeAlias = Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]]


def off_loop_twin(verb: Verb[Owner, P, T]) -> Twin[Owner, P, T]:
    """The async form of a method that blocks: it is called in an executor's thread."""
    name = verb.__name__

    async def called(self: Owner, /, *args: P.args, **named: P.kwargs) -> T:
        verb_of_self: Callable[P, T] = getattr(self, name)
        return await off_loop(verb_of_self, *args, **named)

    return _as_twin_of(verb, called)


def off_loop_function(call: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The async form of a function that blocks, or of a bound method: it is called in an executor's thread."""

    @functools.wraps(call)
    async def called(*args: P.args, **named: P.kwargs) -> T:
        return await off_loop(call, *args, **named)

    return _as_twin_of(call, called)


class OpeningTwin(Generic[P]):
    """The async form of a class method that makes one of its class."""

    def __init__(self, verb: Verb[Any, P, Any]) -> None:
        self._name = verb.__name__

    def __get__(self, instance: T | None, owner: type[T]) -> Callable[P, Coroutine[Any, Any, T]]:
        """See `off_loop_function`."""
        made: Callable[P, T] = getattr(owner, self._name)
        return off_loop_function(made)


def flow_twin(verb: Verb[Owner, P, T], flow: Callable[[Owner], Callable[..., Flow[T]]]) -> Twin[Owner, P, T]:
    """The async form of a method that drives a flow; `flow` gives what makes it of the method's arguments."""

    async def called(self: Owner, /, *args: P.args, **named: P.kwargs) -> T:
        return await arun(flow(self)(*args, **named))

    return _as_twin_of(verb, called)


def _as_twin_of(verb: Callable[P, T], twin: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """`twin` under the name of `verb` with an `a` in front, and with its signature."""
    name = verb.__name__
    twin.__name__ = f"a{name}"
    twin.__qualname__ = f"{verb.__qualname__.removesuffix(name)}a{name}"
    twin.__module__ = verb.__module__
    twin.__doc__ = f"See `{name}`."
    vars(twin)["__signature__"] = inspect.signature(verb)
    return twin
