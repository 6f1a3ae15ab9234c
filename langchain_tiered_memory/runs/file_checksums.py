"""SHA-256 of files that a run touched, read within the allowed folders only.

A path is somebody else's word: it may lead out of a folder by `..` or a symbolic link, name a pipe that never ends, or
be gone by the time it is opened. What is not read is named with its reason; nothing here raises for a path.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_tiered_memory.runs.files.own_files import OwnFiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MISSING = "missing"
OUTSIDE = "outside the allowed folders"
NO_FILE = "no regular file"
OWN = "a file of this memory itself"
# The path was resolved before: a link in its place is one that somebody put there since. Without `O_NONBLOCK` a pipe
# that nobody writes to would hold the opening itself.
OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


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
