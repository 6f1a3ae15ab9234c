"""The last answered request of each session, for a condensing call that begins with its bytes.

In memory alone, one a session, and not for long: a provider's cache lasts minutes, and what was forgotten must not
stand here. A request is used only while its session has the epoch under which it was made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import Runnable

K = TypeVar("K")
_SESSIONS = 32
"""Sessions whose last request is kept: with long windows each may be a megabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRequest:
    """A request as it was sent."""

    model: Runnable[Any, Any]
    """As it was called: with its tools and settings."""
    messages: Sequence[BaseMessage]
    tokens: int
    """Of all that was sent, tools included."""
    at: float
    """When it was answered, in seconds since the epoch."""
    epoch: int
    """The session's, when it was put together."""
    is_cached: bool
    """Whether the provider is known to cache it."""

    def places(self) -> Mapping[str, int]:
        """By id, where each message stands; of two under one id, neither."""
        found: dict[str, int] = {}
        for place, message in enumerate(self.messages):
            if message.id:
                found[message.id] = -1 if message.id in found else place
        return {one: place for one, place in found.items() if place >= 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A last request that may be used now."""

    request: LastRequest
    cached_price: float
    """Of a token of it, in the price of one that is not cached."""
    by_name: bool
    """Whether a model of the same name is taken for the same one, and for one whose provider caches."""


class LastRequests:
    """Bounded, and safe for threads."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._kept: dict[str, LastRequest] = {}
        self._waiting: dict[tuple[str, str], LastRequest] = {}

    def note(self, session_id: str, request: LastRequest) -> None:
        """Keep a request in the place of the one before it."""
        with self._lock:
            _keep(self._kept, session_id, request)

    def await_answer(self, session_id: str, track: str, request: LastRequest) -> None:
        """Keep a request that was handed out and is not answered yet, in the place of the one before it."""
        with self._lock:
            _keep(self._waiting, (session_id, track), request)

    def take_answered(self, session_id: str, track: str) -> LastRequest | None:
        """The request that an answer belongs to, once; `None` where none was handed out."""
        with self._lock:
            return self._waiting.pop((session_id, track), None)

    def warm(self, session_id: str, *, now: float, lifetime_seconds: float) -> LastRequest | None:
        """The session's, while its provider has it; those that ran out are let go of.

        A clock that went back is no reason to trust a cache.
        """
        with self._lock:
            for one, kept in list(self._kept.items()):
                if not 0 <= now - kept.at < lifetime_seconds:
                    del self._kept[one]
            return self._kept.get(session_id)

    def clear(self) -> None:
        """Let go of everything: something was forgotten, or the memory is closed."""
        with self._lock:
            self._kept.clear()
            self._waiting.clear()


def _keep(kept: dict[K, LastRequest], key: K, request: LastRequest) -> None:
    kept.pop(key, None)
    kept[key] = request
    if len(kept) > _SESSIONS:
        del kept[next(iter(kept))]
