import asyncio
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage

from langchain_tiered_memory.driver import (
    Flow,
    FlowStopped,
    HostCall,
    arun,
    call_model,
    off_loop,
    pause,
    run,
    stop_point,
)
from langchain_tiered_memory.testing import ScriptedModel


def both(flow_of: Any) -> Iterator[Any]:
    yield run(flow_of())
    yield asyncio.run(arun(flow_of()))


def test_a_flow_gets_the_answer_of_what_it_asks_sync_and_async() -> None:
    def flow() -> Flow[list[object]]:
        yield from pause(0)
        answer = yield from call_model(ScriptedModel(answers=["yes"]), [HumanMessage("?")], {})
        return [42, answer.text]

    assert list(both(flow)) == [[42, "yes"], [42, "yes"]]


def test_what_a_model_raises_reaches_the_flow_which_may_go_on() -> None:
    def flow() -> Flow[str]:
        try:
            yield from call_model(ScriptedModel(answers=[ValueError("no")]), [HumanMessage("?")], {})
        except ValueError:
            return "mended"
        return "not reached"

    assert list(both(flow)) == ["mended", "mended"]


def test_what_a_flow_raises_reaches_the_caller() -> None:
    def flow() -> Flow[None]:
        yield from pause(0)
        message = "out of the flow"
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="out of the flow"):
        run(flow())
    with pytest.raises(RuntimeError, match="out of the flow"):
        asyncio.run(arun(flow()))


def test_what_blocks_stands_on_no_event_loop() -> None:
    def flow() -> Flow[int]:
        yield from pause(0)
        return threading.get_ident()

    async def threads() -> tuple[int, int, int]:
        return threading.get_ident(), await arun(flow()), await off_loop(threading.get_ident)

    loop, of_a_flow, of_a_call = asyncio.run(threads())
    assert loop not in (of_a_flow, of_a_call)


async def test_a_blocking_call_gives_its_answer_and_raises_what_it_raises() -> None:
    assert await off_loop(sorted, [2, 1], reverse=True) == [2, 1]
    with pytest.raises(ValueError, match="invalid literal"):
        await off_loop(int, "no number")


async def test_a_cancelled_blocking_call_finishes_before_the_caller_goes_on() -> None:
    seen: list[str] = []
    began = threading.Event()

    def work() -> None:
        began.set()
        time.sleep(0.05)
        seen.append("finished")
        raise ValueError

    task = asyncio.create_task(off_loop(work))
    await asyncio.to_thread(began.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["finished"]


class _Hanging(ScriptedModel):
    def _generate(self, *arguments: Any, **options: Any) -> Any:
        time.sleep(60)  # in a thread that is left behind
        return super()._generate(*arguments, **options)

    async def _agenerate(self, *arguments: Any, **options: Any) -> Any:
        await asyncio.sleep(60)
        return await super()._agenerate(*arguments, **options)


def test_a_model_that_hangs_past_its_deadline_gives_a_timeout_sync_and_async() -> None:
    def flow() -> Flow[BaseMessage | str]:
        try:
            return (yield from call_model(_Hanging(answers=["late"]), [HumanMessage("?")], {}, deadline_seconds=0.05))
        except TimeoutError as error:
            return str(error)

    assert list(both(flow)) == ["no answer within 0.05 seconds"] * 2


def test_a_model_within_its_deadline_answers_as_without_one() -> None:
    def flow() -> Flow[str]:
        answer = yield from call_model(ScriptedModel(answers=["soon"]), [HumanMessage("?")], {}, deadline_seconds=30)
        return str(answer.text)

    assert list(both(flow)) == ["soon", "soon"]


def test_a_flow_that_is_stopped_ends_between_two_requests_and_closes() -> None:
    seen: list[str] = []

    def flow() -> Flow[None]:
        try:
            while True:
                seen.append("step")
                yield from stop_point()
        finally:
            seen.append("closed")

    with pytest.raises(FlowStopped):
        run(flow(), stopped=lambda: len(seen) >= 3)
    assert seen == ["step", "step", "step", "closed"]


async def test_a_cancelled_flow_ends_and_lets_the_step_in_hand_finish() -> None:
    began, finished = threading.Event(), threading.Event()

    def flow() -> Flow[None]:
        began.set()
        time.sleep(0.05)
        finished.set()
        yield from call_model(_Hanging(answers=["late"]), [HumanMessage("?")], {})

    task = asyncio.create_task(arun(flow()))
    await asyncio.to_thread(began.wait, 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(finished.wait, 60)


def test_a_host_call_is_taken_by_whoever_drives_the_flow_on_its_own_thread() -> None:
    def flow() -> Flow[list[object]]:
        first = yield HostCall()
        try:
            yield HostCall()
        except ValueError as error:
            return [first, str(error)]
        return []

    def taker() -> Any:
        answers = iter([threading.current_thread(), None])

        def take(call: HostCall) -> object:
            del call
            answer = next(answers)
            if answer is None:
                msg = "nobody at home"
                raise ValueError(msg)
            return answer is threading.current_thread()

        return take

    async def taken() -> list[object]:
        take = taker()

        async def atake(call: HostCall) -> object:
            return take(call)

        return await arun(flow(), take=atake)

    assert run(flow(), take=taker()) == asyncio.run(taken()) == [True, "nobody at home"]


def test_a_host_call_that_nobody_takes_is_refused_sync_and_async() -> None:
    def flow() -> Flow[None]:
        yield HostCall()

    for drive in (lambda: run(flow()), lambda: asyncio.run(arun(flow()))):
        with pytest.raises(TypeError, match="nobody here takes HostCall"):
            drive()
