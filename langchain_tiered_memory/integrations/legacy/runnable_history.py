"""A runnable with a tiered memory as its history, which writes the user's words before the model runs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from contextvars import copy_context
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.config import ensure_config
from langchain_core.runnables.utils import ConfigurableFieldSpec, get_unique_config_specs

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.driver import Flow, arun, each_step, off_loop, run
from langchain_tiered_memory.errors import InvalidInputError, SettingsError, TieredMemoryError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.integrations.checks import Memory, check_known_view
from langchain_tiered_memory.integrations.legacy.chat_history import HISTORY_VIEWS, TieredChatMessageHistory
from langchain_tiered_memory.integrations.legacy.turns import (
    answered,
    chosen_key,
    identity,
    said,
    text_so_far,
    their_own,
    usual_keys,
    with_ids,
)
from langchain_tiered_memory.transcript.remember import said_beside
from langchain_tiered_memory.types.arguments import Count, Name, Tool  # noqa: TC001 - read at the border
from langchain_tiered_memory.types.records import DEFAULT_TRACK


@checked(SettingsError)
def with_tiered_history(
    runnable: Runnable[Any, Any] | Callable[..., Any] | Mapping[str, Any],
    memory: Memory,
    *,
    input_messages_key: Name | None = None,
    output_messages_key: Name | None = None,
    history_messages_key: Name | None = None,
    view: str = "context",
    max_tokens: Count | None = None,
    system: str | BaseMessage | None = None,
    tools: Sequence[Tool] = (),
    model: str | Runnable[Any, Any] | None = None,
    user: Name | None = None,
    track: Name = DEFAULT_TRACK,
    session_key: Name = "session_id",
) -> Runnable[Any, Any]:
    """Return `runnable` with the memory as its history. Each call names its session in the config.

        chat = with_tiered_history(prompt | model, memory, input_messages_key="input", history_messages_key="history")
        chat.invoke({"input": "Where were we?"}, {"configurable": {"session_id": "alice"}})

    The user's words are in the database before `runnable` is called, and the context is made for them. If the model
    fails, the call is cancelled or the stream breaks off, they stay there, followed by what arrived of the answer (kind
    `interrupted`), and the event `turn_interrupted` reports it. If an answer cannot be written, the event
    `history_not_written` reports it. Put retries inside, as in `with_tiered_history(runnable.with_retry(), memory)`:
    outside, each attempt would be a turn.

    Args:
        runnable: As for LangChain's `RunnableWithMessageHistory`; so are the three keys.
        memory: The memory.
        input_messages_key: The input's key of the user's words, if the input is a dict.
        output_messages_key: The output's key of the answer, if the output is a dict.
        history_messages_key: The input's key for the history, if the prompt has one.
        view: As for `TieredChatMessageHistory`.
        max_tokens: The most tokens of the context, with the user's words and `system`.
        system: The system prompt of the request, for its size. Your prompt must contain it.
        tools: The tools of the request, for their size.
        model: The model of the request, or its name. Its window and calibration are used.
        user: The user of the sessions. Another user's session is refused.
        track: The track of each session.
        session_key: The config's key of the session, such as `thread_id`.

    Raises:
        InvalidInputError: if `history_messages_key` is given without `input_messages_key`.
        SettingsError: if another argument cannot be used.
    """
    check_known_view("with_tiered_history", memory, view, more=HISTORY_VIEWS)
    if history_messages_key is not None and input_messages_key is None:
        msg = "history_messages_key needs input_messages_key: which key of the input holds the user's message?"
        raise InvalidInputError(msg)
    try:
        inner: Runnable[Any, Any] = coerce_to_runnable(runnable)
    except TypeError as error:
        msg = f"with_tiered_history: runnable must be a Runnable, a function, or a dict of these: {error}"
        raise SettingsError(msg) from error
    asked: dict[str, Any] = {"max_tokens": max_tokens, "system": system, "tools": tools, "model": model}
    return RunnableWithTieredHistory(
        inner,
        functools.partial(TurnHistory, memory, view=view, query=None, user=user, track=track, **asked),
        session_key=session_key,
        keys=(input_messages_key, output_messages_key, history_messages_key),
    )


class RunnableWithTieredHistory(Runnable[Any, Any]):
    """A runnable with a session as its history. It stores a turn as it happens, not only one that succeeds.

    Args:
        bound: The runnable.
        turn_of: Makes the turn of a session.
        session_key: The config's key of the session.
        keys: Those of the user's words, the answer and the history.
    """

    def __init__(
        self,
        bound: Runnable[Any, Any],
        turn_of: Callable[[str], TurnHistory],
        *,
        session_key: str,
        keys: tuple[str | None, str | None, str | None],
    ) -> None:
        self._bound = bound
        self._turn_of = turn_of
        self._session_key = session_key
        self._input_key, self._output_key, self._history_key = keys

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """What a config may set: the session, and whatever the runnable takes."""
        about = "The memory's session for this call."
        session = ConfigurableFieldSpec(
            id=self._session_key, annotation=str, name="Session", description=about, default="", is_shared=True
        )
        return get_unique_config_specs([*self._bound.config_specs, session])

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ANN401 - as the base class has it
        """One turn."""
        with self._turn(config, kwargs) as (turn, steps):
            turn.answer = steps.invoke(input, config)
        return turn.answer

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ANN401 - as the base class has it
        """See `invoke`."""
        async with self._aturn(config, kwargs) as (turn, steps):
            turn.answer = await steps.ainvoke(input, config)
        return turn.answer

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:  # noqa: A002, ANN401 - as the base class has it
        """See `invoke`."""
        with self._turn(config, kwargs) as (turn, steps), closing(cast("Any", steps.stream(input, config))) as chunks:
            for chunk in chunks:
                turn.answer = _joined(turn.answer, chunk)
                yield chunk

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:  # noqa: A002, ANN401 - as the base class has it
        """See `invoke`."""
        async with (
            self._aturn(config, kwargs) as (turn, steps),
            aclosing(cast("Any", steps.astream(input, config))) as chunks,
        ):
            async for chunk in chunks:
                turn.answer = _joined(turn.answer, chunk)
                yield chunk

    @contextmanager
    def _turn(
        self, config: RunnableConfig | None, options: Mapping[str, Any]
    ) -> Iterator[tuple[TurnHistory, Runnable[Any, Any]]]:
        turn, steps = self._begun(config, options)
        try:
            yield turn, steps
        except BaseException as error:
            turn.break_off(error)
            raise
        turn.end(self._answered)

    @asynccontextmanager
    async def _aturn(
        self, config: RunnableConfig | None, options: Mapping[str, Any]
    ) -> AsyncIterator[tuple[TurnHistory, Runnable[Any, Any]]]:
        turn, steps = self._begun(config, options)
        try:
            yield turn, steps
        except BaseException as error:
            # In a thread, because a cancelled task may be cancelled again: the end of `asyncio.run` even cancels the
            # tasks that close generators left open.
            write = functools.partial(copy_context().run, turn.break_off, error)
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, write))
            raise
        await off_loop(turn.end, self._answered)

    def _begun(
        self, config: RunnableConfig | None, options: Mapping[str, Any]
    ) -> tuple[TurnHistory, Runnable[Any, Any]]:
        """The turn of the config's session, and the runnable with its options, and what begins a turn in front."""
        session_id = ensure_config(config).get("configurable", {}).get(self._session_key)
        if session_id is None:
            msg = f'the config names no session: give {{"configurable": {{"{self._session_key}": "..."}}}}'
            raise InvalidInputError(msg)
        turn = self._turn_of(session_id)

        def begin(value: Any) -> Any:  # noqa: ANN401 - whatever the runnable takes
            return self._filled(value, *run(turn.begin(self._spoken(value))))

        async def abegin(value: Any) -> Any:  # noqa: ANN401 - as above
            return self._filled(value, *await arun(turn.begin(self._spoken(value))))

        steps = self._bound.bind(**options) if options else self._bound
        return turn, RunnableLambda(begin, abegin).with_config(run_name="remember_and_load") | steps

    def _spoken(self, value: Any) -> list[BaseMessage]:  # noqa: ANN401 - as above
        if isinstance(value, Mapping):
            (only,) = value if len(value) == 1 else ("input",)
            value = value[chosen_key("input", self._input_key or only, value)]
        return said(value)

    def _filled(self, value: Any, before: list[BaseMessage], whole: list[BaseMessage]) -> Any:  # noqa: ANN401 - as above
        """The input, with the view where the next step expects it."""
        if self._history_key is not None:
            return {**value, self._history_key: before}
        return whole if self._input_key is None else {**value, self._input_key: whole}

    def _answered(self, value: Any) -> list[BaseMessage]:  # noqa: ANN401 - whatever the runnable gives
        if isinstance(value, Mapping):
            known = list(value)[:1] if len(value) == 1 else usual_keys("output", value)
            value = value.get(self._output_key or next(iter(known), None), value)
        return [] if value is None else answered(value)


