"""Reads a run's files from the disk, within the allowed folders only; the one place of `runs/files` that does.

A file that changed is noticed by its size and time, and where these could deceive by its content: a file may be written
twice within one tick of its clock, so a time that is close to the moment of reading proves nothing.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import FileGoneError, FileRefusedError, FileTooLargeError
from langchain_tiered_memory.runs.file_checksums import NO_FILE, OPEN_FLAGS, place_within
from langchain_tiered_memory.runs.files.compression import checksum_of
from langchain_tiered_memory.runs.files.store import SeenFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.types.files import KeptFile

_SETTLED_NS = 3_000_000_000
"""A file whose time is older than this when it is read gets another time when it is written again: 2 s is the coarsest
clock of a file system in use (FAT)."""
UNSETTLED_NS = -1
"""In the place of the time of a file that may change within the same tick of its clock: no file has it."""
_SNIFFED = 8000
"""Bytes at a file's beginning in which a NUL tells that it is no text, as git has it."""
_KINDS = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".java": "java",
    ".go": "go",
    ".c": "c",
    ".h": "c",
    ".cc": "c++",
    ".cpp": "c++",
    ".cxx": "c++",
    ".hh": "c++",
    ".hpp": "c++",
    ".rs": "rust",
}


@dataclass(frozen=True, slots=True)
class Place:
    """A file within a folder that may be read, links followed."""

    folder: Path
    path: Path

    def __str__(self) -> str:
        """The file's path."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Look:
    """What the file system says of a file, without reading it."""

    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Disk:
    """Looks at files and reads them."""

    def place(self, path: str, *, roots: Sequence[str]) -> Place:
        """Where a path leads, links followed; it need not be there.

        Args:
            path: Absolute, or relative to one of the roots (the first that has such a file counts).
            roots: Folders whose files may be read.

        Raises:
            FileRefusedError: when it is in none of the roots, or is no path.
        """
        try:
            folders = [Path(root).expanduser().resolve() for root in roots]
            found = place_within(path, folders)
        except (OSError, ValueError, RuntimeError) as error:  # NUL bytes, rings of links, names that are too long
            msg = f"{path!r} cannot be opened: {getattr(error, 'strerror', None) or error}"
            raise FileRefusedError(msg) from error
        if found is None:
            where = ", ".join(map(str, folders)) or "none is named: give the run roots, or set tiers.roots"
            msg = f"{path!r} is outside of the folders that this run may read ({where})"
            raise FileRefusedError(msg)
        if found in folders:
            msg = f"{path!r} cannot be opened: it is one of the folders that this run may read, and no file"
            raise FileRefusedError(msg)
        return Place(next(folder for folder in folders if found.is_relative_to(folder)), found)

    def look(self, place: Place) -> Look:
        """What is there, without reading it.

        Raises:
            FileGoneError: when nothing is there.
            FileRefusedError: when it is no regular file, or may not be looked at.
        """
        try:
            found = place.path.stat(follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _gone(place) from error
        except (OSError, ValueError) as error:
            raise _refused(place, error) from error
        if not stat.S_ISREG(found.st_mode):
            raise _refused(place, OSError(0, NO_FILE))
        return Look(found.st_size, found.st_mtime_ns)

    def read(self, place: Place, *, most_bytes: int, now: float) -> SeenFile:
        """A file with its content.

        Args:
            place: As `place` gave it.
            most_bytes: A larger file is not read.
            now: What time it is. A file that was changed just now gets `UNSETTLED_NS`: it may be written once more
                within the same tick of its clock, so that the next look has to read it again.

        Raises:
            FileGoneError: when nothing is there.
            FileRefusedError: when it is no regular file, or may not be read.
            FileTooLargeError: when it is larger.
        """
        try:
            descriptor = _open_beneath(place)
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode):
                    raise _refused(place, OSError(0, NO_FILE))
                content = file.read(most_bytes + 1)
                since = os.fstat(descriptor)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _gone(place) from error
        except OSError as error:
            raise _refused(place, error) from error
        if len(content) > most_bytes:
            raise too_large(str(place), max(found.st_size, len(content)), most_bytes)
        is_settled = since.st_mtime_ns == found.st_mtime_ns and now * 1e9 - found.st_mtime_ns > _SETTLED_NS
        return seen(str(place), content, modified_ns=found.st_mtime_ns if is_settled else UNSETTLED_NS)


def _open_beneath(place: Place) -> int:
    """Open a file step by step from its folder: a link that somebody puts in the way meanwhile leads nowhere."""
    if os.open not in os.supports_dir_fd:
        return os.open(place.path, OPEN_FLAGS)
    *folders, name = place.path.relative_to(place.folder).parts
    at = os.open(place.folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(name, OPEN_FLAGS, dir_fd=at)
    finally:
        os.close(at)


def seen(path: str, content: bytes, *, modified_ns: int | None) -> SeenFile:
    """A file as it was found, with its content."""
    return SeenFile(
        path=path,
        kind=kind_of(path, content),
        size=len(content),
        modified_ns=modified_ns,
        checksum=checksum_of(content),
        content=content,
    )


def kept_place(kept: KeptFile) -> Place:
    """Where a file is that was read before: its path was found within the roots then."""
    path = Path(kept.path)
    return Place(path.parent, path)


def is_unchanged(kept: KeptFile, look: Look) -> bool:
    """Whether size and time prove that a file is as it is kept."""
    return not kept.deleted and kept.modified_ns == look.modified_ns and kept.size == look.size


def kind_of(path: str, content: bytes) -> str:
    """`binary`, the name of a language, or `text`."""
    if b"\0" in content[:_SNIFFED]:
        return "binary"
    return _KINDS.get(PurePath(path).suffix.lower(), "text")


def too_large(path: str, size: int, most: int) -> FileTooLargeError:
    """The error for a file that is not kept."""
    msg = (
        f"{path!r} has {size:,} bytes, and at most {most:,} are kept of a file: read it in parts, or raise "
        "tiers.largest_bytes"
    )
    return FileTooLargeError(msg)


def _gone(place: Place) -> FileGoneError:
    msg = f"{str(place)!r} is not there, and is not kept"
    return FileGoneError(msg)


def _refused(place: Place, error: Exception) -> FileRefusedError:
    msg = f"{str(place)!r} cannot be read: {getattr(error, 'strerror', None) or error}"
    return FileRefusedError(msg)
