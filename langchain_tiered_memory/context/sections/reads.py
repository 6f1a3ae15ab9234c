"""What a section of a context may read: a small view of the stores, bound to session, track and branch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from langchain_tiered_memory.across.searching import search_across
from langchain_tiered_memory.across.user_facts import facts_of_user
from langchain_tiered_memory.errors import FileGoneError, FileRefusedError
from langchain_tiered_memory.recall.search import search
from langchain_tiered_memory.runs.accessed_files import accessed_files
from langchain_tiered_memory.runs.files.disk import UNSETTLED_NS, is_unchanged, kept_place
from langchain_tiered_memory.types.drafts import SearchFilters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.types.files import KeptFile, Tier
    from langchain_tiered_memory.types.records import Entry, Fact, Hit, SessionRef
    from langchain_tiered_memory.types.runs import FileAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionReads:
    """Reads one session for a section; each call is a read of its own."""

    runtime: Runtime
    ref: SessionRef
    track: str
    off: frozenset[int]
    """Numbers of messages that are not on this branch: they are never given."""
    user: str | None = None
    """Who asks; `None` where nobody says, and for a sub-agent that keeps to its own track."""

    def messages(self, limit: int, *, roles: Sequence[str] | None = None) -> list[Entry]:
        """The newest messages of the track, oldest first.

        Args:
            limit: How many at most.
            roles: Only these, such as `("user",)`.
        """
        found = self.runtime.store.transcript.entries(
            self.ref, track=self.track, roles=roles, newest_first=True, limit=limit + len(self.off)
        )
        return [entry for entry in found if entry.seq not in self.off][:limit][::-1]

    def search(self, query: str, *, k: int = 10, levels: Sequence[int] | None = None) -> list[Hit]:
        """The best hits of the track over messages (level 0) and summaries, as `Session.search` gives them."""
        filters = SearchFilters(tracks=(self.track,))
        found = search(self.runtime, self.ref.session_id, query, k=k, levels=levels, filters=filters)
        return [hit for hit in found if hit.seq not in self.off]

    def elsewhere(self, query: str, *, k: int = 10) -> list[Hit]:
        """The best messages of the user's other sessions; none where it is not said whose session this is."""
        if self.user is None:
            return []
        return search_across(self.runtime, self.user, query, k=k, besides=self.ref.session_id)

    def facts_of_user(self, query: str | None = None, *, k: int = 50) -> list[Fact]:
        """What holds for the user, as their other sessions state it; none where it is not said whose session this is.

        What this session states itself is not given, and takes the place of what others say of the same matter.
        """
        if self.user is None:
            return []
        return facts_of_user(self.runtime, self.user, query, k=k, besides=self.ref.session_id)

    def files(self, limit: int) -> list[FileAccess]:
        """Files that the track touched, the latest first, one access for each."""
        return accessed_files(self.runtime, self.ref, track=self.track, limit=limit, off=self.off)

    def kept_files(self, tier: Tier | None = None, *, limit: int | None = None) -> list[KeptFile]:
        """Files that runs of the session keep, the last opened first."""
        return self.runtime.store.kept_files.files(self.ref, tier=tier, limit=limit)

    def kept_content(self, path: str) -> bytes | None:
        """What is kept of a file; no tier changes.

        Raises:
            DamagedFileError: when it is not what was kept.
        """
        return self.runtime.store.kept_files.content(self.ref, path)

    def is_unchanged(self, file: KeptFile) -> bool:
        """Whether a kept file is on the disk as it is kept.

        Told by size and time where these prove it, else by the content; a name that somebody gave, which is no path on
        this disk, counts as unchanged.
        """
        if file.deleted or not PurePath(file.path).is_absolute():
            return not file.deleted
        disk, place = self.runtime.store.disk, kept_place(file)
        try:
            look = disk.look(place)
            if file.modified_ns not in (None, UNSETTLED_NS) or look.size != file.size:
                return is_unchanged(file, look)
            return disk.read(place, most_bytes=file.size, now=self.runtime.now()).checksum == file.checksum
        except (FileGoneError, FileRefusedError):
            return False
