"""The face for `langchain.agents.create_agent`: a middleware that decides what each model call is shown.

The state's messages stay as they are: they are written to the memory, and the request alone is replaced, by a context
within the window of the model of that request.

    agent = create_agent(model, tools, middleware=[TieredMemoryMiddleware(memory)], checkpointer=checkpointer)
    agent.invoke({"messages": [...]}, {"configurable": {"thread_id": "alice"}})

Put it first: middlewares behind it then see, and may still change, what is really sent.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, cast

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.config import get_config
from langgraph.types import Command

from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.graph_faces.agent_context import MESSAGES_KEY, Asked, Choices, Outgoing
from langchain_tiered_memory.graph_faces.agent_request import changes_of, schemas_of
from langchain_tiered_memory.graph_faces.agent_turn import Told, adrive, drive, take_turn
from langchain_tiered_memory.graph_faces.notices import EVENT_NAME, Notices
from langchain_tiered_memory.graph_faces.places import place_of
from langchain_tiered_memory.state import branch_in, merged, update_with

try:
    from langchain.agents.middleware import types as agents
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
except ImportError as error:
    _MISSING = "TieredMemoryMiddleware needs langchain 1.x: pip install 'langchain-tiered-memory[agents]'"
    raise ImportError(_MISSING) from error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from langchain_core.messages import AnyMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.graph_faces.places import Place
    from langchain_tiered_memory.memory import TieredMemory

logger = logging.getLogger("langchain_tiered_memory")

_EXTENDED: Any = getattr(agents, "ExtendedModelResponse", None)
"""Absent in the first releases of langchain 1: there, how the messages stood is worked out anew at each call."""


class TieredMemoryState(AgentState[Any]):
    """What the middleware adds to an agent's state: figures and ids in plain JSON, neither put in nor given out."""

    tiered_memory: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, merged]]


