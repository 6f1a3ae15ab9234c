"""The memory's own files, which no run may open, and checksums of those that it may.

Its own files hold everybody's words, and a copy of them outlasts `forget`. They are known by their names where the
database says it is, and by what they are on the disk: a hard link, a bind mount or another spelling leads to the same
file. Of other files a path is somebody else's word: it may lead out of a folder by `..` or a symbolic link, name a pipe
that never ends, or be gone by the time it is opened. What is not read is named with its reason; no path raises.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


_BESIDE = re.compile(r"(?:-wal|-shm|-journal|-mj[0-9a-f]{1,16}|\.chroma(?:\..{0,80})?)?")
"""What SQLite and this package append to the database's name for the files and folders beside it."""
_SIDE_FILES = ("", "-wal", "-shm", "-journal")
MISSING = "missing"
OUTSIDE = "outside the allowed folders"
NO_FILE = "no regular file"
OWN = "a file of this memory itself"
OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


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


# The path was resolved before: a link in its place is one that somebody put there since. Without `O_NONBLOCK` a pipe
# that nobody writes to would hold the opening itself.


@dataclass(frozen=True, slots=True)
class Checksums:
    """Reads files; the one store that is no database."""

    own: OwnFiles = field(default_factory=OwnFiles)
    """What is never read."""

    def of(self, paths: Iterable[str], *, roots: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Checksums of files, and why others have none.

        Args:
            paths: Absolute, or relative to one of the roots (the first that has such a file counts).
            roots: Folders whose files may be read; none may where there is none.

        Returns:
            SHA-256 in hexadecimal by path; and a reason by path for those that are `MISSING`, `OUTSIDE` or unreadable.
        """
        folders = [Path(root).expanduser().resolve() for root in roots]
        found: dict[str, str] = {}
        unread: dict[str, str] = {}
        for path in dict.fromkeys(paths):
            try:
                place = place_within(path, folders)
                if place is None:
                    unread[path] = OUTSIDE
                else:
                    found[path] = self._digest_of(place)
            except FileNotFoundError:
                unread[path] = MISSING
            except (OSError, ValueError, RuntimeError) as error:  # NUL bytes, rings of links
                unread[path] = getattr(error, "strerror", None) or str(error)
        return found, unread

    def _digest_of(self, place: Path) -> str:
        descriptor = os.open(place, OPEN_FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise OSError(0, NO_FILE)
            if self.own.has(place, about):
                raise OSError(0, OWN)
            return hashlib.file_digest(file, "sha256").hexdigest()


def place_within(path: str, folders: Sequence[Path]) -> Path | None:
    """Where a path leads, links followed; `None` where that is in none of the folders."""
    inside = []
    for folder in folders:
        place = (folder / path).resolve()
        if place.is_relative_to(folder):
            inside.append(place)
    return next((place for place in inside if place.exists()), inside[0] if inside else None)
