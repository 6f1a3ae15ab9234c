"""One directory of embedded Chroma, kept right with several processes at work on it.

Chroma keeps each vector index in memory and reads it once per process. A process that did not write misses what others
wrote, and once they have written past Chroma's sync threshold (1,000 changes), its next write saves an index with a
hole in it. So here:

- every write holds a lock on a file of ours in the directory and changes a mark beside it before it begins;
- whoever finds another mark than the one it knows opens the directory anew, under the same lock, before it goes on.

The mark is read before every search, which costs microseconds. All indexes of one process share one open directory.
"""

from __future__ import annotations

import sqlite3
import sys
import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory.errors import IndexUnavailableError
from langchain_tiered_memory.recall.chroma import files as chroma_files
from langchain_tiered_memory.recall.chroma.connection import WORKING, loaded, require_core
from langchain_tiered_memory.sql import forks
from langchain_tiered_memory.sql.private_files import close_to_others, create_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import FileIO
    from pathlib import Path

    from chromadb.api import ClientAPI

_LOCK = "tiered-memory.lock"
_MARK = "tiered-memory.mark"
_POLL_SECONDS = 0.01

_shared: dict[tuple[Path, str, str], EmbeddedDirectory] = {}
_shared_guard = forks.Lock()


@dataclass(slots=True, kw_only=True)
class _Opened:
    """A client and what it knows; retired when somebody else wrote, closed when its last user is done."""

    client: Any
    """Of Chroma's class, which its own interface leaves out the closing of."""
    spelling: int
    mark: tuple[str, int]
    loaded: set[str] = field(default_factory=set)
    """Collections whose vectors are in memory."""
    users: int = 0
    retired: bool = False


