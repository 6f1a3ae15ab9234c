"""Dicts that keep the newest alone."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep_newest(kept: dict[K, V], key: K, value: V, *, most: int) -> None:
    """Put `value` in as the newest; of more than `most` the oldest is dropped. The caller holds its lock."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > most:
        del kept[next(iter(kept))]