def _joined(so_far: Any, chunk: Any) -> Any:  # noqa: ANN401 - whatever a runnable streams
    if so_far is None:
        return chunk
    try:
        return so_far + chunk
    except TypeError:
        return chunk


class TurnHistory(TieredChatMessageHistory):
    """The history of one turn for `with_tiered_history`. It writes the user's words first, and they stay."""

    _spoken: Sequence[BaseMessage] = ()
    """The user's words, once they are written."""
    answer: Any = None
    """The answer, or as much of it as has arrived."""

    def begin(self, spoken: Sequence[BaseMessage]) -> Flow[tuple[list[BaseMessage], list[BaseMessage]]]:
        """Write the user's words. Returns the view before them, and then the view with them."""
        ours = with_ids(their_own(spoken))
        try:
            ours = self.session.core.add_turn(ours)
        except TieredMemoryError as error:
            self._report_unwritten(error)
            raise
        self._spoken = ours
        said_ids = {one.id for one in ours}
        view = yield from each_step(self._viewed(ours), self._memory.core.runtime.store.database.snapshot)
        shown = {one.id: one for one in view}
        before = [one for one in view if one.id is None or one.id not in said_ids]
        if view and view[-1].id not in said_ids:  # another turn under the same ids was answered meanwhile
            view = [*before, *(shown[one.id] for one in ours if one.id in shown)]
        return before, self._noted([*view, *(one for one in ours if one.id not in shown)])

    def _viewed(self, ours: Sequence[BaseMessage]) -> Flow[list[BaseMessage]]:
        core = self.session.core
        return (yield from self._reading(said_beside(core.runtime, core.ref, self.session.track, ours)))

    def end(self, messages_of: Callable[[object], Sequence[BaseMessage]]) -> None:
        """Write what the run added. The answer is there, so a failure is only reported."""
        try:
            found, began = self._new_among([*self._spoken, *messages_of(self.answer)]), identity(self._spoken)
            if identity(found[: len(began)]) == began:
                found = found[len(began) :]
            self.session.core.add_turn(with_ids(found), may_be_again=False)
        except TieredMemoryError as error:
            self._report_unwritten(error)

    def break_off(self, error: BaseException) -> None:
        """Write the part of the answer that arrived, marked as interrupted."""
        text = text_so_far(self.answer)
        stump = [AIMessage(text, response_metadata={"interrupted": type(error).__name__})] if text.strip() else []
        try:
            self.session.add_messages(stump, kind="interrupted")
        except TieredMemoryError as unwritten:
            self._report_unwritten(unwritten)
        if self._spoken:
            self._memory.core.report(
                EventName.TURN_INTERRUPTED,
                f"an answer was interrupted by {type(error).__name__}; the user's message is kept",
                session_id=self.session.session_id,
                error=type(error).__name__,
            )

    def _in_a_run(self) -> bool:
        return True
