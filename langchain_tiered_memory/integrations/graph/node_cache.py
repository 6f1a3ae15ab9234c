"""In-process cache between nodes, beside the state: how a model is called, and a context just made.

The state says which (`plan_of`, `plan_in`); it never holds them. Nothing depends on the cache: a context that is not
there is made anew.
"""

from __future__ import annotations

import hashlib
import json
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.integrations.graph.branches import off_branch
from langchain_tiered_memory.integrations.graph.stream_events import Notices
from langchain_tiered_memory.integrations.state import STATE_KEY, BranchRecord, current, part_of
from langchain_tiered_memory.models.chat_models import name_of
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.types.bounded import keep_newest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.integrations.checks import MemorySource
    from langchain_tiered_memory.integrations.graph.node_wiring import Found, Wiring
    from langchain_tiered_memory.types.contexts import Context


_CONTEXTS_KEPT = 16
_handovers: weakref.WeakKeyDictionary[Any, Handover] = weakref.WeakKeyDictionary()
_lock = forks.Lock()
_SAME_CALL = ("call", "messages_key", "track", "user_key")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """How a model is called, as far as the size of its request depends on it."""

    asked: Mapping[str, Any]
    """Arguments of `context_node`."""
    fingerprint: str
    """Names it in a state: the same in every process that builds the same graph, whichever model a config chooses."""


def call_of(asked: Mapping[str, Any]) -> ModelCall:
    """A call, with its fingerprint: nodes take it where the graph is built, before a config can choose a model."""
    asked = {**asked, "tools": tuple(asked.get("tools", ()))}
    model, system, scope = asked.get("model"), asked.get("system"), asked.get("scope")
    named: list[Any] = [
        model if model is None or isinstance(model, str) else name_of(model),
        system if system is None or isinstance(system, str) else system.content,
        [_tool_name(tool) for tool in asked["tools"]],
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
    """The calls that nodes were built for, and the newest contexts that nobody took yet; safe for threads."""

    def __init__(self) -> None:
        self.notices = Notices()
        self._lock = forks.Lock()
        self._calls: dict[str, ModelCall] = {}
        self._contexts: dict[tuple[str, ...], Context] = {}

    def announce(self, call: ModelCall) -> None:
        """Keep a call under its fingerprint."""
        with self._lock:
            self._calls[call.fingerprint] = call

    def call(self, fingerprint: str) -> ModelCall | None:
        """The call of that fingerprint, where a node of this process was built for it."""
        with self._lock:
            return self._calls.get(fingerprint)

    def put(self, key: tuple[str, ...], context: Context) -> None:
        """Keep a context until it is taken, or newer ones need its place."""
        with self._lock:
            keep_newest(self._contexts, key, context, most=_CONTEXTS_KEPT)

    def made_for(self, key: tuple[str, ...], *, take: bool) -> Context | None:
        """A context that was made for exactly this; taken once: whoever asks again has a reason to want a new one."""
        with self._lock:
            return self._contexts.pop(key, None) if take else self._contexts.get(key)


def handover_of(memory: MemorySource) -> Handover:
    """The one of this memory, or of what opens it."""
    with _lock:
        return _handovers.setdefault(memory, Handover())


def _tool_name(tool: Any) -> str:  # noqa: ANN401 - a tool, a function, a class or a dict
    if isinstance(tool, dict):
        inner = tool.get("function")
        return str(inner.get("name") if isinstance(inner, dict) else tool.get("name") or tool.get("type"))
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))


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
    """The plan that a `model_input` goes by: that of the named `context_node`, or the newest; empty without any."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The context of a call, and what is new with it."""

    context: Context
    record: BranchRecord
    notices: Sequence[dict[str, Any]] = ()


def assembled(found: Found, call: ModelCall, handover: Handover, *, take: bool = False) -> Flow[Assembled]:
    """The context of a call for what the state holds now; if the model is to `take` it, the next one is made anew."""
    session = found.session
    session.core.scope = call.asked.get("scope")
    session.core.check_owner()
    record = found.remembered()
    key = (session.session_id, session.track, call.fingerprint, json.dumps(record.to_json()))
    known = handover.made_for(key, take=take)
    if known is not None:
        return Assembled(context=known, record=record)
    context = yield from session.core.context(
        **{name: value for name, value in call.asked.items() if name != "scope"},
        off=off_branch(session, found.messages, record) if found.is_truth else None,
        alone=found.is_alone,
        langgraph_checkpoint_id=found.place.checkpoint_id,
        complete=True,
    )
    if not take:
        handover.put(key, context)
    notices = handover.notices.of(context.guard, session_id=session.session_id, track=session.track)
    return Assembled(context=context, record=record, notices=notices)
