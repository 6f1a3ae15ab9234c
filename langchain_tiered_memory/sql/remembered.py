"""What is remembered in memory alone: the newest of it, safe for threads and in a forked child."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from langchain_tiered_memory.sql import forks

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Values by key; of more than `most` the oldest is let go of. The default is more than one process has in hand."""

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._lock = forks.Lock()
        self._kept: dict[K, V] = {}

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """The same values under a lock of its own: what has one is copied with chains and graphs."""
        copied = type(self)(self._most)
        for key, value in self.items():
            copied.put(key, value)
        return copied

    def get(self, key: K) -> V | None:
        """What is kept under a key."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: K, value: V) -> bool:
        """Keep a value as the newest; whether nothing was kept under its key."""
        with self._lock:
            is_new = key not in self._kept
            self._keep(key, value)
            return is_new

    def of(self, key: K, make: Callable[[], V]) -> V:
        """What is kept under a key, as the newest from now on; made where nothing is."""
        with self._lock:
            value = self._kept[key] if key in self._kept else make()
            self._keep(key, value)
            return value

    def items(self) -> list[tuple[K, V]]:
        """All that is kept, the newest last."""
        with self._lock:
            return list(self._kept.items())

    def take(self, key: K) -> V | None:
        """What is kept under a key, once."""
        with self._lock:
            return self._kept.pop(key, None)

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._kept.clear()

    def _keep(self, key: K, value: V) -> None:
        self._kept.pop(key, None)
        self._kept[key] = value
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
