"""The input of a model that a user's own node calls, and the in-process cache between nodes.

The cache holds how a model is called, and the newest context. The state only names them (`plan_of`, `plan_in`). Nothing
depends on the cache: a context that is not in it is made again.
"""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Mapping, Sequence  # noqa: TC003 - annotations are read at the border, as are the next
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from langchain_core.messages import BaseMessage  # noqa: TC002
from langchain_core.runnables import Runnable, RunnableConfig  # noqa: TC002
from langchain_core.runnables.config import ensure_config

from langchain_tiered_memory.border import checked
from langchain_tiered_memory.driver import arun, each_step, off_loop_function, run
from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.integrations.checks import MemorySource  # noqa: TC001
from langchain_tiered_memory.integrations.graph.memory_node import Notices, unstreamed
from langchain_tiered_memory.integrations.graph.node_wiring import WIRES, Found, found_in, opened
from langchain_tiered_memory.integrations.graph.tracks import line_of_nodes, place_of
from langchain_tiered_memory.integrations.state import STATE_KEY, BranchRecord, current, part_of
from langchain_tiered_memory.messages.content_blocks import name_of_tool
from langchain_tiered_memory.models.chat_models import name_of
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.sql.remembered import Remembered
from langchain_tiered_memory.types.arguments import Count, Name, Scope, Tool, Words  # noqa: TC001

if TYPE_CHECKING:
    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.types.contexts import Context
    from langchain_tiered_memory.types.runs import MemoryCheckpoint


_CONTEXTS_KEPT = 16
_handovers: weakref.WeakKeyDictionary[Any, Handover] = weakref.WeakKeyDictionary()
_lock = forks.Lock()
_SAME_CALL = ("call", "messages_key", "track", "user_key")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """The parts of a model call on which the size of its request depends."""

    asked: Mapping[str, Any]
    """Arguments of `context_node`."""
    fingerprint: str
    """Its name in a state. It is the same in every process that builds the same graph, whichever model a config
    chooses."""


def call_of(asked: Mapping[str, Any]) -> ModelCall:
    """A call with its fingerprint. Nodes compute it when the graph is built, before a config can choose a model."""
    asked = {**asked, "tools": tuple(asked.get("tools", ()))}
    model, system, scope = asked.get("model"), asked.get("system"), asked.get("scope")
    named: list[Any] = [
        model if model is None or isinstance(model, str) else name_of(model),
        system if system is None or isinstance(system, str) else system.content,
        [name_of_tool(tool) for tool in asked["tools"]],
        asked.get("max_tokens"),
        asked.get("query"),
        asked.get("view", "default"),
        asked.get("profile"),
    ]
    if scope is not None:
        named.append([scope.sight_tokens, scope.parent])
    said = json.dumps(named, default=repr)
    digest = hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return ModelCall(asked=asked, fingerprint=digest)


class Handover:
    """The calls for which nodes were built, and the newest contexts that nobody has used yet."""

    def __init__(self) -> None:
        self.notices = Notices()
        self.calls: dict[str, ModelCall] = {}
        """The calls for which nodes of this process were built, by fingerprint."""
        self.contexts = Remembered[tuple[str, ...], "Context"](_CONTEXTS_KEPT)
        """Each is for exactly one state and call. A model takes it once: a second request has a reason to want a new
        one."""


def handover_of(memory: MemorySource) -> Handover:
    """The cache of this memory, or of the function that opens it."""
    with _lock:
        return _handovers.setdefault(memory, Handover())


def plan_of(
    call: ModelCall, wires: Mapping[str, Any], found: Found, context: Context, *, config: RunnableConfig, name: str
) -> dict[str, Any]:
    """The parts of the state's record about a context: the newest plan, and the plan of each `context_node`."""
    ran = config.get("metadata") or {}
    node = str(ran.get("langgraph_node") or name)
    plan = {
        "call": call.fingerprint,
        "node": node,
        "step": f"{found.session.track}:{ran['langgraph_step']}" if "langgraph_step" in ran else None,
        **wires,
        "messages": len(context.messages),
        "stable_messages": context.stable_messages,
        "tokens": context.tokens,
        "max_tokens": context.max_tokens,
        "outcome": context.guard.outcome.kind.value,
    }
    return {"plan": plan, "plans": {node: plan}}


