"""The runnable that every node of the memory is, with stream events of what it did; what users' own nodes ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - annotations are read at the border, as are the next
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from langchain_core.callbacks import adispatch_custom_event, dispatch_custom_event
from langchain_core.messages import BaseMessage  # noqa: TC002
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.driver import Flow, arun, off_loop_function, run
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.integrations.checks import MemorySource  # noqa: TC001
from langchain_tiered_memory.integrations.graph.node_cache import assembled, call_of, handover_of, plan_in
from langchain_tiered_memory.integrations.graph.node_wiring import WIRES, Wiring, found_in, opened
from langchain_tiered_memory.integrations.graph.stream_events import EVENT_NAME, unstreamed
from langchain_tiered_memory.integrations.graph.tracks import line_of_nodes, place_of
from langchain_tiered_memory.types.arguments import (  # noqa: TC001
    Count,
    Name,
    Scope,
    Tool,
    Words,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_tiered_memory.types.runs import MemoryCheckpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a node leaves."""

    update: dict[str, Any]
    notices: Sequence[dict[str, Any]] = ()
    """For the caller's streams, in plain JSON."""


class MemoryNode(Runnable[Any, dict[str, Any]]):
    """A node, sync and async, made by one of the functions here; `StateGraph.add_node` takes it as it is.

    It has no trace of its own: the graph traces the node, and a second one would hold the state once more.

    Args:
        name: The node's, where `add_node` gets none.
        journey: From a state and a config to the update.
    """

    def __init__(self, name: str, journey: Callable[[Any, RunnableConfig], Flow[Done]]) -> None:
        self.name = name
        self._journey = journey

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - LangChain's names
        """The state update of this node.

        Raises:
            InvalidInputError: when the config has no `thread_id`, or the state is not what the node was made for.
            TieredMemoryError: when the memory cannot do it; the state is as it was.
        """
        config = ensure_config(config)
        with unstreamed(config):
            done = run(self._journey(input, config))
        for notice in done.notices:
            if _write(notice):
                dispatch_custom_event(EVENT_NAME, notice, config=config)
        return done.update

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - LangChain's names
        """See `invoke`."""
        config = ensure_config(config)
        with unstreamed(config):
            done = await arun(self._journey(input, config))
        for notice in done.notices:
            if _write(notice):
                await adispatch_custom_event(EVENT_NAME, notice, config=config)
        return done.update


def at_once(journey: Callable[[Any, RunnableConfig], Done]) -> Callable[[Any, RunnableConfig], Flow[Done]]:
    """A journey that waits for nobody, as `MemoryNode` takes it."""

    def flow(state: Any, config: RunnableConfig) -> Flow[Done]:  # noqa: ANN401 - any state
        done = journey(state, config)
        yield from ()
        return done

    return flow


def _write(notice: dict[str, Any]) -> bool:
    """Put a notice on the graph's custom stream. False where no graph is running: the node was called by itself."""
    from langgraph.config import get_stream_writer  # noqa: PLC0415 - the engine works without LangGraph

    try:
        writer = get_stream_writer()
    except (RuntimeError, KeyError):
        return False
    writer(notice)
    return True


def input_of_model(
    memory: MemorySource, state: object, config: RunnableConfig, changes: Mapping[str, Any]
) -> Flow[list[BaseMessage]]:
    """The messages of the next call, by the plan in the state and what the caller says besides."""
    handover = handover_of(memory)
    plan = plan_in(state, changes.get("node"))
    wires = {name: value for name, value in {**plan, **changes}.items() if name in WIRES}
    asked = {name: value for name, value in changes.items() if name not in WIRES and name != "node"}
    planned = handover.call(plan["call"]) if plan else None
    if plan and planned is None and not asked:
        msg = (
            "the state's plan is for a call that no context_node of this process was made for: make the node "
            "before, or pass model_input the same model, system, tools and max_tokens"
        )
        raise InvalidInputError(msg)
    call = call_of({**(planned.asked if planned is not None else {}), **asked})
    made = yield from assembled(found_in(memory, Wiring(**wires), state, config), call, handover, take=True)
    return list(made.context.messages)


class ContextChoices(TypedDict, total=False):
    """The arguments of `context_node`, but for the memory and its name."""

    model: str | Runnable[Any, Any] | None
    system: str | BaseMessage | None
    tools: Sequence[Tool]
    max_tokens: Count | None
    query: str | None
    view: str
    profile: Name | None
    messages_key: Name | None
    track: Name | None
    scope: Scope | None
    user_key: Name


class ContextChanges(ContextChoices, total=False):
    """What `model_input` may be asked besides: arguments of `context_node`, and `node`, the name of one."""

    node: Name | None


@checked()
def model_input(
    memory: MemorySource,
    state: object,
    config: RunnableConfig,
    **changes: Unpack[ContextChanges],
) -> list[BaseMessage]:
    """Return the messages for the next model call, with the system prompt: valid for any provider, within the budget.

    Args:
        memory: The memory that `context_node` was made with.
        state: The state of your node. Messages in it that were not remembered yet are written first.
        config: The config of your node.
        **changes: Arguments of `context_node` that differ from those given there, or all of them in a graph without
            one. `node` names the `context_node` that is meant, if several run side by side.

    Raises:
        InvalidInputError: if the config has no `thread_id`, if the plan in the state is for a call that nothing in this
            process was built for, or if several context nodes ran side by side and `node` is missing.
        BudgetError: if the budget cannot hold what must be shown.
    """
    config = ensure_config(config)
    with unstreamed(config):
        return run(input_of_model(memory, state, config, changes))


@checked()
async def amodel_input(
    memory: MemorySource,
    state: object,
    config: RunnableConfig,
    **changes: Unpack[ContextChanges],
) -> list[BaseMessage]:
    """See `model_input`."""
    config = ensure_config(config)
    with unstreamed(config):
        return await arun(input_of_model(memory, state, config, changes))


@checked()
def checkpoint_run(
    memory: MemorySource,
    config: RunnableConfig,
    reason: Words = "manual",
    *,
    project: Mapping[str, Any] | None = None,
    user_key: Name = "user_id",
) -> MemoryCheckpoint:
    """Save the state of the run, with the id of the LangGraph checkpoint with which the present step began.

    Args:
        memory: The memory, or a function that opens it.
        config: The config of the present step. It names the thread.
        reason: Your reason. `Session.checkpoints()` shows it.
        project: As for `Session.checkpoint`.
        user_key: The key of the config that names the user.

    Raises:
        InvalidInputError: if the config has no `thread_id`, or `project` is not JSON.
        NotFoundError: if the session has nothing to save yet.
        StorageError: if it cannot be written. Nothing was written.
    """
    there, place = opened(memory), place_of(config, user_key)
    track = line_of_nodes(there, place, None, track=None).track
    session = there.session(place.session_id, user=place.user, track=track)
    return session.checkpoint(reason, project=project, langgraph_checkpoint_id=place.checkpoint_id)


acheckpoint_run = off_loop_function(checkpoint_run)
