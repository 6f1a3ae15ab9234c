"""Middleware for `langchain.agents.create_agent` that decides what each model call is shown.

The state's messages stay as they are: they are written to the memory, and the request alone is replaced, by a context
within the window of the model of that request.

    agent = create_agent(model, tools, middleware=[TieredMemoryMiddleware(memory)], checkpointer=checkpointer)
    agent.invoke({"messages": [...]}, {"configurable": {"thread_id": "alice"}})

Put it last: what the middlewares before it add to a request (a prompt, a tool) is then counted, and a model that they
fall back to, or try once more, is sent what fits its own window.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - annotations are read at the border, as are the next
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, cast

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langgraph.types import Command

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.driver import arun, off_loop, run
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.integrations.agent.called_models import CalledModels, watched
from langchain_tiered_memory.integrations.agent.context import MESSAGES_KEY, Asked, Choices, kept
from langchain_tiered_memory.integrations.agent.model_call import Announcement, notices_of, take_turn
from langchain_tiered_memory.integrations.agent.reply import (
    Outgoing,
    Provider,
    called_by,
    has_breakpoints,
    provider_of,
    with_tool_breakpoint,
)
from langchain_tiered_memory.integrations.agent.request import (
    changes_of,
    held_by,
    is_summarised,
    running_config,
    schemas_of,
    stream,
)
from langchain_tiered_memory.integrations.checks import Memory, check_known_view
from langchain_tiered_memory.integrations.graph.stream_events import EVENT_NAME, Notices, unstreamed
from langchain_tiered_memory.integrations.graph.tracks import place_of
from langchain_tiered_memory.integrations.state import BranchRecord, branch_in, merged, update_with
from langchain_tiered_memory.models.chat_models import profile_of
from langchain_tiered_memory.types.arguments import (  # noqa: TC001
    Count,
    Name,
    Scope,
)

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
    _MISSING = "TieredMemoryMiddleware needs langchain 1.x: `pip install langchain`"
    raise ImportError(_MISSING) from error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain_core.runnables import RunnableConfig


_EXTENDED: Any = getattr(agents, "ExtendedModelResponse", None)
"""Absent in the first releases of langchain 1: there, how the messages stood is worked out anew at each call."""


class TieredMemoryState(AgentState[Any]):
    """What the middleware adds to an agent's state: figures and ids in plain JSON, neither put in nor given out."""

    tiered_memory: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, merged]]


