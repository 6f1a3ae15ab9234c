"""Middleware for `langchain.agents.create_agent` that decides what each model call is shown.

The state's messages stay as they are. The middleware writes them to the memory and replaces only the request's
messages, with a context that fits the window of the request's model.

    agent = create_agent(model, tools, middleware=[TieredMemoryMiddleware(memory)], checkpointer=checkpointer)
    agent.invoke({"messages": [...]}, {"configurable": {"thread_id": "alice"}})

Put it last. Then it counts what earlier middlewares add to a request (a prompt, a tool), and a model that they fall
back to or retry gets what fits its own window.
"""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003 - annotations are read at the border, as are the next
from typing import TYPE_CHECKING, Annotated, Any, NotRequired

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Command

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.driver import arun, off_loop_twin, run
from langchain_tiered_memory.errors import SettingsError
from langchain_tiered_memory.integrations.agent.called_models import CalledModels, watched
from langchain_tiered_memory.integrations.agent.model_call import MESSAGES_KEY, kept, take_turn
from langchain_tiered_memory.integrations.agent.request import (
    Asked,
    Choices,
    changes_of,
    running_config,
    schemas_of,
)
from langchain_tiered_memory.integrations.checks import Memory, check_known_view
from langchain_tiered_memory.integrations.graph.memory_node import Notices, unstreamed
from langchain_tiered_memory.integrations.graph.tracks import place_of
from langchain_tiered_memory.integrations.state import BranchRecord, branch_in, merged, update_with
from langchain_tiered_memory.models.chat_models import profile_of
from langchain_tiered_memory.types.arguments import Count, Name, Scope  # noqa: TC001

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
except ImportError as error:
    _MISSING = "TieredMemoryMiddleware needs langchain 1.x: `pip install langchain`"
    raise ImportError(_MISSING) from error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from langchain_tiered_memory.integrations.agent.reply import Outgoing


class TieredMemoryState(AgentState[Any]):
    """What the middleware adds to an agent's state: figures and ids in plain JSON, in neither input nor output."""

    tiered_memory: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, merged]]


