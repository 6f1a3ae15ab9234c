"""A run of a session with its files in tiers: what is opened, kept and pinned in it."""

from __future__ import annotations

from contextlib import suppress

from langchain_tiered_memory.border import checked_verbs
from langchain_tiered_memory.driver import off_loop, off_loop_twin
from langchain_tiered_memory.errors import FileRefusedError, NotFoundError
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.opening import keep_file
from langchain_tiered_memory.sessions.run_life import RunLife
from langchain_tiered_memory.types.arguments import FilePath  # noqa: TC001 - annotations are read at the border, as are the next
from langchain_tiered_memory.types.files import KeptFile, OpenedFile, Tier  # noqa: TC001


@checked_verbs
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

    def open(self, path: FilePath, *, pinned: bool = False) -> OpenedFile:
        """Open a file: its content, from its tier where it is unchanged on the disk, else from there.

        `state` says which: `new`, `unchanged`, `changed`, or `deleted` for one that is gone from the disk, of which
        the last content that was kept is shown.

        Args:
            path: Absolute, or relative to one of the roots.
            pinned: Keep it in hot until `unpin`.

        Raises:
            FileGoneError: when it is neither on the disk nor kept.
            FileRefusedError: when it is outside of the roots (links followed), the memory's own, or no regular file;
                `FileTooLargeError` when it is larger than `tiers.largest_bytes`, `FileChangingError` when it was
                written to during each of several readings.
            PinLimitError: when as many are pinned as hot may hold.
        """
        return self._open(str(path), pinned=pinned)

    async def aopen(self, path: FilePath, *, pinned: bool = False) -> OpenedFile:
        """See `open`."""
        return await off_loop(self._open, str(path), pinned=pinned, since=self._monitor.moment())

    def keep(self, path: FilePath, content: bytes | str, *, pinned: bool = False) -> OpenedFile:
        """Take in a file whose content you have already, such as a tool's result; nothing is read from the disk.

        Its `state` says whether it is what was kept before: `unchanged` means that it was read again needlessly.

        Args:
            path: What it is called; it need not be a path on this machine.
            content: All of it.
            pinned: As of `open`.

        Raises:
            FileRefusedError: when it is a file of the memory itself; `FileTooLargeError` when it is larger than
                `tiers.largest_bytes`.
            PinLimitError: as of `open`.
        """
        with self._monitor.timed() as note:
            opened = keep_file(self._runtime, self._ref(), str(path), content, pinned=pinned)
            note(opened.from_tier or "new")
        return opened

    akeep = off_loop_twin(keep)

    def content(self, path: FilePath) -> bytes | None:
        """What is kept under a name, without opening it: no tier changes. `None` where nothing is.

        Args:
            path: As `files()` names it.

        Raises:
            DamagedFileError: when it is not what was kept.
        """
        return self._runtime.store.kept_files.content(self._ref(), str(path))

    acontent = off_loop_twin(content)

    def pin(self, path: FilePath) -> KeptFile:
        """Keep a file in hot until `unpin`; it is opened for that. Raises as `open` does."""
        return self.open(path, pinned=True).file

    apin = off_loop_twin(pin)

    def unpin(self, path: FilePath) -> None:
        """Let a pinned file go: it stays in hot until its time is over.

        Raises:
            NotFoundError: when no such file is kept.
        """
        runtime, ref = self._runtime, self._ref()
        names = [str(path)]
        with suppress(FileRefusedError):  # a name that was given
            names.insert(0, str(runtime.store.disk.place(names[0], roots=self._roots)))
        name = next((one for one in names if runtime.store.kept_files.find(ref, one) is not None), None)
        if name is None:
            msg = f"no file {names[-1]!r} is kept in the session {self.session_id!r}"
            raise NotFoundError(msg)
        rules = runtime.settings.tiers
        runtime.store.kept_files.change(ref, lambda tiers: policy.unpin(tiers, name), rules=rules, paths=[name])

    aunpin = off_loop_twin(unpin)

    def files(self, tier: Tier | None = None) -> list[KeptFile]:
        """Kept files, or those of a tier, the last opened first."""
        ref, kept = self._ref(), self._runtime.store.kept_files
        kept.settle(ref)
        return kept.files(ref, tier=tier)

    afiles = off_loop_twin(files)
