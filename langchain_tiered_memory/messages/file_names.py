"""When two names are one file: an agent calls it by its absolute path, and by the one from where it works.

Names alone are compared, for nothing here looks at a disk.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_LEAST_SHARE = 0.5
"""Of the absolute paths, that lie in the folder where an agent works: else a file of the same name elsewhere would be
taken for its own."""


def may_be_same(one: str, other: str) -> bool:
    """Whether two names may be of one file: one of them is the end of the other."""
    first, second = _plain(one), _plain(other)
    return first == second or _ends_in(first, second) or _ends_in(second, first)


def same_names(paths: Collection[str]) -> dict[str, str]:
    """For each of these names one that all names of its file share.

    The folder that relative paths begin in is nowhere said. It is taken to be the one from which most of them lead to
    an absolute path that is there, too; where it does not hold most of those, relative paths stay what they are.
    """
    plain = {path: _plain(path) for path in paths}
    absolute = {path for path in plain.values() if _is_absolute(path)}
    folder = _working_folder(absolute, (path for path in plain.values() if not _is_absolute(path)))
    if folder is None:
        return plain
    joined = {path: f"{folder}/{name}" for path, name in plain.items() if not _is_absolute(name)}
    return plain | {path: name for path, name in joined.items() if name in absolute}


def _working_folder(absolute: Collection[str], relative: Iterable[str]) -> str | None:
    by_name: dict[str, list[str]] = {}
    for path in absolute:
        by_name.setdefault(posixpath.basename(path), []).append(path)
    found = (
        path[: -len(name) - 1]
        for name in relative
        for path in by_name.get(posixpath.basename(name), ())
        if _ends_in(path, name)
    )
    votes = Counter(folder for folder in found if folder)
    within = {folder: sum(path.startswith(f"{folder}/") for path in absolute) for folder in votes}
    best = max(votes, key=lambda folder: (votes[folder], within[folder], folder), default=None)
    return best if best is not None and within[best] > _LEAST_SHARE * len(absolute) else None


@lru_cache(maxsize=4096)
def _plain(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/"))


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "~")) or path[1:2] == ":"


def _ends_in(path: str, end: str) -> bool:
    return _is_absolute(path) and not _is_absolute(end) and path.endswith(f"/{end}")
