"""Opens a hot file again: its content from memory, its access to be written down with others.

The row says which content the file has, by its checksum, and the disk that it did not change; both are looked at each
time, so another process that changed, moved or forgot it is heard.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from langchain_tiered_memory.types.files import OpenedFile

if TYPE_CHECKING:
    from langchain_tiered_memory.runs.files.store import SeenFile
    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.files import KeptFile
    from langchain_tiered_memory.types.records import SessionRef


def opened_again(
    runtime: Runtime, ref: SessionRef, kept: KeptFile | None, found: SeenFile, *, pinned: bool
) -> OpenedFile | None:
    """A file that is in hot as it was found; `None` where something about it has to be written at once.

    Args:
        runtime: The memory.
        ref: The session.
        kept: What is known of it.
        found: The file as it is now.
        pinned: Whether it is to be pinned.
    """
    store = runtime.store
    if kept is None or kept.tier != "hot" or store.database.read_only or (pinned and not kept.pinned):
        return None
    if (kept.checksum, kept.modified_ns, kept.deleted) != (found.checksum, found.modified_ns, found.deleted):
        return None
    cache, now = store.kept_files.cache, runtime.now()
    content = cache.content(ref.key, kept.path, kept.checksum)
    if content is None or kept.deleted:
        return None
    store.kept_files.returns.note(ref.key, at=now)
    count, is_due = cache.note(ref, kept.path, at=now, moment=runtime.monotonic())
    if is_due:
        store.kept_files.settle(ref)
    file = replace(kept, accessed_at=now, accesses=kept.accesses + count)
    return OpenedFile(file=file, content=content, state="unchanged", from_tier="hot")


def remember_hot(runtime: Runtime, ref: SessionRef, opened: OpenedFile) -> None:
    """Keep the content of a file that is in hot now, for the next time that it is opened."""
    if opened.file.tier == "hot":
        file = opened.file
        runtime.store.kept_files.cache.keep(ref.key, file.path, file.checksum, opened.content)


def settle_all(runtime: Runtime) -> None:
    """Write down what waits for any session: the memory is about to be closed."""
    for ref in runtime.store.kept_files.cache.waiting_sessions():
        runtime.store.kept_files.settle(ref)
