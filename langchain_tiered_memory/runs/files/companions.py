"""Files that come in with one that is opened: what it imports, its tests, what was opened next before."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING

from langchain_tiered_memory.errors import FileGoneError, FileRefusedError
from langchain_tiered_memory.runs.files.imports import candidates, imports_in, paired_tests
from langchain_tiered_memory.runs.files.opening import tell_moves

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_tiered_memory.runs.files.store import SeenFile
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.files import OpenedFile, TierMove
    from langchain_tiered_memory.types.records import SessionRef
    from langchain_tiered_memory.types.runs import FileAccess

_LOOKS = 300
"""Paths that are looked for on the disk at most for one opened file: a look takes some 10 microseconds."""
_HISTORY = 300
"""Latest accesses of the session's messages in which the likely next file is looked for."""
_NEXT = 3
"""Accesses after one of a file that count as next to it."""


def bring_companions(
    runtime: Runtime, ref: SessionRef, opened: OpenedFile, *, roots: Sequence[str]
) -> tuple[TierMove, ...]:
    """Take in what belongs to a file that was opened, into free places alone, and note what it depends on.

    Nothing happens for a file that was in hot already with this content: what belongs to it came before.

    Args:
        runtime: The memory.
        ref: The session.
        opened: The file.
        roots: Folders whose files may be read.
    """
    most = runtime.settings.tiers.companions
    if not roots or opened.is_binary or (opened.from_tier == "hot" and opened.state == "unchanged"):
        return ()
    looks = _Looks(runtime, roots)
    imported = list(looks.first_of(_imports(opened)))
    if tuple(imported) != opened.file.dependencies:
        runtime.store.kept_files.set_dependencies(ref, opened.path, imported)
    wanted = [*imported[:most], *looks.first_of([paired_tests(_slashed(opened.path))])]
    latest = runtime.store.files.latest_accesses(ref, limit=_HISTORY)
    wanted += looks.first_of([name] for name in likely_next(latest, opened.path))
    found = [one for path in list(dict.fromkeys(wanted))[:most] if (one := looks.read(ref, path)) is not None]
    if not found:
        return ()
    moves = runtime.store.kept_files.bring_in(ref, found, now=runtime.now(), rules=runtime.settings.tiers)
    tell_moves(runtime, ref, moves)
    return moves


def likely_next(accesses: Sequence[FileAccess], path: str) -> list[str]:
    """Files that were most often touched right after one, the most frequent first, of equals the latest.

    Args:
        accesses: What messages touched, oldest first.
        path: The file; a path in a message may be a shorter form of it.
    """
    seen: Counter[str] = Counter()
    for place, access in enumerate(accesses):
        if path == access.path or path.endswith(f"/{access.path}"):
            after = (other.path for other in accesses[place + 1 : place + 1 + _NEXT])
            seen.update({other for other in after if not path.endswith(other)})
    order = {access.path: number for number, access in enumerate(accesses)}
    return sorted(seen, key=lambda one: (-seen[one], -order[one]))


def _imports(opened: OpenedFile) -> Iterator[tuple[str, ...]]:
    for name in imports_in(opened.file.kind, opened.text):
        yield candidates(_slashed(opened.path), opened.file.kind, name)


def _slashed(path: str) -> str:
    return PurePath(path).as_posix()


class _Looks:
    """Looks for files within the roots, a bounded number of times."""

    def __init__(self, runtime: Runtime, roots: Sequence[str]) -> None:
        self._runtime = runtime
        self._roots = roots
        self._left = _LOOKS

    def first_of(self, alternatives: Iterable[Iterable[str]]) -> Iterator[str]:
        """Of each list of paths the first that is a file."""
        for paths in alternatives:
            for path in paths:
                if self._left <= 0:
                    return
                self._left -= 1
                try:
                    place = self._runtime.store.disk.place(path, roots=self._roots)
                    self._runtime.store.disk.look(place)
                except (FileGoneError, FileRefusedError):
                    continue
                yield str(place)
                break

    def read(self, ref: SessionRef, path: str) -> SeenFile | None:
        """A file that is not in hot or warm; `None` where it is, or cannot be read."""
        kept = self._runtime.store.kept_files.find(ref, path)
        if kept is not None and kept.tier != "cold":
            return None
        try:
            return self._runtime.store.disk.read(
                self._runtime.store.disk.place(path, roots=self._roots),
                most_bytes=self._runtime.settings.tiers.largest_bytes,
                now=self._runtime.now(),
            )
        except (FileGoneError, FileRefusedError):
            return None
