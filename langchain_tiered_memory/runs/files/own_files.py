"""The memory's own files, which no run may open: they hold everybody's words, and a copy of them outlasts `forget`.

They are known by their names where the database says it is, and by what they are on the disk: a hard link, a bind mount
or another spelling leads to the same file.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from pathlib import Path

_BESIDE = re.compile(r"(?:-wal|-shm|-journal|-mj[0-9a-f]{1,16}|\.chroma(?:\..{0,80})?)?")
"""What SQLite and this package append to the database's name for the files and folders beside it."""
_SIDE_FILES = ("", "-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """Which files are the memory's own."""

    databases: tuple[Path, ...] = ()
    """The database by its names, as it was given and with links followed; none for a server or for memory."""
    folders: tuple[Path, ...] = ()
    """Of embedded Chroma."""

    @classmethod
    def of(cls, database: Path | None, vectors: Path | None) -> OwnFiles:
        """Those of one memory.

        Args:
            database: Its SQLite file, where it has one.
            vectors: Chroma's folder, where it is another than the one beside the database.
        """
        beside = database.with_name(f"{database.name}.chroma") if database is not None else None
        folders = [vectors, beside]
        return cls(_by_any_name([database]), _by_any_name(folders))

    def has(self, path: Path, found: os.stat_result | None = None) -> bool:
        """Whether a file is one of them.

        Args:
            path: Its path, links followed.
            found: What the file system says of it, where it was looked at.
        """
        return self._has_name(path) or (found is not None and self._is_same(path, found))

    def _has_name(self, path: Path) -> bool:
        for own in self.databases:
            beside = own.parent
            if not path.is_relative_to(beside) or path == beside:
                continue
            name = path.relative_to(beside).parts[0].casefold()  # the folder beside it, or the file itself
            base = own.name.casefold()
            if name.startswith(base) and _BESIDE.fullmatch(name[len(base) :]):
                return True
        return any(path.is_relative_to(folder) for folder in self.folders)

    def _is_same(self, path: Path, found: os.stat_result) -> bool:
        here = (found.st_dev, found.st_ino)
        if here in set(_identities(own.with_name(own.name + end) for own in self.databases for end in _SIDE_FILES)):
            return True
        folders = set(_identities(iter(self.folders)))
        if folders and any(parent in folders for parent in _identities(iter(path.parents))):
            return True
        return found.st_nlink > 1 and here in set(
            _identities(inside for folder in self.folders for inside in folder.rglob("*"))
        )


def _by_any_name(paths: list[Path | None]) -> tuple[Path, ...]:
    there = [path.expanduser() for path in paths if path is not None]
    return tuple(dict.fromkeys(name for path in there for name in (path.absolute(), path.resolve())))


def _identities(paths: Iterator[Path]) -> Iterator[tuple[int, int]]:
    for path in paths:
        with suppress(OSError):
            about = path.stat()
            yield about.st_dev, about.st_ino
