"""The place of a run's step: thread, user, sub-graph and LangGraph checkpoint, and the track of its message list.

A track is named after the nodes that lead to it, so the name is the same at every turn. LangGraph names a sub-graph's
run by its node and the task's id, which differs each time. Tasks of one node that run side by side (`Send`) each get a
track, numbered in the order in which they ask. The messages of such a task or a tool are a separate conversation: it
starts fresh each time, on a track that also has the earlier ones.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_tiered_memory.errors import InvalidInputError, MixedOwnersError
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.sql.remembered import Remembered
from langchain_tiered_memory.types.records import DEFAULT_TRACK, SessionRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig

    from langchain_tiered_memory.engine import Engine
    from langchain_tiered_memory.integrations.state import BranchRecord
    from langchain_tiered_memory.memory import Session, TieredMemory


_MAX_NAME_CHARS = 120
_TOOLS_NODE = "tools"
"""The name of the node that calls tools in LangGraph's prebuilt agents and its documentation."""
_AGENT_TYPE, _SUB_AGENT, _AGENT_NAME = "ls_agent_type", "subagent", "lc_agent_name"
"""Keys of deepagents' mark of a sub-agent's run (in `configurable`) and LangChain's name for it (in `metadata`)."""
_RUNTIME = "__pregel_runtime"
"""The key of a run's `Runtime` in `configurable`."""
_BETWEEN = "|"
"""Separates the nodes of a namespace, as in LangGraph. A node's name may contain neither it nor a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One node on the way to a sub-graph, and its task."""

    name: str
    task: str | None
    """The namespace of the task. `None` if it has no id of its own: a sub-graph with `checkpointer=True`, and the
    second and later ones that one task calls, which LangGraph numbers."""
    step: str
    """The LangGraph checkpoint at which the node's step began. It is the same for all tasks of that step."""
    is_tool: bool = False
    """Whether the node calls tools. It then leads to a sub-agent with a separate conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a graph's run."""

    session_id: str
    """The thread's id."""
    user: str | None
    """The user of the run, if the config names one."""
    namespace: str
    """The namespace of its sub-graph. Empty for the graph that was called."""
    saver: Any = None
    """LangGraph's checkpointer of this run. With one, the state's messages are their whole branch. Without one, they
    are only what this call was given."""
    checkpoint_id: str | None = None
    """The LangGraph checkpoint at which the current step began."""
    parts: tuple[Part, ...] = ()
    """The path from the graph that was called to the sub-graph. Empty for that graph itself."""
    writes_at_end: bool = False
    """Whether LangGraph writes no checkpoint before the run ends (`durability="exit"`)."""


def place_of(config: RunnableConfig, user_key: str) -> Place:
    """The place where the step with that config runs."""
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
        writes_at_end=configurable.get("__pregel_durability") == "exit",
    )


def user_of(config: RunnableConfig, user_key: str) -> str | None:
    """The user of a run, named in its config or its `Runtime.context` (an object or a mapping).

    A server without sign-in (`langgraph dev`) names an empty user, which means nobody.
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
    """The session of a place. What is written there records that LangGraph also keeps the thread."""
    session = memory.session(place.session_id, user=place.user, track=track)
    session.core.checkpointer = type(place.saver).__name__ if place.saver is not None else None
    return session


def track_of(names: Sequence[str]) -> str:
    """The track of a place, named by the nodes on the way to it: it begins with those of the graphs above."""
    return _BETWEEN.join(map(_cut, names))


def handed_down_from(track: str) -> list[str]:
    """The tracks whose forgotten messages a list on this track may still have: this one and those above it.

    A list is passed down from graph to sub-graph. What a sub-graph forgot says nothing about the graph's own messages.
    Version 0.1.0 cut the name of a track instead of its nodes' names.
    """
    above = accumulate(track.split(_BETWEEN), f"{{}}{_BETWEEN}{{}}".format)
    return list(dict.fromkeys([DEFAULT_TRACK, *(name for whole in above for name in (whole, _cut(whole)))]))


def _cut(name: str) -> str:
    """A name; a long one is cut, and stays unique."""
    if len(name) <= _MAX_NAME_CHARS:
        return name
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{name[: _MAX_NAME_CHARS - 20]}...{digest}"


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
    """The path. Its last node has the name of the sub-agent that a tool called, if the caller marks it as one.

    `lc_agent_name` alone is not such a mark: an agent without a name inherits its caller's.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The place of a message list in a session."""

    track: str
    is_apart: bool = False
    """Whether the list is a separate conversation, whatever else its track has."""
    begun_by: str | None = None
    """The place of the sub-agent, if it begins the session with this list."""