class EmbeddedDirectory(forks.AtFork):
    """Hands out clients of one directory that have seen every write. Get one from `embedded_directory`.

    Args:
        path: The directory, absolute; made when first used.
        tenant: Chroma's tenant.
        database: Chroma's database within the tenant.
        file_mode: Of the files, where the directory is made here; `None`: as the umask has it.
        lock_seconds: How long to wait for another process's write.
    """

    def __init__(
        self, path: Path, *, tenant: str, database: str, file_mode: int | None, lock_seconds: float = 30.0
    ) -> None:
        self.path = path
        self.place = f"the directory {path}"
        self.remedy = "if it is damaged, call rebuild_index(): it starts over in an empty directory"
        self.holders = 0
        self._tenant = tenant
        self._database = database
        self._file_mode = file_mode
        self._lock_seconds = lock_seconds
        self._guard = forks.Lock()
        self._opened: _Opened | None = None
        self._spellings: set[int] = set()
        self._blanked: tuple[tuple[str, int], ...] = ()
        forks.tell(self)

    def after_fork_in_child(self) -> None:
        """Let go of the parent's client without touching its threads and files."""
        if self._opened is not None:
            forks.abandon(self._opened.client)
            self._opened = None

    @contextmanager
    def reading(self, collection: str | None) -> Iterator[ClientAPI]:
        """A client whose view is no older than this call. `collection`: the one whose vectors will be searched."""
        require_core()
        with WORKING:
            with self._guard:
                opened = self._usable(self._opened, collection)
                if opened is not None:
                    opened.users += 1
            if opened is not None:
                with self._using(opened):
                    yield opened.client
                return
        # Loading an index reads files that a writer may be replacing, so the first search happens under the lock.
        with self._locked() as opened, self._using(opened):
            yield opened.client
            if collection is not None:
                opened.loaded.add(collection)

    @contextmanager
    def writing(self) -> Iterator[ClientAPI]:
        """A client to write with, while nobody else writes. Other processes see the new mark first, then the rows."""
        with self._locked() as opened, self._using(opened):
            # Before the write: a reader that comes during it waits for the lock; one that dies in it leaves the mark.
            (self.path / _MARK).write_text(uuid.uuid4().hex, encoding="ascii")
            opened.mark = self._mark() or opened.mark
            yield opened.client

    def compact(self) -> tuple[str, ...]:
        """Take the traces of removed rows out of the files; returns the places where that failed."""
        with self._locked() as opened, self._using(opened):
            try:
                chroma_files.scrub_database(self.path, busy_seconds=self._lock_seconds)
            except sqlite3.Error as error:
                return (f"{self.path / chroma_files.DATABASE}: {error}",)
        return ()

    def discard(self, *, disposable: bool) -> str:
        """Take everything out of a directory that Chroma cannot read; other processes open it anew."""
        require_core()
        aside = None if disposable else self.path.with_name(f"{self.path.name}.damaged-{uuid.uuid4().hex[:8]}")
        if self.path.is_file():
            return chroma_files.put_away(self.path, [self.path], aside)
        with self._alone():
            self.forget_client()
            going = [path for path in self.path.iterdir() if path.name != _LOCK]
            return chroma_files.put_away(self.path, going, aside)

    def folders_of(self, collection_ids: Iterable[str]) -> list[Path]:
        """The vector folders of these collections, which Chroma leaves behind when it deletes them."""
        try:
            return chroma_files.vector_folders(self.path, collection_ids)
        except sqlite3.Error:
            return []

    def forget_client(self) -> None:
        """Open anew next time: after an error nobody knows what the client in memory still knows."""
        with self._guard:
            self._retire()

    def close(self) -> None:
        """Give up one hold on the directory; the last one closes it."""
        with _shared_guard:
            self.holders -= 1
            if self.holders > 0:
                return
            _shared.pop((self.path, self._tenant, self._database), None)
        with self._guard:
            self._retire()

    def _usable(self, opened: _Opened | None, collection: str | None = None) -> _Opened | None:
        if opened is None or opened.mark != self._mark():
            return None
        return opened if collection is None or collection in opened.loaded else None

    def _mark(self) -> tuple[str, int] | None:
        """What tells this state of the directory from any other; `None` where there is no directory (any more)."""
        try:
            inode = (self.path / chroma_files.DATABASE).stat().st_ino
            return (self.path / _MARK).read_text(encoding="ascii"), inode
        except FileNotFoundError:
            return None

    @contextmanager
    def _locked(self) -> Iterator[_Opened]:
        require_core()
        with self._alone(), WORKING:
            with self._guard:
                opened = self._usable(self._opened) or self._open()
                opened.users += 1
            try:
                yield opened
            finally:
                self._blank()
                if self._file_mode is not None:
                    close_to_others(self.path, self._file_mode)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the directory's lock against other processes and threads."""
        if self._file_mode is None:
            self.path.mkdir(parents=True, exist_ok=True)
        else:
            create_folder(self.path, self._file_mode)
        with (self.path / _LOCK).open("ab", buffering=0) as file:
            self._acquire(file)
            try:
                yield
            finally:
                # Closing would not do: a child that was forked meanwhile has the file open too.
                _unlock(file)

    def _open(self) -> _Opened:
        self._retire()
        chroma_files.require_readable(self.path)
        chromadb = loaded()
        # Chroma shares one client per spelling of a path within a process, memory included. A spelling of our own
        # gives a fresh one, and keeps apart from whatever else in this process uses the directory.
        spelling = next(number for number in range(1, len(self._spellings) + 2) if number not in self._spellings)
        # Before it is tried: what fails half-way would be handed out again as well.
        self._spellings.add(spelling)
        client = chromadb.PersistentClient(
            path=str(self.path) + "/." * spelling,
            settings=chromadb.config.Settings(_env_file=None, anonymized_telemetry=False),
            tenant=self._tenant,
            database=self._database,
        )
        if not (self.path / _MARK).exists():
            (self.path / _MARK).write_text(uuid.uuid4().hex, encoding="ascii")
        self._opened = _Opened(client=client, spelling=spelling, mark=self._mark() or ("", 0))
        return self._opened

    def _retire(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.retired = True
            self._close_unused(opened)

    def _close_unused(self, opened: _Opened) -> None:
        if opened.retired and opened.users == 0 and opened.spelling in self._spellings:
            opened.client.close()
            self._spellings.discard(opened.spelling)

    @contextmanager
    def _using(self, opened: _Opened) -> Iterator[None]:
        try:
            yield
        finally:
            with self._guard:
                opened.users -= 1
                self._close_unused(opened)

    def _blank(self) -> None:
        """Clear stray memory out of vector files that were written since the last look."""
        if self._written() != self._blanked:
            chroma_files.blank_unused(self.path)
            self._blanked = self._written()

    def _written(self) -> tuple[tuple[str, int], ...]:
        return tuple(sorted((str(path), path.stat().st_mtime_ns) for path in self.path.glob("*/data_level0.bin")))

    def _acquire(self, file: FileIO) -> None:
        give_up_at = time.monotonic() + self._lock_seconds
        while not _try_lock(file):
            if time.monotonic() > give_up_at:
                msg = (
                    f"another process has been writing to {self.place} for more than {self._lock_seconds:g} seconds; "
                    "wait for it, or run a Chroma server when many processes write"
                )
                raise IndexUnavailableError(msg)
            time.sleep(_POLL_SECONDS)


def embedded_directory(path: Path, *, tenant: str, database: str, file_mode: int | None) -> EmbeddedDirectory:
    """The one `EmbeddedDirectory` of this process for `path`; each call is a hold that `close()` gives back."""
    resolved = path.expanduser().resolve()
    with _shared_guard:
        directory = _shared.get((resolved, tenant, database))
        if directory is None:
            directory = EmbeddedDirectory(resolved, tenant=tenant, database=database, file_mode=file_mode)
            _shared[resolved, tenant, database] = directory
        directory.holders += 1
        return directory


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: FileIO) -> bool:
        try:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: FileIO) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(file: FileIO) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: FileIO) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
