"""A run of a session with its files in tiers: what is opened, kept and pinned in it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from langchain_tiered_memory.driver import off_loop
from langchain_tiered_memory.errors import FileRefusedError, NotFoundError
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.messages.file_accesses import plain_path
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.opening import keep_file
from langchain_tiered_memory.sessions.run_life import RunLife

if TYPE_CHECKING:
    from collections.abc import Collection

    from langchain_tiered_memory.types.files import KeptFile, OpenedFile, Tier


class Run(RunLife):
    """One run of a session, made by `TieredMemory.run`; used as `with memory.run(...) as run:` or `async with`.

    Its start loads the critical files and starts the collector, a daemon thread; its end archives what is old, drops
    what is obsolete, saves a checkpoint with the run's figures, reports, and stops the collector. Files stay in their
    tiers: the next run of the session, here or in another process, finds them there.

    Args:
        core: The session.
        roots: Folders whose files it may open; `None`: those of the settings.
        critical: Files to load and pin at the start, besides those of the settings.
        background: Whether it starts a collector; without one, `tend` does what is due.
    """

    def open(self, path: str, *, pinned: bool = False) -> OpenedFile:
        """Open a file: its content, from its tier where it is unchanged on the disk, else from there.

        `state` says which: `new`, `unchanged`, `changed`, or `deleted` for one that is gone from the disk, of which
        the last content that was kept is shown. What belongs to it comes in with it where there are free places:
        what it imports, its tests, what was opened next before (`tiers.companions`).

        Args:
            path: Absolute, or relative to one of the roots.
            pinned: Keep it in hot until `unpin`.

        Raises:
            FileGoneError: when it is neither on the disk nor kept.
            FileRefusedError: when it is outside of the roots (links followed), or no regular file;
                `FileTooLargeError` when it is larger than `tiers.largest_bytes`.
            PinLimitError: when as many are pinned as hot may hold.
        """
        return self._open(path, pinned=pinned)

    async def aopen(self, path: str, *, pinned: bool = False) -> OpenedFile:
        """See `open`."""
        return await off_loop(self.open, path, pinned=pinned)

    def keep(self, path: str, content: bytes | str, *, pinned: bool = False) -> OpenedFile:
        """Take in a file whose content you have already, such as a tool's result; nothing is read from the disk.

        Its `state` says whether it is what was kept before: `unchanged` means that it was read again needlessly.

        Args:
            path: What it is called; it need not be a path on this machine.
            content: All of it.
            pinned: As of `open`.

        Raises:
            FileTooLargeError: when it is larger than `tiers.largest_bytes`.
            PinLimitError: as of `open`.
        """
        runtime, ref = self._runtime, self._ref()
        with self._monitor.timed() as note:
            opened = keep_file(runtime, ref, path, content, pinned=pinned)
            note(opened.from_tier or "new")
        return opened

    async def akeep(self, path: str, content: bytes | str, *, pinned: bool = False) -> OpenedFile:
        """See `keep`."""
        return await off_loop(self.keep, path, content, pinned=pinned)

    def content(self, path: str) -> bytes | None:
        """What is kept under a name, without opening it: no tier changes. `None` where nothing is.

        Args:
            path: As `files()` names it.

        Raises:
            DamagedFileError: when it is not what was kept.
        """
        return self._runtime.store.kept_files.content(self._ref(), path)

    async def acontent(self, path: str) -> bytes | None:
        """See `content`."""
        return await off_loop(self.content, path)

    def shown_in(
        self, opened: OpenedFile, *, asked: str, texts: Collection[str], tool: str = "open_file"
    ) -> str | None:
        """The message that shows this part of a file already, where no summary stands for it yet; else `None`.

        It need not be shown again. A result that only pointed to another one, or showed other lines, does not count.

        Args:
            opened: As `open` gave it.
            asked: The path as it was asked for.
            texts: What a result says that shows the part, in whichever state the file was then.
            tool: Whose results have a file's content.
        """
        if opened.state != "unchanged":
            return None
        names = [name for name in dict.fromkeys([plain_path(asked), opened.path]) if name is not None]
        store, ref = self._runtime.store, self._ref()
        seqs = store.kept_files.openings(ref, names, track=self.core.track, tool=tool, since=opened.file.changed_at)
        results = store.transcript.groups_of(ref, seqs) if seqs else []
        return next((one.id for one in reversed(results) if one.role == "tool" and one.text in texts), None)

    async def ashown_in(
        self, opened: OpenedFile, *, asked: str, texts: Collection[str], tool: str = "open_file"
    ) -> str | None:
        """See `shown_in`."""
        return await off_loop(self.shown_in, opened, asked=asked, texts=texts, tool=tool)

    def note_offer(self, opened: OpenedFile, *, saved_tokens: int) -> None:
        """Count that a file's content was pointed to in the place of being shown again.

        Args:
            opened: The file.
            saved_tokens: What showing it would have taken.
        """
        counts = {"offered": 1, "offered_tokens": saved_tokens}
        rules = self._runtime.settings.tiers
        self._runtime.store.kept_files.change(self._ref(), lambda tiers: tiers, rules=rules, counts=counts)
        self._report(
            EventName.FILE_OFFERED, f"{opened.path}: {saved_tokens} tokens saved", path=opened.path, tokens=saved_tokens
        )

    async def anote_offer(self, opened: OpenedFile, *, saved_tokens: int) -> None:
        """See `note_offer`."""
        await off_loop(self.note_offer, opened, saved_tokens=saved_tokens)

    def pin(self, path: str) -> KeptFile:
        """Keep a file in hot until `unpin`; it is opened for that. Raises as `open` does."""
        return self.open(path, pinned=True).file

    async def apin(self, path: str) -> KeptFile:
        """See `pin`."""
        return await off_loop(self.pin, path)

    def unpin(self, path: str) -> None:
        """Let a pinned file go: it stays in hot until its time is over.

        Raises:
            NotFoundError: when no such file is kept.
        """
        runtime, ref = self._runtime, self._ref()
        names = [path]
        with suppress(FileRefusedError):  # a name that was given
            names.insert(0, str(runtime.store.disk.place(path, roots=self._roots)))
        name = next((one for one in names if runtime.store.kept_files.find(ref, one) is not None), None)
        if name is None:
            msg = f"no file {path!r} is kept in the session {self.session_id!r}"
            raise NotFoundError(msg)
        rules = runtime.settings.tiers
        runtime.store.kept_files.change(ref, lambda tiers: policy.unpin(tiers, name), rules=rules, paths=[name])

    async def aunpin(self, path: str) -> None:
        """See `unpin`."""
        await off_loop(self.unpin, path)

    def files(self, tier: Tier | None = None) -> list[KeptFile]:
        """Kept files, or those of a tier, the last opened first."""
        ref, kept = self._ref(), self._runtime.store.kept_files
        kept.settle(ref)
        return kept.files(ref, tier=tier)

    async def afiles(self, tier: Tier | None = None) -> list[KeptFile]:
        """See `files`."""
        return await off_loop(self.files, tier)
