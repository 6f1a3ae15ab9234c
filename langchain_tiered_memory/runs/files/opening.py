"""Opens a file of a run: from its tier where it is unchanged, else from the disk, and keeps it.

What is on the disk is looked at first, outside of any transaction: a slow disk holds up nobody else. A hot file that is
as it was is opened without a write: its access is written down with others.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_tiered_memory import telemetry
from langchain_tiered_memory.errors import DamagedFileError, FileGoneError, FileRefusedError, NotFoundError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.runs.files.disk import Place, is_unchanged, seen, too_large
from langchain_tiered_memory.runs.files.store import SeenFile
from langchain_tiered_memory.sql.rows import ATTEMPTS
from langchain_tiered_memory.types.arguments import as_paths
from langchain_tiered_memory.types.files import OpenedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_tiered_memory.runs.files.policy import Tiers
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.arguments import FilePaths
    from langchain_tiered_memory.types.files import FileState, KeptFile, TierMove
    from langchain_tiered_memory.types.records import SessionRef


def roots_of(runtime: Runtime, roots: FilePaths | None) -> tuple[str, ...]:
    """Folders that a run may read: its own, else those of the settings."""
    if roots is not None:
        return as_paths(roots)
    return runtime.settings.files.roots


def open_file(
    runtime: Runtime, ref: SessionRef, path: str, *, roots: Sequence[str], pinned: bool = False
) -> OpenedFile:
    """A file's content, and what became of the tiers; a relative path is looked for in one root after the other."""
    with telemetry.operation("open_file", {telemetry.CONVERSATION: ref.session_id}) as note:
        opened = _opened(runtime, ref, path, roots=roots, pinned=pinned)
        note(_about(opened))
    return opened


def _opened(runtime: Runtime, ref: SessionRef, path: str, *, roots: Sequence[str], pinned: bool) -> OpenedFile:
    try:
        place = runtime.store.disk.place(path, roots=roots)
        kept = runtime.store.kept_files.find(ref, str(place))
        found = _found(runtime, place, kept)
    except (FileGoneError, FileRefusedError):
        given = runtime.store.kept_files.find(ref, path)  # under this very name
        opened = None
        if given is not None and given.modified_ns is None:
            opened = _enter(runtime, ref, None, _as_kept(given), pinned=pinned)
        if opened is None:
            raise
        return opened
    for _ in range(ATTEMPTS):
        try:
            opened = _enter(runtime, ref, kept, found, pinned=pinned)
        except DamagedFileError as error:
            runtime.report(EventName.FILE_DAMAGED, f"{place}: {error}", session_id=ref.session_id, path=str(place))
            if found.deleted:
                raise
            opened = None  # what is read anew takes its place
        if opened is not None:
            return opened
        kept, found = None, _found(runtime, place, None)
    msg = f"{str(place)!r} does not exist, and its kept content is gone meanwhile"
    raise FileGoneError(msg)


def keep_file(
    runtime: Runtime, ref: SessionRef, path: str, content: bytes | str, *, pinned: bool = False
) -> OpenedFile:
    """Take in a file whose content somebody has already, such as a tool's result; nothing is read from the disk.

    The path is a name here, which need not be one on this machine; a text is kept as UTF-8.
    """
    if runtime.store.disk.own.has(Path(path)):
        msg = f"{path!r} cannot be kept: it is a file of this memory itself"
        raise FileRefusedError(msg)
    said = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    most = runtime.settings.tiers.largest_bytes
    if len(said) > most:
        raise too_large(path, len(said), most)
    with telemetry.operation("open_file", {telemetry.CONVERSATION: ref.session_id}) as note:
        found = seen(path, said, modified_ns=None)
        kept = runtime.store.kept_files.find(ref, path)
        opened = _enter(runtime, ref, kept, found, pinned=pinned)
        if opened is None:  # a content that is brought along is always taken
            msg = f"{path!r} could not be kept"
            raise NotFoundError(msg)
        note(_about(opened))
    return opened


def _about(opened: OpenedFile) -> dict[str, object]:
    """What a span tells of a file: no path, no content."""
    return {
        "tiered_memory.file.from_tier": opened.from_tier or "new",
        "tiered_memory.file.state": opened.state,
        "tiered_memory.file.size": opened.file.size,
    }


