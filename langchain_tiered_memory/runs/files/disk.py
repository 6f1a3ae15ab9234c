"""Reads a run's files from the disk, within the allowed folders only; the one place of `runs/files` that does.

A file that changed is noticed by its size and its mark (what it is on the disk, and when it was changed, which no
program can set back), and where these could deceive by its content: a file may be written twice within one tick of its
clock, so a time that is close to the moment of reading proves nothing. For the same reason such a file is read until
two readings agree: half of it may be from before somebody wrote it.

The memory's own files hold everybody's words, and a copy of them outlasts `forget`: no run may open one. They are known
by their names where the database says it is, and by what they are on the disk: a hard link, a bind mount or another
spelling leads to the same file. Of other files a path is somebody else's word: it may lead out of a folder by `..` or a
symbolic link, name a pipe that never ends, or be gone by the time it is opened.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import FileChangingError, FileGoneError, FileRefusedError, FileTooLargeError
from langchain_tiered_memory.runs.files.file_rows import checksum_of
from langchain_tiered_memory.runs.files.store import SeenFile
from langchain_tiered_memory.types.files import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from io import FileIO

    from langchain_tiered_memory.types.files import KeptFile


_BESIDE = re.compile(r"(?:-wal|-shm|-journal|-mj[0-9a-f]{1,16}|\.chroma(?:\..{0,80})?)?")
"""What SQLite and this package append to the database's name for the files and folders beside it."""
_SIDE_FILES = ("", "-wal", "-shm", "-journal")
MISSING = "missing"
_NO_FILE = "not a regular file"
_OWN = "a file of this memory itself"
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_SETTLED_SECONDS = 3.0
"""A file whose time is older than this when it is read gets another time when it is written again: 2 s is the coarsest
clock of a file system in use (FAT)."""
UNSETTLED_NS = -1
"""In the place of the time of a file that may change within the same tick of its clock: no file has it."""
_READINGS = 8
"""Of a file that somebody is writing, before it is given up."""
_BUSY_SECONDS = 0.02
"""Who wrote to a file less than this before it is read may be at it still: as long as a few turns of a processor."""
_PAUSE_SECONDS = 0.005
"""Between two readings of such a file: longer than a tick of its clock."""
_MARKED_NS = 1_000_000
"""Of a mark, what is no time: the digits below a millisecond stand for what the file is."""
_SNIFFED = 8000
"""Bytes at a file's beginning in which a NUL tells that it is no text, as git has it."""
_MAX_READ_BYTES = 40_000
"""Imports stand at a file's beginning; in languages where they may not, most do."""
_MAX_IMPORTS = 60
_IMPORT = re.compile(
    r"""^[ \t]{0,16}(?:from|import|(?:pub[ \t]{1,4})?(?:mod|use))[ \t]{1,4}(?:static[ \t]{1,4})?([\w.:]{1,300})"""
    r"""|(?:\b(?:from|import)|\brequire\(|^[ \t]{0,8}\#[ \t]{0,8}include)[ \t]{0,4}["']([^"'\n]{1,300})["']"""
    r"""|^[ \t]{1,8}(?:[\w.]{1,60}[ \t]{1,4})?"([\w./~-]{1,300})"[ \t\r]*$""",
    re.MULTILINE,
)
"""What a line imports: a name as Python, Java and Rust write it, a text behind its keyword, or one in Go's brackets."""


@dataclass(frozen=True, slots=True)
class OwnFiles:
    """Which files are the memory's own."""

    databases: tuple[Path, ...] = ()
    """The database by its names, as it was given and with links followed; none for a server or for memory."""
    folders: tuple[Path, ...] = ()
    """Of embedded Chroma."""

    @classmethod
    def of(cls, database: Path | None, vectors: Path | None) -> OwnFiles:
        """Those of the memory with this SQLite file, if any, and Chroma's folder, if it is not the one beside that."""
        beside = database.with_name(f"{database.name}.chroma") if database is not None else None
        return cls(_by_any_name([database]), _by_any_name([vectors, beside]))

    def has(self, path: Path, found: os.stat_result | None = None) -> bool:
        """Whether a file is one of them, by its path, links followed, or by what the file system says of it."""
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