_Step: TypeAlias = tuple[str, str, str]
"""Session, track of the node, and the LangGraph checkpoint at which its step began."""
_side_by_side: weakref.WeakKeyDictionary[Engine, Remembered[_Step, list[str]]] = weakref.WeakKeyDictionary()
"""The tasks of each node and step, in the order in which they asked for a track. Tasks of one step run in one process,
so this need not outlive it."""
_lock = forks.Lock()


def _number(engine: Engine, step: _Step, task: str) -> int:
    """1 for the first task of that node and step, 2 for the second, and so on. A task always gets the same number."""
    with _lock:
        tasks = _side_by_side.setdefault(engine, Remembered()).of(step, list)
        if task not in tasks:
            tasks.append(task)
        return tasks.index(task) + 1


def line_of_nodes(memory: TieredMemory, place: Place, record: BranchRecord | None, *, track: str | None) -> Line:
    """The line of a list that nodes store. `track` is the user's choice.

    A sub-graph that shares its list, and so the record, with the graph above it is on that graph's track.
    """
    if track is not None:
        return Line(track=track)
    if record is not None:
        return Line(track=record.track, is_apart=record.apart)
    return _own_line(memory, place)


def line_of_agent(
    memory: TieredMemory, place: Place, record: BranchRecord | None, held: Sequence[BaseMessage], *, track: str | None
) -> Line:
    """The line of an agent's messages. A sub-agent that continues another's conversation is on that one's track.

    The agent that begins a session is on its main track, with everything that it says later.
    """
    if track is not None:
        return Line(track=track)
    if not place.parts:
        return Line(track=DEFAULT_TRACK)
    if record is not None:
        return Line(track=record.track, is_apart=record.apart)
    own = _own_line(memory, place)
    ref = memory.core.runtime.store.transcript.find(place.session_id)
    number_one = own.track == track_of([part.name for part in place.parts])
    if ref is None:
        return own if own.is_apart else Line(track=DEFAULT_TRACK, begun_by=own.track)
    shared = _shared_track(memory, ref, held, own.track, is_alone=number_one)
    if shared is not None:
        return Line(track=shared, is_apart=own.is_apart and shared == own.track)
    return Line(track=DEFAULT_TRACK, is_apart=own.is_apart) if ref.begun_by == own.track else own


def keeps_to_itself(place: Place, track: str) -> bool:
    """Whether a sub-agent on its own track runs there, which sees nothing of other tracks.

    A sub-graph that continues the main conversation is on the main track, and is not a sub-agent.
    """
    return bool(place.parts) and track != DEFAULT_TRACK


def has_company(engine: Engine, place: Place) -> bool:
    """Whether other tasks run beside this one. It may not have known them when it asked for its line."""
    names = [part.name for part in place.parts]
    with _lock:
        known = _side_by_side.setdefault(engine, Remembered())
        return any(
            part.task is not None and len(known.get((place.session_id, track_of(names[:at]), part.step)) or ()) > 1
            for at, part in enumerate(place.parts, start=1)
        )


def _own_line(memory: TieredMemory, place: Place) -> Line:
    if not place.parts:
        return Line(track=DEFAULT_TRACK)
    names: list[str] = []
    seconds: list[str] = []
    is_apart = False
    for part in place.parts:
        names.append(part.name)
        if part.task is None:
            continue
        track = track_of(names)
        seconds.append(track_of([*names[:-1], f"{part.name}:2"]))
        number = _number(memory.core, (place.session_id, track, part.step), part.task)
        is_apart = is_apart or number > 1 or part.is_tool
        if number > 1:
            names[-1] = f"{part.name}:{number}"
    if not is_apart:
        ref = memory.core.runtime.store.transcript.find(place.session_id)
        known = memory.core.runtime.store.transcript.tracks(ref) if ref is not None else []
        # A node that ran side by side before is one of such tasks, though it may be the first to ask this time.
        is_apart = any(one == second or one.startswith(f"{second}|") for one in known for second in seconds)
    return Line(track=track_of(names), is_apart=is_apart)


def _shared_track(
    memory: TieredMemory, ref: SessionRef, held: Sequence[BaseMessage], own: str, *, is_alone: bool
) -> str | None:
    """The track of the list's first message: its own, the main one, or the oldest. `None` if there is none.

    Of several parallel tasks, only one continues another's conversation, because two lists would mix on its track.
    """
    transcript = memory.core.runtime.store.transcript
    found = transcript.by_id(ref, [str(one.id) for one in held[:1]])
    tracks = [entry.track for entry in found]
    wanted = [own, DEFAULT_TRACK, *tracks] if is_alone else [own]
    return next((track for track in wanted if track in tracks), None)
