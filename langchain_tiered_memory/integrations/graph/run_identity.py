"""Identity of a run's step: the thread, the user, the sub-graph, LangGraph's checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import InvalidInputError, MixedOwnersError
from langchain_tiered_memory.types.records import DEFAULT_TRACK

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.memory import Session, TieredMemory

_MAX_TRACK_CHARS = 120
_TOOLS_NODE = "tools"
"""How LangGraph's prebuilt agents, and graphs after its documentation, name the node that calls tools."""
_AGENT_TYPE, _SUB_AGENT, _AGENT_NAME = "ls_agent_type", "subagent", "lc_agent_name"
"""How deepagents marks a sub-agent's run in `configurable`, and LangChain its name in `metadata`."""
_RUNTIME = "__pregel_runtime"
"""Where LangGraph keeps the `Runtime` of a run, in `configurable`."""
_BETWEEN = "|"
"""Stands between the nodes of a namespace, as in LangGraph; no node's name may have it, or a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One node on the way to a sub-graph, and its task."""

    name: str
    task: str | None
    """The namespace of the task; `None` where it has no id of its own: a sub-graph with `checkpointer=True`, and the
    second and later ones that one task calls, which LangGraph numbers."""
    step: str
    """The LangGraph checkpoint that the node's step began with: the same for all tasks of that step."""
    is_tool: bool = False
    """Whether the node calls tools: what it leads to is a sub-agent with a conversation of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a graph's run something was asked."""

    session_id: str
    """The thread's id."""
    user: str | None
    """Whose run it is, where the config says so."""
    namespace: str
    """Of the sub-graph that it is in; empty for the graph that was called itself."""
    saver: Any = None
    """LangGraph's checkpointer of this run. With one the state's messages are all of their branch; without, only what
    this call was handed."""
    checkpoint_id: str | None = None
    """The LangGraph checkpoint that the present step began with."""
    parts: tuple[Part, ...] = ()
    """The way from the graph that was called to the sub-graph; empty for that graph itself."""

    @property
    def has_checkpointer(self) -> bool:
        """Whether the state's messages are all of their branch."""
        return self.saver is not None

    @property
    def checkpointer(self) -> str | None:
        """Class of LangGraph's checkpointer; `None` without one."""
        return type(self.saver).__name__ if self.saver is not None else None


def place_of(config: RunnableConfig, user_key: str) -> Place:
    """Where the step with that config runs."""
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    thread_id = configurable.get("thread_id")
    if thread_id is None or thread_id == "":
        msg = (
            "the config has no thread_id, so it is not known whose memory this is: call the graph with "
            'config={"configurable": {"thread_id": "..."}}'
        )
        raise InvalidInputError(msg)
    checkpoints: Mapping[str, str] = configurable.get("checkpoint_map") or {}
    # The last part is the step's own node; what is before it is the way to the graph that it is in.
    namespace = _above(str(configurable.get("checkpoint_ns") or ""))
    while namespace and checkpoints.get(namespace) == checkpoints.get(_above(namespace), ""):
        # A task of the functional API has the checkpoint of the step that called it: it is in the same graph.
        namespace = _above(namespace)
    saver = configurable.get("__pregel_checkpointer")
    known = checkpoints.get(namespace) or configurable.get("checkpoint_id")
    return Place(
        session_id=str(thread_id),
        user=user_of(config, user_key),
        namespace=namespace,
        saver=saver,
        checkpoint_id=str(known) if known and saver is not None else None,
        parts=_named_by_agent(_parts(namespace, checkpoints), config),
    )


def user_of(config: RunnableConfig, user_key: str) -> str | None:
    """The user of a run, as its config or its `Runtime.context` (an object or a mapping) says.

    A server without sign-in (`langgraph dev`) names an empty one: nobody.
    """
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    context = getattr(configurable.get(_RUNTIME), "context", None)
    said = context.get(user_key) if isinstance(context, Mapping) else getattr(context, user_key, None)
    named = [str(one) for one in (configurable.get(user_key), said) if one is not None and one != ""]
    if len(set(named)) > 1:
        msg = (
            f"the config says that the run is of the user {named[0]!r}, and its context that it is of {named[1]!r}: "
            "name one user, in either of them"
        )
        raise MixedOwnersError(msg)
    return named[0] if named else None


def session_at(memory: TieredMemory, place: Place, *, track: str) -> Session:
    """The session of a place. It is noted with what is written there that LangGraph keeps the thread too."""
    session = memory.session(place.session_id, user=place.user, track=track)
    session.core.checkpointer = place.checkpointer
    return session


def short_track(names: Sequence[str]) -> str:
    """The track of a place, named by the nodes on the way to it; a long name is cut, and stays unique."""
    name = _BETWEEN.join(names)
    if len(name) <= _MAX_TRACK_CHARS:
        return name
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{name[: _MAX_TRACK_CHARS - 20]}...{digest}"


def _parts(namespace: str, checkpoints: Mapping[str, str]) -> tuple[Part, ...]:
    found: list[Part] = []
    above = ""
    for named in namespace.split(_BETWEEN) if namespace else ():
        here = f"{above}{_BETWEEN}{named}" if above else named
        name, _, task_id = named.partition(":")
        step = str(checkpoints.get(above) or "")
        found.append(Part(name=name, task=here if task_id else None, step=step, is_tool=name == _TOOLS_NODE))
        above = here
    return tuple(found)


def _named_by_agent(parts: tuple[Part, ...], config: RunnableConfig) -> tuple[Part, ...]:
    """The way, its last node under the name of the sub-agent that a tool called, where its caller says that it is one.

    `lc_agent_name` alone does not say so: an agent without a name is handed its caller's.
    """
    if not parts or not parts[-1].is_tool or (config.get("configurable") or {}).get(_AGENT_TYPE) != _SUB_AGENT:
        return parts
    said = str((config.get("metadata") or {}).get(_AGENT_NAME) or "")
    name = said.replace(_BETWEEN, "_").replace(":", "_").strip()
    if not name or name == DEFAULT_TRACK:
        return parts
    return (*parts[:-1], replace(parts[-1], name=name))


def _above(namespace: str) -> str:
    return namespace.rpartition(_BETWEEN)[0]
