"""A run of a session with its files in tiers: from its start to its end, and what is done in between."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

from langchain_tiered_memory.driver import off_loop
from langchain_tiered_memory.errors import (
    FileGoneError,
    FileRefusedError,
    NotFoundError,
    StorageError,
    TieredMemoryError,
)
from langchain_tiered_memory.events import EventName
from langchain_tiered_memory.maintenance.file_collector import FileCollector
from langchain_tiered_memory.messages.file_accesses import plain_path
from langchain_tiered_memory.runs.checkpoints import checkpoint
from langchain_tiered_memory.runs.files import policy
from langchain_tiered_memory.runs.files.collecting import (
    archive_checkpoints,
    collect,
    compress_warm,
    optimise,
    tend_files,
)
from langchain_tiered_memory.runs.files.companions import bring_companions
from langchain_tiered_memory.runs.files.monitor import Monitor
from langchain_tiered_memory.runs.files.opening import keep_file, open_file, roots_of
from langchain_tiered_memory.types.files import CollectionReport, KeptFile, OpenedFile, RunReport

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from types import TracebackType

    from langchain_tiered_memory.runtime import Runtime
    from langchain_tiered_memory.session_engine import SessionEngine
    from langchain_tiered_memory.types.files import Tier
    from langchain_tiered_memory.types.records import SessionRef


class Run:
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

    def __init__(
        self, core: SessionEngine, *, roots: Sequence[str] | None, critical: Sequence[str], background: bool
    ) -> None:
        self.core = core
        """The session behind the verbs, for integrations: its names may change with any version."""
        self.session_id = core.session_id
        self._roots = roots_of(core.runtime, roots)
        self._critical = tuple(dict.fromkeys([*core.runtime.settings.tiers.critical, *critical]))
        self._monitor = Monitor(core.session_id, core.runtime.monotonic)
        self._collector = FileCollector(self._tend_quietly) if background else None
        self._end_listening: Callable[[], None] | None = None
        self._started_at = core.runtime.now()
        self._logged_at = self._started_at
        self._not_loaded: tuple[str, ...] = ()

    def start(self) -> Self:
        """Load and pin the critical files, and start the collector. What cannot be loaded is an alert, not an error.

        Raises:
            PinLimitError: when there are more critical files than hot may hold.
        """
        runtime = self._runtime
        self._started_at = self._logged_at = runtime.now()
        self._end_listening = runtime.listeners.add(self._monitor.hear)
        rules = runtime.settings.tiers
        if not runtime.store.database.read_only:  # limits may have been lowered since the last run
            runtime.store.kept_files.change(self._ref(), lambda tiers: tiers, rules=rules)
        missing: list[str] = []
        for path in self._critical:
            try:
                self.open(path, pinned=True)
            except (FileGoneError, FileRefusedError) as error:
                missing.append(path)
                self._report(EventName.FILE_NOT_LOADED, str(error), path=path)
        self._not_loaded = tuple(missing)
        self._report(EventName.RUN_STARTED, f"{len(self._critical) - len(missing)} critical files loaded")
        if self._collector is not None and not runtime.store.database.read_only:
            self._collector.start()
        return self

    async def astart(self) -> Self:
        """See `start`."""
        return await off_loop(self.start)

    def end(self) -> RunReport:
        """Stop the collector, archive what is old, drop what is obsolete, save the figures, and report."""
        if self._collector is not None:
            self._collector.stop()
        try:
            return self._wind_up()
        finally:
            self.stop_listening()

    def stop_listening(self) -> None:
        """Keep no more alerts; `end` does it. For a run that was started and will not be ended."""
        if self._end_listening is not None:
            self._end_listening()
            self._end_listening = None

    def _wind_up(self) -> RunReport:
        runtime, ref = self._runtime, self._ref()
        collect(runtime, ref, reason="end of the run", roots=self._roots)
        compress_warm(runtime, ref)
        archive_checkpoints(runtime, ref)
        report = self.report()
        runtime.store.kept_files.save_report(ref, report)
        try:
            checkpoint(runtime, self.session_id, track=self.core.track, reasons=("run_end",))
        except StorageError as error:
            self._report(EventName.CHECKPOINT_FAILED, str(error), reasons=["run_end"])
        self._report(EventName.RUN_ENDED, str(report))
        return report

    async def aend(self) -> RunReport:
        """See `end`."""
        return await off_loop(self.end)

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
        runtime, ref = self._runtime, self._ref()
        with self._monitor.timed() as note:
            opened = open_file(runtime, ref, path, roots=self._roots, pinned=pinned)
            note(opened.from_tier or "new")
        bring_companions(runtime, ref, opened, roots=self._roots)
        return opened

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

    def collect(self) -> CollectionReport:
        """Send down what nobody opened for its tier's time, now; the collector does it every 5 minutes."""
        with self._monitor.timed() as note:
            report = collect(self._runtime, self._ref(), roots=self._roots)
            note("collection")
        return report

    async def acollect(self) -> CollectionReport:
        """See `collect`."""
        return await off_loop(self.collect)

    def optimise(self) -> CollectionReport:
        """Make the tiers less full, or denser, where they are above `tiers.optimise_share`, now."""
        with self._monitor.timed() as note:
            report = optimise(self._runtime, self._ref())
            note("optimisation")
        return report

    async def aoptimise(self) -> CollectionReport:
        """See `optimise`."""
        return await off_loop(self.optimise)

    def tend(self) -> tuple[CollectionReport, ...]:
        """Do what is due by the memory's clock, as the collector does: alert, collection, optimisation, log line."""
        runtime = self._runtime
        with self._monitor.timed() as note:
            done = tend_files(runtime, self._ref(), roots=self._roots)
            if done:
                note("collection")
        now = runtime.now()
        if now - self._logged_at >= runtime.settings.tiers.log_seconds or now < self._logged_at:
            self._logged_at = now
            self._report(EventName.RUN_FIGURES, str(self.report()))
        return done

    async def atend(self) -> tuple[CollectionReport, ...]:
        """See `tend`."""
        return await off_loop(self.tend)

    def report(self) -> RunReport:
        """How the run goes: sizes, counts, times, contexts, alerts."""
        runtime, ref = self._runtime, self._ref()
        runtime.store.kept_files.settle(ref)
        return RunReport(
            session_id=self.session_id,
            started_at=self._started_at,
            at=runtime.now(),
            sizes=runtime.store.kept_files.sizes(ref, runtime.settings.tiers),
            counts=dict(runtime.store.kept_files.times(ref).figures or {}),
            timings=self._monitor.timings(),
            alerts=self._monitor.alerts(),
            contexts=self.core.engine.contexts.of(self.session_id),
            not_loaded=self._not_loaded,
        )

    async def areport(self) -> RunReport:
        """See `report`."""
        return await off_loop(self.report)

    @property
    def _runtime(self) -> Runtime:
        return self.core.checked

    def _ref(self) -> SessionRef:
        """The session, made where it is not there yet."""
        runtime = self._runtime
        ref = runtime.store.transcript.find(self.session_id)
        if ref is not None:
            return ref
        made = runtime.store.transcript.append(
            self.session_id, (), user=self.core.user, title=self.core.title, now=runtime.now()
        )
        return made.ref

    def _tend_quietly(self) -> None:
        """What the collector calls: a fault is told, and tried again."""
        try:
            self.tend()
        except Exception as error:  # noqa: BLE001 - the database, the disk, or a memory that was closed
            self.core.engine.report(
                EventName.BACKGROUND_FAILED, f"{type(error).__name__}: {error}", session_id=self.session_id
            )

    def _report(self, name: EventName, reason: str, **details: object) -> None:
        self.core.engine.report(name, reason, session_id=self.session_id, **details)

    def __enter__(self) -> Self:
        """Start it."""
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End it, also where its block failed; what its block raised is not hidden by an end that fails too."""
        if error is None:
            self.end()
            return
        try:
            self.end()
        except TieredMemoryError as other:
            self._report(EventName.BACKGROUND_FAILED, f"the run could not be ended: {other}")

    async def __aenter__(self) -> Self:
        """Start it."""
        return await self.astart()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As `__exit__`."""
        await off_loop(self.__exit__, kind, error, traceback)