class TieredMemoryMiddleware(AgentMiddleware[TieredMemoryState, Any]):
    """Shows each model call of an agent a context of the memory instead of the whole history.

    The session is the `thread_id` of the config. A sub-agent gets a track of its own, unless it goes on with messages
    of another. Without a checkpointer the memory alone knows what was said before: hand the agent only what is new.

    What was said last is written where the agent ends, as other middlewares left it. Alerts and outcomes of the guard
    go to the graph's custom stream and to callbacks (as the custom event `tiered_memory`), in plain JSON.

    Args:
        memory: Where everything is kept.
        max_tokens: The most that one request may take; what the window of the request's model allows, if not given, or
            `settings.context.max_tokens` where the model does not tell its window.
        view: As for `Session.context`.
        profile: As for `Session.context`.
        recall: Whether the last user message is looked up in what the context does not show.
        project: Keys of the state, such as `todos`, shown as a note at the very end while some messages of the state
            are not shown: there a change of theirs leaves the rest of the request to the provider's cache.
        project_tokens: The most that this note may take; set aside in every request.
        tools: Give the agent `recall`, `expand` and `pin` besides.
        cache_hints: Tell the provider what of a request comes again: breakpoints for models of Anthropic's own API, a
            `prompt_cache_key` for OpenAI's. Left alone where somebody set breakpoints already; off by default, for a
            middleware behind this one may set some too, and Anthropic takes four at most.
        track: The track of all this agent's messages; by its place in the graph, if not given.
        scope: What of the session its contexts and tools may show: `Scope(sight_tokens=800)` gives a sub-agent a
            capped, read-only sight of the agent that calls it. By default a sub-agent on a track of its own sees that
            track alone, and any other agent the whole session.
        user_key: Key of the config, or of the run's context (`context_schema`), that names the user, where there is
            one; another user's session is refused.
        across: Whether the tool `recall` may look into other sessions of the user too, as for `memory_tools`.
        name: What the agent calls it, if not by its class; two in one agent need two names. In `create_deep_agent` one
            that is called `SummarizationMiddleware` takes the place of deepagents' own, in its general-purpose
            sub-agent too.

    Raises:
        SettingsError: for a choice that cannot be used.
    """

    state_schema = TieredMemoryState

    @checked(SettingsError)
    def __init__(
        self,
        memory: Memory,
        *,
        max_tokens: Count | None = None,
        view: str = "default",
        profile: Name | None = None,
        recall: bool = True,
        project: Sequence[Name] = (),
        project_tokens: Count = 500,
        tools: bool = False,
        cache_hints: bool = False,
        track: Name | None = None,
        scope: Scope | None = None,
        user_key: Name = "user_id",
        across: bool = False,
        name: Name | None = None,
    ) -> None:
        super().__init__()
        check_known_view("TieredMemoryMiddleware", memory, view)
        if "messages" in project:
            msg = "project names other keys of the state than messages: those are what the memory is about"
            raise SettingsError(msg)
        self._memory = memory
        self._name = name
        self._notices = Notices()
        self._user_key = user_key
        self._cache_hints = cache_hints
        self._choices = Choices(
            max_tokens=max_tokens,
            view=view,
            profile=profile,
            recall=recall,
            project=tuple(project),
            project_tokens=project_tokens,
            track=track,
            scope=scope,
        )
        if across and not tools:
            msg = "across lets the tool recall look further: it needs tools=True"
            raise SettingsError(msg)
        if tools:
            from langchain_tiered_memory.integrations.tools import memory_tools  # noqa: PLC0415 - only where wanted

            self.tools = memory_tools(memory, track=track, scope=scope, user_key=user_key, across=across)

    @property
    def name(self) -> str:
        """What the agent calls it."""
        return self._name or type(self).__name__

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Any:  # noqa: ANN401 - a response, with a state update where this langchain has such a thing
        """Remember, and call the model with a context.

        Raises:
            InvalidInputError: when the config has no `thread_id`.
            TieredMemoryError: when the messages cannot be stored, or no context can be made.
        """
        found = self._asked(request)
        if found is None:
            return handler(request)
        asked, config = found

        def take(call: Outgoing | Announcement) -> ModelResponse[Any] | None:
            if isinstance(call, Outgoing):
                with watched(config, asked.called):
                    return _as_response(handler(_replaced(request, call)))
            for notice in notices_of(call, asked.place, self._notices):
                stream(request, notice)
                dispatch_custom_event(EVENT_NAME, notice, config=config)
            return None

        with unstreamed(config):
            response, record = run(take_turn(self._memory, asked, self._choices), take=take)
        return _extended(response, update_with(MESSAGES_KEY, record))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:  # noqa: ANN401 - as above
        """See `wrap_model_call`."""
        found = self._asked(request)
        if found is None:
            return await handler(request)
        asked, config = found

        async def take(call: Outgoing | Announcement) -> ModelResponse[Any] | None:
            if isinstance(call, Outgoing):
                with watched(config, asked.called):
                    return _as_response(await handler(_replaced(request, call)))
            for notice in notices_of(call, asked.place, self._notices):
                stream(request, notice)
                await adispatch_custom_event(EVENT_NAME, notice, config=config)
            return None

        with unstreamed(config):
            response, record = await arun(take_turn(self._memory, asked, self._choices), take=take)
        return _extended(response, update_with(MESSAGES_KEY, record))

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ANN401 - of any agent
        """Write what was said last: what other middlewares took out of an answer never stands in the transcript."""
        del runtime
        config = running_config()
        with unstreamed(config):
            return _last_update(state, self._kept(state, config))

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ANN401 - as above
        """See `after_agent`."""
        del runtime
        config = running_config()
        with unstreamed(config):
            return _last_update(state, await off_loop(self._kept, state, config))

    def _kept(self, state: Any, config: RunnableConfig) -> BranchRecord | None:  # noqa: ANN401 - as above
        return kept(
            self._memory,
            place_of(config, self._user_key),
            state.get("messages") or (),
            record=branch_in(state, MESSAGES_KEY),
            track=self._choices.track,
        )

    def _asked(self, request: ModelRequest[Any]) -> tuple[Asked, RunnableConfig] | None:
        """The request as the journey sees it, and the config of the running step; `None` where it has no message."""
        held = held_by(request)
        if not held:
            return None
        config = running_config()
        changes = changes_of(held, request.messages)
        asked = Asked(
            place=place_of(config, self._user_key),
            held=held,
            changes=changes,
            system=request.system_message,
            tools=schemas_of(request.tools, request.response_format),
            model=profile_of(request.model),
            record=branch_in(request.state, MESSAGES_KEY),
            called=CalledModels(),
            is_summarised=is_summarised(request.state, held, changes.before, changes.behind),
            projected={key: request.state.get(key) for key in self._choices.project},
            hints=self._hints(request),
            calls=called_by(request),
        )
        return asked, config

    def _hints(self, request: ModelRequest[Any]) -> Provider | None:
        settings = request.model_settings or {}
        parts = [request.system_message, *request.tools, *request.messages]
        if not self._cache_hints or "prompt_cache_key" in settings or has_breakpoints(parts, settings):
            return None
        return provider_of(request.model)


def _last_update(state: Any, record: BranchRecord | None) -> dict[str, Any] | None:  # noqa: ANN401 - of any agent
    """The record, and the last message as it is: the node has an entry in the graph's stream of updates.

    Loops that read the last message of every update are what LangChain's documents show. A message under an id that the
    state has takes its own place.
    """
    update = update_with(MESSAGES_KEY, record) if record is not None else {}
    last = next(iter((state.get("messages") or ())[-1:]), None)
    if isinstance(last, BaseMessage) and last.id:
        update["messages"] = [last]
    return update or None


def _replaced(request: ModelRequest[Any], outgoing: Outgoing) -> ModelRequest[Any]:
    messages = cast("list[AnyMessage]", outgoing.messages)
    if outgoing.marks_tools:
        request = request.override(tools=with_tool_breakpoint(request.tools))
    if not outgoing.settings:
        return request.override(messages=messages, system_message=outgoing.system)
    settings = {**(request.model_settings or {}), **outgoing.settings}
    return request.override(messages=messages, system_message=outgoing.system, model_settings=settings)


def _as_response(answer: Any) -> ModelResponse[Any]:  # noqa: ANN401 - middlewares behind may give any of these
    if isinstance(answer, AIMessage):
        return ModelResponse(result=[answer])
    response: ModelResponse[Any] = answer.model_response if hasattr(answer, "model_response") else answer
    return response


def _extended(response: ModelResponse[Any], update: dict[str, Any]) -> Any:  # noqa: ANN401 - as the langchain at hand
    return _EXTENDED(model_response=response, command=Command(update=update)) if _EXTENDED is not None else response