class TieredMemoryMiddleware(AgentMiddleware[TieredMemoryState, Any]):
    """Shows each model call of an agent a context of the memory instead of the whole history.

    The session is the `thread_id` of the config. A sub-agent gets a track of its own, unless it goes on with messages
    of another. Alerts and outcomes of the guard go to the graph's custom stream and to callbacks (as the custom event
    `tiered_memory`), in plain JSON.

    Args:
        memory: Where everything is kept.
        max_tokens: The most that one request may take; what the window of the request's model allows, if not given, or
            `settings.context.max_tokens` where the model does not tell its window.
        view: As of `Session.context`.
        profile: As of `Session.context`.
        recall: Whether the last user message is looked up in what the context does not show.
        project: Keys of the state, such as `todos`, shown as a note at the very end while some messages of the state
            are not shown: there a change of theirs leaves the rest of the request to the provider's cache.
        project_tokens: The most that this note may take; set aside in every request.
        tools: Give the agent `recall`, `expand` and `pin` besides.
        track: The track of all this agent's messages; by its place in the graph, if not given.
        user_key: Key of the config that names the user, where there is one; another user's session is refused.
        store_answers: Write an answer as soon as it is there. Off: with the next request, as other middlewares left it,
            so that nothing they take out of an answer is ever written.

    Raises:
        SettingsError: for a choice that cannot be used.
    """

    state_schema = TieredMemoryState

    def __init__(
        self,
        memory: TieredMemory,
        *,
        max_tokens: int | None = None,
        view: str = "default",
        profile: str | None = None,
        recall: bool = True,
        project: Sequence[str] = (),
        project_tokens: int = 500,
        tools: bool = False,
        track: str | None = None,
        user_key: str = "user_id",
        store_answers: bool = True,
    ) -> None:
        super().__init__()
        if isinstance(project, str):
            msg = f"project is one string: give a list of the state's keys, such as [{project!r}]"
            raise SettingsError(msg)
        if "messages" in project:
            msg = "project names other keys of the state than messages: those are what the memory is about"
            raise SettingsError(msg)
        self._memory = memory
        self._notices = Notices()
        self._has_warned = False
        self._user_key = user_key
        self._choices = Choices(
            max_tokens=max_tokens,
            view=view,
            profile=profile,
            recall=recall,
            project=tuple(project),
            project_tokens=project_tokens,
            track=track,
            store_answers=store_answers,
        )
        if tools:
            from langchain_tiered_memory.tools import memory_tools  # noqa: PLC0415 - only where wanted

            self.tools = memory_tools(memory)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:  # noqa: ANN401 - a response, with a state update where this langchain has such a thing
        """Remember, call the model with a context, remember its answer.

        Raises:
            InvalidInputError: when the config has no `thread_id`.
            TieredMemoryError: when the messages cannot be stored, or no context can be made.
        """
        held = _held(request)
        if not held:
            return handler(request)
        config = _config()
        place = place_of(config, self._user_key)

        def tell(told: Told) -> None:
            for notice in self._notices_of(told, place):
                _write(request, notice)
                dispatch_custom_event(EVENT_NAME, notice, config=config)

        response, record = drive(
            take_turn(self._memory, self._asked(request, place, held), self._choices),
            config,
            call=lambda outgoing: _as_response(handler(_replaced(request, outgoing))),
            tell=tell,
        )
        return _extended(response, update_with(MESSAGES_KEY, record))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:  # noqa: ANN401 - as above
        """See `wrap_model_call`."""
        held = _held(request)
        if not held:
            return await handler(request)
        config = _config()
        place = place_of(config, self._user_key)

        async def call(outgoing: Outgoing) -> ModelResponse[Any]:
            return _as_response(await handler(_replaced(request, outgoing)))

        async def tell(told: Told) -> None:
            for notice in self._notices_of(told, place):
                _write(request, notice)
                await adispatch_custom_event(EVENT_NAME, notice, config=config)

        turn = take_turn(self._memory, self._asked(request, place, held), self._choices)
        response, record = await adrive(turn, config, call=call, tell=tell)
        return _extended(response, update_with(MESSAGES_KEY, record))

    def _asked(self, request: ModelRequest[Any], place: Place, held: list[BaseMessage]) -> Asked:
        self._warn_of_summaries(held)
        return Asked(
            place=place,
            held=held,
            changes=changes_of(held, request.messages),
            system=request.system_message,
            tools=schemas_of(request.tools, request.response_format),
            model=request.model,
            record=branch_in(request.state, MESSAGES_KEY),
            projected={key: request.state.get(key) for key in self._choices.project},
        )

    def _notices_of(self, told: Told, place: Place) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        if told.overflow is not None:
            named = {"type": EVENT_NAME, "session_id": place.session_id, "track": told.track}
            found.append(named | {"event": "overflow"} | told.overflow)
        if told.report is not None:
            found += self._notices.of(told.report, session_id=place.session_id, track=told.track)
        return found

    def _warn_of_summaries(self, held: list[BaseMessage]) -> None:
        if not self._has_warned and any(
            message.additional_kwargs.get("lc_source") == "summarization" for message in held
        ):
            self._has_warned = True
            logger.warning(
                "SummarizationMiddleware rewrites the messages of the state, which the memory then takes for deleted: "
                "leave it out, for TieredMemoryMiddleware does its work"
            )


def _held(request: ModelRequest[Any]) -> list[BaseMessage]:
    """The messages of the state: what middlewares around this one changed in the request is not remembered."""
    held: list[BaseMessage] = list(request.state.get("messages") or request.messages)
    return held


def _config() -> RunnableConfig:
    try:
        return get_config()
    except RuntimeError as error:
        msg = "the middleware was called outside of a graph: hand it to create_agent(middleware=[...])"
        raise InvalidInputError(msg) from error


def _replaced(request: ModelRequest[Any], outgoing: Outgoing) -> ModelRequest[Any]:
    messages = cast("list[AnyMessage]", outgoing.messages)
    return request.override(messages=messages, system_message=outgoing.system)


def _as_response(answer: Any) -> ModelResponse[Any]:  # noqa: ANN401 - middlewares behind may give any of these
    if isinstance(answer, AIMessage):
        return ModelResponse(result=[answer])
    response: ModelResponse[Any] = answer.model_response if hasattr(answer, "model_response") else answer
    return response


def _extended(response: ModelResponse[Any], update: dict[str, Any]) -> Any:  # noqa: ANN401 - as the langchain at hand
    return _EXTENDED(model_response=response, command=Command(update=update)) if _EXTENDED is not None else response


def _write(request: ModelRequest[Any], notice: dict[str, Any]) -> None:
    writer = getattr(request.runtime, "stream_writer", None)
    if writer is not None:
        writer(notice)