def _found(runtime: Runtime, place: Place, kept: KeptFile | None) -> SeenFile:
    """The file as it is now: without its content where that is what is kept."""
    disk = runtime.store.disk
    try:
        if kept is not None and is_unchanged(kept, disk.look(place)):
            return _as_kept(kept)
        found = disk.read(place, most_bytes=runtime.settings.tiers.largest_bytes, now=runtime.now())
    except FileGoneError:
        if kept is None:
            raise
        return replace(_as_kept(kept), deleted=True)
    if kept is not None and kept.checksum == found.checksum:
        return replace(found, dependencies=kept.dependencies)
    return found


def _as_kept(kept: KeptFile) -> SeenFile:
    names = ("path", "kind", "size", "modified_ns", "checksum", "dependencies")
    return SeenFile(**{name: getattr(kept, name) for name in names})


def _enter(
    runtime: Runtime, ref: SessionRef, kept: KeptFile | None, found: SeenFile, *, pinned: bool
) -> OpenedFile | None:
    """Without a write where it is hot as it was found; `None` where its content is neither kept nor brought along."""
    again = _opened_again(runtime, ref, kept, found, pinned=pinned)
    if again is not None:
        return again
    begun = runtime.monotonic()
    opened = runtime.store.kept_files.open(ref, found, now=runtime.now(), rules=runtime.settings.tiers, pinned=pinned)
    if opened is None:
        return None
    seconds = runtime.monotonic() - begun
    file = opened.file
    about: dict[FileState, tuple[EventName, str]] = {
        "changed": (EventName.FILE_CHANGED, f"{file.size:,} bytes now"),
        "deleted": (EventName.FILE_DELETED, "the content kept from its last reading is shown"),
    }
    if opened.state in about:
        name, said = about[opened.state]
        runtime.report(name, f"{found.path}: {said}", session_id=ref.session_id, path=found.path)
    tell_moves(runtime, ref, opened.moves, seconds=seconds)
    return opened


def tell_moves(runtime: Runtime, ref: SessionRef, moves: Sequence[TierMove], *, seconds: float) -> None:
    """An event for each file that changed its tier, with its part of the seconds that all of them took."""
    for move in moves:
        name = EventName.FILE_PROMOTED if move.is_promotion else EventName.FILE_DEMOTED
        way = {"from": move.before or "new", "to": move.after or "gone", "reason": move.reason}
        telemetry.record(telemetry.FILE_MOVES, 1, {f"tiered_memory.file.{key}": value for key, value in way.items()})
        runtime.report(
            name,
            f"{move.path}: {move.before or 'not kept'} to {move.after or 'not kept'} ({move.reason})",
            session_id=ref.session_id,
            path=move.path,
            before=move.before,
            after=move.after,
            cause=move.reason,
            seconds=seconds / len(moves),
        )


def change_tiers(
    runtime: Runtime,
    ref: SessionRef,
    rule: Callable[[Tiers], Tiers],
    **about: Any,  # noqa: ANN401 - as `KeptFiles.change` takes it
) -> tuple[TierMove, ...]:
    """Apply a rule to the tiers as `KeptFiles.change` does, and tell what moved."""
    begun = runtime.monotonic()
    moves = runtime.store.kept_files.change(ref, rule, rules=runtime.settings.tiers, **about)
    tell_moves(runtime, ref, moves, seconds=runtime.monotonic() - begun)
    return moves


def _opened_again(
    runtime: Runtime, ref: SessionRef, kept: KeptFile | None, found: SeenFile, *, pinned: bool
) -> OpenedFile | None:
    """A file that is in hot as it was found; `None` where something about it has to be written at once."""
    store = runtime.store
    is_hot = kept is not None and kept.tier == "hot" and not kept.deleted
    if kept is None or not is_hot or store.database.read_only or (pinned and not kept.pinned):
        return None
    if (kept.checksum, kept.modified_ns, kept.deleted) != (found.checksum, found.modified_ns, found.deleted):
        return None
    content = found.content
    if content is None:
        with suppress(DamagedFileError):  # it is told where the file is opened anew
            content = store.kept_files.content(ref, kept.path, checksum=kept.checksum)
    if content is None:
        return None
    now, moment = runtime.now(), runtime.monotonic()
    store.kept_files.returns.note(ref.key, at=now)
    count = store.kept_files.accesses.note(ref, kept.path, at=now, moment=moment)
    if store.kept_files.accesses.is_due(ref.key, moment=moment):
        store.kept_files.settle(ref)
    file = replace(kept, accessed_at=now, accesses=kept.accesses + count)
    return OpenedFile(file=file, content=content, state="unchanged", from_tier="hot")


def settle_all(runtime: Runtime) -> None:
    """Write down what waits for any session: the memory is about to be closed."""
    for ref in runtime.store.kept_files.accesses.sessions():
        runtime.store.kept_files.settle(ref)
