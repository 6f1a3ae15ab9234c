"""What is remembered in memory alone: the newest of it, safe for threads and in a forked child."""

from __future__ import annotations

from typing import Generic, TypeVar

from langchain_tiered_memory.sql import forks

K = TypeVar("K")
V = TypeVar("V")


def keep_newest(kept: dict[K, V], key: K, value: V, *, most: int) -> None:
    """Put `value` in as the newest; of more than `most` the oldest is dropped. The caller holds its lock."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]


class Remembered(Generic[K, V]):
    """Values by key; of more than `most` the oldest is let go of."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = forks.Lock()
        self._kept: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """What is kept under a key."""
        with self._lock:
            return self._kept.get(key)

    def put(self, key: K, value: V) -> bool:
        """Keep a value as the newest; whether nothing was kept under its key."""
        with self._lock:
            is_new = key not in self._kept
            keep_newest(self._kept, key, value, most=self._most)
            return is_new

    def take(self, key: K) -> V | None:
        """What is kept under a key, once."""
        with self._lock:
            return self._kept.pop(key, None)

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._kept.clear()
