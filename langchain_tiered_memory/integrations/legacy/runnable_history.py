"""`RunnableWithMessageHistory` over a tiered memory that writes the user's words before the model runs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from contextvars import copy_context
from typing import Any, cast

from langchain_core._api import suppress_langchain_deprecation_warning
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda, RunnableWithMessageHistory
from langchain_core.runnables.base import RunnableBindingBase, coerce_to_runnable
from langchain_core.runnables.config import ensure_config
from langchain_core.runnables.utils import ConfigurableFieldSpec

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.driver import Flow, arun, each_step, run
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
) -> RunnableWithMessageHistory:
    """Return `runnable` with the memory as its history. Each call names its session in the config.

        chat = with_tiered_history(prompt | model, memory, input_messages_key="input", history_messages_key="history")
        chat.invoke({"input": "Where were we?"}, {"configurable": {"session_id": "alice"}})

    The user's words are in the database before `runnable` is called, and the context is made for them. If the model
    fails, the call is cancelled or the stream breaks off, they stay there, followed by what arrived of the answer (kind
    `interrupted`), and the event `turn_interrupted` reports it. If an answer cannot be written, the event
    `history_not_written` reports it. Put retries inside, as in `with_tiered_history(runnable.with_retry(), memory)`:
    outside, each attempt would be a turn.

    Args:
        runnable: As for `RunnableWithMessageHistory`; so are the three keys.
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
    asked: dict[str, Any] = {"max_tokens": max_tokens, "system": system, "tools": tools, "model": model}
    history_of = functools.partial(TurnHistory, memory, view=view, query=None, user=user, track=track, **asked)
    try:
        inner: Runnable[Any, Any] = coerce_to_runnable(runnable)
    except TypeError as error:
        msg = f"with_tiered_history: runnable must be a Runnable, a function, or a dict of these: {error}"
        raise SettingsError(msg) from error

    def spoken(value: Any) -> Any:  # noqa: ANN401 - whatever the runnable takes
        return value if input_messages_key is None else value[input_messages_key]

    def filled(value: Any, before: list[BaseMessage], whole: list[BaseMessage]) -> Any:  # noqa: ANN401 - as above
        """The input, with the view where the next step expects it."""
        if history_messages_key is not None:
            return {**value, history_messages_key: before}
        return whole if input_messages_key is None else {**value, input_messages_key: whole}

    def begin(value: Any, config: RunnableConfig) -> Any:  # noqa: ANN401 - as above
        return filled(value, *run(_turn(config).begin(spoken(value))))

    async def abegin(value: Any, config: RunnableConfig) -> Any:  # noqa: ANN401 - as above
        return filled(value, *await arun(_turn(config).begin(spoken(value))))

    remember = RunnableLambda(begin, abegin).with_config(run_name="remember_and_load")
    # Pydantic's plugin for type checkers knows no constructor that a base class writes by hand.
    runs: type[RunnableWithMessageHistory] = RunnableWithTieredHistory
    with suppress_langchain_deprecation_warning():  # of a class that the caller has not named
        return runs(
            _OneTurn(bound=remember | inner),
            history_of,
            input_messages_key=input_messages_key,
            output_messages_key=output_messages_key,
            history_messages_key=history_messages_key,
            history_factory_config=[
                ConfigurableFieldSpec(
                    id=session_key,
                    annotation=str,
                    name="Session",
                    description="The memory's session for this call.",
                    default="",
                    is_shared=True,
                )
            ],
        )


class RunnableWithTieredHistory(RunnableWithMessageHistory):
    """LangChain's class, but it takes any input that `said` takes, and keeps answers of any type."""

    def _get_input_messages(self, input_val: Any) -> list[BaseMessage]:  # noqa: ANN401 - whatever the runnable takes
        value = input_val
        if isinstance(value, Mapping):
            (only,) = value if len(value) == 1 else ("input",)
            value = value[chosen_key("input", self.input_messages_key or only, value)]
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
            value = value[0]  # as a chat model's run tells its input
        return said(value)

    def _get_output_messages(self, output_val: Any) -> list[BaseMessage]:  # noqa: ANN401 - whatever the runnable gives
        value = output_val
        if isinstance(value, Mapping):
            key = self.output_messages_key
            known = list(value)[:1] if len(value) == 1 else usual_keys("output", value)
            if key is None and known:
                key = known[0]
            value = value.get(key, value)
        return [] if value is None else answered(value)