class TieredMemoryMiddleware(AgentMiddleware[TieredMemoryState, Any]):
    """Replaces the history in each of an agent's model calls with a context from the memory.

    The session is the config's `thread_id`. A sub-agent gets its own track, unless it continues another agent's
    messages. Without a checkpointer, only the memory knows what was said before, so pass the agent only new messages.

    When the agent ends, the last messages of the run are written as other middlewares left them. Alerts and outcomes go
    to the graph's custom stream and to callbacks (custom event `tiered_memory`), as plain JSON.

    Args:
        memory: The memory to use.
        max_tokens: The most tokens of one request. By default, what the window of the request's model allows, or
            `settings.context.max_tokens` if the window is not known.
        view: As for `Session.context`.
        profile: As for `Session.context`.
        recall: Whether to add quotes that answer the last user message from what the context does not show.
        project: Keys of the state, such as `todos`, to show in a note at the very end while some messages of the state
            are not shown. There, a change to them does not break the provider's prompt cache.
        project_tokens: The most tokens of this note. Every request reserves them.
        tools: Also gives the agent the tools `recall`, `expand` and `pin`.
        cache_hints: Marks for the provider what later requests repeat: breakpoints for Anthropic's own API, a
            `prompt_cache_key` for OpenAI's. Existing breakpoints stay as they are. Off by default, because a later
            middleware may set some too, and Anthropic accepts at most four.
        track: The track of all messages of this agent. By default, its place in the graph decides.
        scope: What its contexts and tools may show of the session. `Scope(sight_tokens=800)` gives a sub-agent a
            read-only view of the calling agent, up to 800 tokens. By default, a sub-agent on its own track sees only
            that track, and any other agent the whole session.
        user_key: The key of the config, or of the run's context (`context_schema`), that names the user. A session of
            another user is refused.
        across: Whether the tool `recall` may search the user's other sessions too, as for `memory_tools`.
        name: Its name in the agent, by default the name of the class. Two in one agent need two names. In
            `create_deep_agent`, the name `SummarizationMiddleware` makes it replace deepagents' own, also in the
            general-purpose sub-agent.

    Raises:
        SettingsError: if an argument cannot be used.
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
            msg = "project cannot name the key messages: the memory already shows them"
            raise SettingsError(msg)
        self._memory = memory
        self._name = name
        self._notices = Notices()
        self._user_key = user_key
        self._choices = Choices(
            max_tokens=max_tokens,
            view=view,
            profile=profile,
            recall=recall,
            project=tuple(project),
            project_tokens=project_tokens,
            track=track,
            scope=scope,
            cache_hints=cache_hints,
        )
        if across and not tools:
            msg = "across=True extends the tool recall, so it needs tools=True"
            raise SettingsError(msg)
        if tools:
            from langchain_tiered_memory.integrations.tools import memory_tools  # noqa: PLC0415 - only where wanted

            self.tools = memory_tools(memory, track=track, scope=scope, user_key=user_key, across=across)

    @property
    def name(self) -> str:
        """Its name in the agent."""
        return self._name or type(self).__name__

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any] | ModelResponse[Any]:
        """Store new messages, and call the model with a context.

        Raises:
            InvalidInputError: if the config has no `thread_id`.
            TieredMemoryError: if the messages cannot be stored, or no context can be made.
        """
        asked = self._asked(request)
        if asked is None:
            return handler(request)

        def take(outgoing: Outgoing) -> ModelResponse[Any]:
            with watched(asked.config, asked.called):
                return _as_response(handler(outgoing.request))

        with unstreamed(asked.config):
            response, record = run(take_turn(self._memory, asked, self._notices), take=take)
        return _extended(response, record)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any] | ModelResponse[Any]:
        """See `wrap_model_call`."""
        asked = self._asked(request)
        if asked is None:
            return await handler(request)

        async def take(outgoing: Outgoing) -> ModelResponse[Any]:
            with watched(asked.config, asked.called):
                return _as_response(await handler(outgoing.request))

        with unstreamed(asked.config):
            response, record = await arun(take_turn(self._memory, asked, self._notices), take=take)
        return _extended(response, record)

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ANN401 - of any agent
        """Write the last messages. The transcript never has what other middlewares removed from an answer."""
        del runtime
        config = running_config()
        with unstreamed(config):
            place, record = place_of(config, self._user_key), branch_in(state, MESSAGES_KEY)
            return _last_update(state, kept(self._memory, self._choices, place, state.get("messages") or (), record))

    aafter_agent = off_loop_twin(after_agent)  # type: ignore[arg-type] # the base class has its own `self`

    def _asked(self, request: ModelRequest[Any]) -> Asked | None:
        """The request as the flow sees it. `None` if it has no messages."""
        # Those of the state: what middlewares around this one changed in the request is not remembered.
        held = list(request.state.get("messages") or request.messages)
        if not held:
            return None
        config = running_config()
        return Asked(
            request=request,
            config=config,
            choices=self._choices,
            place=place_of(config, self._user_key),
            held=held,
            changes=changes_of(held, request.messages),
            tools=schemas_of(request.tools, request.response_format),
            model=profile_of(request.model),
            called=CalledModels(),
        )


def _last_update(state: Any, record: BranchRecord | None) -> dict[str, Any] | None:  # noqa: ANN401 - of any agent
    """The record and the unchanged last message, because the node has an entry in the graph's stream of updates.

    LangChain's documentation shows loops that read the last message of every update. A message whose id is in the state
    keeps its place there.
    """
    update = update_with(MESSAGES_KEY, record) if record is not None else {}
    last = next(iter((state.get("messages") or ())[-1:]), None)
    if isinstance(last, BaseMessage) and last.id:
        update["messages"] = [last]
    return update or None


def _as_response(answer: Any) -> ModelResponse[Any]:  # noqa: ANN401 - middlewares behind may give any of these
    if isinstance(answer, AIMessage):
        return ModelResponse(result=[answer])
    response: ModelResponse[Any] = answer.model_response if hasattr(answer, "model_response") else answer
    return response


def _extended(response: ModelResponse[Any], record: BranchRecord) -> ExtendedModelResponse[Any]:
    return ExtendedModelResponse(model_response=response, command=Command(update=update_with(MESSAGES_KEY, record)))