@dataclass(frozen=True, slots=True)
class Place:
    """A file within a folder that may be read, links followed."""

    folder: Path
    path: Path

    def __str__(self) -> str:
        """The file's path."""
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Disk:
    """Looks at files and reads them."""

    own: OwnFiles = field(default_factory=OwnFiles)
    """What is never read."""
    wait: Callable[[float], None] = lambda _: None
    """Lets some seconds go by."""

    def place(self, path: str, *, roots: Sequence[str]) -> Place:
        """Where a path leads, links followed; it need not be there.

        Args:
            path: Absolute, or relative to one of the roots (the first that has such a file counts).
            roots: Folders whose files may be read.

        Raises:
            FileRefusedError: when it is in none of the roots, is the memory's own, or is no path.
        """
        try:
            folders = [Path(root).expanduser().resolve() for root in roots]
            leads = ((folder, (folder / path).resolve()) for folder in folders)
            inside = [there for folder, there in leads if there.is_relative_to(folder)]
            found = next((there for there in inside if there.exists()), inside[0] if inside else None)
        except (OSError, ValueError, RuntimeError) as error:  # NUL bytes, rings of links, names that are too long
            msg = f"{path!r} cannot be opened: {_reason(error)}"
            raise FileRefusedError(msg) from error
        if found is None:
            where = ", ".join(map(str, folders)) or "none is named: give the run roots, or set files.roots"
            msg = f"{path!r} is outside of the folders that this run may read ({where})"
            raise FileRefusedError(msg)
        if found in folders:
            msg = f"{path!r} cannot be opened: it is one of the folders that this run may read, not a file"
            raise FileRefusedError(msg)
        place = Place(next(folder for folder in folders if found.is_relative_to(folder)), found)
        if self.own.has(found):
            raise _own(place)
        return place

    def checksums(self, paths: Iterable[str], *, roots: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
        """Checksums of files, and why others have none; no path raises.

        Args:
            paths: As `place` takes them.
            roots: Folders whose files may be read; none may where there is none.

        Returns:
            SHA-256 in hexadecimal by path; and a reason by path for those that are `MISSING`, outside or unreadable.
        """
        found: dict[str, str] = {}
        unread: dict[str, str] = {}
        for path in dict.fromkeys(paths):
            try:
                with self._opened(self.place(path, roots=roots)) as file:
                    found[path] = hashlib.file_digest(file, "sha256").hexdigest()
            except FileNotFoundError:
                unread[path] = MISSING
            except (FileRefusedError, OSError) as error:
                unread[path] = _reason(error)
        return found, unread

    def look(self, place: Place) -> tuple[int, int]:
        """Size and mark of what is there, without reading it; the mark differs for another file in its place.

        Raises:
            FileGoneError: when nothing is there.
            FileRefusedError: when it is no regular file or the memory's own, or may not be looked at.
        """
        try:
            found = place.path.stat(follow_symlinks=False)
            self._require_file(place, found)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _gone(place) from error
        except (OSError, ValueError) as error:
            raise _refused(place, error) from error
        return found.st_size, _mark(found)

    def read(self, place: Place, *, most_bytes: int, now: float) -> SeenFile:
        """A file with its content.

        Args:
            place: As `place` gave it.
            most_bytes: A larger file is not read.
            now: What time it is. A file that was changed just now gets `UNSETTLED_NS`: it may be written once more
                within the same tick of its clock, so that the next look has to read it again.

        Raises:
            FileGoneError: when nothing is there.
            FileRefusedError: when it is no regular file or the memory's own, or may not be read; `FileChangingError`
                when it was written to during each of several readings.
            FileTooLargeError: when it is larger.
        """
        try:
            with self._opened(place) as file:
                return self._read_whole(place, file, most_bytes=most_bytes, now=now)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _gone(place) from error
        except OSError as error:
            raise _refused(place, error) from error

    def _read_whole(self, place: Place, file: FileIO, *, most_bytes: int, now: float) -> SeenFile:
        """One state of a file: nobody wrote while it was read, or two readings agree and it was left alone since."""
        before: tuple[int, bytes] | None = None
        quiet = 0.0
        for _ in range(_READINGS):
            found = os.fstat(file.fileno())
            file.seek(0)
            content = _all_of(file, most_bytes + 1)
            if len(content) > most_bytes:
                raise too_large(str(place), max(found.st_size, len(content)), most_bytes)
            age = now - max(found.st_mtime_ns, found.st_ctime_ns) / 1e9
            mark, is_still = _mark(found), _mark(os.fstat(file.fileno())) == _mark(found)
            if is_still and age > _SETTLED_SECONDS and len(content) == found.st_size:
                return seen(str(place), content, modified_ns=mark)
            is_same = is_still and before == (mark, content)
            quiet = quiet if is_same else max(age, 0.0)
            if is_same and quiet >= _BUSY_SECONDS:
                return seen(str(place), content, modified_ns=UNSETTLED_NS)
            if quiet < _BUSY_SECONDS:
                self.wait(_PAUSE_SECONDS)
                quiet += _PAUSE_SECONDS
            before = (mark, content)
        msg = f"{str(place)!r} is being written: it changed during each of {_READINGS} readings; open it again later"
        raise FileChangingError(msg)

    @contextmanager
    def _opened(self, place: Place) -> Iterator[FileIO]:
        descriptor = _open_beneath(place)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            self._require_file(place, os.fstat(descriptor))
            yield file

    def _require_file(self, place: Place, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, _NO_FILE)
        if self.own.has(place.path, found):
            raise _own(place)


def _all_of(file: FileIO, most: int) -> bytes:
    """Up to `most` bytes; an unbuffered reading may give fewer at a time."""
    parts: list[bytes] = []
    left = most
    while left > 0 and (part := file.read(left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _mark(found: os.stat_result) -> int:
    """When a file was changed, with what it is in the digits below a millisecond.

    `utime` sets a file's time of writing, and copies and archives keep it; when its inode changed is the file system's
    to say, and which file it is too. All of it is one number, so that a row that has one time proves all of it.
    """
    what = (found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)
    digest = int.from_bytes(hashlib.blake2b(repr(what).encode("ascii"), digest_size=8).digest())
    return max(found.st_mtime_ns, found.st_ctime_ns) // _MARKED_NS * _MARKED_NS + digest % _MARKED_NS


def _open_beneath(place: Place) -> int:
    """Open a file step by step from its folder: a link that somebody puts in the way meanwhile leads nowhere."""
    if place.path == place.folder:
        raise OSError(0, _NO_FILE)
    if os.open not in os.supports_dir_fd:
        return os.open(place.path, _OPEN_FLAGS)
    *folders, name = place.path.relative_to(place.folder).parts
    at = os.open(place.folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(name, _OPEN_FLAGS, dir_fd=at)
    finally:
        os.close(at)


def seen(path: str, content: bytes, *, modified_ns: int | None) -> SeenFile:
    """A file as it was found, with its content."""
    kind = kind_of(path, content)
    return SeenFile(
        path=path,
        kind=kind,
        size=len(content),
        modified_ns=modified_ns,
        checksum=checksum_of(content),
        content=content,
        dependencies=imports_in(kind, content),
    )


def is_unchanged(kept: KeptFile, look: tuple[int, int]) -> bool:
    """Whether size and mark, as `Disk.look` gives them, prove that a file is as it is kept."""
    return not kept.deleted and (kept.size, kept.modified_ns) == look


def kind_of(path: str, content: bytes) -> str:
    """`binary`, the name of a language, or `text`."""
    if b"\0" in content[:_SNIFFED]:
        return "binary"
    return LANGUAGES.get(PurePath(path).suffix.lower(), "text")


def too_large(path: str, size: int, most: int) -> FileTooLargeError:
    """The error for a file that is not kept."""
    return FileTooLargeError(
        f"{path!r} has {size:,} bytes, and at most {most:,} of a file are kept: read it in parts, or raise "
        "tiers.largest_bytes"
    )


def _own(place: Place) -> FileRefusedError:
    return FileRefusedError(f"{str(place)!r} cannot be opened: it is {_OWN}")


def _gone(place: Place) -> FileGoneError:
    return FileGoneError(f"{str(place)!r} does not exist, and is not kept")


def _refused(place: Place, error: Exception) -> FileRefusedError:
    return FileRefusedError(f"{str(place)!r} cannot be read: {_reason(error)}")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def imports_in(kind: str, content: bytes) -> tuple[str, ...]:
    """What a file of a kind (as `KeptFile.kind` names it) imports, as it stands there, each once."""
    if kind in ("text", "binary"):
        return ()
    text = content[:_MAX_READ_BYTES].decode("utf-8", "replace")
    found = (next(filter(None, match.groups())).rstrip(".:") for match in _IMPORT.finditer(text))
    return tuple(islice(dict.fromkeys(name for name in found if name), _MAX_IMPORTS))
