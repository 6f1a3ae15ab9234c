"""In-process cache between nodes, beside the state: how a model is called, and a context just made.

The state says which; it never holds them. Nothing depends on it: a context that is not there is made anew.
"""

from __future__ import annotations

import hashlib
import json
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.integrations.graph.stream_events import Notices
from langchain_tiered_memory.models.profiles import name_of
from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

    from langchain_tiered_memory.integrations.checks import MemorySource
    from langchain_tiered_memory.types.arguments import Scope
    from langchain_tiered_memory.types.contexts import Context

_CONTEXTS_KEPT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """How a model is called, as far as the size of its request depends on it."""

    model: str | Runnable[Any, Any] | None = None
    system: str | BaseMessage | None = None
    tools: Sequence[Any] = ()
    max_tokens: int | None = None
    query: str | None = None
    view: str = "default"
    profile: str | None = None
    scope: Scope | None = None
    fingerprint: str = field(init=False)
    """Names it in a state: the same in every process that builds the same graph, whichever model a config chooses."""

    def __post_init__(self) -> None:
        """Take the fingerprint where the graph is built, before any config can choose a model."""
        model = self.model if self.model is None or isinstance(self.model, str) else name_of(self.model)
        system = self.system if self.system is None or isinstance(self.system, str) else self.system.content
        tools = [_tool_name(tool) for tool in self.tools]
        asked: list[Any] = [model, system, tools, self.max_tokens, self.query, self.view, self.profile]
        if self.scope is not None:
            asked.append([self.scope.sight_tokens, self.scope.parent])
        said = json.dumps(asked, default=repr)
        digest = hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        object.__setattr__(self, "fingerprint", digest)


class Handover:
    """The calls that nodes were built for, and the newest contexts that nobody took yet; safe for threads."""

    def __init__(self) -> None:
        self.notices = Notices()
        self._lock = forks.Lock()
        self._calls: dict[str, ModelCall] = {}
        self._contexts: dict[tuple[str, ...], Context] = {}

    def announce(self, call: ModelCall) -> str:
        """Keep a call under its fingerprint, which it gives."""
        fingerprint = call.fingerprint
        with self._lock:
            self._calls[fingerprint] = call
        return fingerprint

    def call(self, fingerprint: str) -> ModelCall | None:
        """The call of that fingerprint, where a node of this process was built for it."""
        with self._lock:
            return self._calls.get(fingerprint)

    def put(self, key: tuple[str, ...], context: Context) -> None:
        """Keep a context until it is taken, or newer ones need its place."""
        with self._lock:
            self._contexts.pop(key, None)
            self._contexts[key] = context
            if len(self._contexts) > _CONTEXTS_KEPT:
                del self._contexts[next(iter(self._contexts))]

    def look(self, key: tuple[str, ...]) -> Context | None:
        """A context that was made for exactly this, and stays for whoever takes it."""
        with self._lock:
            return self._contexts.get(key)

    def take(self, key: tuple[str, ...]) -> Context | None:
        """A context that was made for exactly this. Once: whoever asks again has a reason to want a new one."""
        with self._lock:
            return self._contexts.pop(key, None)


_handovers: weakref.WeakKeyDictionary[Any, Handover] = weakref.WeakKeyDictionary()
_lock = forks.Lock()


def handover_of(memory: MemorySource) -> Handover:
    """The one of this memory, or of what opens it."""
    with _lock:
        return _handovers.setdefault(memory, Handover())


def _tool_name(tool: Any) -> str:  # noqa: ANN401 - a tool, a function, a class or a dict
    if isinstance(tool, dict):
        inner = tool.get("function")
        return str(inner.get("name") if isinstance(inner, dict) else tool.get("name") or tool.get("type"))
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))
