"""Nodes for a hand-built LangGraph `StateGraph`. Each writes only its own key of the state, not the messages.

    class State(MessagesState, TieredState): ...

    def answer(state: State, config: RunnableConfig) -> dict:
        return {"messages": [model.invoke(model_input(memory, state, config))]}

    builder = StateGraph(State)
    builder.add_node("remember", remember_node(memory))
    builder.add_node("context", context_node(memory, model=model))
    builder.add_node("answer", answer)

The session is the config's `thread_id`. Every node takes a `TieredMemory`, or a function that opens one when it is
first needed (off the event loop), and works sync and async. Only `evict_node` changes the state's messages. Do not give
a node a `cache_policy`: a cached step stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - annotations are read at the border, as are the next
from typing import TYPE_CHECKING, Any, Unpack

from langchain_core.messages import BaseMessage  # noqa: TC002
from langchain_core.runnables import Runnable  # noqa: TC002

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.errors import InvalidInputError, SettingsError
from langchain_tiered_memory.integrations.checks import MemorySource, check_known_view
from langchain_tiered_memory.integrations.graph.archiving import archive_branch, without
from langchain_tiered_memory.integrations.graph.branches import named
from langchain_tiered_memory.integrations.graph.memory_node import MemoryNode, Streams
from langchain_tiered_memory.integrations.graph.node_cache import (
    ContextChoices,
    Handover,
    ModelCall,
    acheckpoint_run,
    amodel_input,
    assembled,
    call_of,
    checkpoint_run,
    handover_of,
    model_input,
    plan_of,
)
from langchain_tiered_memory.integrations.graph.node_wiring import WIRES, found_in
from langchain_tiered_memory.integrations.state import branch_in, part_of, update_with
from langchain_tiered_memory.types.arguments import Count, Name, Scope, Seconds, Tool  # noqa: TC001

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.driver import Flow


__all__ = [
    "MemoryNode", "acheckpoint_run", "amodel_input", "checkpoint_run", "condense_node", "context_node",
    "evict_node", "guard_node", "model_input", "remember_node",
]  # fmt: skip


@checked(SettingsError)
def remember_node(
    memory: MemorySource,
    *,
    messages_key: Name = "messages",
    kind: Name | None = None,
    task: Name | None = None,
    track: Name | None = None,
    user_key: Name = "user_id",
    name: Name = "remember",
) -> MemoryNode:
    """Make a node that writes the state's new messages to the memory. They are on disk when the node is done.

    Args:
        memory: The memory, or a function that opens it.
        messages_key: The key of the state's list of messages. The list decides what is on its branch: messages that
            were deleted from it or are on another fork stay in the transcript, but this branch's contexts do not show
            them.
        kind: The kind of the new messages, such as `acceptance_criteria`.
        task: The task that they belong to.
        track: The track of these messages. By default `main`, and a separate one for each sub-graph. A sub-graph that
            shares the list and `tiered_memory` with the graph above it shares its track.
        user_key: The key of the config's `configurable` that names the user.
        name: The node's name, if `add_node` gets none.
    """

    def journey(state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401 - any state
        found = found_in(memory, state, config, messages_key=messages_key, track=track, user_key=user_key)
        found.session.core.check_owner()
        return update_with(messages_key, found.remembered(kind=kind, task=task))

    return MemoryNode(name, journey)


@checked(SettingsError)
def condense_node(
    memory: MemorySource,
    *,
    messages_key: Name | None = "messages",
    timeout: Seconds | None = None,
    track: Name | None = None,
    user_key: Name = "user_id",
    name: Name = "condense",
) -> MemoryNode:
    """Make a node that finishes due summaries, for graphs that do not leave this to the background.

    A call without its result, such as one that waits for a person's approval, is never condensed.

    Args:
        memory: The memory, or a function that opens it.
        messages_key: The key of the state's list of messages, which is stored first. `None` if there is none.
        timeout: The most seconds to take. The rest is left for later.
        track: As for `remember_node`.
        user_key: As for `remember_node`.
        name: The node's name, if `add_node` gets none.
    """

    def journey(state: Any, config: RunnableConfig) -> Flow[dict[str, Any]]:  # noqa: ANN401 - any state
        found = found_in(memory, state, config, messages_key=messages_key, track=track, user_key=user_key)
        found.session.core.check_owner()
        record = found.remembered()
        report = yield from found.session.core.engine.flush(found.session.session_id, timeout)
        figures = {"summaries": report.summaries, "vectors": report.vectors, "pending": report.pending}
        return update_with(messages_key, record, condensed=figures)

    return MemoryNode(name, journey)


@checked(SettingsError)
def context_node(
    memory: MemorySource,
    *,
    model: str | Runnable[Any, Any] | None = None,
    system: str | BaseMessage | None = None,
    tools: Sequence[Tool] = (),
    max_tokens: Count | None = None,
    query: str | None = None,
    view: str = "default",
    profile: Name | None = None,
    messages_key: Name | None = "messages",
    track: Name | None = None,
    scope: Scope | None = None,
    user_key: Name = "user_id",
    name: Name = "context",
) -> MemoryNode:
    """Make a node that decides what the next model call is shown. `model_input` returns the messages.

    The state gets a small plan as JSON: the call that it is for, and figures. The context itself is passed beside the
    state, and made again if it is lost, for instance by a restart. If several of these nodes run side by side, choose
    one with `model_input(..., node="...")`.

    Args:
        memory: The memory, or a function that opens it.
        model: The model of the call, or its name. Its window and calibration are used.
        system: The system prompt of the call, for its size.
        tools: The tools of the call, for their size.
        max_tokens: The most tokens of the whole request. By default `settings.context.max_tokens`.
        query: The question to recall for. By default, the last user message. `""` leaves recall out.
        view: `default`, `recall`, `minimal` or a name of `settings.context.views`.
        profile: The profile whose condensation threshold applies. By default, the name of the model.
        messages_key: The key of the state's list of messages, which is stored first. `None` if there is none.
        track: As for `remember_node`.
        scope: What the context may show of the session. `Scope(sight_tokens=800)` gives a sub-graph a read-only view of
            the graph above it, up to 800 tokens. By default, a sub-graph on its own track sees only that track.
        user_key: As for `remember_node`.
        name: The node's name, if `add_node` gets none.
    """
    asked = {"model": model, "system": system, "tools": tools, "max_tokens": max_tokens, "query": query, "view": view}
    wires: dict[str, Any] = {"messages_key": messages_key, "track": track, "user_key": user_key}
    call, handover, _ = _announced(memory, asked | {"profile": profile, "scope": scope}, "context_node")

    def journey(state: Any, config: RunnableConfig) -> Flow[dict[str, Any]]:  # noqa: ANN401 - any state
        found = found_in(memory, state, config, **wires)
        context, record, notices = yield from assembled(found, call, handover)
        yield Streams(config).telling(notices)
        plan = plan_of(call, wires, found, context, config=config, name=name)
        return update_with(messages_key, record, **plan)

    return MemoryNode(name, journey)


@checked(SettingsError)
def guard_node(memory: MemorySource, *, name: Name = "guard", **asked: Unpack[ContextChoices]) -> MemoryNode:
    """Make a node that measures the next request and writes its zone, outcome and alert into the state.

    Route with `add_conditional_edges("guard", zone_in, {...})`. Alerts, outcomes and checkpoints also go to the graph's
    custom stream and to callbacks. A checkpoint that is saved for this request names the LangGraph checkpoint at which
    the step began. A `context_node` for the same call, right after this node, uses the context made here.

    Args:
        memory: As for `context_node`.
        name: The node's name in the graph.
        **asked: As for `context_node`.
    """
    call, handover, wires = _announced(memory, asked, "guard_node")

    def journey(state: Any, config: RunnableConfig) -> Flow[dict[str, Any]]:  # noqa: ANN401 - any state
        found = found_in(memory, state, config, **wires)
        context, record, notices = yield from assembled(found, call, handover)
        yield Streams(config).telling(notices)
        report, outcome = context.guard, context.guard.outcome
        figures = {
            "zone": report.zone.value,
            "used_tokens": report.used_tokens,
            "limit_tokens": report.window.limit,
            "window_tokens": report.window.tokens,
            "tokens": context.tokens,
            "max_tokens": context.max_tokens,
            "outcome": outcome.kind.value,
            "reason": outcome.reason.value if outcome.reason is not None else None,
            "steps": list(report.steps),
            "alert": report.alert.recommendation if report.alert is not None else None,
            "checkpoint_id": report.checkpoint_id,
            "langgraph_checkpoint_id": found.place.checkpoint_id,
        }
        return update_with(wires.get("messages_key", "messages"), record, guard=figures)

    return MemoryNode(name, journey)


def _announced(
    memory: MemorySource, given: Mapping[str, Any], where: str
) -> tuple[ModelCall, Handover, dict[str, Any]]:
    """A model call, which later nodes know by its fingerprint; the cache for its contexts; and what was not its own."""
    check_known_view(where, memory, given.get("view", "default"))
    call, handover = call_of({name: value for name, value in given.items() if name not in WIRES}), handover_of(memory)
    handover.calls[call.fingerprint] = call
    return call, handover, {name: given[name] for name in WIRES if name in given}


@checked(SettingsError)
def evict_node(
    memory: MemorySource,
    *,
    keep_messages: Count = 20,
    at_messages: Count = 40,
    messages_key: Name = "messages",
    track: Name | None = None,
    user_key: Name = "user_id",
    name: Name = "evict",
) -> MemoryNode:
    """Make a node that moves old messages out of the state, so that LangGraph's checkpoints stay small.

    Nothing is lost. A message leaves only after the transcript returned it unchanged. Only whole groups leave, and
    never system messages, the user's last message, or anything from an unanswered call on. `session.messages()` and
    every context still have them. The state must mix in `TieredState`, which records what was moved. Messages are
    removed by id if the list's reducer can do that, as `add_messages` can. Otherwise the whole list is written, so no
    other node may write to it in the same step.

    Args:
        memory: The memory, or a function that opens it.
        keep_messages: How many of the newest messages stay, at least.
        at_messages: Up to this many messages, nothing is moved, because each move writes the whole list.
        messages_key: The key of the state's list of messages.
        track: As for `remember_node`.
        user_key: As for `remember_node`.
        name: The node's name, if `add_node` gets none.

    Raises:
        SettingsError: if `keep_messages` is below 1 or above `at_messages`.
        InvalidInputError: when the node runs, if the state has no record or the list's reducer cannot remove messages.
    """
    if keep_messages > at_messages:
        msg = f"evict_node: keep_messages must be from 1 to at_messages ({at_messages}), not {keep_messages}"
        raise SettingsError(msg)

    def journey(state: Any, config: RunnableConfig) -> dict[str, Any]:  # noqa: ANN401 - any state
        if branch_in(state, messages_key) is None:
            msg = (
                f"the state has no record of {messages_key!r}, so what is moved out of it could not be found again: "
                "mix TieredState into the graph's state, and put remember_node before evict_node"
            )
            raise InvalidInputError(msg)
        found = found_in(memory, state, config, messages_key=messages_key, track=track, user_key=user_key)
        if len(found.messages) <= at_messages:
            return {}
        found.session.core.check_owner()
        record = found.remembered()
        ids, record, withheld = archive_branch(found.session, found.messages, record, keep_messages=keep_messages)
        held = zip(named(part_of(state, messages_key)), found.messages, strict=True)
        ids = frozenset(str(one.id) for one, known in held if known.id in ids)
        update = update_with(messages_key, record, evicted={"moved": len(ids), "withheld": withheld})
        if ids:
            update[messages_key] = without(ids, part_of(state, messages_key), messages_key, config)
        return update

    return MemoryNode(name, journey)
