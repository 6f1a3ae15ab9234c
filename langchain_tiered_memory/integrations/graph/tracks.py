"""On which track a graph's list of messages stands: named by the nodes that lead to it, the same at every turn.

LangGraph names a sub-graph's run by its node and the task's own id, which is another one at each turn. Tasks of one
node that run side by side (`Send`) get a track each, numbered in the order in which they ask. What such a task or a
tool is told is a conversation of its own: it starts anew each time, on a track that has those before it as well.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_tiered_memory.integrations.graph.branches import both_ids
from langchain_tiered_memory.integrations.graph.run_identity import Place, short_track
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.types.bounded import keep_newest
from langchain_tiered_memory.types.records import DEFAULT_TRACK, SessionRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from langchain_tiered_memory.engine import Engine
    from langchain_tiered_memory.integrations.state import BranchRecord
    from langchain_tiered_memory.memory import TieredMemory

_STEPS_REMEMBERED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where a list of messages stands in a session."""

    track: str
    is_apart: bool = False
    """Whether the list is a conversation of its own, whatever its track has besides."""
    begun_by: str | None = None
    """The place of the sub-agent, where it begins the session with this list."""


class TasksSideBySide:
    """The tasks of each node and step, in the order in which they asked for a track. Safe for threads.

    Tasks of one step run in one process: nothing of this has to outlive it.
    """

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._tasks: dict[tuple[str, str, str], list[str]] = {}

    def number(self, session_id: str, track: str, step: str, task: str) -> int:
        """1 for the first task of that node and step, 2 for the second; the same again for one that asked before."""
        key = (session_id, track, step)
        with self._lock:
            tasks = self._tasks.get(key, [])
            keep_newest(self._tasks, key, tasks, most=_STEPS_REMEMBERED)
            if task not in tasks:
                tasks.append(task)
            return tasks.index(task) + 1

    def count(self, session_id: str, track: str, step: str) -> int:
        """How many tasks of that node and step asked."""
        with self._lock:
            return len(self._tasks.get((session_id, track, step), ()))


_side_by_side: weakref.WeakKeyDictionary[Engine, TasksSideBySide] = weakref.WeakKeyDictionary()
_lock = forks.Lock()


def line_of_nodes(memory: TieredMemory, place: Place, record: BranchRecord | None, *, track: str | None) -> Line:
    """The line of a list that nodes remember; `track` is the one that the user chose.

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
    """The line of an agent's messages: a sub-agent that goes on with another's conversation is on its track.

    Whoever begins a session is on its main track, with all that it says later.
    """
    if track is not None:
        return Line(track=track)
    if not place.parts:
        return Line(track=DEFAULT_TRACK)
    if record is not None:
        return Line(track=record.track, is_apart=record.apart)
    own = _own_line(memory, place)
    ref = _ref(memory, place)
    number_one = own.track == short_track([part.name for part in place.parts])
    if ref is None:
        return own if own.is_apart else Line(track=DEFAULT_TRACK, begun_by=own.track)
    shared = _shared_track(memory, ref, held, own.track, is_alone=number_one)
    if shared is not None:
        return Line(track=shared, is_apart=own.is_apart and shared == own.track)
    return Line(track=DEFAULT_TRACK, is_apart=own.is_apart) if ref.begun_by == own.track else own


def keeps_to_itself(place: Place, track: str) -> bool:
    """Whether what runs there is a sub-agent on a track of its own: it is shown nothing of other tracks.

    A sub-graph that goes on with the main conversation is on its track, and no sub-agent.
    """
    return bool(place.parts) and track != DEFAULT_TRACK


def has_company(engine: Engine, place: Place) -> bool:
    """Whether other tasks run beside this one, which may not have known it when it asked for its line."""
    tasks = _tasks_of(engine)
    names: list[str] = []
    for part in place.parts:
        names.append(part.name)
        if part.task is not None and tasks.count(place.session_id, short_track(names), part.step) > 1:
            return True
    return False


def _tasks_of(engine: Engine) -> TasksSideBySide:
    with _lock:
        return _side_by_side.setdefault(engine, TasksSideBySide())


def _own_line(memory: TieredMemory, place: Place) -> Line:
    if not place.parts:
        return Line(track=DEFAULT_TRACK)
    tasks = _tasks_of(memory.core)
    names: list[str] = []
    seconds: list[str] = []
    is_apart = False
    for part in place.parts:
        names.append(part.name)
        if part.task is None:
            continue
        track = short_track(names)
        seconds.append(short_track([*names[:-1], f"{part.name}:2"]))
        number = tasks.number(place.session_id, track, part.step, part.task)
        is_apart = is_apart or number > 1 or part.is_tool
        if number > 1:
            names[-1] = f"{part.name}:{number}"
    if not is_apart:
        ref = _ref(memory, place)
        known = memory.core.runtime.store.transcript.tracks(ref) if ref is not None else []
        # A node that ran side by side before is one of such tasks, though it may be the first to ask this time.
        is_apart = any(one == second or one.startswith(f"{second}|") for one in known for second in seconds)
    return Line(track=short_track(names), is_apart=is_apart)


def _shared_track(
    memory: TieredMemory, ref: SessionRef, held: Sequence[BaseMessage], own: str, *, is_alone: bool
) -> str | None:
    """The track that the list's first message stands on: its own, the main one, or the oldest; `None` for none.

    Of several tasks side by side only one goes on with another's conversation: two lists would mix on its track.
    """
    transcript = memory.core.runtime.store.transcript
    found = transcript.by_id(ref, both_ids(held[:1], own))
    tracks = [entry.track for entry in found]
    wanted = [own, DEFAULT_TRACK, *tracks] if is_alone else [own]
    return next((track for track in wanted if track in tracks), None)


def _ref(memory: TieredMemory, place: Place) -> SessionRef | None:
    return memory.core.runtime.store.transcript.find(place.session_id)
