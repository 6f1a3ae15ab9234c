"""What the nodes do, written once for sync and async."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage, RemoveMessage

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.integrations.graph.archiving import archive_branch
from langchain_tiered_memory.integrations.graph.branches import off_branch
from langchain_tiered_memory.integrations.graph.node_cache import Handover, ModelCall, handover_of, plan_in
from langchain_tiered_memory.integrations.graph.node_wiring import WIRES, Found, Wiring, found_in, opened
from langchain_tiered_memory.integrations.state import BranchRecord, part_of, update_with

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.driver import Flow
    from langchain_tiered_memory.integrations.checks import MemorySource
    from langchain_tiered_memory.types.contexts import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a node leaves."""

    update: dict[str, Any]
    notices: Sequence[dict[str, Any]] = ()
    """For the caller's streams, in plain JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembled:
    """The context of a call, and what is new with it."""

    context: Context
    record: BranchRecord
    notices: Sequence[dict[str, Any]] = ()


_ASKED = ("query", "max_tokens", "system", "tools", "model", "view", "profile")


def assembled(found: Found, call: ModelCall, handover: Handover, *, take: bool = False) -> Flow[Assembled]:
    """The context of a call for what the state holds now; if the model is to `take` it, the next one is made anew."""
    session = found.session
    session.core.scope = call.scope
    session.core.check_owner()
    record = found.remembered()
    key = (session.session_id, session.track, call.fingerprint, json.dumps(record.to_json()))
    known = handover.made_for(key, take=take)
    if known is not None:
        return Assembled(context=known, record=record)
    context = yield from session.core.context(
        **{name: getattr(call, name) for name in _ASKED},
        off=off_branch(session, found.messages, record) if found.is_truth else None,
        alone=found.is_alone,
        langgraph_checkpoint_id=found.place.checkpoint_id,
        complete=True,
    )
    if not take:
        handover.put(key, context)
    notices = handover.notices.of(context.guard, session_id=session.session_id, track=session.track)
    return Assembled(context=context, record=record, notices=notices)


def guarded(found: Found, call: ModelCall, wiring: Wiring, handover: Handover) -> Flow[Done]:
    """Measure a call's request."""
    made = yield from assembled(found, call, handover)
    report, outcome = made.context.guard, made.context.guard.outcome
    figures = {
        "zone": report.zone.value,
        "used_tokens": report.used_tokens,
        "limit_tokens": report.window.limit,
        "window_tokens": report.window.tokens,
        "tokens": made.context.tokens,
        "max_tokens": made.context.max_tokens,
        "outcome": outcome.kind.value,
        "reason": outcome.reason.value if outcome.reason is not None else None,
        "steps": list(report.steps),
        "alert": report.alert.recommendation if report.alert is not None else None,
        "checkpoint_id": report.checkpoint_id,
        "langgraph_checkpoint_id": found.place.checkpoint_id,
    }
    return Done(update=update_with(wiring.messages_key, kept(made.record, wiring), guard=figures), notices=made.notices)


def evicted(found: Found, messages_key: str, state: object, config: RunnableConfig, *, keep_messages: int) -> Done:
    """Move old messages out of the state, as far as the archive is shown to have them."""
    record = found.remembered()
    moved = archive_branch(found.session, found.messages, record, keep_messages=keep_messages)
    figures = {"moved": len(moved.ids), "withheld": len(moved.withheld)}
    update = update_with(messages_key, moved.record, evicted=figures)
    if moved.ids:
        update[messages_key] = without(frozenset(moved.ids), part_of(state, messages_key), messages_key, config)
    return Done(update=update)


def input_of_model(
    memory: MemorySource, state: object, config: RunnableConfig, changes: Mapping[str, Any]
) -> Flow[list[BaseMessage]]:
    """The messages of the next call, by the plan in the state and what the caller says besides."""
    handover = handover_of(memory)
    plan = plan_in(state, changes.get("node"))
    wires = {name: value for name, value in {**plan, **changes}.items() if name in WIRES}
    asked = {name: value for name, value in changes.items() if name not in WIRES and name != "node"}
    if "tools" in asked:
        asked["tools"] = tuple(asked["tools"])
    planned = handover.call(plan["call"]) if plan else ModelCall()
    if planned is None:
        if not asked:
            msg = (
                "the state's plan is for a call that no context_node of this process was made for: make the node "
                "before, or pass model_input the same model, system, tools and max_tokens"
            )
            raise InvalidInputError(msg)
        planned = ModelCall()
    found = found_in(opened(memory), Wiring(**wires), state, config)
    made = yield from assembled(found, replace(planned, **asked), handover, take=True)
    return list(made.context.messages)


def kept(record: BranchRecord, wiring: Wiring) -> BranchRecord | None:
    """The record, where there is a list for it to be about."""
    return record if wiring.messages_key is not None else None


def without(ids: frozenset[str], values: Sequence[Any], messages_key: str, config: RunnableConfig) -> Any:  # noqa: ANN401 - whatever the list's reducer takes
    """The update that takes the messages of these ids out of a state's list, and leaves the others.

    By id where the reducer knows removals, as `add_messages` does: what other nodes add in the same step stays then.
    Else the list is written anew. Which of them works is tried on a copy of the list before anything is written;
    outside of a graph nothing can be tried, and the removal is by id.
    """
    kept = [one for one in values if _id_of(one) not in ids]
    if len(kept) != len(values) - len(ids):
        msg = f"messages in {messages_key!r} have no ids: use a reducer that gives them some, such as add_messages"
        raise InvalidInputError(msg)
    by_id = [RemoveMessage(id=one) for one in sorted(ids)]
    channel = _channel(config, messages_key)
    if channel is None:
        return by_id
    from langgraph.types import Overwrite  # noqa: PLC0415 - the engine works without LangGraph

    refused: Exception | None = None
    for update in (by_id, Overwrite(kept), kept):
        tried = channel.copy()
        try:
            tried.update([update])
            left = tried.get()
            if isinstance(left, list) and [_id_of(one) for one in left] == [_id_of(one) for one in kept]:
                return update
        except Exception as error:  # noqa: BLE001 - a reducer of the user's own may raise whatever it likes
            refused = error
    msg = f"the reducer of {messages_key!r} lets nothing be removed from the list: use add_messages, or no evict_node"
    raise InvalidInputError(msg) from refused


def _channel(config: RunnableConfig, key: str) -> Any:  # noqa: ANN401 - a channel of LangGraph's
    """What keeps the list in the running graph; `None` where it cannot be reached.

    LangGraph gives nodes no public way to it. It hands each step a function that reads the state, bound to the
    channels; should that change, eviction goes by id alone.
    """
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    for bound in getattr(configurable.get("__pregel_read"), "args", ()):
        channel = bound.get(key) if hasattr(bound, "get") else None
        if hasattr(channel, "copy") and hasattr(channel, "update"):
            return channel
    return None


def _id_of(message: Any) -> str | None:  # noqa: ANN401 - a message, or one as a dict
    return message.get("id") if isinstance(message, dict) else getattr(message, "id", None)