class _OneTurn(RunnableBindingBase[Any, Any]):
    """Sees a turn end. We close an interrupted turn, because LangChain does not report it."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ANN401 - as the base class has it
        try:
            return super().invoke(input, config, **kwargs)
        except BaseException as error:
            _turn(config).break_off(error, None)
            raise

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ANN401 - as the base class has it
        try:
            return await super().ainvoke(input, config, **kwargs)
        except BaseException as error:
            await _turn(config).abreak_off(error, None)
            raise

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:  # noqa: A002, ANN401 - as the base class has it
        so_far: Any = None
        with closing(cast("Generator[Any, None, None]", super().stream(input, config, **kwargs))) as chunks:
            try:
                for chunk in chunks:
                    so_far = _joined(so_far, chunk)
                    yield chunk
            except BaseException as error:
                _turn(config).break_off(error, so_far)
                raise

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:  # noqa: A002, ANN401 - as the base class has it
        so_far: Any = None
        async with aclosing(cast("AsyncGenerator[Any, None]", super().astream(input, config, **kwargs))) as chunks:
            try:
                async for chunk in chunks:
                    so_far = _joined(so_far, chunk)
                    yield chunk
            except BaseException as error:
                await _turn(config).abreak_off(error, so_far)
                raise


def _turn(config: RunnableConfig | None) -> TurnHistory:
    turn: TurnHistory = ensure_config(config)["configurable"]["message_history"]
    return turn


def _joined(so_far: Any, chunk: Any) -> Any:  # noqa: ANN401 - whatever a runnable streams
    if so_far is None:
        return chunk
    try:
        return so_far + chunk
    except TypeError:
        return chunk


class TurnHistory(TieredChatMessageHistory):
    """The history of one turn for `with_tiered_history`. It writes the user's words first, and they stay.

    `RunnableWithMessageHistory` sees an empty history before and after the run, so nothing in it depends on the length
    of a view. `begin` inserts the view itself.
    """

    _spoken: tuple[str, ...] = ()
    """Digests of the user's words, once they are written."""
    _over = False

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override] # as above
        """Empty, because `begin` returns the view."""
        return []

    async def aget_messages(self) -> list[BaseMessage]:
        """See `messages`."""
        return []

    def begin(self, spoken: object) -> Flow[tuple[list[BaseMessage], list[BaseMessage]]]:
        """Write the user's words. Returns the view before them, and then the view with them."""
        ours = with_ids(their_own(said(spoken)))
        try:
            ours = self.session.core.add_turn(ours)
        except TieredMemoryError as error:
            self._report_unwritten(error)
            raise
        self._spoken = identity(ours)
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

    def break_off(self, error: BaseException, partial: object) -> None:
        """Write the part of the answer that arrived, marked as interrupted."""
        self._over = True
        text = text_so_far(partial)
        stump = [AIMessage(text, response_metadata={"interrupted": type(error).__name__})] if text.strip() else []
        try:
            self.session.add_messages(stump, kind="interrupted")
        except TieredMemoryError as unwritten:
            self._report_unwritten(unwritten)
        if not self._spoken:
            return
        self._memory.core.report(
            EventName.TURN_INTERRUPTED,
            f"an answer was interrupted by {type(error).__name__}; the user's message is kept",
            session_id=self.session.session_id,
            error=type(error).__name__,
        )

    async def abreak_off(self, error: BaseException, partial: object) -> None:
        """See `break_off`. It runs to its end in a thread, because a cancelled task may be cancelled again meanwhile.

        The end of `asyncio.run` even cancels the tasks that close generators left open.
        """
        write = functools.partial(copy_context().run, self.break_off, error, partial)
        await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, write))

    def _new_among(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """What the run added to its initial words. Nothing if it was interrupted before it reported."""
        if self._over:
            return []
        found = super()._new_among(messages)
        began = len(self._spoken)
        return found[began:] if identity(found[:began]) == self._spoken else found