def plan_in(state: object, node: str | None) -> dict[str, Any]:
    """The plan for a `model_input`: that of the named `context_node`, or the newest. Empty if there is none."""
    record = current(part_of(state, STATE_KEY))
    plans: dict[str, dict[str, Any]] = record.get("plans") or {}
    if node is not None:
        if node not in plans:
            msg = f"no context_node {node!r} wrote a plan into this state; there are plans of {sorted(plans)}"
            raise InvalidInputError(msg)
        return plans[node]
    plan: dict[str, Any] = record.get("plan") or {}
    beside = [
        name
        for name, one in plans.items()
        if plan.get("step") is not None
        and one.get("step") == plan["step"]
        and any(one.get(key) != plan.get(key) for key in _SAME_CALL)
    ]
    if beside:
        nodes = sorted({*beside, str(plan.get("node"))})
        msg = f"the context nodes {nodes} ran side by side: name the one for this call, with node={nodes[0]!r}"
        raise InvalidInputError(msg)
    return plan


def assembled(
    found: Found, call: ModelCall, handover: Handover, *, take: bool = False
) -> Flow[tuple[Context, BranchRecord, Sequence[dict[str, Any]]]]:
    """The context of a call for what the state holds now, with the list's record and notices.

    If the model is to `take` it, the next one is made again.
    """
    session = found.session
    session.core.scope = call.asked.get("scope")
    session.core.check_owner()
    record = found.remembered()
    key = (session.session_id, session.track, call.fingerprint, json.dumps(record.to_json()))
    known = handover.contexts.take(key) if take else handover.contexts.get(key)
    if known is not None:
        return known, record, ()
    context = yield from each_step(_made(found, record, call), session.core.runtime.store.database.snapshot)
    if not take:
        handover.contexts.put(key, context)
    return context, record, handover.notices.of(context.guard, session_id=session.session_id, track=session.track)


def _made(found: Found, record: BranchRecord, call: ModelCall) -> Flow[Context]:
    return (
        yield from found.session.core.context(
            **{name: value for name, value in call.asked.items() if name != "scope"},
            off=found.off(record),
            alone=found.is_alone,
            langgraph_checkpoint_id=found.place.checkpoint_id,
            complete=True,
        )
    )


def input_of_model(
    memory: MemorySource, state: object, config: RunnableConfig, changes: Mapping[str, Any]
) -> Flow[list[BaseMessage]]:
    """The messages of the next call, by the plan in the state and the caller's changes."""
    handover = handover_of(memory)
    plan = plan_in(state, changes.get("node"))
    wires = {name: value for name, value in {**plan, **changes}.items() if name in WIRES}
    asked = {name: value for name, value in changes.items() if name not in WIRES and name != "node"}
    planned = handover.calls.get(plan["call"]) if plan else None
    if plan and planned is None and not asked:
        msg = (
            "the state's plan is for a call that no context_node of this process was made for: make the node "
            "before, or pass model_input the same model, system, tools and max_tokens"
        )
        raise InvalidInputError(msg)
    call = call_of({**(planned.asked if planned is not None else {}), **asked})
    context, _, _ = yield from assembled(found_in(memory, state, config, **wires), call, handover, take=True)
    return list(context.messages)


class ContextChoices(TypedDict, total=False):
    """The arguments of `context_node`, except for the memory and its name."""

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
    """Further arguments of `model_input`: those of `context_node`, and `node`, the name of one."""

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
            one. If several context nodes run side by side, `node` names one.

    Raises:
        InvalidInputError: if the config has no `thread_id`, if no `context_node` in this process was built for the call
            that the plan in the state names, or if several context nodes ran side by side and `node` is missing.
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
    """Save the state of the run, with the id of the LangGraph checkpoint at which the current step began.

    Args:
        memory: The memory, or a function that opens it.
        config: The config of the current step. It names the thread.
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
