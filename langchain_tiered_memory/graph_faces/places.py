"""Where in a graph's run something was asked: the thread, the user, the sub-graph, LangGraph's checkpoint."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import InvalidInputError
from langchain_tiered_memory.records import DEFAULT_TRACK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.runnables import RunnableConfig

_MAX_TRACK_CHARS = 120


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

    @property
    def has_checkpointer(self) -> bool:
        """Whether the state's messages are all of their branch."""
        return self.saver is not None

    @property
    def own_track(self) -> str:
        """The track of an agent that shares no message with another: a sub-agent's is named by its place."""
        if len(self.namespace) <= _MAX_TRACK_CHARS:
            return self.namespace or DEFAULT_TRACK
        digest = hashlib.blake2b(self.namespace.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return f"{self.namespace[: _MAX_TRACK_CHARS - 20]}...{digest}"


def place_of(config: RunnableConfig, user_key: str) -> Place:
    """Where the step with that config runs.

    Raises:
        InvalidInputError: when the config names no thread.
    """
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
    user = configurable.get(user_key)
    saver = configurable.get("__pregel_checkpointer")
    known = checkpoints.get(namespace) or configurable.get("checkpoint_id")
    return Place(
        session_id=str(thread_id),
        user=str(user) if user is not None else None,
        namespace=namespace,
        saver=saver,
        checkpoint_id=str(known) if known and saver is not None else None,
    )


def _above(namespace: str) -> str:
    return namespace.rpartition("|")[0]
