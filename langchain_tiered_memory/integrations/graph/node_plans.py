"""The plan of a model call, as it stands in a graph's state: which call it is for, and its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.integrations.state import STATE_KEY, current, part_of

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.integrations.graph.node_cache import ModelCall
    from langchain_tiered_memory.integrations.graph.node_wiring import Found, Wiring
    from langchain_tiered_memory.types.contexts import Context

_SAME_CALL = ("call", "messages_key", "track", "user_key")


def plan_of(
    call: ModelCall, wiring: Wiring, found: Found, context: Context, *, config: RunnableConfig, name: str
) -> dict[str, Any]:
    """The parts of the state's record that tell of a context: the newest plan, and that of each `context_node`."""
    ran = config.get("metadata") or {}
    node = str(ran.get("langgraph_node") or name)
    plan = {
        "call": call.fingerprint,
        "node": node,
        "step": f"{found.session.track}:{ran['langgraph_step']}" if "langgraph_step" in ran else None,
        "messages_key": wiring.messages_key,
        "track": wiring.track,
        "user_key": wiring.user_key,
        "messages": len(context.messages),
        "stable_messages": context.stable_messages,
        "tokens": context.tokens,
        "max_tokens": context.max_tokens,
        "outcome": context.guard.outcome.kind.value,
    }
    return {"plan": plan, "plans": {node: plan}}


def plan_in(state: object, node: str | None) -> dict[str, Any]:
    """The plan that a `model_input` goes by: that of the named `context_node`, or the newest; empty without any.

    Raises:
        InvalidInputError: when no node of that name wrote one; when none is named, and the newest are several that
            nodes wrote side by side for different calls.
    """
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
        msg = f"the context nodes {nodes} ran side by side: say whose call this is, with node={nodes[0]!r}"
        raise InvalidInputError(msg)
    return plan
